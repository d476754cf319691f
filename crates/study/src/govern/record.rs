//! The record of `govern`: of a program that it ran, or of running processes.

use filemap_attach::program::parent;
use filemap_govern::FileStatistics;
use filemap_job::record::{RecordKind, SCHEMA};
use filemap_report::units::{bytes, number, time};
use filemap_report::{Column, Part, Report, Unit, csv_column, csv_table, text_table};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use super::processes::{MappingRecord, ProcessRecord, ProcessTotals};
use crate::footer::Footer;
use crate::json::to_json;

/// How a program ended.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
struct ProgramExit {
    /// Its exit code; null where a signal ended it.
    exit_code: Option<i32>,
    /// The signal that ended it.
    signal: Option<i32>,
    /// Time from start to exit.
    elapsed_ns: u64,
}

/// The record of `govern`.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[schemars(rename = "GovernRun")]
#[allow(missing_docs, reason = "their names say it")]
pub struct GovernRecord {
    schema: u32,
    /// The kind of record.
    kind: RecordKind,
    #[serde(flatten)]
    footer: Footer,
    /// The program and its arguments; empty for running processes.
    pub program: Vec<String>,
    /// Why nothing was governed, if known, as the end of a sentence.
    pub ungoverned: Option<String>,
    /// How the program ended; null for running processes.
    ended: Option<ProgramExit>,
    /// Whether the governor only observed: figures then state what it would have requested.
    pub only_observed: bool,
    /// Totals over all `processes`.
    totals: ProcessTotals,
    pub processes: Vec<ProcessRecord>,
    /// The action taken for each file, and its reason.
    #[serde(default)]
    pub files: Vec<FileStatistics>,
    /// Records of faults and mappings that the kernel dropped because its buffer was full.
    lost_records: u64,
}

/// A row of a table: a mapping and its row number.
struct MappingRow<'a> {
    number: usize,
    process: &'a ProcessRecord,
    mapping: &'a MappingRecord,
}

/// Columns of the text form.
const fn text_columns<'a>() -> [Column<MappingRow<'a>>; 8] {
    [
        Column::new("", "", Unit::Text, |row| row.number.to_string().into()),
        Column::new("", "process", Unit::Text, |row| row.process.pid.to_string().into()),
        Column::new("", "state", Unit::Text, |row| {
            row.mapping.own.state.name().replace('-', " ").into()
        }),
        Column::new("", "size", Unit::Bytes, |row| row.mapping.own.length_bytes.into()),
        Column::new("", "faults", Unit::Count, |row| row.mapping.own.major_faults.into()),
        Column::new("", "asked for", Unit::Bytes, |row| row.mapping.own.asked_bytes.into()),
        Column::new("", "mapped", Unit::Bytes, |row| row.mapping.mapped_bytes.into()),
        Column::new("", "stopped", Unit::Nanoseconds, |row| {
            Some(row.mapping.own.stopped_ns).filter(|ns| *ns > 0).into()
        }),
    ]
}

/// Columns of the CSV form.
const fn csv_columns<'a>() -> [Column<MappingRow<'a>>; 14] {
    [
        csv_column("pid", |row| row.process.pid.into()),
        csv_column("image", |row| u64::from(row.process.image).into()),
        csv_column("path", |row| path(row.mapping).into()),
        csv_column("mappings", |row| row.mapping.own.mappings.into()),
        csv_column("state", |row| row.mapping.own.state.name().into()),
        csv_column("start", |row| row.mapping.own.address.into()),
        csv_column("bytes", |row| row.mapping.own.length_bytes.into()),
        csv_column("offset_bytes", |row| row.mapping.own.offset_bytes.into()),
        csv_column("faults", |row| row.mapping.own.major_faults.into()),
        csv_column("advised_bytes", |row| row.mapping.own.asked_bytes.into()),
        csv_column("calls", |row| row.mapping.own.calls.into()),
        csv_column("stopped_ns", |row| row.mapping.own.stopped_ns.into()),
        csv_column("mapped_bytes", |row| row.mapping.mapped_bytes.into()),
        csv_column("wasted_bytes", |row| row.mapping.wasted_bytes.into()),
    ]
}

impl GovernRecord {
    /// The record of `processes`.
    pub fn new(processes: Vec<ProcessRecord>, lost_records: u64, footer: Footer) -> GovernRecord {
        GovernRecord {
            schema: SCHEMA,
            kind: RecordKind::Govern,
            footer,
            program: Vec::new(),
            ungoverned: None,
            ended: None,
            only_observed: false,
            totals: ProcessTotals::new(&processes),
            processes,
            files: Vec::new(),
            lost_records,
        }
    }

    /// Adds the program that was run, its arguments and its exit.
    pub fn with_end(self, program: Vec<String>, ended: parent::ChildExit) -> GovernRecord {
        let parent::ChildExit { exit_code, signal, elapsed } = ended;
        let elapsed_ns = elapsed.as_nanos() as u64;
        GovernRecord { program, ended: Some(ProgramExit { exit_code, signal, elapsed_ns }), ..self }
    }

    /// The report.
    pub fn report(&self) -> Report {
        let mut parts = vec![Part::Heading(self.heading()), Part::Facts(self.facts())];
        if let Some(reason) = &self.ungoverned {
            parts.push(Part::Paragraph(format!(
                "Nothing was governed: {}.",
                escape_control(reason)
            )));
        }
        if !self.files.is_empty() {
            let line = |file: &FileStatistics| {
                escape_control(&format!("{}: {}", file.path.display(), file.done))
            };
            parts.push(Part::List(self.files.iter().map(line).collect()));
        }
        let mappings = self.processes.iter();
        let mappings = mappings
            .flat_map(|process| process.mappings.iter().map(move |mapping| (process, mapping)));
        let rows = (1..).zip(mappings).map(|(number, (process, mapping))| MappingRow {
            number,
            process,
            mapping,
        });
        let rows: Vec<MappingRow> = rows.collect();
        if !rows.is_empty() {
            parts.push(Part::Table(text_table("", &text_columns(), &rows)));
            let line = |row: &MappingRow| format!("{}: {}", row.number, file(row.mapping));
            parts.push(Part::List(rows.iter().map(line).collect()));
            parts.push(Part::Paragraph(NOTE.to_string()));
        }
        let rows = csv_table(&csv_columns(), &rows);
        Report { parts, rows, footer: self.footer.footer(), record_json: to_json(self) }
    }

    fn heading(&self) -> String {
        let subject = if self.program.is_empty() {
            "processes that ran already".to_string()
        } else {
            escape_control(&self.program.join(" "))
        };
        let how = if self.only_observed { "Observed" } else { "Governed" };
        format!("{how}: {subject}")
    }

    fn facts(&self) -> Vec<(String, String)> {
        let (count, totals) = (|count: u64| number(count as f64), self.totals);
        let mut facts = vec![
            ("Mappings", count(totals.mappings)),
            ("Faults", format!("{} major ones in them", count(totals.faults))),
        ];
        let asked = bytes(totals.advised_bytes as f64);
        let if_governed = if self.only_observed { ", if it were governed" } else { "" };
        facts.push(("Asked for", format!("{asked}{if_governed}")));
        if totals.stopped_ns > 0 {
            facts.push(("Stopped", format!("{} in all", time(totals.stopped_ns as f64))));
        }
        let left: u64 = self.processes.iter().map(|own| own.mappings_left_alone).sum();
        if left > 0 {
            facts.push(("Left alone", format!("{} mappings, for want of room", count(left))));
        }
        if self.lost_records > 0 {
            facts.push(("Lost", format!("{} records of the kernel", count(self.lost_records))));
        }
        facts.into_iter().map(|(label, text)| (label.to_string(), text)).collect()
    }
}

/// Explains the columns of the table.
const NOTE: &str = "Faults: the major ones. Asked for: what the governor had the kernel read, or \
                    found in the page cache. Mapped: what the process has mapped now, also by \
                    fault-around. Stopped: how long a thread of the program was held to advise \
                    the mapping.";

fn path(mapping: &MappingRecord) -> Option<String> {
    mapping.own.path.as_ref().map(|path| path.display().to_string())
}

fn file(mapping: &MappingRecord) -> String {
    match (path(mapping), mapping.own.offset_bytes) {
        (None, _) => format!("{} mappings that have ended", number(mapping.own.mappings as f64)),
        (Some(path), 0) => escape_control(&path),
        (Some(path), offset) => {
            format!("{}, from {} on", escape_control(&path), bytes(offset as f64))
        }
    }
}

/// Escapes line breaks and characters that a terminal would interpret: file names may contain any
/// bytes, and another user may have chosen them.
pub(super) fn escape_control(text: &str) -> String {
    let mut line = String::with_capacity(text.len());
    for character in text.chars() {
        if is_interpreted(character) {
            line.extend(character.escape_default())
        } else {
            line.push(character)
        }
    }
    line
}

/// Control characters, line breaks and bidirectional overrides.
fn is_interpreted(character: char) -> bool {
    character.is_control()
        || matches!(character, '\u{200e}' | '\u{200f}' | '\u{2028}'..='\u{202e}')
        || matches!(character, '\u{2066}'..='\u{2069}')
}

#[cfg(test)]
mod tests {
    use serde_json::{Map, Value};

    use super::super::processes::tests::{mapping, process};
    use super::*;
    use filemap_govern::MappingState as State;
    use filemap_report::{Format, TEXT_COLUMNS};

    fn run(processes: Vec<ProcessRecord>) -> GovernRecord {
        let footer = Footer {
            scope: "one process".to_string(),
            command: "filemap govern --pid 7".to_string(),
            environment: Map::new(),
        };
        GovernRecord::new(processes, 0, footer)
    }

    /// The report of the record after a round trip through JSON.
    fn report(processes: Vec<ProcessRecord>) -> Report {
        let json = to_json(&run(processes));
        serde_json::from_str::<GovernRecord>(&json).unwrap().report()
    }

    #[test]
    fn each_mapping_has_a_row_and_its_file() {
        let mut large = mapping("/data/a", State::Governed, 1023 << 30);
        large.major_faults = 123_456;
        large.offset_bytes = 1 << 20;
        let mut others = mapping("", State::Ended, 0);
        (others.path, others.mappings) = (None, 12_000);
        let given_back = mapping("/data/b", State::Restored, 1 << 24);
        let own = process(vec![
            MappingRecord::new(large, Some(8192), 4096),
            MappingRecord::new(given_back, None, 4096),
            MappingRecord::new(others, Some(0), 4096),
        ]);
        let report = report(vec![own]);
        let text = report.render(Format::Table);
        for line in ["1: /data/a, from 1 MiB on", "2: /data/b\n", "3: 12 000 mappings that have"] {
            assert!(text.contains(line), "{text}");
        }
        assert!(text.contains("123 456") && text.contains("given back"), "{text}");
        let table = report.parts.iter().find_map(|part| match part {
            Part::Table(table) => Some(table.text()),
            _ => None,
        });
        assert!(table.unwrap().lines().all(|line| line.chars().count() <= TEXT_COLUMNS), "{text}");
        assert_eq!(report.rows.rows.len(), 3);
        let json: Value = serde_json::from_str(&report.record_json).unwrap();
        let first = &json["processes"][0]["mappings"][0];
        assert_eq!(first["wasted_bytes"], 40960 + 123_456 * 4096 - 8192);
        assert_eq!(json["processes"][0]["mappings"][2]["path"], Value::Null);
    }

    #[test]
    fn escapes_control_characters() {
        let report = report(vec![process(vec![MappingRecord::new(
            mapping("/a\x1b[2J\nb", State::Governed, 1 << 24),
            None,
            4096,
        )])]);
        let text = report.render(Format::Table);
        assert!(text.contains("1: /a\\u{1b}[2J\\nb\n"), "{text}");
        let json: Value = serde_json::from_str(&report.record_json).unwrap();
        assert_eq!(json["processes"][0]["mappings"][0]["path"], "/a\x1b[2J\nb");
    }

    #[test]
    fn reports_observe_mode() {
        let mut own = process(Vec::new());
        own.mappings_left_alone = 3;
        let mut run = run(vec![own]);
        run.ungoverned = Some("it maps nothing".to_string());
        run.only_observed = true;
        let text = run.report().render(Format::Table);
        for words in
            ["Observed: processes", "if it were governed", "3 mappings, for want", "maps nothing."]
        {
            assert!(text.contains(words), "{text}");
        }
    }

    #[test]
    fn leaves_usual_names_unescaped() {
        for name in ["/data/a b", "/data/größe 'x' \"y\" \\z", "/データ"] {
            assert_eq!(escape_control(name), name);
        }
        assert_eq!(escape_control("a\tb\nc\u{1b}]0;x\u{7}"), "a\\tb\\nc\\u{1b}]0;x\\u{7}");
        assert_eq!(escape_control("\u{9b}1m\u{202e}x"), "\\u{9b}1m\\u{202e}x");
    }
}

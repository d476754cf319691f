//! What was done for the processes of a program, or for some that ran already.

use filemap_job::record::SCHEMA;
use serde::Serialize;

use super::process::{Mapping, Process, Totals};
use super::shown::shown;
use crate::footer::Footer;
use crate::json::to_json;
use filemap_report::units::{bytes, number, time};
use filemap_report::{Head, Table};
use filemap_report::{Part, Report};

/// How a program ended.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, schemars::JsonSchema)]
pub struct Ended {
    /// Its exit code; null where a signal ended it.
    pub exit_code: Option<i32>,
    /// The signal that ended it.
    pub signal: Option<i32>,
    /// From its start to its end.
    pub elapsed_ns: u64,
}

/// What was done.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Run {
    /// The program and its arguments; nothing of processes that ran already.
    pub program: Vec<String>,
    /// Why nothing was governed, where that is known: the end of a sentence.
    pub ungoverned: Option<String>,
    /// How the program ended.
    pub ended: Option<Ended>,
    /// Nothing was advised and nothing read.
    pub only_observed: bool,
    /// What was done for each of its processes.
    pub processes: Vec<Process>,
    /// Records of the kernel that were lost.
    pub lost_records: u64,
}

/// The report as JSON.
#[derive(Serialize, schemars::JsonSchema)]
#[schemars(rename = "GovernRun")]
pub(crate) struct Json<'a> {
    schema: u32,
    #[serde(flatten)]
    footer: &'a Footer,
    /// The program and its arguments; nothing of processes that ran already.
    program: &'a [String],
    /// Why nothing of it was governed, where that is known.
    ungoverned: Option<&'a str>,
    /// How the program ended; null of processes that ran already.
    ended: Option<Ended>,
    /// Whether nothing was advised and nothing read: the figures are of what would have been.
    only_observed: bool,
    /// Of all `processes`.
    totals: Totals,
    processes: &'a [Process],
    /// Records of faults and mappings that the kernel had no room for.
    lost_records: u64,
}

impl Run {
    /// The report.
    pub fn report(&self, footer: Footer) -> Report {
        let Run { program, ended, only_observed, processes, lost_records, .. } = self;
        let totals = Totals::of(processes);
        let json = to_json(&Json {
            schema: SCHEMA,
            footer: &footer,
            program,
            ungoverned: self.ungoverned.as_deref(),
            ended: *ended,
            only_observed: *only_observed,
            totals,
            processes,
            lost_records: *lost_records,
        });
        let mut parts = vec![Part::Heading(self.heading()), Part::Facts(self.facts(totals))];
        if let Some(reason) = &self.ungoverned {
            parts.push(Part::Paragraph(format!("Nothing was governed: {}.", shown(reason))));
        }
        let all: Vec<(&Process, &Mapping)> = mappings(processes).collect();
        if !all.is_empty() {
            parts.push(Part::Table(table(&all)));
            let files = all.iter().enumerate();
            let line =
                |(at, (_, of)): (usize, &(&Process, &Mapping))| format!("{}: {}", at + 1, file(of));
            parts.push(Part::List(files.map(line).collect()));
            parts.push(Part::Paragraph(NOTE.to_string()));
        }
        Report { parts, rows: rows(&all), footer: footer.footer(), json }
    }

    fn heading(&self) -> String {
        let what = match self.program.is_empty() {
            true => "processes that ran already".to_string(),
            false => shown(&self.program.join(" ")),
        };
        let how = if self.only_observed { "Observed" } else { "Governed" };
        format!("{how}: {what}")
    }

    fn facts(&self, totals: Totals) -> Vec<(String, String)> {
        let count = |count: u64| number(count as f64);
        let mut facts = vec![
            ("Mappings", count(totals.mappings)),
            ("Faults", format!("{} major ones in them", count(totals.faults))),
        ];
        let asked = bytes(totals.advised_bytes as f64);
        facts.push(match self.only_observed {
            true => ("Asked for", format!("{asked}, if it were governed")),
            false => ("Asked for", asked),
        });
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

/// What the figures of the table mean.
const NOTE: &str = "Faults: the major ones. Asked for: what the governor had the kernel read, or \
                    found in the page cache. Mapped: what the process has mapped now, also by \
                    fault-around. Stopped: how long a thread of the program was held to advise \
                    the mapping.";

fn mappings(processes: &[Process]) -> impl Iterator<Item = (&Process, &Mapping)> {
    processes.iter().flat_map(|process| process.mappings.iter().map(move |own| (process, own)))
}

fn table(all: &[(&Process, &Mapping)]) -> Table {
    let size = |bytes_of: Option<u64>| bytes_of.map_or("-".to_string(), |b| bytes(b as f64));
    let row = |(at, (process, of)): (usize, &(&Process, &Mapping))| {
        vec![
            (at + 1).to_string(),
            process.pid.to_string(),
            of.state.replace('-', " "),
            size(Some(of.bytes)),
            number(of.faults as f64),
            size(Some(of.advised_bytes)),
            size(of.mapped_bytes),
            if of.stopped_ns > 0 { time(of.stopped_ns as f64) } else { "-".to_string() },
        ]
    };
    let right = ["size", "faults", "asked for", "mapped", "stopped"].map(Head::right);
    let left = [Head::left(""), Head::right("process"), Head::left("state")];
    Table {
        title: String::new(),
        columns: left.into_iter().chain(right).collect(),
        rows: all.iter().enumerate().map(row).collect(),
    }
}

fn file(mapping: &Mapping) -> String {
    match (&mapping.path, mapping.offset_bytes) {
        (None, _) => format!("{} mappings that have ended", number(mapping.mappings as f64)),
        (Some(path), 0) => shown(path),
        (Some(path), offset) => format!("{}, from {} on", shown(path), bytes(offset as f64)),
    }
}

/// One row for each mapping.
fn rows(all: &[(&Process, &Mapping)]) -> Table {
    let names = [
        "pid",
        "image",
        "path",
        "mappings",
        "state",
        "start",
        "bytes",
        "offset_bytes",
        "faults",
        "advised_bytes",
        "calls",
        "stopped_ns",
        "mapped_bytes",
        "wasted_bytes",
    ];
    let optional = |value: Option<u64>| value.map_or(String::new(), |value| value.to_string());
    let row = |(process, of): &(&Process, &Mapping)| {
        vec![
            process.pid.to_string(),
            process.image.to_string(),
            of.path.clone().unwrap_or_default(),
            of.mappings.to_string(),
            of.state.to_string(),
            of.start.to_string(),
            of.bytes.to_string(),
            of.offset_bytes.to_string(),
            of.faults.to_string(),
            of.advised_bytes.to_string(),
            of.calls.to_string(),
            of.stopped_ns.to_string(),
            optional(of.mapped_bytes),
            optional(of.wasted_bytes),
        ]
    };
    Table {
        title: String::new(),
        columns: names.into_iter().map(Head::left).collect(),
        rows: all.iter().map(row).collect(),
    }
}

#[cfg(test)]
mod tests {
    use serde_json::{Map, Value};

    use super::super::process::tests::{mapping, process};
    use super::*;
    use filemap_report::{Format, TEXT_COLUMNS};

    fn report(processes: Vec<Process>) -> Report {
        let footer = Footer {
            scope: "one process".to_string(),
            command: "filemap govern --pid 7".to_string(),
            environment: Map::new(),
        };
        Run { processes, ..Run::default() }.report(footer)
    }

    #[test]
    fn each_mapping_has_a_row_and_its_file() {
        let mut large = mapping("/data/a", "governed", 1023 << 30);
        large.faults = 123_456;
        large = large.with_mapped(Some(8192), 4096);
        large.offset_bytes = 1 << 20;
        let mut others = mapping("", "ended", 0).with_mapped(Some(0), 4096);
        (others.path, others.mappings) = (None, 12_000);
        let of = process(vec![large, mapping("/data/b", "given-back", 1 << 24), others]);
        let report = report(vec![of]);
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
        let json: Value = serde_json::from_str(&report.json).unwrap();
        let first = &json["processes"][0]["mappings"][0];
        assert_eq!(first["wasted_bytes"], 40960 + 123_456 * 4096 - 8192);
        assert_eq!(json["processes"][0]["mappings"][2]["path"], Value::Null);
    }

    #[test]
    fn names_do_nothing_to_a_terminal() {
        let report = report(vec![process(vec![mapping("/a\x1b[2J\nb", "governed", 1 << 24)])]);
        let text = report.render(Format::Table);
        assert!(text.contains("1: /a\\u{1b}[2J\\nb\n"), "{text}");
        let json: Value = serde_json::from_str(&report.json).unwrap();
        assert_eq!(json["processes"][0]["mappings"][0]["path"], "/a\x1b[2J\nb");
    }

    #[test]
    fn what_was_only_observed_is_said() {
        let mut of = process(Vec::new());
        of.mappings_left_alone = 3;
        let footer = Footer {
            scope: "one process".to_string(),
            command: "filemap govern --observe --pid 7".to_string(),
            environment: Map::new(),
        };
        let ungoverned = Some("it maps nothing".to_string());
        let run = Run { processes: vec![of], only_observed: true, ungoverned, ..Run::default() };
        let text = run.report(footer).render(Format::Table);
        for words in
            ["Observed: processes", "if it were governed", "3 mappings, for want", "maps nothing."]
        {
            assert!(text.contains(words), "{text}");
        }
    }
}

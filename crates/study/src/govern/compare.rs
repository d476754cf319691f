//! A program that was run plain and governed in turn.

use filemap_job::record::SCHEMA;
use serde::Serialize;

use super::endings::{self, Ending, endings};
use super::measure::{Cell, Measure};
use super::shown::shown;
use super::tables::{medians, rows, spreads};
use crate::footer::Footer;
use crate::json::to_json;
use filemap_report::units::bytes;
use filemap_report::{Part, Report};

/// How a program was run.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize, schemars::JsonSchema)]
#[serde(rename_all = "lowercase")]
pub enum Variant {
    /// As it is.
    Plain,
    /// With its file mappings governed.
    Governed,
}

/// One run of a program, and of all that it started.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, schemars::JsonSchema)]
pub struct Measured {
    /// How it was run.
    pub variant: Variant,
    /// Its exit code; null where a signal ended it.
    pub exit_code: Option<i32>,
    /// The signal that ended it.
    pub signal: Option<i32>,
    /// Bytes that were read from disks.
    pub bytes_read: u64,
    /// Faults that waited for a disk.
    pub major_faults: u64,
    /// From its start to its end.
    pub elapsed_ns: u64,
    /// User and system time.
    pub cpu_ns: u64,
    /// Bytes of the governed files that were in the page cache before.
    pub cached_bytes: u64,
    /// What tells one output on stdout from another: a digest of it.
    pub stdout: String,
    /// The same of stderr, without the lines that filemap itself writes there.
    pub stderr: String,
}

/// A program that was run plain and governed in turn.
#[derive(Clone, Debug, PartialEq)]
pub struct Comparison {
    /// The program and its arguments.
    pub program: Vec<String>,
    /// Files of which mappings were governed, with their bytes.
    pub files: Vec<(String, u64)>,
    /// Why there is none, where that is known: the end of a sentence.
    pub ungoverned: Option<String>,
    /// What else a reader should know, in sentences.
    pub notes: Vec<String>,
    /// A governed run before all others, which told the files, where there was one.
    pub first: Option<Measured>,
    /// The runs in the order in which they were made.
    pub runs: Vec<Measured>,
}

/// A governed file.
#[derive(Serialize, schemars::JsonSchema)]
struct File<'a> {
    path: &'a str,
    bytes: u64,
}

/// The report as JSON.
#[derive(Serialize, schemars::JsonSchema)]
#[schemars(rename = "GovernCompare")]
pub(crate) struct Json<'a> {
    schema: u32,
    #[serde(flatten)]
    footer: &'a Footer,
    /// The program and its arguments.
    program: &'a [String],
    files: Vec<File<'a>>,
    /// Why no file was governed, where that is known.
    ungoverned: Option<&'a str>,
    notes: &'a [String],
    /// What the governed runs did otherwise than the plain ones. There should be nothing.
    differences: Vec<String>,
    /// How often the runs of each kind ended how.
    endings: Vec<Ending>,
    cells: Vec<Cell>,
    runs: &'a [Measured],
}

impl Comparison {
    /// What governed runs did otherwise than the plain ones. What they print is compared only where
    /// the plain ones agree among themselves.
    pub fn differences(&self) -> Vec<String> {
        let mut differences = Vec::new();
        let endings = endings(&self.runs);
        if endings::differ(&endings) {
            differences.push(format!(
                "the exit code of governed runs differs from that of plain runs: {}",
                endings::in_words(&endings)
            ));
        }
        for (name, value) in OUTPUTS {
            let [plain, governed] = self.outputs(value);
            if plain.len() == 1 && governed.iter().any(|own| !plain.contains(own)) {
                differences
                    .push(format!("{name} of governed runs differs from that of plain runs"));
            }
        }
        differences
    }

    /// The distinct outputs of plain and of governed runs.
    fn outputs(&self, value: Output) -> [Vec<String>; 2] {
        [Variant::Plain, Variant::Governed].map(|variant| {
            let mut all: Vec<_> = self.of(variant).map(value).collect();
            all.sort_unstable();
            all.dedup();
            all
        })
    }

    /// What cannot be compared, since plain runs differ among themselves.
    fn unsteady(&self) -> impl Iterator<Item = String> {
        let unsteady = OUTPUTS.into_iter().filter(|(_, value)| self.outputs(*value)[0].len() > 1);
        unsteady.map(|(name, _)| {
            format!("{name} differs among the plain runs already, and is not compared.")
        })
    }

    fn of(&self, variant: Variant) -> impl Iterator<Item = &Measured> {
        self.runs.iter().filter(move |run| run.variant == variant)
    }

    fn cells(&self) -> Vec<Cell> {
        let of =
            |variant, measure: Measure| self.of(variant).map(measure.value).collect::<Vec<_>>();
        let cell = |measure: Measure| {
            Cell::of(measure, of(Variant::Plain, measure), of(Variant::Governed, measure))
        };
        Measure::ALL.into_iter().map(cell).collect()
    }

    /// The report.
    ///
    /// # Panics
    /// Without a run of each kind.
    pub fn report(&self, footer: Footer) -> Report {
        let cells = self.cells();
        let differences = self.differences();
        let endings = endings(&self.runs);
        let heading = format!("Plain and governed: {}", shown(&self.program.join(" ")));
        let mut parts = vec![Part::Heading(heading)];
        let failed = differences.iter().map(|what| format!("Check failed: {what}."));
        parts.extend(failed.map(Part::Paragraph));
        // Where it ended otherwise this is said already.
        let failure = endings::failure(&endings, self.first.as_ref());
        parts.extend(failure.filter(|_| !endings::differ(&endings)).map(Part::Paragraph));
        parts.extend([
            Part::Facts(self.facts()),
            Part::Table(medians(&cells)),
            Part::Paragraph(TESTED.to_string()),
            Part::Table(spreads(&cells)),
        ]);
        if let Some(reason) = &self.ungoverned {
            parts.push(Part::Paragraph(format!(
                "No file of this program was governed, so that only chance tells the runs apart: \
                 {reason}."
            )));
        }
        parts.extend(self.unsteady().map(Part::Paragraph));
        parts.extend(self.notes.iter().map(|note| Part::Paragraph(shown(note))));
        let rows = rows(&cells);
        let files = self.files.iter().map(|(path, bytes)| File { path, bytes: *bytes });
        let json = to_json(&Json {
            schema: SCHEMA,
            footer: &footer,
            program: &self.program,
            files: files.collect(),
            ungoverned: self.ungoverned.as_deref(),
            notes: &self.notes,
            differences,
            endings,
            cells,
            runs: &self.runs,
        });
        Report { parts, rows, footer: footer.footer(), json }
    }

    fn facts(&self) -> Vec<(String, String)> {
        let total: u64 = self.files.iter().map(|(_, bytes)| bytes).sum();
        let [plain, governed] =
            [Variant::Plain, Variant::Governed].map(|variant| self.of(variant).count());
        let cached = self.runs.iter().map(|run| run.cached_bytes).max().unwrap_or(0);
        let mut facts = vec![("Runs", format!("{plain} plain and {governed} governed, in turn"))];
        match self.files.as_slice() {
            [] => facts.push(("Files", "none that was governed".to_string())),
            [(path, _)] => {
                facts.push(("File", format!("{}, {}", shown(path), bytes(total as f64))))
            }
            files => {
                let size = bytes(total as f64);
                facts.push(("Files", format!("{} that were governed, {size}", files.len())));
            }
        }
        if !self.files.is_empty() {
            let left = match cached {
                0 => "nothing of them was in the page cache before a run".to_string(),
                some => {
                    format!("up to {} of them stayed in the page cache", bytes(some as f64))
                }
            };
            facts.push(("Cold", left));
        }
        facts.into_iter().map(|(label, text)| (label.to_string(), text)).collect()
    }
}

/// What a run printed, as text that is the same where that is.
type Output = fn(&Measured) -> String;

/// What a program prints.
const OUTPUTS: [(&str, Output); 2] =
    [("what stdout has", |run| run.stdout.clone()), ("what stderr has", |run| run.stderr.clone())];

/// How differences are told from chance.
const TESTED: &str = "Medians. p is how often chance alone sets runs apart as much (unpaired \
                      permutation test on ranks). The figures are those of the program and of \
                      all that it started and waited for.";

#[cfg(test)]
mod tests {
    use serde_json::{Map, Value};

    use super::*;
    use filemap_report::{Format, TEXT_COLUMNS};

    fn run(variant: Variant, read: u64) -> Measured {
        Measured {
            variant,
            exit_code: Some(0),
            signal: None,
            bytes_read: read << 20,
            major_faults: 12_345,
            elapsed_ns: read * 1_000_003,
            cpu_ns: 5_000_000,
            cached_bytes: 0,
            stdout: "a".to_string(),
            stderr: String::new(),
        }
    }

    fn comparison() -> Comparison {
        let pair = |at: u64| [run(Variant::Plain, 1000 + at), run(Variant::Governed, 20 + at)];
        Comparison {
            program: vec!["rg".to_string(), "x".to_string()],
            files: vec![("/data/a".to_string(), 1 << 30)],
            ungoverned: None,
            notes: Vec::new(),
            first: None,
            runs: (0..5).flat_map(pair).collect(),
        }
    }

    fn report(comparison: &Comparison) -> Report {
        comparison.report(Footer {
            scope: "one program".to_string(),
            command: "filemap govern --compare -- rg x".to_string(),
            environment: Map::new(),
        })
    }

    #[test]
    fn what_differs_is_told_from_chance() {
        let report = report(&comparison());
        let text = report.render(Format::Table);
        assert!(text.contains("1002 MiB") && text.contains("45.55  0.008  less"), "{text}");
        assert!(text.contains("12 345") && text.contains("1.000  no difference shown"), "{text}");
        assert!(text.lines().all(|line| line.chars().count() <= TEXT_COLUMNS), "{text}");
        let json: Value = serde_json::from_str(&report.json).unwrap();
        assert_eq!(json["cells"][0]["plain"]["median"], 1002 << 20);
        assert_eq!(json["cells"][2]["verdict"], "faster");
        assert_eq!(json["runs"].as_array().unwrap().len(), 10);
        assert_eq!(json["differences"], Value::Array(Vec::new()));
        assert_eq!(report.rows.rows.len(), 8);
    }

    #[test]
    fn other_outputs_fail_unless_they_are_never_the_same() {
        let mut comparison = comparison();
        comparison.runs[3].stdout = "b".to_string();
        comparison.runs[3].exit_code = Some(1);
        assert_eq!(comparison.differences().len(), 2);
        assert!(report(&comparison).render(Format::Table).contains("Check failed: the exit code"));
        comparison.runs[0].stdout = "c".to_string();
        assert_eq!(comparison.differences().len(), 1);
        let text = report(&comparison).render(Format::Table);
        assert!(text.contains("what stdout has differs among the plain runs already"), "{text}");
    }

    #[test]
    fn without_a_governed_file_the_reason_is_said() {
        let mut comparison = comparison();
        comparison.files.clear();
        comparison.ungoverned = Some("it maps nothing".to_string());
        let text = report(&comparison).render(Format::Table);
        assert!(text.contains("apart: it maps nothing."), "{text}");
        assert!(text.contains("none that was governed"), "{text}");
    }
}

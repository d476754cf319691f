//! A program that was run plain and governed in turn.

use filemap_report::units::bytes;
use filemap_report::{Part, Report};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use super::endings::{self, Ending, endings};
use super::measure::{Cell, Measure};
use super::measured::{Measured, Variant};
use super::shown::shown;
use super::tables::{compared, judged, rows};
use crate::footer::Footer;
use crate::json::to_json;
use crate::trial::{OUTCOMES, Outcome, Ran, agree, differ};

/// A program that was run plain and governed in turn.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[schemars(rename = "GovernCompare")]
#[allow(missing_docs, reason = "their names say it")]
pub struct Comparison {
    pub schema: u32,
    #[serde(flatten)]
    pub footer: Footer,
    /// The program and its arguments.
    pub program: Vec<String>,
    /// Files of which mappings were governed.
    pub files: Vec<File>,
    /// Why no file was governed, where that is known: the end of a sentence.
    pub ungoverned: Option<String>,
    /// What else a reader should know, in sentences.
    pub notes: Vec<String>,
    /// What the governed runs did otherwise than the plain ones. There should be nothing.
    pub differences: Vec<String>,
    /// How often the runs of each kind ended how.
    pub(super) endings: Vec<Ending>,
    pub(super) cells: Vec<Cell>,
    /// The runs in the order in which they were made.
    pub runs: Vec<Measured>,
    /// A governed run before all others, which told the files, where there was one.
    #[serde(default)]
    pub first: Option<Measured>,
}

/// A governed file.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct File {
    pub path: String,
    pub bytes: u64,
}

impl Comparison {
    /// With what its runs show.
    ///
    /// # Panics
    /// Without a run of each kind.
    pub fn concluded(mut self) -> Self {
        let cell = |measure| Cell::of(measure, self.of(Variant::Plain), self.of(Variant::Governed));
        self.cells = Measure::ALL.into_iter().map(cell).collect();
        self.endings = endings(&self.runs);
        self.differences = self.differences();
        self
    }

    fn of(&self, variant: Variant) -> impl Iterator<Item = &Measured> + Clone {
        self.runs.iter().filter(move |run| run.variant == variant)
    }

    fn ran(&self, variant: Variant) -> impl Iterator<Item = &Ran> + Clone {
        self.of(variant).map(|run| &run.ran)
    }

    /// What governed runs did otherwise than the plain ones. What they print is compared only where
    /// the plain ones agree among themselves.
    fn differences(&self) -> Vec<String> {
        let exit = endings::differ(&self.endings).then(|| {
            format!(
                "the exit code of governed runs differs from that of plain runs: {}",
                endings::in_words(&self.endings)
            )
        });
        let differs = |outcome: &&Outcome| {
            differ(self.ran(Variant::Governed), self.ran(Variant::Plain), **outcome)
        };
        let printed = OUTCOMES[1..].iter().filter(differs);
        let printed = printed
            .map(|(name, _)| format!("{name} of governed runs differs from that of plain runs"));
        exit.into_iter().chain(printed).collect()
    }

    /// What cannot be compared, since plain runs differ among themselves.
    fn unsteady(&self) -> impl Iterator<Item = String> {
        let is_unsteady = |outcome: &&Outcome| !agree(self.ran(Variant::Plain), **outcome);
        OUTCOMES[1..].iter().filter(is_unsteady).map(|(name, _)| {
            format!("{name} differs among the plain runs already, and is not compared.")
        })
    }

    /// The report.
    pub fn report(&self) -> Report {
        let heading = format!("Plain and governed: {}", shown(&self.program.join(" ")));
        let mut parts = vec![Part::Heading(heading)];
        let failed = self.differences.iter().map(|what| format!("Check failed: {what}."));
        parts.extend(failed.map(Part::Paragraph));
        // Where it ended otherwise this is said already.
        let failure = endings::failure(&self.endings, self.first.as_ref());
        parts.extend(failure.filter(|_| !endings::differ(&self.endings)).map(Part::Paragraph));
        parts.extend([
            Part::Facts(self.facts()),
            Part::Comparison(compared(&self.cells)),
            Part::Table(judged(&self.cells)),
            Part::Paragraph(TESTED.to_string()),
        ]);
        if let Some(reason) = &self.ungoverned {
            parts.push(Part::Paragraph(format!(
                "No file of this program was governed, so that only chance tells the runs apart: \
                 {reason}."
            )));
        }
        parts.extend(self.unsteady().map(Part::Paragraph));
        parts.extend(self.notes.iter().map(|note| Part::Paragraph(shown(note))));
        let rows = rows(&self.cells);
        Report { parts, rows, footer: self.footer.footer(), record_json: to_json(self) }
    }

    fn facts(&self) -> Vec<(String, String)> {
        let total: u64 = self.files.iter().map(|file| file.bytes).fold(0, u64::saturating_add);
        let total = bytes(total as f64);
        let [plain, governed] = [Variant::Plain, Variant::Governed].map(|of| self.of(of).count());
        let cached = self.runs.iter().map(|run| run.ran.cached_bytes).max().unwrap_or(0);
        let mut facts = vec![("Runs", format!("{plain} plain and {governed} governed, in turn"))];
        facts.push(match self.files.as_slice() {
            [] => ("Files", "none that was governed".to_string()),
            [file] => ("File", format!("{}, {total}", shown(&file.path))),
            files => ("Files", format!("{} that were governed, {total}", files.len())),
        });
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

/// How differences are told from chance.
const TESTED: &str = "p is how often chance alone sets runs apart as much (unpaired permutation \
                      test on ranks). The figures are those of the program and of \
                      all that it started and waited for.";

#[cfg(test)]
mod tests {
    use serde_json::{Map, Value};

    use super::*;
    use filemap_report::{Format, TEXT_COLUMNS};

    fn run(variant: Variant, read: u64) -> Measured {
        let ran = Ran {
            exit_code: Some(0),
            major_faults: 12_345,
            elapsed_ns: read * 1_000_003,
            cpu_ns: 5_000_000,
            stdout: "a".to_string(),
            ..Ran::default()
        };
        Measured { variant, bytes_read: read << 20, ran }
    }

    fn runs() -> Comparison {
        let pair = |at: u64| [run(Variant::Plain, 1000 + at), run(Variant::Governed, 20 + at)];
        Comparison {
            footer: Footer {
                scope: "one program".to_string(),
                command: "filemap govern --compare -- rg x".to_string(),
                environment: Map::new(),
            },
            program: vec!["rg".to_string(), "x".to_string()],
            files: vec![File { path: "/data/a".to_string(), bytes: 1 << 30 }],
            runs: (0..5).flat_map(pair).collect(),
            ..Comparison::default()
        }
    }

    /// The report on what is read of what was written.
    fn report(runs: &Comparison) -> Report {
        let json = to_json(&runs.clone().concluded());
        serde_json::from_str::<Comparison>(&json).unwrap().report()
    }

    #[test]
    fn what_differs_is_told_from_chance() {
        let report = report(&runs());
        let text = report.render(Format::Table);
        let lines: Vec<String> = text
            .lines()
            .map(|line| line.split_whitespace().collect::<Vec<_>>().join(" "))
            .collect();
        for line in [
            "read 1002 MiB 22 MiB -97.8 %",
            "major faults 12 345 12 345 =",
            "read less 0.008 1000 to 1004 MiB 20 to 24 MiB",
            "major faults no difference 1.000 12 345 to 12 345 12 345 to 12 345",
        ] {
            assert!(lines.iter().any(|own| own == line), "{line}: {text}");
        }
        assert!(text.lines().all(|line| line.chars().count() <= TEXT_COLUMNS), "{text}");
        let json: Value = serde_json::from_str(&report.record_json).unwrap();
        assert_eq!(json["cells"][0]["plain"]["median"], 1002 << 20);
        assert_eq!(json["cells"][2]["verdict"], "faster");
        assert_eq!(json["runs"].as_array().unwrap().len(), 10);
        assert_eq!(json["differences"], Value::Array(Vec::new()));
        assert_eq!(report.rows.rows.len(), 8);
    }

    #[test]
    fn other_outputs_fail_unless_they_are_never_the_same() {
        let mut runs = runs();
        runs.runs[3].ran.stdout = "b".to_string();
        runs.runs[3].ran.exit_code = Some(1);
        assert_eq!(runs.clone().concluded().differences.len(), 2);
        assert!(report(&runs).render(Format::Table).contains("Check failed: the exit code"));
        runs.runs[0].ran.stdout = "c".to_string();
        assert_eq!(runs.clone().concluded().differences.len(), 1);
        let text = report(&runs).render(Format::Table);
        assert!(text.contains("what stdout has differs among the plain runs already"), "{text}");
    }

    #[test]
    fn without_a_governed_file_the_reason_is_said() {
        let mut runs = runs();
        runs.files.clear();
        runs.ungoverned = Some("it maps nothing".to_string());
        let text = report(&runs).render(Format::Table);
        assert!(text.contains("apart: it maps nothing."), "{text}");
        assert!(text.contains("none that was governed"), "{text}");
    }
}

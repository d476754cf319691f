//! The report on compared patterns.

use filemap_job::{JobSpec, ShownKind};
use filemap_report::units::number;
use filemap_report::{
    Card, CellValue, Column, Part, Report, Table, Unit, csv_table, fold_cell, text_table,
};

use super::difference_text;
use super::differences::Difference;
use super::evidence::SeriesCoverage;
use super::record::{ConformRecord, PatternResult};
use crate::json::to_json;
use crate::setup;

/// Maximum number of patterns listed; beyond it only those that differ.
const MAX_LISTED: usize = 100;

/// Maximum number of patterns named that share the reason why they cannot run here.
const MAX_NAMED_PATTERNS: usize = 3;

/// Maximum width of a name, so that the table fits into [`filemap_report::TEXT_COLUMNS`].
const NAME_COLUMNS: usize = 22;

/// Name of a pattern that was given as a job.
pub const JOB: &str = "job";

/// Columns of a pattern. The table shows the first ones, CSV all.
const COLUMNS: [Column<PatternResult>; 8] = [
    Column::new("pattern", "pattern", Unit::Text, |own| own.name.as_str().into()),
    Column::new("decisions", "decisions", Unit::Count, |own| if_compared(own, own.decisions)),
    Column::new("readahead_calls", "readahead\ncalls", Unit::Count, |own| {
        if_compared(own, own.readahead_calls)
    }),
    Column::new("excluded", "excluded", Unit::Count, |own| if_compared(own, own.excluded)),
    Column::new("mismatches", "mismatches", Unit::Count, |own| if_compared(own, own.mismatches)),
    Column::new("ok", "ok", Unit::Text, |own| own.ok.map(|ok| ok.to_string()).into()),
    Column::new("not_compared", "not compared", Unit::Text, |own| own.not_compared.clone().into()),
    Column::new("left_out", "left out", Unit::Text, |own| own.left_out.clone().into()),
];

/// A figure of a pattern, if it was compared.
fn if_compared(pattern: &PatternResult, figure: impl Into<CellValue>) -> CellValue {
    pattern.ok.map_or(CellValue::Unknown, |_| figure.into())
}

impl ConformRecord {
    /// The report.
    pub fn report(&self) -> Report {
        let which = if self.booted { "booted" } else { "running" };
        let heading = format!("Decisions of the {which} kernel and of the model");
        let total = self.total();
        let mut parts = vec![Part::Heading(heading)];
        parts.extend(self.setup());
        parts.push(Part::Cards(self.cards(&total)));
        parts.push(Part::Table(self.table(&total)));
        let mut say = |text: String| parts.push(Part::Paragraph(text));
        say(self.summary(&total));
        let switched = self.switched.iter().flat_map(SeriesCoverage::sentences);
        switched.for_each(&mut say);
        let with = self.with.as_deref().unwrap_or_default();
        self.likeness.iter().for_each(|likeness| say(likeness.sentence(with)));
        self.unseen_note().into_iter().for_each(&mut say);
        for pattern in &self.patterns {
            let why = |reason: &String| format!("{}: not compared: {reason}.", pattern.name);
            pattern.not_compared.iter().map(why).for_each(&mut say);
        }
        for pattern in &self.patterns {
            let doubt = pattern.doubt();
            doubt.map(|doubt| format!("{}: {doubt}.", pattern.name)).into_iter().for_each(&mut say);
        }
        self.doubt().map(|doubt| format!("All patterns: {doubt}.")).into_iter().for_each(&mut say);
        for (reason, names) in self.unmet_needs() {
            let named = names.iter().take(MAX_NAMED_PATTERNS).copied().collect::<Vec<_>>();
            let more = match names.len() - named.len() {
                0 => String::new(),
                more => format!("; and {more} more"),
            };
            say(format!("Left out: {reason}. Patterns: {}{more}.", named.join("; ")));
        }
        parts.extend(self.differences().iter().flat_map(difference_text::difference_parts));
        if !self.commands.is_empty() {
            let text = "With a job file of these saved as job.toml:";
            parts.push(Part::Paragraph(text.to_string()));
            parts.push(Part::Preformatted(self.commands.join("\n")));
        }
        let (all, left_out) = (self.patterns.len(), self.left_out());
        if left_out > 0 {
            parts.push(Part::Paragraph(format!(
                "{left_out} of {all} patterns were left out, as they cannot run here."
            )));
        }
        Report {
            parts,
            rows: csv_table(&COLUMNS, &self.patterns),
            footer: self.footer.footer(),
            record_json: to_json(self),
        }
    }

    /// The differences. Older records have one for each pattern.
    fn differences(&self) -> Vec<Difference> {
        let of_pattern = |pattern: &PatternResult| {
            let first = pattern.first_mismatch.clone()?;
            let (patterns, job) = (vec![pattern.name.clone()], pattern.job.clone());
            Some(Difference { patterns, job, is_smallest: true, first })
        };
        if self.differences.is_empty() {
            self.patterns.iter().filter_map(of_pattern).collect()
        } else {
            self.differences.clone()
        }
    }

    /// Setup of a given job.
    fn setup(&self) -> Option<Part> {
        let [PatternResult { name, job, .. }] = self.patterns.as_slice() else { return None };
        let mut spec = JobSpec::read(job).ok().filter(|_| name == JOB)?;
        spec.kernel = self.rules.clone().or(spec.kernel);
        spec.with = self.with.clone().or(spec.with);
        if self.booted {
            spec.image = Some(String::new());
        }
        Some(setup::job_setup(&spec))
    }

    fn cards(&self, total: &PatternResult) -> Vec<Card> {
        let count = |ok| self.patterns.iter().filter(|own| own.ok == ok).count() as u64;
        let card =
            |name: &str, figure: u64, more: &str| Card::new(name, number(figure as f64), more);
        let mut cards = vec![
            card("patterns that agree", count(Some(true)), ""),
            card("patterns that differ", count(Some(false)), "or do not show that they agree"),
            card("not compared", count(None), ""),
            card("decisions compared", total.decisions, ""),
        ];
        cards.extend(total.readahead_calls.map(|own| card("readahead calls", own, "among them")));
        cards.push(card("mismatches", total.mismatches, ""));
        cards
    }

    fn table(&self, total: &PatternResult) -> Table {
        let all = self.patterns.len() <= MAX_LISTED;
        // Those that cannot run here are named below the table.
        let is_listed =
            |own: &&PatternResult| own.left_out.is_none() && (all || own.ok != Some(true));
        let listed = self.patterns.iter().filter(is_listed);
        let mut rows: Vec<PatternResult> = listed.cloned().collect();
        rows.push(total.clone());
        rows.iter_mut().for_each(|row| row.name = fold_cell(&row.name, NAME_COLUMNS));
        text_table("", &COLUMNS[..5], &rows)
    }

    fn summary(&self, total: &PatternResult) -> String {
        let PatternResult { decisions, excluded, mismatches, .. } = total;
        let calls = total.readahead_calls;
        let calls = calls.map_or(String::new(), |calls| format!("{calls} readahead calls, "));
        let (number, missing) = (self.patterns.len(), self.not_compared());
        let plural = if number == 1 { "" } else { "s" };
        let are_several = if *mismatches == 1 { "" } else { "es" };
        let left_out = match self.left_out() {
            0 => String::new(),
            some => format!("{some} left out, "),
        };
        format!(
            "{number} pattern{plural}, {left_out}{missing} not compared, {decisions} decisions, \
             {calls}{mismatches} mismatch{are_several}. Excluded: {excluded} lines of faults on \
             pages that were still being read when an earlier fault mapped the pages around them."
        )
    }

    /// Note on decisions that the kernel does not show.
    fn unseen_note(&self) -> Option<String> {
        let is_missing =
            |kind: &ShownKind| self.not_shown.iter().any(|own| own == kind.tracepoint());
        let missing: Vec<ShownKind> = ShownKind::ALL.into_iter().filter(is_missing).collect();
        let note = if missing.contains(&ShownKind::Window) {
            " A window is known by the folios that it added."
        } else {
            ""
        };
        (!missing.is_empty()).then(|| {
            let kinds = missing.into_iter().map(ShownKind::label).collect::<Vec<_>>().join("; ");
            format!("Not compared, as this kernel has no tracepoint of it: {kinds}.{note}")
        })
    }
}

#[cfg(test)]
mod tests {
    use filemap_core::decision::Decision;
    use filemap_core::units::PageIndex;
    use filemap_job::ShownKinds;
    use filemap_report::Format;
    use serde_json::{Map, Value};

    use super::super::comparison::{LogComparison, compare};
    use super::super::record::{Compared, Finding};
    use super::*;
    use crate::footer::Footer;

    const RUNNING: Compared = Compared { is_booted: false, seen: ShownKinds::ALL };

    fn found(name: &str, finding: Finding) -> PatternResult {
        RUNNING.pattern(name.to_string(), finding, "seed = 1\n".to_string())
    }

    fn pattern(name: &str, model: &[u64], kernel: &[u64]) -> PatternResult {
        let log = |pages: &[u64]| -> Vec<Decision> {
            let looked_up = |&page: &u64| Decision::Lookup {
                index: PageIndex(page),
                hit: false,
                tried: false,
                mmap_miss: 0,
            };
            pages.iter().map(looked_up).collect()
        };
        found(name, Finding::Compared(compare(&log(model), &log(kernel), ShownKinds::ALL, &[])))
    }

    fn not_compared() -> PatternResult {
        found("lost", Finding::NotCompared { reason: "somebody took pages".to_string() })
    }

    fn conformance(patterns: &[PatternResult]) -> ConformRecord {
        ConformRecord { footer: footer(), ..RUNNING.conformance(patterns.to_vec()) }
    }

    /// Report after a round trip through JSON.
    fn report(patterns: &[PatternResult]) -> Report {
        let json = to_json(&conformance(patterns));
        serde_json::from_str::<ConformRecord>(&json).unwrap().report()
    }

    fn footer() -> Footer {
        Footer { scope: "s".into(), command: "c".into(), environment: Map::new() }
    }

    #[test]
    fn a_difference_is_shown_with_both_logs() {
        let patterns = [pattern("same", &[1], &[1]), pattern("other", &[1, 2, 3], &[1, 4])];
        let report = report(&patterns);
        let text = report.render(Format::Table);
        for words in [
            "'other', as the job file below, differs:",
            "  both    fault 1\n  model   fault 2\n  model   fault 3\n  kernel  fault 4\n",
            "2 patterns, 0 not compared, 4 decisions, 0 readahead calls, 2 mismatches.",
            "\n\nseed = 1\n",
        ] {
            assert!(text.contains(words), "{text}");
        }
        let json: Value = serde_json::from_str(&report.record_json).unwrap();
        assert_eq!(json["patterns"][0]["first_mismatch"], Value::Null);
        assert_eq!(json["patterns"][1]["first_mismatch"]["kernel"][0], "fault 4");
        assert_eq!(json["patterns"][1]["ok"], false);
    }

    #[test]
    fn uncompared_patterns_have_a_reason() {
        let patterns = [pattern("same", &[1], &[1]), not_compared()];
        assert_eq!(conformance(&patterns).not_compared(), 1);
        let report = report(&patterns);
        let text = report.render(Format::Table);
        for words in
            ["2 patterns, 1 not compared, 1 decisions,", "lost: not compared: somebody took pages."]
        {
            assert!(text.contains(words), "{text}");
        }
        assert_eq!(report.rows.rows[1], ["lost", "", "", "", "", "", "somebody took pages", ""]);
        let json: Value = serde_json::from_str(&report.record_json).unwrap();
        let [same, lost] = [0, 1].map(|number| &json["patterns"][number]);
        assert_eq!((&same["ok"], &same["not_compared"]), (&true.into(), &Value::Null));
        assert_eq!((&lost["ok"], &lost["decisions"]), (&Value::Null, &0.into()));
        assert_eq!(lost["not_compared"], "somebody took pages");
    }

    #[test]
    fn reports_hidden_decisions() {
        let seen = ShownKinds::from_fn(|kind| !kind.tracepoint().starts_with("readahead/"));
        let kernel = Compared { is_booted: true, seen };
        let same = Finding::Compared(LogComparison { decisions: 1, ..LogComparison::default() });
        let patterns = [kernel.pattern("same".to_string(), same, String::new())];
        let report = kernel.conformance(patterns.to_vec()).report();
        let text = report.render(Format::Table);
        for words in [
            "Decisions of the booted kernel and of the model",
            "Not compared, as this kernel has no tracepoint of it: calls of readahead after",
            "1 pattern, 0 not compared, 1 decisions, 0 mismatches.",
        ] {
            assert!(text.replace('\n', " ").contains(words), "{text}");
        }
        let json: Value = serde_json::from_str(&report.record_json).unwrap();
        assert_eq!(json["patterns"][0]["readahead_calls"], Value::Null);
        assert_eq!(json["not_shown"].as_array().unwrap().len(), 4);
        assert_eq!(json["not_shown"][0], "readahead/page_cache_sync_ra");
        assert_eq!(report.rows.rows[0][2], "");
        let all = self::report(&[pattern("same", &[1], &[1])]);
        assert!(!all.render(Format::Table).contains("Not compared, as"));
        let json: Value = serde_json::from_str(&all.record_json).unwrap();
        assert_eq!((&json["not_shown"], &json["booted"]), (&serde_json::json!([]), &false.into()));
    }

    #[test]
    fn too_much_excluded_is_named_for_a_pattern_and_for_all() {
        let excluding = |name: &str, excluded| {
            let unexplained = excluded;
            let compared =
                LogComparison { decisions: 100, excluded, unexplained, ..LogComparison::default() };
            found(name, Finding::Compared(compared))
        };
        let report = report(&[excluding("odd", 9), excluding("even", 0)]);
        let text = report.render(Format::Table);
        for words in
            ["odd: 9 lines were excluded that", "\n8 of 100 decisions", "All patterns: 9 lines"]
        {
            assert!(text.contains(words), "{text}");
        }
        let json: Value = serde_json::from_str(&report.record_json).unwrap();
        assert_eq!([0, 1].map(|number| &json["patterns"][number]["ok"]), [false, true]);
        // Each alone is within the limit, together they are not.
        let patterns = ["a", "b", "c"].map(|name| excluding(name, 4));
        assert!(!patterns.iter().any(PatternResult::differs));
        assert!(conformance(&patterns).doubt().is_some());
        assert_eq!(conformance(&[not_compared()]).doubt(), None);
    }

    #[test]
    fn skipped_patterns_name_missing_feature() {
        let reason = "mkfs.xfs is missing".to_string();
        let finding = Finding::LeftOut { reason };
        let lacking = |name| found(name, finding.clone());
        let patterns = [pattern("same", &[1], &[1]), lacking("one"), lacking("two")];
        let all = conformance(&patterns);
        assert_eq!((all.not_compared(), all.left_out()), (0, 2));
        let report = report(&patterns);
        let text = report.render(Format::Table);
        for words in [
            "3 patterns, 2 left out, 0 not compared,",
            "Left out: mkfs.xfs is missing. Patterns: one; two.",
            "\n2 of 3 patterns were left out, as they cannot run here.\n\nScope:",
        ] {
            assert!(text.contains(words), "{text}");
        }
        let json: Value = serde_json::from_str(&report.record_json).unwrap();
        let lacking = &json["patterns"][1];
        assert_eq!(
            (&lacking["ok"], &lacking["left_out"]),
            (&Value::Null, &"mkfs.xfs is missing".into())
        );
        assert_eq!(json["patterns"][0]["left_out"], Value::Null);
    }

    #[test]
    fn tables_fit_into_75_columns() {
        let compared = LogComparison {
            decisions: 123_456_789,
            readahead_calls: 123_456_789,
            excluded: 12_345_678,
            mismatches: 1_234_567_890,
            ..LogComparison::default()
        };
        let name = "split into 100 pages, every second executable";
        let patterns = [found(name, Finding::Compared(compared))];
        let text = report(&patterns).render(Format::Table);
        let folded = "split into 100 pages,  123 456 789  123 456 789  12 345 678  1 234 567 890\n\
                      every second\nexecutable\n";
        assert!(text.contains(folded), "{text}");
        assert!(text.lines().all(|line| line.chars().count() <= 75), "{text}");
    }

    #[test]
    fn lists_only_differing_patterns() {
        let mut patterns = vec![pattern("same", &[1], &[1]); MAX_LISTED];
        patterns.extend([pattern("other", &[1], &[]), not_compared()]);
        let report = report(&patterns);
        let text = report.render(Format::Table);
        assert!(text.contains("\nother ") && text.contains("\nlost "), "{text}");
        assert!(!text.contains("\nsame"), "{text}");
        assert_eq!(report.rows.rows.len(), patterns.len());
    }
}

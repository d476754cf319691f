//! The report on compared patterns.

use std::collections::BTreeMap;

use filemap_job::record::SCHEMA;
use filemap_job::{Seen, Shown, ShownKind};
use serde::Serialize;

use super::comparison::{Comparison, Difference};
use crate::footer::Footer;
use crate::json::to_json;
use filemap_report::{Head, Table, folded};
use filemap_report::{Part, Report};

/// A pattern that was to be compared.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Pattern {
    /// Its name.
    pub name: String,
    /// What was found.
    pub finding: Finding,
    /// The job as a job file.
    pub job: String,
}

/// What came of a pattern.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Finding {
    /// The logs were compared.
    Compared(Comparison),
    /// There was no log of the kernel to compare with.
    NotCompared {
        /// Why, in one line.
        reason: String,
    },
    /// The machine lacks what the pattern needs.
    LeftOut {
        /// What, and the remedy, in one line.
        reason: String,
    },
}

impl Pattern {
    /// What the comparison found, if there was one.
    pub fn found(&self) -> Option<&Comparison> {
        match &self.finding {
            Finding::Compared(found) => Some(found),
            Finding::NotCompared { .. } | Finding::LeftOut { .. } => None,
        }
    }

    /// Whether the logs were compared, and differ or do not show that they agree.
    pub fn differs(&self) -> bool {
        self.found().is_some_and(Comparison::differs)
    }

    fn reason(&self) -> Option<&str> {
        match &self.finding {
            Finding::NotCompared { reason } => Some(reason),
            _ => None,
        }
    }

    fn left_out(&self) -> Option<&str> {
        match &self.finding {
            Finding::LeftOut { reason } => Some(reason),
            _ => None,
        }
    }
}

/// How many of `patterns` were not compared although the machine has what they need.
pub fn not_compared(patterns: &[Pattern]) -> usize {
    patterns.iter().filter(|pattern| pattern.reason().is_some()).count()
}

/// How many of `patterns` were left out.
pub fn left_out(patterns: &[Pattern]) -> usize {
    patterns.iter().filter(|pattern| pattern.left_out().is_some()).count()
}

/// Why `patterns` together do not show that kernel and model agree, although each alone may.
pub fn doubt(patterns: &[Pattern]) -> Option<String> {
    let compared = patterns.iter().any(|pattern| pattern.found().is_some());
    compared.then(|| total(patterns).doubt()).flatten()
}

/// The kernel that is compared with the model.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Compared {
    /// It was booted for the comparison; else it is the running one.
    pub is_booted: bool,
    /// What its tracepoints show.
    pub seen: Seen,
}

impl Compared {
    /// What it does not show.
    fn unseen(&self) -> Option<String> {
        let missing: Vec<&str> = self.seen.missing().map(ShownKind::tracepoint).collect();
        unseen(&missing)
    }
}

/// What a kernel without the tracepoints `missing` does not show.
pub(crate) fn unseen(missing: &[&str]) -> Option<String> {
    let kinds = ShownKind::ALL.into_iter();
    let kinds = kinds.filter(|kind| missing.contains(&kind.tracepoint()));
    let what: Vec<&str> = kinds.map(ShownKind::what).collect();
    let note = match missing.contains(&ShownKind::Window.tracepoint()) {
        true => " A window is told by the folios that it added.",
        false => "",
    };
    (!what.is_empty()).then(|| {
        let what = what.join("; ");
        format!("Not compared, as this kernel has no tracepoint of it: {what}.{note}")
    })
}

/// The report on `patterns`, whose kernel is `kernel`.
pub fn report(patterns: &[Pattern], kernel: Compared, footer: Footer) -> Report {
    let entry = |pattern| Entry::new(pattern, kernel.seen);
    let json = to_json(&Json {
        schema: SCHEMA,
        booted: kernel.is_booted,
        not_shown: kernel.seen.missing().map(ShownKind::tracepoint).collect(),
        patterns: patterns.iter().map(entry).collect(),
        footer: &footer,
    });
    let total = total(patterns);
    let which = if kernel.is_booted { "booted" } else { "running" };
    let heading = format!("Decisions of the {which} kernel and of the model");
    let mut parts = vec![Part::Heading(heading)];
    parts.push(Part::Table(table(listed(patterns), &total, kernel.seen)));
    parts.push(Part::Paragraph(summary(patterns, &total, kernel.seen)));
    parts.extend(kernel.unseen().map(Part::Paragraph));
    parts.extend(patterns.iter().filter_map(why_not));
    parts.extend(patterns.iter().filter_map(why_doubtful));
    parts.extend(doubt(patterns).map(|doubt| Part::Paragraph(format!("All patterns: {doubt}."))));
    parts.extend(why_left_out(patterns));
    parts.extend(patterns.iter().filter_map(difference));
    parts.extend(how_many_left_out(patterns));
    Report { parts, rows: rows(patterns, kernel.seen), footer: footer.footer(), json }
}

#[derive(Serialize, schemars::JsonSchema)]
pub(crate) struct Json<'a> {
    schema: u32,
    /// Whether the kernel was booted for it; else it is the running one.
    booted: bool,
    /// Tracepoints that the kernel does not have: what they show was not compared.
    not_shown: Vec<&'static str>,
    patterns: Vec<Entry<'a>>,
    #[serde(flatten)]
    footer: &'a Footer,
}

#[derive(Serialize, schemars::JsonSchema)]
struct Entry<'a> {
    name: &'a str,
    decisions: u64,
    /// Null where the kernel shows none.
    readahead_calls: Option<u64>,
    excluded: u64,
    mismatches: u64,
    first_mismatch: Option<First>,
    not_compared: Option<&'a str>,
    left_out: Option<&'a str>,
    ok: Option<bool>,
    job: &'a str,
}

#[derive(Serialize, schemars::JsonSchema)]
struct First {
    line: u64,
    access: Option<u64>,
    before: Vec<String>,
    model: Vec<String>,
    kernel: Vec<String>,
}

impl<'a> Entry<'a> {
    fn new(pattern: &'a Pattern, seen: Seen) -> Self {
        let none = Comparison::default();
        let found = pattern.found().unwrap_or(&none);
        Entry {
            name: &pattern.name,
            decisions: found.decisions,
            readahead_calls: calls(found, seen),
            excluded: found.excluded,
            mismatches: found.mismatches,
            first_mismatch: found.first.as_ref().map(|first| First {
                line: first.line,
                access: first.access,
                before: texts(&first.before),
                model: texts(&first.model),
                kernel: texts(&first.kernel),
            }),
            not_compared: pattern.reason(),
            left_out: pattern.left_out(),
            ok: pattern.found().map(|found| !found.differs()),
            job: &pattern.job,
        }
    }
}

/// Calls of readahead, where the kernel shows any.
fn calls(found: &Comparison, seen: Seen) -> Option<u64> {
    seen.has(ShownKind::Window).then_some(found.readahead_calls)
}

fn texts(lines: &[Shown]) -> Vec<String> {
    lines.iter().map(Shown::to_string).collect()
}

fn total(patterns: &[Pattern]) -> Comparison {
    let sum = |of: fn(&Comparison) -> u64| patterns.iter().filter_map(Pattern::found).map(of).sum();
    Comparison {
        decisions: sum(|found| found.decisions),
        readahead_calls: sum(|found| found.readahead_calls),
        excluded: sum(|found| found.excluded),
        mismatches: sum(|found| found.mismatches),
        is_of_guest: patterns.iter().filter_map(Pattern::found).any(|found| found.is_of_guest),
        first: None,
    }
}

/// More patterns than these are not listed where they agree.
const MAX_LISTED: usize = 100;

fn listed(patterns: &[Pattern]) -> impl Iterator<Item = &Pattern> {
    let all = patterns.len() <= MAX_LISTED;
    patterns.iter().filter(move |pattern| all || pattern.differs() || pattern.found().is_none())
}

/// Most columns of a name: the table is to fit into [`TEXT_COLUMNS`](filemap_report::TEXT_COLUMNS).
const NAME_COLUMNS: usize = 31;

fn table<'a>(patterns: impl Iterator<Item = &'a Pattern>, total: &Comparison, seen: Seen) -> Table {
    let row = |name: &str, found: Option<&Comparison>| {
        let numbers = found.map_or([const { None }; 4], |found| {
            let Comparison { decisions, excluded, mismatches, .. } = *found;
            [Some(decisions), calls(found, seen), Some(excluded), Some(mismatches)]
        });
        let numbers = numbers.map(|number| number.map_or("-".to_string(), |n| n.to_string()));
        [folded(name, NAME_COLUMNS)].into_iter().chain(numbers).collect()
    };
    let mut rows: Vec<Vec<String>> =
        patterns.map(|pattern| row(&pattern.name, pattern.found())).collect();
    rows.push(row("all", Some(total)));
    let numbers = ["decisions", "readahead\ncalls", "excluded", "mismatches"];
    Table {
        title: String::new(),
        columns: [Head::left("pattern")].into_iter().chain(numbers.map(Head::right)).collect(),
        rows,
    }
}

/// One row for each pattern.
fn rows(patterns: &[Pattern], seen: Seen) -> Table {
    let names = [
        "pattern",
        "decisions",
        "readahead_calls",
        "excluded",
        "mismatches",
        "ok",
        "not_compared",
        "left_out",
    ];
    let row = |pattern: &Pattern| {
        let entry = Entry::new(pattern, seen);
        let Entry { decisions, readahead_calls, excluded, mismatches, .. } = entry;
        let counts = [Some(decisions), readahead_calls, Some(excluded), Some(mismatches)];
        let mut cells = vec![entry.name.to_string()];
        let known = |count: Option<u64>| {
            entry.ok.and(count).map_or(String::new(), |count| count.to_string())
        };
        cells.extend(counts.map(known));
        cells.push(entry.ok.map_or(String::new(), |ok| ok.to_string()));
        cells.push(entry.not_compared.unwrap_or_default().to_string());
        cells.push(entry.left_out.unwrap_or_default().to_string());
        cells
    };
    Table {
        title: String::new(),
        columns: names.into_iter().map(Head::left).collect(),
        rows: patterns.iter().map(row).collect(),
    }
}

fn summary(patterns: &[Pattern], total: &Comparison, seen: Seen) -> String {
    let Comparison { decisions, excluded, mismatches, .. } = total;
    let calls =
        calls(total, seen).map_or(String::new(), |calls| format!("{calls} readahead calls, "));
    let (number, missing) = (patterns.len(), not_compared(patterns));
    let plural = if number == 1 { "" } else { "s" };
    let left_out = match left_out(patterns) {
        0 => String::new(),
        some => format!("{some} left out, "),
    };
    format!(
        "{number} pattern{plural}, {left_out}{missing} not compared, {decisions} decisions, \
         {calls}{mismatches} mismatches. Excluded: {excluded} lines of faults on pages that were \
         still on their way when an earlier fault mapped what was around them."
    )
}

/// Why a pattern was not compared.
fn why_not(pattern: &Pattern) -> Option<Part> {
    let reason = pattern.reason()?;
    Some(Part::Paragraph(format!("{}: not compared: {reason}.", pattern.name)))
}

/// Why a pattern without a mismatch does not show that kernel and model agree.
fn why_doubtful(pattern: &Pattern) -> Option<Part> {
    let doubt = pattern.found()?.doubt()?;
    Some(Part::Paragraph(format!("{}: {doubt}.", pattern.name)))
}

/// What the machine lacks, each with the patterns that need it.
fn why_left_out(patterns: &[Pattern]) -> Vec<Part> {
    let mut by_reason: BTreeMap<&str, Vec<&str>> = BTreeMap::new();
    for pattern in patterns {
        if let Some(reason) = pattern.left_out() {
            by_reason.entry(reason).or_default().push(&pattern.name);
        }
    }
    let text = |(reason, names): (&str, Vec<&str>)| {
        Part::Paragraph(format!("Left out: {reason}. Patterns: {}.", names.join("; ")))
    };
    by_reason.into_iter().map(text).collect()
}

/// The last that is said where not all was compared.
fn how_many_left_out(patterns: &[Pattern]) -> Option<Part> {
    let (all, left_out) = (patterns.len(), left_out(patterns));
    (left_out > 0).then(|| {
        Part::Paragraph(format!(
            "{left_out} of {all} patterns were left out, as they cannot run here."
        ))
    })
}

/// The first difference of a pattern, and the job that repeats it.
fn difference(pattern: &Pattern) -> Option<Part> {
    let Difference { line, access, before, model, kernel, .. } = pattern.found()?.first.as_ref()?;
    let access = access.map_or(String::new(), |number| format!(", in access {number}"));
    let mut text = format!("{}: differs behind line {line}{access}\n\n", pattern.name);
    for (whose, lines) in [("both", before), ("model", model), ("kernel", kernel)] {
        if lines.is_empty() {
            text += &format!("  {whose:<6}  (the end)\n");
        }
        for line in lines {
            text += &format!("  {whose:<6}  {line}\n");
        }
    }
    text += "\nIts job file:\n\n";
    for line in pattern.job.lines() {
        text += &format!("  {line}\n");
    }
    Some(Part::Preformatted(text))
}

#[cfg(test)]
mod tests {
    use filemap_core::units::PageIndex;
    use serde_json::{Map, Value};

    use super::super::compare;
    use super::*;
    use filemap_report::Format;

    fn pattern(name: &str, model: &[u64], kernel: &[u64]) -> Pattern {
        let log = |pages: &[u64]| -> Vec<Shown> {
            pages.iter().map(|&page| Shown::LookedUp { index: PageIndex(page) }).collect()
        };
        let (name, job) = (name.to_string(), "seed = 1\n".to_string());
        Pattern { name, finding: Finding::Compared(compare(&log(model), &log(kernel))), job }
    }

    fn not_compared() -> Pattern {
        let finding = Finding::NotCompared { reason: "somebody took pages".to_string() };
        Pattern { finding, ..pattern("lost", &[], &[]) }
    }

    fn report(patterns: &[Pattern], footer: Footer) -> Report {
        super::report(patterns, Compared { is_booted: false, seen: Seen::ALL }, footer)
    }

    fn footer() -> Footer {
        Footer { scope: "s".into(), command: "c".into(), environment: Map::new() }
    }

    #[test]
    fn a_difference_is_shown_with_both_logs() {
        let patterns = [pattern("same", &[1], &[1]), pattern("other", &[1, 2, 3], &[1, 4])];
        let report = report(&patterns, footer());
        let text = report.render(Format::Table);
        for words in [
            "other: differs behind line 1",
            "  both    fault 1\n  model   fault 2\n  model   fault 3\n  kernel  fault 4\n",
            "2 patterns, 0 not compared, 4 decisions, 0 readahead calls, 2 mismatches.",
            "  seed = 1\n",
        ] {
            assert!(text.contains(words), "{text}");
        }
        let json: Value = serde_json::from_str(&report.json).unwrap();
        assert_eq!(json["patterns"][0]["first_mismatch"], Value::Null);
        assert_eq!(json["patterns"][1]["first_mismatch"]["kernel"][0], "fault 4");
        assert_eq!(json["patterns"][1]["ok"], false);
    }

    #[test]
    fn what_was_not_compared_is_named_with_its_reason() {
        let patterns = [pattern("same", &[1], &[1]), not_compared()];
        assert_eq!(super::not_compared(&patterns), 1);
        let report = report(&patterns, footer());
        let text = report.render(Format::Table);
        for words in
            ["2 patterns, 1 not compared, 1 decisions,", "lost: not compared: somebody took pages."]
        {
            assert!(text.contains(words), "{text}");
        }
        assert_eq!(report.rows.rows[1], ["lost", "", "", "", "", "", "somebody took pages", ""]);
        let json: Value = serde_json::from_str(&report.json).unwrap();
        let [same, lost] = [0, 1].map(|number| &json["patterns"][number]);
        assert_eq!((&same["ok"], &same["not_compared"]), (&true.into(), &Value::Null));
        assert_eq!((&lost["ok"], &lost["decisions"]), (&Value::Null, &0.into()));
        assert_eq!(lost["not_compared"], "somebody took pages");
    }

    #[test]
    fn what_a_kernel_does_not_show_is_said() {
        let patterns = [pattern("same", &[1], &[1])];
        let seen = Seen::of(|kind| !kind.tracepoint().starts_with("readahead/"));
        let report = super::report(&patterns, Compared { is_booted: true, seen }, footer());
        let text = report.render(Format::Table);
        for words in [
            "Decisions of the booted kernel and of the model",
            "Not compared, as this kernel has no tracepoint of it: calls of readahead after",
            "1 pattern, 0 not compared, 1 decisions, 0 mismatches.",
        ] {
            assert!(text.replace('\n', " ").contains(words), "{text}");
        }
        let json: Value = serde_json::from_str(&report.json).unwrap();
        assert_eq!(json["patterns"][0]["readahead_calls"], Value::Null);
        assert_eq!(json["not_shown"].as_array().unwrap().len(), 4);
        assert_eq!(json["not_shown"][0], "readahead/page_cache_sync_ra");
        assert_eq!(report.rows.rows[0][2], "");
        let all = self::report(&patterns, footer());
        assert!(!all.render(Format::Table).contains("Not compared, as"));
        let json: Value = serde_json::from_str(&all.json).unwrap();
        assert_eq!((&json["not_shown"], &json["booted"]), (&serde_json::json!([]), &false.into()));
    }

    #[test]
    fn too_much_excluded_is_named_for_a_pattern_and_for_all() {
        let excluding = |name: &str, excluded| {
            let found = Comparison { decisions: 100, excluded, ..Comparison::default() };
            Pattern { finding: Finding::Compared(found), ..pattern(name, &[], &[]) }
        };
        let report = report(&[excluding("odd", 9), excluding("even", 0)], footer());
        let text = report.render(Format::Table);
        for words in ["odd: 9 lines were excluded, more than 8 of 100", "All patterns: 9 lines"] {
            assert!(text.contains(words), "{text}");
        }
        let json: Value = serde_json::from_str(&report.json).unwrap();
        assert_eq!([0, 1].map(|number| &json["patterns"][number]["ok"]), [false, true]);
        // Each alone may be right, and all of them are not.
        let patterns = ["a", "b", "c"].map(|name| excluding(name, 4));
        assert!(!patterns.iter().any(Pattern::differs));
        assert!(doubt(&patterns).is_some());
        assert_eq!(doubt(&[not_compared()]), None);
    }

    #[test]
    fn what_was_left_out_is_named_with_what_is_missing() {
        let reason = "mkfs.xfs is missing".to_string();
        let finding = Finding::LeftOut { reason };
        let lacking = |name| Pattern { finding: finding.clone(), ..pattern(name, &[], &[]) };
        let patterns = [pattern("same", &[1], &[1]), lacking("one"), lacking("two")];
        assert_eq!((super::not_compared(&patterns), left_out(&patterns)), (0, 2));
        let report = report(&patterns, footer());
        let text = report.render(Format::Table);
        for words in [
            "3 patterns, 2 left out, 0 not compared,",
            "Left out: mkfs.xfs is missing. Patterns: one; two.",
            "\n2 of 3 patterns were left out, as they cannot run here.\n\nScope:",
        ] {
            assert!(text.contains(words), "{text}");
        }
        let json: Value = serde_json::from_str(&report.json).unwrap();
        let lacking = &json["patterns"][1];
        assert_eq!(
            (&lacking["ok"], &lacking["left_out"]),
            (&Value::Null, &"mkfs.xfs is missing".into())
        );
        assert_eq!(json["patterns"][0]["left_out"], Value::Null);
    }

    #[test]
    fn tables_fit_into_75_columns() {
        let found = Comparison {
            decisions: 123_456_789,
            readahead_calls: 123_456_789,
            excluded: 12_345_678,
            mismatches: 1_234_567_890,
            ..Comparison::default()
        };
        let name = "split into 100 pages, every second executable";
        let patterns = [Pattern { finding: Finding::Compared(found), ..pattern(name, &[], &[]) }];
        let text = report(&patterns, footer()).render(Format::Table);
        let folded = "split into 100 pages, every  123456789  123456789  12345678  1234567890\n\
                      second executable\n";
        assert!(text.contains(folded), "{text}");
        assert!(text.lines().all(|line| line.chars().count() <= 75), "{text}");
    }

    #[test]
    fn of_many_patterns_only_those_that_differ_are_listed() {
        let mut patterns = vec![pattern("same", &[1], &[1]); MAX_LISTED];
        patterns.extend([pattern("other", &[1], &[]), not_compared()]);
        let report = report(&patterns, footer());
        let text = report.render(Format::Table);
        assert!(text.contains("\nother ") && text.contains("\nlost "), "{text}");
        assert!(!text.contains("\nsame"), "{text}");
        assert_eq!(report.rows.rows.len(), patterns.len());
    }
}

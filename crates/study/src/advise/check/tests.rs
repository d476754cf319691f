use filemap_core::address::vma::ReadHint;
use filemap_report::Format;

use super::*;
use crate::advise::AdviceChange;
use crate::advise::tests::{on, outcome, tried};

/// A program for which MADV_RANDOM was tried first, and then the governor.
fn lookups() -> AdviseRecord {
    let random = AdviceChange::Madvise(on("a"), ReadHint::Random);
    let changes = vec![(random, outcome(3000, 400)), (AdviceChange::Governor, outcome(3100, 410))];
    tried(outcome(500_000, 1600), changes).with_conclusions("lookups", None)
}

/// Five runs that read about `pages` pages and take about `ms`, each `step` more than the one
/// before.
fn runs(pages: u64, ms: u64, step: u64) -> Vec<RunSample> {
    let run = |number: u64| RunSample {
        pages_read: pages + number,
        exit_code: Some(0),
        major_faults: 3,
        elapsed_ns: (ms + number * step) * 1_000_000,
        cpu_ns: 1_000_000,
        stdout: "a".to_string(),
        ..RunSample::default()
    };
    (0..5).map(run).collect()
}

/// Figures of a variant: see [`runs`].
type Figures = (u64, u64, u64);

/// A check before its verdict, and its variants.
#[derive(Clone)]
struct PendingCheck {
    check: Check,
    variants: Vec<(Option<usize>, Vec<RunSample>)>,
}

fn measured(answer: Option<usize>, variants: &[Figures]) -> PendingCheck {
    let variant = |(number, (pages, ms, step)): (usize, &Figures)| {
        (number.checked_sub(1), runs(*pages, *ms, *step))
    };
    let variants = variants.iter().enumerate().map(variant).collect();
    PendingCheck { check: Check { runs: 5, answer, ..Check::default() }, variants }
}

fn judged(measured: PendingCheck) -> Check {
    measured.check.with_results(&lookups(), measured.variants)
}

fn check(answer: Option<usize>, variants: &[Figures]) -> Check {
    judged(measured(answer, variants))
}

fn fails(check: &Check) -> bool {
    check.fails(&lookups())
}

fn verdict(answer: Option<usize>, variants: &[Figures]) -> (CheckVerdict, String) {
    let Check { verdict, text, .. } = check(answer, variants);
    (verdict, text)
}

const PLAIN: Figures = (500_000, 1600, 10);

#[test]
fn confirms_best_or_nearly_best_answer() {
    let (first, text) = verdict(Some(0), &[PLAIN, (3000, 400, 5), (3100, 500, 5)]);
    assert_eq!(first, CheckVerdict::Confirmed);
    assert!(text.starts_with("Confirmed: 3002 pages in 410 ms with MADV_RANDOM on a"), "{text}");
    assert_eq!(
        verdict(Some(0), &[PLAIN, (3000, 430, 5), (3100, 400, 5)]).0,
        CheckVerdict::Confirmed
    );
    // The answer may read more, if it is faster for that.
    assert_eq!(verdict(Some(0), &[PLAIN, (600_000, 400, 5)]).0, CheckVerdict::Confirmed);
}

#[test]
fn refutes_wrong_answer() {
    let (slower, text) = verdict(Some(0), &[PLAIN, (3000, 2400, 10)]);
    assert_eq!(slower, CheckVerdict::Refuted);
    assert!(text.contains("is slower with MADV_RANDOM on a: 3002 pages in 2.42 s"), "{text}");
    let (more, text) = verdict(Some(0), &[PLAIN, (600_000, 1600, 10)]);
    assert_eq!(more, CheckVerdict::Refuted);
    assert!(text.contains("reads more"), "{text}");
    assert!(fails(&check(Some(0), &[PLAIN, (600_000, 1600, 10)])));
    assert!(!fails(&check(Some(0), &[PLAIN, (3000, 400, 5)])));
}

/// The model has 500,000 pages for the unchanged program.
#[test]
fn does_not_confirm_another_program() {
    let wrong = [(420_000, 1600, 10), (3000, 400, 5)];
    let (first, text) = verdict(Some(0), &wrong);
    assert_eq!(first, CheckVerdict::Mispredicted);
    let expected = "Not confirmed: as it is the program reads 420 002 pages (420 000 to 420 004), \
                    where the model has 500 000. Something that it does is not in the recording, \
                    so what is predicted of changes does not hold for it. Of what was run, \
                    MADV_RANDOM on a is fastest: 3002 pages in 410 ms.";
    assert_eq!(text, expected);
    assert!(fails(&check(Some(0), &wrong)));
    // Also where the answer was not run.
    assert_eq!(verdict(Some(0), &wrong[..1]).0, CheckVerdict::Mispredicted);
    // Its runs differ by as much.
    let mut spread = measured(Some(0), &[(420_000, 1600, 10), (3000, 400, 5)]);
    spread.variants[0].1[4].pages_read = 480_000;
    assert_eq!(judged(spread).verdict, CheckVerdict::Confirmed);
}

/// The program fails immediately, as if started in another directory.
#[test]
fn does_not_test_program_without_its_input() {
    let mut failing = measured(None, &[(0, 2, 0), (0, 2, 0)]);
    // Without its input on a pipe it exits successfully.
    let unfed = judged(failing.clone());
    assert!(unfed.text.contains("2 of the 500 000 pages"), "{}", unfed.text);
    for (_, runs) in &mut failing.variants {
        runs.iter_mut().for_each(|run| run.exit_code = Some(2));
    }
    let failed = judged(failing.clone());
    assert_eq!(failed.verdict, CheckVerdict::NotTested);
    let text = &failed.text;
    assert!(text.contains("500 000 pages") && text.contains("exit code 2"), "{text}");
    assert!(fails(&failed));
    failing.variants[0].1[3].signal = Some(11);
    assert!(judged(failing).text.contains("signal 11"));
}

#[test]
fn reports_tie_within_chance() {
    let (with_now, text) = verdict(Some(0), &[PLAIN, (500_000, 1580, 10)]);
    assert_eq!(with_now, CheckVerdict::Tie);
    let both = "500 002 pages in 1.60 s with MADV_RANDOM on a, 500 002 pages in 1.62 s as it is.";
    let expected = format!("A tie with doing nothing: {both}");
    assert_eq!(text, expected);
    // 400 to 880 ms and 330 to 530 ms.
    let (with_other, text) = verdict(Some(0), &[PLAIN, (3000, 400, 120), (3100, 330, 50)]);
    assert_eq!(with_other, CheckVerdict::Tie, "{text}");
    assert!(text.contains("filemap govern, which chance explains"), "{text}");
}

#[test]
fn names_faster_variant() {
    let (verdict_, text) = verdict(Some(0), &[PLAIN, (3000, 800, 5), (3100, 400, 5)]);
    assert_eq!(verdict_, CheckVerdict::NotConfirmed);
    assert!(
        text.contains("filemap govern is faster: 3102 pages in 410 ms with filemap govern"),
        "{text}"
    );
    // Also if another variant seems faster still, within chance.
    let spread = (400, 120, 300);
    let mut three = measured(None, &[(500_000, 600, 5), spread, (3000, 400, 5)]);
    three.variants[1].1.iter_mut().for_each(|run| run.pages_read = 3000);
    let three = judged(three);
    assert_eq!(three.verdict, CheckVerdict::NotConfirmed, "{}", three.text);
    assert!(!fails(&check(Some(0), &[PLAIN, (3000, 800, 5)])));
}

#[test]
fn confirms_leaving_program_as_it_is() {
    let scan = (500_000, 1600, 10);
    assert_eq!(verdict(None, &[scan, (500_000, 2400, 10)]).0, CheckVerdict::Confirmed);
    assert_eq!(verdict(None, &[scan, (500_000, 1000, 10)]).0, CheckVerdict::NotConfirmed);
    // Also where that reads more.
    let (more, text) = verdict(None, &[scan, (900_000, 400, 10)]);
    assert_eq!(more, CheckVerdict::NotConfirmed);
    assert!(text.contains("MADV_RANDOM on a is faster"), "{text}");
}

#[test]
fn does_not_test_few_runs() {
    let mut few = measured(Some(0), &[PLAIN, (3000, 2400, 10)]);
    few.check.runs = 2;
    few.variants.iter_mut().for_each(|(_, runs)| runs.truncate(2));
    let few = judged(few);
    assert_eq!(few.verdict, CheckVerdict::NotTested);
    assert!(few.text.contains("--runs 4"), "{}", few.text);
    assert!(!fails(&few));
}

#[test]
fn does_not_test_unapplied_answer() {
    let mut none = measured(Some(0), &[PLAIN]);
    let reason = "it was given to nothing".to_string();
    none.check.left_out.push(SkippedChange::new(&lookups(), (0, reason)));
    let none = judged(none);
    assert_eq!(none.verdict, CheckVerdict::NotTested);
    assert_eq!(none.text, "Not tested: MADV_RANDOM on a: it was given to nothing.");
}

#[test]
fn fails_on_other_behaviour() {
    let mut other = measured(Some(0), &[PLAIN, (3000, 400, 5)]);
    other.variants[1].1[2].stdout = "b".to_string();
    other.variants[1].1[3].exit_code = Some(1);
    let found = judged(other.clone());
    let expected = ["the end", "what stdout has"];
    let expected = expected.map(|text| {
        format!("{text} with MADV_RANDOM on a differs from that of the program as it is")
    });
    assert_eq!(found.differences, expected);
    assert!(fails(&found));
    // Not if the plain runs differ among themselves.
    other.variants[0].1[0].stdout = "c".to_string();
    other.variants[1].1[3].exit_code = Some(0);
    assert!(!fails(&judged(other)));
}

#[test]
fn reports_measured_and_predicted() {
    let mut measured = measured(Some(0), &[PLAIN, (3000, 400, 5)]);
    measured.variants[0].1[1].exit_code = Some(3);
    let mut advice = lookups();
    measured.check.left_out.push(SkippedChange::new(&advice, (1, "it needs more".to_string())));
    advice.check = Some(judged(measured));
    let report = advice.report();
    let text = report.render(Format::Table);
    let text = text.split_whitespace().collect::<Vec<_>>().join(" ");
    for words in [
        "as it is 500 000 500 002 500 000 to 500 004 3 3",
        "MADV_RANDOM on a 3000 3002 3000 to 3004 3 3",
        "MADV_RANDOM on a 400 ms 410 ms 400 ms to 420 ms 0.008 reads less, faster",
        "filemap govern was not run: it needs more.",
        "failed in 1 of its 5 runs as it is: one ended with exit code 3",
    ] {
        assert!(text.contains(words), "{words}: {text}");
    }
    let json: serde_json::Value = serde_json::from_str(&report.record_json).unwrap();
    let json = &json["check"];
    assert_eq!(json["verdict"], "confirmed");
    assert_eq!(json["variants"][0]["tried"], serde_json::Value::Null);
    assert_eq!(json["variants"][1]["tried"], 0);
    assert_eq!(json["variants"][1]["pages_read"]["median"], 3002);
    assert_eq!(json["variants"][1]["beside"], "reads less, faster");
    assert_eq!(json["left_out"][0]["tried"], 1);
    let read: AdviseRecord = serde_json::from_str(&report.record_json).unwrap();
    assert_eq!(read.report().render(Format::Table), report.render(Format::Table));
}

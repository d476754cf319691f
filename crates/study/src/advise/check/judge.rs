//! What the measured runs say of the answer.

use super::{Check, CheckRun, CheckVariant, Verdict, all};
use crate::advise::Outcome;
use crate::explain::MIN_SHARE;
use crate::verdict::{LEVEL, Margin, Tested, Verdict as Beside, least_p_value};
use filemap_report::units::{number, time};

/// An answer is as good as another that is faster by no more than this share.
const AS_GOOD: f64 = 0.10;

/// Differences of fewer pages are none: what the program itself needs to start, and metadata.
const FEW_PAGES: f64 = 64.0;

/// Differences of less time are none: to advise a program takes about as long.
const SHORT_NS: f64 = 2e6;

/// How a figure of `own` is beside that of `other`, where a difference of `least` is none.
fn tested(own: &[CheckRun], other: &[CheckRun], value: fn(&CheckRun) -> u64, least: f64) -> Beside {
    let margin = Margin { least, share: MIN_SHARE };
    Tested::unpaired(&all(other, value), &all(own, value), margin).verdict
}

fn times_beside(own: &[CheckRun], other: &[CheckRun]) -> Beside {
    tested(own, other, |run| run.ran.elapsed_ns, SHORT_NS)
}

/// How what `own` reads is beside what `other` reads, and how the times are.
pub(super) fn beside(own: &[CheckRun], other: &[CheckRun]) -> [Beside; 2] {
    [tested(own, other, |run| run.pages_read, FEW_PAGES), times_beside(own, other)]
}

/// What [`beside`] has found, in words.
pub(super) fn in_words(found: [Beside; 2]) -> String {
    let words = [["reads less", "reads more"], ["faster", "slower"]];
    let said: Vec<&str> = found
        .into_iter()
        .zip(words)
        .filter(|(found, _)| *found != Beside::NoDifference)
        .map(|(found, words)| found.said(words))
        .collect();
    match said.as_slice() {
        [] => "no difference".to_string(),
        [only] => (*only).to_string(),
        _ if found.contains(&Beside::NotTested) => "not tested".to_string(),
        several => several.join(", "),
    }
}

/// Why the runs of the program as it is tell nothing of what was recorded, if that is so: a signal
/// ended one, or they read next to nothing of what was predicted, as a program does that does not
/// find its input.
pub(super) fn other_work(now: &Outcome, plain: &CheckVariant) -> Option<String> {
    if let Some(signal) = plain.runs.iter().find_map(|run| run.ran.signal) {
        return Some(format!("Not checked: signal {signal} ended the program as it is."));
    }
    let code = plain.runs.iter().find_map(|run| run.ran.exit_code.filter(|code| *code != 0));
    let (predicted, read) = (now.data_pages_read as f64, plain.pages_read.median);
    let is_next_to_nothing = match code {
        Some(_) => read < predicted * MIN_SHARE,
        None => read < FEW_PAGES && predicted * MIN_SHARE > FEW_PAGES,
    };
    (predicted > FEW_PAGES && is_next_to_nothing).then(|| {
        format!(
            "Not checked: as it is the program read {} of the {} pages that the model has, and \
             ended with exit code {}. It does not do what was recorded: run the check in the same \
             directory, with the same files and without input from a pipe.",
            number(read),
            number(predicted),
            code.unwrap_or(0)
        )
    })
}

/// Why so few runs can show nothing, if that is so.
fn too_few(check: &Check) -> Option<String> {
    let runs = check.variants[0].runs.len();
    if check.variants.len() == 1 {
        return Some("Not tested: nothing was run beside the program as it is.".to_string());
    }
    (least_p_value(runs, runs) > LEVEL).then(|| {
        format!(
            "Not tested: {runs} runs of each are too few to tell a difference from chance; give \
             --runs 4 or more."
        )
    })
}

/// What `check` says of its answer, where the program was predicted to come to `now`.
pub(super) fn judged(now: &Outcome, check: &Check) -> (Verdict, String) {
    let plain = &check.variants[0];
    let Some(own) = check.variants.iter().find(|of| of.tried == check.answer) else {
        let left_out = check.left_out.iter().find(|of| Some(of.tried) == check.answer);
        let text = match left_out {
            Some(of) => format!("Not tested: {}: {}.", of.changes.join(" + "), of.reason),
            None => "Not tested: the answer was not run.".to_string(),
        };
        return (Verdict::NotTested, text);
    };
    if let Some(text) = other_work(now, plain).or_else(|| too_few(check)) {
        return (Verdict::NotTested, text);
    }
    beside_others(own, plain, check)
}

fn beside_others(own: &CheckVariant, plain: &CheckVariant, check: &Check) -> (Verdict, String) {
    let cost = |of: &CheckVariant| {
        format!("{} pages in {}", number(of.pages_read.median), time(of.elapsed_ns.median))
    };
    let with = |of: &CheckVariant| match of.tried {
        None => format!("{} as it is", cost(of)),
        Some(_) => format!("{} with {}", cost(of), of.label()),
    };
    let found = beside(&own.runs, &plain.runs);
    let reads_more = |of: &&CheckVariant| beside(&of.runs, &plain.runs)[0] == Beside::More;
    let others = || check.variants.iter().filter(|of| !reads_more(of));
    let by_time =
        |a: &&CheckVariant, b: &&CheckVariant| a.elapsed_ns.median.total_cmp(&b.elapsed_ns.median);
    let fastest = others().min_by(by_time).unwrap_or(plain);
    let is_as_good =
        |of: &CheckVariant| own.elapsed_ns.median / of.elapsed_ns.median.max(1.0) <= 1.0 + AS_GOOD;
    let beats =
        |of: &&CheckVariant| !is_as_good(of) && times_beside(&own.runs, &of.runs) == Beside::More;
    if found.contains(&Beside::More) {
        let does = if found[0] == Beside::More { "reads more" } else { "is slower" };
        let text = format!(
            "Refuted: the program {does} with {}: {}; as it is {}.",
            own.label(),
            cost(own),
            cost(plain)
        );
        return (Verdict::Refuted, text);
    }
    match others().filter(beats).min_by(by_time) {
        _ if is_as_good(fastest) && own.tried.is_none() => (
            Verdict::Confirmed,
            format!(
                "Confirmed: nothing that was run is faster than the program as it is ({}) by 10 % \
                 without reading more.",
                cost(plain)
            ),
        ),
        _ if is_as_good(fastest) && found == [Beside::NoDifference; 2] => {
            (Verdict::Tie, format!("A tie with doing nothing: {}, {}.", with(own), with(plain)))
        }
        _ if is_as_good(fastest) => (
            Verdict::Confirmed,
            format!(
                "Confirmed: {}, {}. Nothing else that was run is faster by 10 % without reading \
                 more than it does as it is.",
                with(own),
                with(plain)
            ),
        ),
        None => (
            Verdict::Tie,
            format!("A tie: {}, {}, which chance explains.", with(own), with(fastest)),
        ),
        Some(faster) => (
            Verdict::NotConfirmed,
            format!(
                "Not confirmed: {} is faster: {}, {}.",
                faster.label(),
                with(faster),
                with(own)
            ),
        ),
    }
}

//! The verdict of a check.

use super::{Check, CheckVariant, CheckVerdict, ELAPSED_NS, PAGES_READ};
use crate::advise::{AdviseRecord, TrialOutcome};
use crate::explain::MIN_SHARE;
use crate::trial::{RunSample, compare_samples};
use crate::verdict::{Margin, SIGNIFICANCE_LEVEL, Verdict, least_p_value};
use filemap_report::units::{number, time};

/// Times within this share of each other count as equally good.
const AS_GOOD: f64 = 0.10;

/// Predicted pages of the unchanged program within this share of the measured ones are right.
const MAX_PREDICTION_ERROR: f64 = 0.01;

/// Smaller differences of pages are noise: loading the program, and metadata.
pub(super) const MIN_PAGES: f64 = 64.0;

/// Smaller differences of time are noise: advising the program takes about as long.
const MIN_TIME_NS: f64 = 2e6;

fn compare_pages(own: &[RunSample], other: &[RunSample]) -> Verdict {
    let margin = Margin { least: MIN_PAGES, share: MIN_SHARE };
    compare_samples(other, own, PAGES_READ, margin).verdict
}

fn compare_times(own: &[RunSample], other: &[RunSample]) -> Verdict {
    let margin = Margin { least: MIN_TIME_NS, share: MIN_SHARE };
    compare_samples(other, own, ELAPSED_NS, margin).verdict
}

/// Compares pages read and times of `own` with `other`.
pub(super) fn compare(own: &[RunSample], other: &[RunSample]) -> [Verdict; 2] {
    [compare_pages(own, other), compare_times(own, other)]
}

/// The result of [`compare`] as text.
pub(super) fn text(found: [Verdict; 2]) -> String {
    let words = [["reads less", "reads more"], ["faster", "slower"]];
    let texts: Vec<&str> = found
        .into_iter()
        .zip(words)
        .filter(|(found, _)| *found != Verdict::NoDifference)
        .map(|(found, words)| found.describe(words))
        .collect();
    match texts.as_slice() {
        [] => "no difference".to_string(),
        [only] => (*only).to_string(),
        _ if found.contains(&Verdict::NotTested) => "not tested".to_string(),
        several => several.join(", "),
    }
}

/// A sentence if the plain runs did not do the recorded work: a signal ended one, or they read
/// hardly any of the predicted pages, as if the program did not find its input.
pub(super) fn other_work_warning(now: &TrialOutcome, plain: &CheckVariant) -> Option<String> {
    if let Some(signal) = plain.runs.iter().find_map(|run| run.signal) {
        return Some(format!("Not checked: signal {signal} ended the program as it is."));
    }
    let code = plain.runs.iter().find_map(|run| run.exit_code.filter(|code| *code != 0));
    let (predicted, read) = (now.data_pages_read as f64, plain.pages_read.median);
    let is_next_to_nothing = match code {
        Some(_) => read < predicted * MIN_SHARE,
        None => read < MIN_PAGES && predicted * MIN_SHARE > MIN_PAGES,
    };
    (predicted > MIN_PAGES && is_next_to_nothing).then(|| {
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

/// A sentence if there are too few runs for the test.
fn too_few_runs(check: &Check) -> Option<String> {
    let runs = check.variants[0].runs.len();
    if check.variants.len() == 1 {
        return Some("Not tested: nothing was run beside the program as it is.".to_string());
    }
    (least_p_value(runs, runs) > SIGNIFICANCE_LEVEL).then(|| {
        format!(
            "Not tested: {runs} runs of each are too few to tell a difference from chance; give \
             --runs 4 or more."
        )
    })
}

/// The verdict on the answer of `check`, after what `advice` predicts of the unchanged program.
pub(super) fn judge(advice: &AdviseRecord, check: &Check) -> (CheckVerdict, String) {
    let plain = &check.variants[0];
    if let Some(text) = other_work_warning(&advice.now, plain) {
        return (CheckVerdict::NotTested, text);
    }
    if let Some(text) = misprediction(advice, plain) {
        let text = format!("{text} {}", fastest_measured(plain, check));
        return (CheckVerdict::Mispredicted, text);
    }
    if advice.unseen.as_ref().is_some_and(|unseen| unseen.is_decisive) {
        let text = "Not tested: there is no answer, as it depends on touches that may be missing.";
        return (CheckVerdict::NotTested, text.to_string());
    }
    let Some(own) = check.variants.iter().find(|variant| variant.tried == check.answer) else {
        let left_out = check.left_out.iter().find(|skipped| Some(skipped.tried) == check.answer);
        let text = match left_out {
            Some(skipped) => {
                format!("Not tested: {}: {}.", skipped.changes.join(" + "), skipped.reason)
            }
            None => "Not tested: the answer was not run.".to_string(),
        };
        return (CheckVerdict::NotTested, text);
    };
    match too_few_runs(check) {
        Some(text) => (CheckVerdict::NotTested, text),
        None => compare_variants(own, plain, check),
    }
}

/// A sentence if the unchanged program does not read the pages that were predicted for it, because
/// of something that was not recorded.
fn misprediction(advice: &AdviseRecord, plain: &CheckVariant) -> Option<String> {
    let predicted = advice.now.data_pages_read as f64;
    let (least, most) = (plain.pages_read.min as f64, plain.pages_read.max as f64);
    let tolerance = (most - least).max(MIN_PAGES).max(predicted * MAX_PREDICTION_ERROR);
    // With touches that may be missing, the prediction is an interval.
    let touched = advice.unseen.as_ref().and_then(|unseen| unseen.most.as_ref());
    let unseen = touched.map_or(predicted, |most| most.now.data_pages_read as f64);
    let (fewest, farthest) = (predicted.min(unseen), predicted.max(unseen));
    if least - tolerance <= farthest && fewest <= most + tolerance {
        return None;
    }
    Some(format!(
        "Not confirmed: as it is the program reads {} pages ({} to {}), where the model has {}{}. \
         Something that it does is not in the recording, so what is predicted of changes does not \
         hold for it.",
        number(plain.pages_read.median),
        number(least),
        number(most),
        number(fewest),
        if farthest > fewest { format!(" to {}", number(farthest)) } else { String::new() }
    ))
}

/// The fastest variant, as a sentence.
fn fastest_measured(plain: &CheckVariant, check: &Check) -> String {
    let fastest = check
        .variants
        .iter()
        .filter(|variant| compare_times(&plain.runs, &variant.runs) == Verdict::More)
        .min_by(|a, b| a.elapsed_ns.median.total_cmp(&b.elapsed_ns.median));
    match fastest {
        Some(variant) => format!(
            "Of what was run, {} is fastest: {} pages in {}.",
            variant.label(),
            number(variant.pages_read.median),
            time(variant.elapsed_ns.median)
        ),
        None => "Nothing that was run is faster than it is now.".to_string(),
    }
}

fn compare_variants(
    own: &CheckVariant,
    plain: &CheckVariant,
    check: &Check,
) -> (CheckVerdict, String) {
    let cost = |variant: &CheckVariant| {
        format!(
            "{} pages in {}",
            number(variant.pages_read.median),
            time(variant.elapsed_ns.median)
        )
    };
    let with = |variant: &CheckVariant| match variant.tried {
        None => format!("{} as it is", cost(variant)),
        Some(_) => format!("{} with {}", cost(variant), variant.label()),
    };
    let found = compare(&own.runs, &plain.runs);
    let by_time =
        |a: &&CheckVariant, b: &&CheckVariant| a.elapsed_ns.median.total_cmp(&b.elapsed_ns.median);
    let fastest = check.variants.iter().min_by(by_time).unwrap_or(plain);
    let is_as_good = |variant: &CheckVariant| {
        own.elapsed_ns.median / variant.elapsed_ns.median.max(1.0) <= 1.0 + AS_GOOD
    };
    let beats = |variant: &&CheckVariant| {
        !is_as_good(variant) && compare_times(&own.runs, &variant.runs) == Verdict::More
    };
    // What reads more is refuted unless it is faster for that.
    if found[1] == Verdict::More || found == [Verdict::More, Verdict::NoDifference] {
        let does = if found[1] == Verdict::More { "is slower" } else { "reads more" };
        let text = format!(
            "Refuted: the program {does} with {}: {}; as it is {}.",
            own.label(),
            cost(own),
            cost(plain)
        );
        return (CheckVerdict::Refuted, text);
    }
    match check.variants.iter().filter(beats).min_by(by_time) {
        _ if is_as_good(fastest) && own.tried.is_none() => (
            CheckVerdict::Confirmed,
            format!(
                "Confirmed: nothing that was run is faster than the program as it is ({}) by 10 %.",
                cost(plain)
            ),
        ),
        _ if is_as_good(fastest) && found == [Verdict::NoDifference; 2] => (
            CheckVerdict::Tie,
            format!("A tie with doing nothing: {}, {}.", with(own), with(plain)),
        ),
        _ if is_as_good(fastest) => (
            CheckVerdict::Confirmed,
            format!(
                "Confirmed: {}, {}. Nothing else that was run is faster by 10 %.",
                with(own),
                with(plain)
            ),
        ),
        None => (
            CheckVerdict::Tie,
            format!("A tie: {}, {}, which chance explains.", with(own), with(fastest)),
        ),
        Some(faster) => (
            CheckVerdict::NotConfirmed,
            format!(
                "Not confirmed: {} is faster: {}, {}.",
                faster.label(),
                with(faster),
                with(own)
            ),
        ),
    }
}

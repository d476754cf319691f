//! What the tables of the series say, in words.

use super::PAGE_KIB;
use super::figures::{Beside, LEAST_SEEDS, VariantPair, published_ratios};
use super::plan::{Form, PUBLISHED_CPUS, published_miss_percent};
use super::tables::{Tried, span};
use crate::published::data::PUBLISHED;
use crate::spread::over_seeds;
use filemap_report::units::time;

/// From so many misses of 100 drops on there is an effect.
const EFFECT_PERCENT: f64 = 1.0;

/// Rounds with the series for each without it, below which the job hardly goes on.
const STALLS: f64 = 0.1;

/// Windows of the default readahead size.
const DEFAULT_PAGES: u64 = 32;

/// What the runs are.
pub(super) fn form(form: &Form, seeds: usize) -> String {
    let (seconds, short) = (form.job_seconds(), form.experiment_seconds());
    let sweep = form.sweep_seconds();
    let length = match (form.has_sensitivity, form.has_experiments) {
        (true, _) => "This is the published length.",
        (false, true) => {
            "This is a short form: the published runs took 600 s. --full runs that long, which takes \
             tens of minutes."
        }
        (false, false) => {
            "This is a brief form: the published runs took 600 s. filemap published vma-retry has \
             longer runs, and experiments with the job."
        }
    };
    let mut experiments = format!(" The sweep over readahead sizes has one seed and {sweep} s.");
    if form.has_experiments {
        experiments += &format!(" Other experiments have one seed and {short} s.");
    }
    let seeds = over_seeds(seeds);
    format!(
        "Each run of the published job is {seconds} s of virtual time, {seeds}.{experiments} \
         {length} Files are cached in base pages, and all \
         costs are assumed. A drop is a try that gave up its lock for I/O, as the published \
         counter counts them; a fault can drop its lock more than once."
    )
}

/// The readahead size and how it is known.
pub(super) fn inferred(sweep: &[Tried], pages: u64) -> String {
    let rows = &PUBLISHED.vma_retry.rows;
    let file_pages = sweep[0].experiment.trials[0].file_pages;
    let before = rows.iter().filter(|row| !row.with_series()).map(|row| row.drops_per_round());
    let (least, most) =
        before.fold((f64::MAX, 0.0f64), |(least, most), drops| (least.min(drops), most.max(drops)));
    let of_pages = |tried: &&Tried| tried.experiment.trials[0].read_ahead_pages == pages;
    let goes_on = sweep.iter().find(of_pages).filter(|tried| !tried.before.jams());
    let percent = goes_on.map(|tried| tried.before.miss_percent());
    let kib = pages * PAGE_KIB;
    let inferred = match percent {
        Some(percent) => format!(
            "It is inferred: of the sizes below, {pages} pages ({kib} KiB) come nearest to the \
             {:.1} misses of 100 drops of the published baselines; the model has {percent:.1} \
             there.",
            published_miss_percent()
        ),
        None => format!(
            "Nothing can be inferred, as the job goes on at none of the sizes below. {pages} pages \
             ({kib} KiB) stand for it."
        ),
    };
    format!(
        "The readahead size was not published. {inferred} The default of {} KiB is ruled out by the \
         published counters themselves: a file of {file_pages} pages in windows of {DEFAULT_PAGES} \
         takes about {} drops a round, and {least:.1} to {most:.1} were counted.",
        DEFAULT_PAGES * PAGE_KIB,
        file_pages / DEFAULT_PAGES + 1,
    )
}

/// What it costs to evict a page, and how that was chosen.
pub(super) fn evicting(form: &Form, pages: u64, costs: &[(&'static str, u64)]) -> String {
    let rows = PUBLISHED.vma_retry.rows.iter().filter(|row| !row.with_series());
    // A drop reads a window at most, and so does a retry that finds its page gone.
    let windows_s = rows.map(|row| {
        (row.retry_mmap_drop + row.retry_io_miss) as f64 * row.rounds_s / row.rounds as f64
    });
    let windows_s = windows_s.fold(0.0, f64::max);
    let page_us = PUBLISHED_CPUS as f64 * 1e6 / (windows_s * pages as f64);
    let evicting = costs.iter().find(|(name, _)| *name == "evict_page_ns");
    let evicting = evicting.map_or(String::new(), |(_, ns)| format!(" ({})", time(*ns as f64)));
    let more = match form.has_experiments {
        true => " A table below has other numbers of CPUs.",
        false => "",
    };
    format!(
        "The cost of evicting a page{evicting} is assumed. It stands for all that a CPU is busy \
         with for such a page, waiting for the lock of the reclaim lists and for the TLB \
         flushes of other CPUs included. It grows with the CPUs, and was chosen so that about \
         as many rounds a second come out as were published, with the {PUBLISHED_CPUS} CPUs of \
         the published machine. That they do is no independent test of the model. The published \
         counters bound it: without the series at most {windows_s:.0} windows of {pages} pages \
         were read in a second, so that all CPUs together had {page_us:.0} us or more for each \
         page.{more}"
    )
}

/// How many of the judged figures hold.
pub(super) fn verdicts(beside: &[Beside]) -> String {
    let judged: Vec<bool> = beside.iter().filter_map(Beside::ok).collect();
    let hold = judged.iter().filter(|ok| **ok).count();
    let mut text = format!(
        "{hold} of {} judged figures hold. A figure is judged by the model's median. The readahead \
         size was chosen by the misses without the series, and the cost of evicting a page by the \
         rounds a second: where these hold, the model can give both at once. The others follow.",
        judged.len()
    );
    if judged.is_empty() {
        text = format!(
            "Nothing is judged: runs differ, and {LEAST_SEEDS} seeds or more are needed for a median."
        );
    }
    if beside.iter().any(|figure| figure.stalls) {
        text += " With the series the model's job hardly goes on: it completes fewer than half as \
                 many rounds as without it. Its misses then say nothing, and count as failed.";
    }
    if hold < judged.len() {
        text += " Where a figure fails, the costs assumed here do not reproduce the published one.";
    }
    text
}

/// What the series does to the throughput.
pub(super) fn ratio(pair: &VariantPair, cpus: &[Tried]) -> String {
    let (least, most) = published_ratios();
    let published = format!(
        "With the series {least:.1} to {most:.1} times as many rounds were published as without it."
    );
    let Some(ratios) = pair.ratios() else {
        return format!("{published} In the model no round is completed without it.");
    };
    let over_cpus: Vec<f64> = cpus.iter().filter_map(Tried::ratio).collect();
    let low = over_cpus.iter().copied().fold(ratios.min, f64::min);
    let high = over_cpus.iter().copied().fold(ratios.max, f64::max);
    let (seeds, and) = match ratios.samples.len() {
        1 => ("with one seed", "the"),
        _ => ("over the seeds", "seeds and the"),
    };
    let fits = match (ratios.max < least, ratios.min > most) {
        (false, false) => "overlaps what was published",
        (true, _) => "is less than was published",
        (_, true) => "is more than was published",
    };
    let over_cpus = match over_cpus.is_empty() {
        true => String::new(),
        false => format!(", and {low:.2} to {high:.2} over {and} CPUs below"),
    };
    format!(
        "{published} The model has {} times as many {seeds}, which {fits}{over_cpus}.",
        span(&ratios, 2)
    )
}

/// How the causes are to be read.
pub(super) fn causes() -> String {
    "The time of all threads, of whatever kind. p99 and max are of one span, the largest of the \
     seeds."
        .to_string()
}

/// Where the effect begins, peaks, and where the job jams.
pub(super) fn sweep(sweep: &[Tried]) -> String {
    let (jams, goes): (Vec<&Tried>, Vec<&Tried>) =
        sweep.iter().partition(|tried| tried.before.jams());
    let mut said = vec!["* is the size that was inferred.".to_string()];
    let mut misses = goes.iter().filter(|tried| tried.before.miss_percent() >= EFFECT_PERCENT);
    match misses.next() {
        Some(first) => said.push(format!(
            "Without the series {EFFECT_PERCENT} of 100 drops or more miss first at x = {}.",
            pressures(&[first])
        )),
        None if goes.is_empty() => {}
        None => said.push(format!(
            "Without the series fewer than {EFFECT_PERCENT} of 100 drops miss wherever the job goes \
             on."
        )),
    }
    let most = goes
        .iter()
        .max_by(|one, other| one.before.miss_percent().total_cmp(&other.before.miss_percent()));
    let percent = most.map_or(0.0, |most| most.before.miss_percent());
    if let Some(most) = most.filter(|_| percent >= EFFECT_PERCENT) {
        said.push(format!("Most miss at x = {}: {percent:.1} of 100.", pressures(&[most])));
    }
    said.push(match jams[..] {
        [] => "Without the series it jams at none of these.".to_string(),
        [first, ..] => {
            let how = match &first.before.ended_early {
                Some(ending) => format!("ends with {ending}"),
                None => "completes no round".to_string(),
            };
            let at = match jams.len() {
                1 => "there it",
                _ => "at the first of these it",
            };
            format!("Without the series the job jams (!) at x = {}: {at} {how}.", pressures(&jams))
        }
    });
    let stalls = |tried: &&Tried| tried.ratio().is_some_and(|ratio| ratio < STALLS);
    let stalled: Vec<&Tried> = sweep.iter().filter(stalls).collect();
    if !stalled.is_empty() {
        said.push(format!(
            "With the series the job hardly goes on, or not at all, at x = {}.",
            pressures(&stalled)
        ));
    }
    said.join(" ")
}

/// x of experiments, one after the other.
fn pressures(tried: &[&Tried]) -> String {
    let all = tried.iter().map(|tried| format!("{:.2}", tried.experiment.trials[0].pressure()));
    all.collect::<Vec<_>>().join(", ")
}

/// The objection that was raised.
pub(super) fn one_vma() -> String {
    "An objection to the series: where all threads fault in one large VMA that others write to, its \
     lock is as contended as mmap_lock, and a retry that reads a window under it holds writers up. \
     Here the threads read parts of one mapping, and writers mprotect it."
        .to_string()
}

/// What the costs are.
pub(super) fn costs(form: &Form) -> String {
    let more = match form.has_sensitivity {
        true => "The table shows what depends on each of them.",
        false => "With --full each is also halved and doubled.",
    };
    format!(
        "What things cost was published for no part of that machine. All costs are assumed, one set \
         for all runs; they are in the environment of the JSON. {more}"
    )
}

#[cfg(test)]
mod tests {
    use super::super::plan::Experiment;
    use super::super::trial::TrialRun;
    use super::*;

    /// What is said of the sizes of a sweep, of which each had so many rounds, drops and misses.
    fn said(counts: &[(u64, u64, u64)]) -> (String, String) {
        let run = |&(rounds, drops, misses): &(u64, u64, u64)| TrialRun {
            elapsed_ns: 1_000_000_000,
            rounds,
            drops,
            retries: drops,
            misses,
            refused: 0,
            protections: 0,
            throttled: 0,
            spans: Vec::new(),
            ended_early: None,
        };
        let runs: Vec<TrialRun> = counts.iter().map(run).collect();
        let sizes: Vec<Experiment> =
            Form::of(true, true).read_ahead_sweep(1).into_iter().take(runs.len()).collect();
        let tried = sizes.iter().zip(&runs);
        let tried = tried.map(|(experiment, before)| Tried { experiment, before, after: None });
        let tried: Vec<Tried> = tried.collect();
        (sweep(&tried), inferred(&tried, sizes[0].trials[0].read_ahead_pages))
    }

    #[test]
    fn a_sweep_says_where_the_job_jams_and_where_not() {
        let (goes, inferred) = said(&[(2, 200, 1), (2, 100, 40), (2, 100, 30)]);
        assert!(goes.contains("miss first at x = 0.24. Most miss at x = 0.24: 40.0"), "{goes}");
        assert!(goes.ends_with("Without the series it jams at none of these."), "{goes}");
        assert!(inferred.contains("the model has 0.5 there"), "{inferred}");
        let (between, _) = said(&[(2, 200, 1), (0, 100, 0), (2, 100, 30)]);
        assert!(
            between.ends_with("jams (!) at x = 0.24: there it completes no round."),
            "{between}"
        );
        let (all, inferred) = said(&[(0, 5, 0), (0, 5, 0)]);
        assert!(
            all.ends_with("(!) at x = 0.06, 0.24: at the first of these it completes no round.")
        );
        assert!(!all.contains("100 drops"), "{all}");
        assert!(inferred.contains("Nothing can be inferred"), "{inferred}");
    }
}

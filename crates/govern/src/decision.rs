//! How a file is governed, and why, in words for the report.

use filemap_policy::{Costs, FilePlan, PlanInput, PlannedAdvice, TouchHistory, plan};

use crate::memory::available_bytes;
use crate::process::page_bytes;

/// What giving advice costs a program, in nanoseconds: a thread is stopped, and another window may
/// be read until then.
const ADVISE_NS: u64 = 300_000;

/// Maximum bytes that are read before a program touches them, and their maximum share of the
/// available memory.
const MAX_PREFETCH_BYTES: u64 = 512 << 20;
const PREFETCH_MEMORY_SHARE: u64 = 2;

/// Runs from this many pages on are scans.
const MIN_SCAN_PAGES: u64 = 64;

/// How a file is governed.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum FileWay {
    /// From the first touch, by what it has cost so far.
    RentOrBuy,
    /// It is only watched.
    Watch,
    /// By a plan that was made from its touch histories.
    Plan(FilePlan),
}

/// How a file is governed, and why.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct FileDecision {
    pub way: FileWay,
    pub reason: String,
    /// What reading costs on the file's device, where that was measured.
    pub costs: Option<Costs>,
}

impl FileDecision {
    /// Rent or buy: nothing is remembered.
    pub fn rent_or_buy() -> FileDecision {
        let reason = "from the first touch, by what it has cost so far".to_string();
        FileDecision { way: FileWay::RentOrBuy, reason, costs: None }
    }

    /// Watches a file.
    pub fn watch(reason: &str) -> FileDecision {
        FileDecision { way: FileWay::Watch, reason: reason.to_string(), costs: None }
    }

    /// What an answer of `advise` says: MADV_RANDOM, or nothing.
    pub fn advised(is_random: bool) -> FileDecision {
        let advice = if is_random { PlannedAdvice::Random } else { PlannedAdvice::Unchanged };
        let plan = FilePlan {
            advice,
            follows_runs: is_random,
            prefetch: Vec::new(),
            run_lengths: Vec::new(),
            // Nothing is known of the program: it may go on as it has begun.
            expected_faults: u64::MAX,
            own_ns: 0,
            planned_ns: 0,
        };
        let reason = if is_random { "RANDOM: as advised" } else { "unchanged: as advised" };
        FileDecision { way: FileWay::Plan(plan), reason: reason.to_string(), costs: None }
    }

    /// Decides from `histories`, of which there is at least one, for a file of `file_pages` pages
    /// around whose misses the kernel reads `window_pages`. `measured` are the costs of its device,
    /// `expected` the defaults.
    pub fn from_histories(
        histories: &[TouchHistory],
        (measured, expected): (Option<Costs>, Costs),
        window_pages: u64,
        file_pages: u64,
    ) -> FileDecision {
        let free_bytes = available_bytes() / PREFETCH_MEMORY_SHARE;
        let max_prefetch_pages = free_bytes.min(MAX_PREFETCH_BYTES) / page_bytes();
        let (advise_ns, costs) = (ADVISE_NS, measured.unwrap_or(expected));
        let input = PlanInput { costs, window_pages, file_pages, advise_ns, max_prefetch_pages };
        let plan = plan(histories, &input);
        let reason = plan_text(&plan, histories, file_pages);
        FileDecision { way: FileWay::Plan(plan), reason, costs: measured }
    }

    /// Whether mappings of the file are advised MADV_RANDOM.
    pub fn advises_random(&self) -> bool {
        match &self.way {
            FileWay::RentOrBuy => true,
            FileWay::Watch => false,
            FileWay::Plan(plan) => plan.advice == PlannedAdvice::Random,
        }
    }
}

fn plan_text(plan: &FilePlan, histories: &[TouchHistory], file_pages: u64) -> String {
    let Some(last) = histories.first() else { return "nothing was touched".to_string() };
    let own = if last.is_random { "the program's RANDOM" } else { "NORMAL" };
    if histories.iter().all(|history| history.is_cached) {
        return format!("{own} kept: it was cached each time");
    }
    let touched = touched_text(last, file_pages);
    let advice = match (plan.advice, plan.follows_runs) {
        (PlannedAdvice::Random, _) => format!("RANDOM: {touched}"),
        (PlannedAdvice::Unchanged, true) => format!("{own} kept, runs followed: {touched}"),
        (PlannedAdvice::Unchanged, false) => format!("{own} kept: {touched}"),
    };
    let pages: u64 = plan.prefetch.iter().map(|pages| pages.count()).sum();
    if pages == 0 {
        return advice;
    }
    format!("{advice}; {} read before, as touched nearly whole", size(pages))
}

/// The touched share and its order: "3 % of 4 GiB touched in no order".
fn touched_text(history: &TouchHistory, file_pages: u64) -> String {
    let short = history.short_run_milli_pages();
    let milli: u64 = history.runs.iter().map(|run| history.milli_pages(*run, short)).sum();
    let runs = history.runs.len().max(1) as u64;
    let mean = (milli / runs).div_ceil(1000);
    let scanned = history.runs.iter().filter(|run| run.pages >= MIN_SCAN_PAGES);
    let scanned: u64 = scanned.map(|run| run.pages).sum();
    let all = (milli / 1000).saturating_mul(history.total_runs) / runs;
    let percent = all.saturating_mul(100).saturating_add(file_pages / 2) / file_pages.max(1);
    let percent = percent.min(100);
    let percent = if percent == 0 { "under 1".to_string() } else { percent.to_string() };
    let order = match mean {
        _ if scanned.saturating_mul(2) > milli / 1000 => "in scans".to_string(),
        0..=2 => "in no order".to_string(),
        mean => format!("in runs of {mean} pages"),
    };
    format!("{percent} % of {} touched {order}", size(file_pages))
}

/// A size in its largest unit below it, rounded down.
fn size(pages: u64) -> String {
    let bytes = pages.saturating_mul(page_bytes());
    match bytes {
        0..0x10_0000 => format!("{} KiB", bytes >> 10),
        0x10_0000..0x4000_0000 => format!("{} MiB", bytes >> 20),
        _ => format!("{} GiB", bytes >> 30),
    }
}

#[cfg(test)]
mod tests {
    use filemap_policy::TouchCollector;

    use super::*;
    use crate::costs::DEFAULT_COSTS;

    fn decided(touches: impl Iterator<Item = u64>, is_random: bool, pages: u64) -> FileDecision {
        let mut collector = TouchCollector::new(is_random, is_random);
        touches.for_each(|page| collector.on_touch(page, 1));
        let history = collector.history();
        FileDecision::from_histories(&[history], (None, DEFAULT_COSTS), 2048, pages)
    }

    #[test]
    fn reason_says_what_was_touched() {
        let lookups = decided((0..2000).map(|number| number * 7919 % (1 << 20)), false, 1 << 20);
        assert_eq!(lookups.reason, "RANDOM: under 1 % of 4 GiB touched in no order");
        assert!(lookups.advises_random());
        let scan = decided((0..1 << 16).step_by(16), false, 1 << 17);
        assert_eq!(scan.reason, "NORMAL kept: 50 % of 512 MiB touched in scans");
        assert!(!scan.advises_random());
        let runs = (0..40).flat_map(|number| (0..300).map(move |page| number * 3001 + page));
        let runs = decided(runs, true, 1 << 17);
        assert_eq!(
            runs.reason,
            "the program's RANDOM kept, runs followed: 9 % of 512 MiB touched in scans"
        );
        assert!(!FileDecision::watch("first time").advises_random());
        assert!(FileDecision::rent_or_buy().advises_random());
    }
}

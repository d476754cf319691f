//! Compares two decision logs.

use filemap_core::decision::Decision;
use filemap_core::units::{Order, PageCount, PageIndex};
use filemap_job::{ShownKind, ShownKinds};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use super::common_prefix::{CommonPrefix, common_prefix, mmap_miss_of_same_readahead};
use super::reason::{AccessDescription, DifferenceKey};
use super::rule::RuleName;

/// Number of lines shown before a difference, and of each log after it.
const CONTEXT_LINES: usize = 6;

/// Result of the comparison of two logs.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct LogComparison {
    /// Number of lines compared: of the longer log, without excluded ones.
    pub decisions: u64,
    /// Number of these that are readahead calls.
    pub readahead_calls: u64,
    /// Number of lines of faults that only one log has because a page was still being read when
    /// fault-around passed it.
    pub excluded: u64,
    /// Number of these in the model's log.
    pub excluded_of_model: u64,
    /// Number of excluded lines that no timing explains ([`LogComparison::unexplained_lines`]).
    pub unexplained: u64,
    /// Number of lines that differ, from the first difference on.
    pub mismatches: u64,
    /// The first difference.
    pub first: Option<Box<FirstDifference>>,
    /// Key by which similar differences are grouped.
    pub alike: Option<DifferenceKey>,
    /// Position of the first difference in the model's log, and in the kernel's.
    pub at: (usize, usize),
    /// The kernel's log, kept for some logs with a difference.
    pub kernel: Option<Vec<Decision>>,
    /// Maximum request size of its device in bytes.
    pub io_bytes: u64,
    /// Whether both begin the same readahead at the first difference, but the kernel has a lower
    /// mmap_miss: its fault-around met more of a window than the model's.
    pub has_fewer_misses: bool,
    /// Whether the kernel continues with base pages inside a window that the model lays out in
    /// large folios, as it does when it fails to allocate one, which no rule decides.
    pub lacks_folio: bool,
}

/// The first difference of a pattern.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[allow(missing_docs, reason = "their names say it")]
pub struct FirstDifference {
    pub line: u64,
    /// Index of the access, from 0.
    pub access: Option<u64>,
    pub before: Vec<String>,
    pub model: Vec<String>,
    pub kernel: Vec<String>,
    #[serde(default)]
    pub accessed: Option<AccessDescription>,
    /// The model's decisions in that access, with details that tracepoints do not show.
    #[serde(default)]
    pub reason: Vec<String>,
    /// The rule that the model applied there.
    #[serde(default)]
    pub rule: Option<RuleName>,
}

/// Whether the kernel continues as after a failure to allocate a large folio.
fn lacks_folio(model: &[Decision], kernel: &[Decision], seen: ShownKinds) -> bool {
    if !seen.has(ShownKind::BasePages) {
        return continues_with_base_page(model, kernel);
    }
    match (model, kernel) {
        ([Decision::Added { order, .. }, ..], [Decision::BasePages { .. }, ..]) => order.0 > 0,
        (
            [Decision::Added { start, order, folios, .. }, ..],
            [
                Decision::Added { start: also, order: same, folios: fewer, .. },
                Decision::BasePages { .. },
                ..,
            ],
        ) => order.0 > 0 && (start, order) == (also, same) && fewer < folios,
        _ => false,
    }
}

/// Likewise if no line announces base pages: only the added pages show it.
fn continues_with_base_page(model: &[Decision], kernel: &[Decision]) -> bool {
    let is_base = |line: Option<&Decision>, at: PageIndex| {
        let is_base = |order: Order, start: PageIndex| order.0 == 0 && start == at;
        matches!(line, Some(Decision::Added { start, order, .. }) if is_base(*order, *start))
    };
    let Some(Decision::Added { start, order, .. }) = model.first() else { return false };
    let behind = match kernel.first() {
        Some(Decision::Added { start: also, order: same, folios, .. })
            if (start, order) == (also, same) =>
        {
            is_base(kernel.get(1), *start + PageCount(folios << order.0))
        }
        first => is_base(first, *start),
    };
    order.0 > 0 && behind
}

/// Whether both continue with the same readahead, but a lower mmap_miss of the kernel.
fn has_fewer_misses(model: &[Decision], kernel: &[Decision]) -> bool {
    let (Some(model), Some(kernel)) = (model.first(), kernel.first()) else { return false };
    mmap_miss_of_same_readahead(model, kernel)
        .is_some_and(|[of_model, of_kernel]| of_kernel < of_model)
}

/// Compares the logs of the model and of a kernel, both restricted to `seen`. `accesses` has the
/// index of the access of each line of the model's log.
pub fn compare(
    model: &[Decision],
    kernel: &[Decision],
    seen: ShownKinds,
    accesses: &[u64],
) -> LogComparison {
    let CommonPrefix { same, excluded, excluded_of_model, model: left, kernel: right } =
        common_prefix(model, kernel, seen);
    let mut comparison = LogComparison { excluded, excluded_of_model, ..LogComparison::default() };
    comparison.readahead_calls = readahead_calls(&same);
    comparison.decisions = (same.len() + left.len().max(right.len())) as u64;
    comparison.mismatches = count_differing(left, right);
    comparison.lacks_folio = lacks_folio(left, right, seen);
    comparison.has_fewer_misses = has_fewer_misses(left, right);
    let shown =
        |lines: &[Decision]| lines.iter().take(CONTEXT_LINES).map(Decision::to_string).collect();
    // At the end of the model's log the access is its last one.
    let access = accesses.get(model.len() - left.len()).or(accesses.last());
    let first = (comparison.mismatches > 0).then(|| FirstDifference {
        line: same.len() as u64,
        access: access.copied(),
        before: shown(&same[same.len().saturating_sub(CONTEXT_LINES)..]),
        model: shown(left),
        kernel: shown(right),
        accessed: None,
        reason: Vec::new(),
        rule: None,
    });
    comparison.first = first.map(Box::new);
    if comparison.mismatches > 0 {
        comparison.at = (model.len() - left.len(), kernel.len() - right.len());
        comparison.kernel = Some(kernel.to_vec());
    }
    comparison
}

impl LogComparison {
    /// Number of excluded lines that no timing of the device explains. `as_prompt` compares the
    /// same kernel with a model whose device is instantaneous, and `timing` that model with this
    /// one.
    ///
    /// Within an access, this model's device delivers only the pages that the access waits for. So
    /// the kernel may have an additional fault only if the instantaneous device has it too, and no
    /// fewer faults than with that device.
    pub(super) fn unexplained_lines(
        &self,
        timing: &LogComparison,
        as_prompt: &LogComparison,
    ) -> u64 {
        let of_other = |own: &LogComparison| own.excluded - own.excluded_of_model;
        let fewer = if as_prompt.mismatches == 0 {
            as_prompt.excluded_of_model
        } else {
            self.excluded_of_model.saturating_sub(timing.excluded_of_model)
        };
        fewer + of_other(self).saturating_sub(of_other(timing))
    }

    /// Whether the difference may be due to timing: a fault was excluded, or the kernel credited
    /// more hits.
    pub(super) fn may_be_timing(&self) -> bool {
        self.excluded > 0 || self.has_fewer_misses
    }

    /// Replaces the result by `as_prompt`, the comparison with an instantaneous device, if the logs
    /// differ, timing may be the reason, and that comparison is exact. One fault more or less is
    /// one hit more or less, which can decide whether the next miss reads a window.
    pub(super) fn use_if_exact(&mut self, as_prompt: LogComparison) {
        if self.may_be_timing() && self.mismatches > 0 && as_prompt.is_exact() {
            // The line with the lower mmap_miss counts as excluded.
            let excluded = u64::from(self.excluded == 0);
            *self = LogComparison { excluded, excluded_of_model: excluded, ..as_prompt };
        }
    }

    /// Whether no line was excluded or differs.
    fn is_exact(&self) -> bool {
        self.excluded == 0 && self.mismatches == 0
    }
}

/// Number of positions at which the lines differ.
fn count_differing(left: &[Decision], right: &[Decision]) -> u64 {
    let both = left.iter().zip(right).filter(|(a, b)| a != b).count();
    (both + left.len().abs_diff(right.len())) as u64
}

/// Number of readahead calls: windows, and single reads.
fn readahead_calls(lines: &[Decision]) -> u64 {
    let windows = lines.iter().filter(|line| matches!(line, Decision::Readahead { .. })).count();
    let is_single = |pair: &&[Decision]| match pair {
        [Decision::Entered { cause, .. }, Decision::BasePages { .. }] => !cause.is_async(),
        _ => false,
    };
    let single = lines.windows(2).filter(is_single).count();
    (windows + single) as u64
}

#[cfg(test)]
mod tests {
    use filemap_core::decision::{Cause, ReadaheadSnapshot};

    use super::*;

    fn compare(model: &[Decision], kernel: &[Decision]) -> LogComparison {
        super::compare(model, kernel, ShownKinds::ALL, &[])
    }

    fn compare_seen(model: &[Decision], kernel: &[Decision], seen: ShownKinds) -> LogComparison {
        super::compare(model, kernel, seen, &[])
    }

    fn added(start: u64, folios: u64) -> Decision {
        Decision::Added { start: PageIndex(start), order: Order(0), folios, marked: None }
    }

    fn map(from: u64, last: u64) -> Decision {
        Decision::MapPages {
            from: PageIndex(from),
            last: PageIndex(last),
            mapped: PageCount(0),
            credit: 0,
        }
    }

    fn faulted(index: u64) -> Decision {
        Decision::Faulted { index: PageIndex(index) }
    }

    fn window(start: u64) -> Decision {
        let start = PageIndex(start);
        Decision::Readahead {
            cause: Cause::ReadAround,
            index: start,
            order: Order(0),
            start,
            size: PageCount(32),
            async_size: PageCount(8),
            mmap_miss: 0,
        }
    }

    /// A fault that reads two fault-around windows and maps the first.
    fn miss() -> Vec<Decision> {
        vec![faulted(3), window(0), added(0, 32), map(0, 15)]
    }

    fn with(more: &[Decision]) -> Vec<Decision> {
        [miss().as_slice(), more].concat()
    }

    #[test]
    fn excludes_model_faults_within_device_latency() {
        let around = |index| [faulted(index), map(0, 15)];
        let of_model = with(&[around(5), around(7)].concat());
        let on_kernel = compare(&of_model, &miss());
        assert_eq!((on_kernel.excluded, on_kernel.excluded_of_model), (4, 4));
        // An instantaneous device leaves no fault; one that delivers only awaited pages leaves
        // these.
        let beyond = |prompt: &[Decision], kernel: &[Decision]| {
            let own = compare(&of_model, kernel);
            own.unexplained_lines(&compare(&of_model, prompt), &compare(prompt, kernel))
        };
        assert_eq!(beyond(&miss(), &miss()), 0);
        assert_eq!(beyond(&with(&around(7)), &miss()), 2);
        assert_eq!(beyond(&of_model, &miss()), 4);
        // The same number of faults, but another one.
        assert_eq!(beyond(&with(&around(7)), &with(&around(5))), 2);
        // A faster device does not explain a fault that only the kernel has.
        let of_kernel = compare(&miss(), &with(&around(5)));
        assert_eq!((of_kernel.excluded, of_kernel.excluded_of_model), (2, 0));
        assert_eq!(of_kernel.unexplained_lines(&on_kernel, &of_kernel), 2);
    }

    #[test]
    fn difference_after_excluded_fault_needs_equal_log() {
        let around = |index| [faulted(index), map(0, 15)];
        let model = [with(&around(5)), miss().to_vec()].concat();
        let kernel = [miss().to_vec(), vec![faulted(40)]].concat();
        let found = || compare(&model, &kernel);
        assert!(found().excluded > 0 && found().mismatches > 0);
        let after = |as_prompt: &[Decision]| {
            let mut found = found();
            found.use_if_exact(compare(as_prompt, &kernel));
            (found.excluded, found.mismatches)
        };
        assert_eq!(after(&kernel), (0, 0));
        assert_eq!(after(&miss()), (found().excluded, found().mismatches));
        // Without such a fault the difference stays.
        let mut differs = compare(&miss(), &kernel);
        differs.use_if_exact(compare(&kernel, &kernel));
        assert_eq!(differs.mismatches, 1);
    }

    #[test]
    fn excluded_fault_may_lower_counter_by_one() {
        let entered = |mmap_miss| Decision::Entered {
            cause: Cause::AsyncFault,
            found: ReadaheadSnapshot {
                index: PageIndex(24),
                mmap_miss,
                ..ReadaheadSnapshot::default()
            },
        };
        let log = |more: &[Decision], counter| [with(more), vec![entered(counter)]].concat();
        let extra = [faulted(7), map(0, 15)];
        let mismatches = |model: &[Decision], of_model, kernel: &[Decision], of_kernel| {
            let found = compare(&log(model, of_model), &log(kernel, of_kernel));
            (found.excluded, found.mismatches)
        };
        assert_eq!(mismatches(&extra, 4, &[], 5), (2, 0));
        assert_eq!(mismatches(&[], 5, &extra, 4), (2, 0));
        assert_eq!(mismatches(&extra, 5, &[], 4), (2, 1), "who has the fault has the hit");
        assert_eq!(mismatches(&extra, 4, &[], 6), (2, 1), "a fault has one hit");
        assert_eq!(mismatches(&[], 4, &[], 5), (0, 1), "without such a fault they are equal");
    }

    #[test]
    fn fewer_misses_alone_are_settled_by_an_equal_log() {
        let entered = |mmap_miss| Decision::Entered {
            cause: Cause::AsyncFault,
            found: ReadaheadSnapshot {
                index: PageIndex(24),
                mmap_miss,
                ..ReadaheadSnapshot::default()
            },
        };
        let log = |misses| with(&[entered(misses)]);
        let settled = |of_kernel, as_prompt| {
            let mut found = compare(&log(10), &log(of_kernel));
            found.use_if_exact(compare(&log(as_prompt), &log(of_kernel)));
            (found.mismatches, found.excluded)
        };
        assert_eq!(settled(9, 9), (0, 1), "it is said");
        assert_eq!(settled(9, 8), (1, 0), "no device brings so much");
        assert_eq!(settled(11, 11), (1, 0), "nothing that arrives adds a miss");
        // Timing does not explain a different readahead.
        let other = with(&[Decision::Entered {
            cause: Cause::AsyncFault,
            found: ReadaheadSnapshot {
                index: PageIndex(25),
                mmap_miss: 9,
                ..ReadaheadSnapshot::default()
            },
        }]);
        let mut found = compare(&log(10), &other);
        found.use_if_exact(compare(&other, &other));
        assert_eq!(found.mismatches, 1);
    }

    #[test]
    fn recognizes_base_pages_in_place_of_large_folio() {
        let added = |start, order, folios| Decision::Added {
            start: PageIndex(start),
            order: Order(order),
            folios,
            marked: None,
        };
        let base = Decision::BasePages {
            start: PageIndex(4),
            size: PageCount(28),
            async_size: PageCount(0),
        };
        let is_it = |model: &[Decision], kernel: &[Decision]| compare(model, kernel).lacks_folio;
        assert!(is_it(&[added(0, 2, 8)], &[base, added(0, 0, 32)]));
        assert!(is_it(&[added(0, 2, 8)], &[added(0, 2, 1), base, added(4, 0, 28)]));
        assert!(!is_it(&[added(0, 2, 8)], &[added(0, 2, 1), added(4, 0, 28)]), "no fallback");
        assert!(!is_it(&[added(0, 2, 8)], &[added(0, 1, 1), base]), "another order");
        assert!(!is_it(&[added(0, 2, 8)], &[added(0, 2, 9), base]), "more than the model");
        assert!(!is_it(&[added(0, 0, 32)], &[base, added(0, 0, 32)]), "no large folio is due");
    }

    #[test]
    fn a_fault_on_a_page_that_may_have_arrived_is_excluded_where_no_window_is_shown() {
        let seen = ShownKinds::from_fn(|kind| kind != ShownKind::MapPages);
        let log = |faults: &[u64]| {
            let mut log = vec![faulted(3), added(0, 32)];
            log.extend(faults.iter().map(|&index| faulted(index)));
            log
        };
        let found = compare_seen(&log(&[7, 40]), &log(&[40]), seen);
        assert_eq!((found.mismatches, found.excluded), (0, 1));
        // Page 41 was never added.
        assert_eq!(compare_seen(&log(&[41, 40]), &log(&[40]), seen).excluded, 0);
        assert!(compare_seen(&log(&[41, 40]), &log(&[40]), seen).mismatches > 0);
        assert!(compare(&log(&[7, 40]), &log(&[40])).mismatches > 0);
    }

    #[test]
    fn recognizes_unannounced_base_pages() {
        let added = |start, order, folios| Decision::Added {
            start: PageIndex(start),
            order: Order(order),
            folios,
            marked: None,
        };
        let seen = ShownKinds::from_fn(|kind| kind != ShownKind::BasePages);
        let is_it =
            |model: &[Decision], kernel: &[Decision]| compare_seen(model, kernel, seen).lacks_folio;
        assert!(is_it(&[added(0, 2, 8)], &[added(0, 0, 32)]));
        assert!(is_it(&[added(0, 2, 8)], &[added(0, 2, 1), added(4, 0, 28)]));
        assert!(!is_it(&[added(0, 2, 8)], &[added(0, 2, 1), added(8, 0, 28)]), "elsewhere");
        assert!(!is_it(&[added(0, 2, 8)], &[added(0, 1, 1)]), "another order");
        assert!(!is_it(&[added(0, 2, 8)], &[added(0, 2, 9)]), "more than the model");
        assert!(!is_it(&[added(0, 0, 32)], &[added(0, 0, 31)]), "no large folio is due");
    }

    #[test]
    fn equal_logs_agree() {
        let log = with(&[faulted(20), map(16, 31)]);
        let expected =
            LogComparison { decisions: 6, readahead_calls: 1, ..LogComparison::default() };
        assert_eq!(compare(&log, &log), expected);
        assert_eq!(compare(&[], &[]), LogComparison::default());
    }

    #[test]
    fn finds_first_difference_with_context() {
        let model = with(&[window(40), window(72)]);
        let kernel = with(&[window(41), window(73), window(99)]);
        let found = compare(&model, &kernel);
        assert_eq!((found.decisions, found.mismatches, found.excluded), (7, 3, 0));
        let first = found.first.unwrap();
        let texts = |lines: &[Decision]| lines.iter().map(Decision::to_string).collect::<Vec<_>>();
        assert_eq!((first.line, first.access, first.before), (4, None, texts(&miss())));
        assert_eq!(first.model, texts(&[window(40), window(72)]));
        assert_eq!(first.kernel, texts(&[window(41), window(73), window(99)]));
        let access = |accesses: &[u64]| {
            let found = super::compare(&model, &kernel, ShownKinds::ALL, accesses);
            found.first.and_then(|first| first.access)
        };
        assert_eq!(access(&[0, 0, 0, 0, 3, 4]), Some(3));
        assert_eq!(access(&[0, 0]), Some(0), "the last access of a log that ended");
        let found = compare(&model, &miss());
        assert_eq!(found.mismatches, 2);
        assert!(found.first.unwrap().kernel.is_empty());
    }

    #[test]
    fn a_fault_on_a_page_that_was_on_its_way_may_be_missing() {
        let usual = with(&[faulted(20), map(16, 31)]);
        let more = with(&[faulted(7), map(0, 15), faulted(20), map(16, 31)]);
        for (model, kernel) in [(&usual, &more), (&more, &usual)] {
            let found = compare(model, kernel);
            assert_eq!((found.mismatches, found.excluded, found.decisions), (0, 2, 6));
        }
        // Both have such a fault, on different pages.
        let other = with(&[faulted(9), map(0, 15), faulted(20), map(16, 31)]);
        assert_eq!(compare(&more, &other).excluded, 4);
        // A read(2) follows; only the pages that it adds are seen.
        let read = with(&[added(40, 4)]);
        let more = with(&[faulted(7), map(0, 15), added(40, 4)]);
        for (model, kernel) in [(&read, &more), (&more, &read)] {
            let found = compare(model, kernel);
            assert_eq!((found.mismatches, found.excluded), (0, 2));
        }
    }

    #[test]
    fn no_other_fault_may_be_missing() {
        // Outside the mapped window.
        let beyond = with(&[faulted(18), map(16, 31)]);
        assert_eq!(compare(&miss(), &beyond).mismatches, 2);
        // A different outcome.
        let marked = with(&[
            faulted(7),
            map(0, 15),
            Decision::Lookup { index: PageIndex(7), hit: false, tried: false, mmap_miss: 0 },
        ]);
        assert_eq!(compare(&miss(), &marked).mismatches, 3);
        let adds = with(&[faulted(7), map(0, 15), added(40, 4)]);
        assert_eq!(compare(&with(&[added(50, 4)]), &adds).mismatches, 3);
    }
}

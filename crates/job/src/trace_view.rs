//! The part of a decision log that a kernel's tracepoints show, by which model and kernel are
//! compared.
//!
//! Model and kernel both produce [`Decision`]s. A [`ShownLog`] reduces them to what tracepoints
//! show. Everything that they do not show is defined here: causes, locks, credits, changes of
//! `mmap_miss`, the readahead state where readahead is not entered, and the fields that some kernel
//! versions lack.

use filemap_core::decision::{Cause, Decision, Lock, Log};
use filemap_core::fault::lock;
use filemap_core::rules::{OrderGrowth, Rules};
use filemap_core::series::Switch;
use filemap_core::units::{Order, PageCount, PageIndex};

use crate::trace_kinds::{ShownKind, ShownKinds};

/// Number of trace events that a line stands for.
pub fn events(line: &Decision) -> u64 {
    if let Decision::Added { folios, .. } = line { *folios } else { 1 }
}

/// A log of what tracepoints show of each decision.
#[derive(Clone, Debug)]
pub struct ShownLog {
    /// The kinds of lines to keep.
    seen: ShownKinds,
    /// The lock that a fault takes first.
    first: Lock,
    /// Ignore the end of the previous read on a hit of a marked folio: it depends on which folios
    /// were uptodate.
    drops_read_end: bool,
    /// Ignore `mmap_miss`, whose word holds something else.
    drops_counter: bool,
    /// Ignore the folio order, which the readahead state does not keep.
    drops_order: bool,
    lines: Vec<Decision>,
    /// Line at which the unfinished fault began.
    fault: Option<usize>,
    /// For each line, the number of its access.
    accesses: Vec<u64>,
    /// Number of the current access.
    access: u64,
}

impl Default for ShownLog {
    fn default() -> Self {
        ShownLog::seeing(ShownKinds::ALL)
    }
}

impl ShownLog {
    /// A log that keeps only the kinds in `seen`, as for a kernel without some tracepoints.
    pub fn seeing(seen: ShownKinds) -> Self {
        let (lines, fault, accesses, access) = (Vec::new(), None, Vec::new(), 0);
        ShownLog {
            seen,
            first: Lock::Vma,
            drops_read_end: false,
            drops_counter: false,
            drops_order: false,
            lines,
            fault,
            accesses,
            access,
        }
    }

    /// Drops the fields that a kernel with these `rules` does not show.
    pub fn under(self, rules: &Rules) -> Self {
        ShownLog {
            first: lock::access_lock(rules),
            drops_read_end: rules.read_notes_each_folio,
            drops_order: rules.order_growth == OrderGrowth::EveryWindow,
            drops_counter: rules.series.has(Switch::RentOrBuy),
            ..self
        }
    }

    /// Appends a line if its kind is kept. Consecutive folios of the same order are merged into one
    /// line.
    fn push(&mut self, line: Decision) {
        if !ShownKind::from_decision(&line).is_some_and(|kind| self.seen.has(kind)) {
            return;
        }
        if let Decision::Added { start, order, folios, .. } = line
            && let Some(Decision::Added { start: first, order: known, folios: before, .. }) =
                self.lines.last_mut()
            && *known == order
            && *first + PageCount(*before << order.0) == start
        {
            *before += folios;
            return;
        }
        self.lines.push(line);
        self.accesses.push(self.access);
    }

    /// The line without the fields that are ignored for this kernel.
    fn apply_rules(&self, line: Decision) -> Decision {
        let Decision::Entered { cause, mut found } = line else { return line };
        if self.drops_read_end && cause == Cause::AsyncRead {
            found.previous_end = None;
        }
        if self.drops_counter {
            found.mmap_miss = 0;
        }
        if self.drops_order {
            found.order = Order(0);
        }
        Decision::Entered { cause, found }
    }

    /// For each line, the number of its access, from 0.
    pub fn accesses(&self) -> &[u64] {
        &self.accesses
    }

    /// The lines in order.
    pub fn lines(&self) -> &[Decision] {
        &self.lines
    }

    /// The lines, by value.
    pub fn into_lines(self) -> Vec<Decision> {
        self.lines
    }
}

impl Log for ShownLog {
    fn record(&mut self, decision: Decision) {
        match decision {
            // The page of a fault's first attempt is only known later.
            Decision::Locked { lock } if lock == self.first && self.fault.is_none() => {
                self.fault = self.seen.has(ShownKind::Faulted).then_some(self.lines.len());
                self.push(Decision::Faulted { index: PageIndex(0) });
            }
            Decision::Served { index, .. } => {
                if let Some(at) = self.fault.take() {
                    self.lines[at] = Decision::Faulted { index };
                }
            }
            other => {
                if let Some(line) = shown_decision(other) {
                    self.push(self.apply_rules(line));
                }
            }
        }
    }

    fn access(&mut self, number: u64) {
        self.access = number;
    }
}

/// What tracepoints show of decisions, separately for each file.
#[derive(Clone, Debug)]
pub struct ShownByFile {
    logs: Vec<ShownLog>,
    file: usize,
}

impl ShownByFile {
    /// Creates a copy of `log` for each of `files` files.
    pub fn new(files: usize, log: ShownLog) -> Self {
        ShownByFile { logs: vec![log; files], file: 0 }
    }

    /// The log of each file.
    pub fn into_logs(self) -> Vec<ShownLog> {
        self.logs
    }
}

impl Log for ShownByFile {
    fn record(&mut self, decision: Decision) {
        match decision {
            Decision::File { file } => self.file = file.number(),
            decision => self.logs[self.file].record(decision),
        }
    }

    fn access(&mut self, number: u64) {
        self.logs.iter_mut().for_each(|log| log.access(number));
    }
}

/// What tracepoints show of one decision. Fields that they do not show are set to fixed values.
pub fn shown_decision(decision: Decision) -> Option<Decision> {
    match decision {
        Decision::Lookup { index, .. } => {
            Some(Decision::Lookup { index, hit: false, tried: false, mmap_miss: 0 })
        }
        Decision::MapPages { from, last, .. } => {
            Some(Decision::MapPages { from, last, mapped: PageCount(0), credit: 0 })
        }
        Decision::Entered { cause, found } => {
            let cause = if cause.is_async() { Cause::AsyncRead } else { Cause::ReadStream };
            Some(Decision::Entered { cause, found })
        }
        // A read of a single page has no window; its base pages follow.
        Decision::Readahead { cause: Cause::ReadSingle | Cause::SequentialSingle, .. } => None,
        // Nor do forced reads in chunks.
        Decision::Readahead { cause, .. } if cause.is_forced() => None,
        Decision::Readahead { start, order, size, async_size, .. } => Some(Decision::Readahead {
            cause: Cause::ReadAround,
            index: start,
            order,
            start,
            size,
            async_size,
            mmap_miss: 0,
        }),
        Decision::Added { start, order, folios, .. } => {
            Some(Decision::Added { start, order, folios, marked: None })
        }
        decision => ShownKind::from_decision(&decision).map(|_| decision),
    }
}

#[cfg(test)]
mod tests {
    use filemap_core::decision::ReadaheadSnapshot;
    use filemap_core::rules::Kernel;
    use filemap_core::series::Series;
    use filemap_core::units::Order;

    use super::*;

    fn added(start: u64, order: u8, folios: u64) -> Decision {
        Decision::Added { start: PageIndex(start), order: Order(order), folios, marked: None }
    }

    #[test]
    fn equal_folios_are_joined() {
        let mut log = ShownLog::default();
        for line in [added(0, 2, 1), added(4, 2, 2), added(12, 1, 1), added(14, 2, 1)] {
            log.push(line);
        }
        log.push(added(20, 2, 1));
        let expected = [added(0, 2, 3), added(12, 1, 1), added(14, 2, 1), added(20, 2, 1)];
        assert_eq!(log.into_lines(), expected);
    }

    /// Folios that were only separated by a hidden line are merged.
    #[test]
    fn hidden_decisions_are_removed_before_joining() {
        let index = PageIndex(4);
        let decisions = [
            Decision::Locked { lock: Lock::Vma },
            Decision::Added { start: PageIndex(0), order: Order(2), folios: 1, marked: None },
            Decision::Lookup { index, hit: true, tried: false, mmap_miss: 0 },
            Decision::Added { start: index, order: Order(2), folios: 1, marked: None },
            Decision::Served { index, major: false, tries: 1 },
        ];
        let lines = |seen: ShownKinds| {
            let mut log = ShownLog::seeing(seen);
            decisions.iter().for_each(|decision| log.record(*decision));
            assert_eq!(log.accesses().len(), log.lines.len());
            log.into_lines()
        };
        let looked_up = Decision::Lookup { index, hit: false, tried: false, mmap_miss: 0 };
        let faulted = Decision::Faulted { index };
        assert_eq!(lines(ShownKinds::ALL), [faulted, added(0, 2, 1), looked_up, added(4, 2, 1)]);
        let additions = ShownKinds::from_fn(|kind| kind == ShownKind::Added);
        assert_eq!(lines(additions), [added(0, 2, 2)]);
        let faults =
            ShownKinds::from_fn(|kind| matches!(kind, ShownKind::Added | ShownKind::Faulted));
        assert_eq!(lines(faults), [faulted, added(0, 2, 2)]);
        let no_faults = ShownKinds::from_fn(|kind| kind != ShownKind::Faulted);
        assert_eq!(lines(no_faults), [added(0, 2, 1), looked_up, added(4, 2, 1)]);
    }

    #[test]
    fn a_fault_is_shown_where_it_began() {
        let mut log = ShownLog::default();
        let index = PageIndex(7);
        for decision in [
            Decision::Locked { lock: Lock::Vma },
            Decision::Lookup { index, hit: true, tried: false, mmap_miss: 0 },
            Decision::Dropped { lock: Lock::Vma },
            Decision::Locked { lock: Lock::Mmap },
            Decision::Served { index, major: false, tries: 2 },
        ] {
            log.record(decision);
        }
        log.access(1);
        log.record(Decision::Locked { lock: Lock::Vma });
        assert_eq!(log.accesses(), [0, 0, 1]);
        assert_eq!(
            log.into_lines()[..2],
            [
                Decision::Faulted { index },
                Decision::Lookup { index, hit: false, tried: false, mmap_miss: 0 },
            ]
        );
    }

    /// Before 6.6 VMAs have no lock: a fault begins with `mmap_lock`, and its retry takes it again.
    #[test]
    fn a_fault_may_begin_with_another_lock() {
        let mut log = ShownLog::default().under(&Rules::new(Kernel::V6_1, Series::BASELINE));
        for index in [7, 9].map(PageIndex) {
            for decision in [
                Decision::Locked { lock: Lock::Mmap },
                Decision::Dropped { lock: Lock::Mmap },
                Decision::Locked { lock: Lock::Mmap },
                Decision::Served { index, major: false, tries: 2 },
            ] {
                log.record(decision);
            }
        }
        let faulted = [7, 9].map(|index| Decision::Faulted { index: PageIndex(index) });
        assert_eq!(log.into_lines(), faulted);
    }

    /// Linux 6.1 records the read position with each folio that it copies. The number of folios
    /// copied before a hit on the mark depends on how many the device had delivered.
    #[test]
    fn a_read_that_notes_each_folio_shows_no_end_at_a_mark() {
        let found = ReadaheadSnapshot { previous_end: Some(4096), ..ReadaheadSnapshot::default() };
        let end = |kernel, cause| {
            let mut log = ShownLog::default().under(&Rules::new(kernel, Series::BASELINE));
            log.record(Decision::Entered { cause, found });
            match log.into_lines()[..] {
                [Decision::Entered { found, .. }] => found.previous_end,
                ref lines => panic!("{lines:?}"),
            }
        };
        assert_eq!(end(Kernel::V6_1, Cause::AsyncRead), None);
        assert_eq!(end(Kernel::V6_1, Cause::ReadStream), Some(4096));
        assert_eq!(end(Kernel::V6_12, Cause::AsyncRead), Some(4096));
    }

    #[test]
    fn a_lone_read_shows_base_pages_only() {
        let mut log = ShownLog::default();
        let index = PageIndex(7);
        for cause in [Cause::ReadSingle, Cause::SequentialSingle] {
            log.record(Decision::Readahead {
                cause,
                index,
                order: Order(0),
                start: index,
                size: PageCount(2),
                async_size: PageCount(0),
                mmap_miss: 0,
            });
        }
        let base =
            Decision::BasePages { start: index, size: PageCount(2), async_size: PageCount(0) };
        log.record(base);
        assert_eq!(log.into_lines().len(), 1);
    }
}

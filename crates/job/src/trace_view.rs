//! What of a decision log a kernel's tracepoints show: the form in which a model and a kernel
//! are compared.
//!
//! Both write [`Decision`]s. A [`ShownLog`] takes them and keeps what tracepoints show of each, so
//! this is the only place that says what they do not: causes, locks, credits, changes of
//! `mmap_miss`, and what is found where no readahead is entered.

use std::fmt;

use filemap_core::decision::{Cause, Decision, Found, Lock, Log};
use filemap_core::units::{Order, PageCount, PageIndex};

use crate::trace_kinds::{Seen, ShownKind};

/// A line of a log as tracepoints show it.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Shown {
    /// An access to the mapping faulted (`page_fault_user`).
    Faulted {
        /// The page of the file that was accessed.
        index: PageIndex,
    },
    /// A fault looked its page up in the cache (`mm_filemap_fault`), once for each try.
    LookedUp {
        /// The page.
        index: PageIndex,
    },
    /// Fault-around mapped what it found in a window (`mm_filemap_map_pages`).
    MapPages {
        /// First page of the window.
        from: PageIndex,
        /// Last page of the window.
        last: PageIndex,
    },
    /// Readahead was entered after a miss (`page_cache_sync_ra`).
    Sync(Found),
    /// Readahead was entered after a hit on a mark (`page_cache_async_ra`).
    Async(Found),
    /// A window is laid out (`page_cache_ra_order`).
    Window {
        /// First page.
        start: PageIndex,
        /// Folio order asked for.
        order: Order,
        /// Pages, before it is clipped.
        size: PageCount,
        /// Pages behind the mark.
        async_size: PageCount,
    },
    /// A window, or the rest of one, is laid out in base pages (`page_cache_ra_unbounded`).
    BasePages {
        /// First page.
        start: PageIndex,
        /// Pages, after it is clipped.
        size: PageCount,
        /// Pages behind the mark, as asked for.
        async_size: PageCount,
    },
    /// Folios of one order entered the cache, one behind the other
    /// (`mm_filemap_add_to_page_cache`).
    Added {
        /// First page of the first folio.
        start: PageIndex,
        /// Order of each.
        order: Order,
        /// How many.
        folios: u64,
    },
}

impl Shown {
    /// How many events of a trace the line stands for.
    pub fn events(&self) -> u64 {
        if let Shown::Added { folios, .. } = self { *folios } else { 1 }
    }
}

/// A log that keeps of each decision what tracepoints show.
#[derive(Clone, Debug)]
pub struct ShownLog {
    /// The kinds of lines that are kept.
    seen: Seen,
    /// The lock with which a fault of an access begins.
    first: Lock,
    lines: Vec<Shown>,
    /// Where the fault began that is not served yet.
    fault: Option<usize>,
    /// Of each line, the number of the access that it belongs to.
    accesses: Vec<u64>,
    /// The access at hand.
    access: u64,
}

impl Default for ShownLog {
    fn default() -> Self {
        ShownLog::seeing(Seen::ALL)
    }
}

impl ShownLog {
    /// A log that keeps only what is `seen`: what a kernel without some of the tracepoints shows.
    pub fn seeing(seen: Seen) -> Self {
        let (lines, fault, accesses, access) = (Vec::new(), None, Vec::new(), 0);
        ShownLog { seen, first: Lock::Vma, lines, fault, accesses, access }
    }

    /// The same of a kernel whose faults begin with the lock `first`.
    pub fn beginning_with(self, first: Lock) -> Self {
        ShownLog { first, ..self }
    }

    /// Adds a line, if it is seen. Folios of one order that follow each other become one line.
    fn push(&mut self, line: Shown) {
        if !self.seen.has(ShownKind::from(&line)) {
            return;
        }
        if let Shown::Added { start, order, folios } = line
            && let Some(Shown::Added { start: first, order: known, folios: before }) =
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

    /// Of each line, the number of the access, from 0, that it belongs to.
    pub fn accesses(&self) -> &[u64] {
        &self.accesses
    }

    /// The lines in order.
    pub fn into_lines(self) -> Vec<Shown> {
        self.lines
    }
}

impl Log for ShownLog {
    fn record(&mut self, decision: Decision) {
        match decision {
            // Which page the first try of a fault is for shows later.
            Decision::Locked(lock) if lock == self.first && self.fault.is_none() => {
                self.fault = self.seen.has(ShownKind::Faulted).then_some(self.lines.len());
                self.push(Shown::Faulted { index: PageIndex(0) });
            }
            Decision::Served { index, .. } => {
                if let Some(at) = self.fault.take() {
                    self.lines[at] = Shown::Faulted { index };
                }
            }
            other => {
                if let Some(line) = shown(other) {
                    self.push(line);
                }
            }
        }
    }

    fn access(&mut self, number: u64) {
        self.access = number;
    }
}

/// What tracepoints show of decisions, for each file by itself.
#[derive(Clone, Debug)]
pub struct ShownByFile {
    logs: Vec<ShownLog>,
    file: usize,
}

impl ShownByFile {
    /// A log like `log` for each of so many files.
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
            Decision::File(file) => self.file = file.number(),
            decision => self.logs[self.file].record(decision),
        }
    }

    fn access(&mut self, number: u64) {
        self.logs.iter_mut().for_each(|log| log.access(number));
    }
}

/// The line that tracepoints show of one decision.
fn shown(decision: Decision) -> Option<Shown> {
    match decision {
        Decision::Lookup { index, .. } => Some(Shown::LookedUp { index }),
        Decision::MapPages { from, last, .. } => Some(Shown::MapPages { from, last }),
        Decision::Entered { cause, found } if cause.is_async() => Some(Shown::Async(found)),
        Decision::Entered { found, .. } => Some(Shown::Sync(found)),
        // A single read has no window; its base pages follow.
        Decision::Readahead { cause: Cause::ReadSingle | Cause::SequentialSingle, .. } => None,
        // Nor has what is read in chunks.
        Decision::Readahead { cause, .. } if cause.is_forced() => None,
        Decision::Readahead { start, order, size, async_size, .. } => {
            Some(Shown::Window { start, order, size, async_size })
        }
        Decision::BasePages { start, size, async_size } => {
            Some(Shown::BasePages { start, size, async_size })
        }
        Decision::Added { start, order, folios, .. } => Some(Shown::Added { start, order, folios }),
        _ => None,
    }
}

impl fmt::Display for Shown {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Shown::Faulted { index } => write!(f, "access {index}"),
            Shown::LookedUp { index } => write!(f, "fault {index}"),
            Shown::MapPages { from, last } => write!(f, "map_pages {from}-{last}"),
            Shown::Sync(found) => state(f, "sync_ra", found),
            Shown::Async(found) => state(f, "async_ra", found),
            Shown::Window { start, order, size, async_size } => {
                let order = order.0;
                write!(f, "ra_order {start} order={order} size={size} async_size={async_size}")
            }
            Shown::BasePages { start, size, async_size } => {
                write!(f, "ra_unbounded {start} size={size} async_size={async_size}")
            }
            Shown::Added { start, order, folios } => {
                write!(f, "added {start} order={} folios={folios}", order.0)
            }
        }
    }
}

fn state(f: &mut fmt::Formatter<'_>, name: &str, found: &Found) -> fmt::Result {
    let Found { index, req, order, size, async_size, mmap_miss, previous_end } = found;
    let order = order.0;
    write!(f, "{name} {index} req={req} order={order} size={size} async_size={async_size}")?;
    write!(f, " mmap_miss={mmap_miss}")?;
    previous_end.map_or(Ok(()), |end| write!(f, " previous_end={end}"))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn added(start: u64, order: u8, folios: u64) -> Shown {
        Shown::Added { start: PageIndex(start), order: Order(order), folios }
    }

    #[test]
    fn folios_are_joined_as_far_as_they_are_alike() {
        let mut log = ShownLog::default();
        for line in [added(0, 2, 1), added(4, 2, 2), added(12, 1, 1), added(14, 2, 1)] {
            log.push(line);
        }
        log.push(added(20, 2, 1));
        let expected = [added(0, 2, 3), added(12, 1, 1), added(14, 2, 1), added(20, 2, 1)];
        assert_eq!(log.into_lines(), expected);
    }

    /// Folios that only a line between them kept apart are one line where that is not seen.
    #[test]
    fn what_is_not_seen_is_left_out_before_folios_are_joined() {
        let index = PageIndex(4);
        let decisions = [
            Decision::Locked(Lock::Vma),
            Decision::Added { start: PageIndex(0), order: Order(2), folios: 1, marked: None },
            Decision::Lookup { index, hit: true, tried: false, mmap_miss: 0 },
            Decision::Added { start: index, order: Order(2), folios: 1, marked: None },
            Decision::Served { index, major: false, tries: 1 },
        ];
        let lines = |seen: Seen| {
            let mut log = ShownLog::seeing(seen);
            decisions.iter().for_each(|decision| log.record(*decision));
            assert_eq!(log.accesses().len(), log.lines.len());
            log.into_lines()
        };
        let looked_up = Shown::LookedUp { index };
        let faulted = Shown::Faulted { index };
        assert_eq!(lines(Seen::ALL), [faulted, added(0, 2, 1), looked_up, added(4, 2, 1)]);
        let additions = Seen::of(|kind| kind == ShownKind::Added);
        assert_eq!(lines(additions), [added(0, 2, 2)]);
        let faults = Seen::of(|kind| matches!(kind, ShownKind::Added | ShownKind::Faulted));
        assert_eq!(lines(faults), [faulted, added(0, 2, 2)]);
        let no_faults = Seen::of(|kind| kind != ShownKind::Faulted);
        assert_eq!(lines(no_faults), [added(0, 2, 1), looked_up, added(4, 2, 1)]);
    }

    #[test]
    fn a_fault_is_shown_where_it_began() {
        let mut log = ShownLog::default();
        let index = PageIndex(7);
        for decision in [
            Decision::Locked(Lock::Vma),
            Decision::Lookup { index, hit: true, tried: false, mmap_miss: 0 },
            Decision::Dropped(Lock::Vma),
            Decision::Locked(Lock::Mmap),
            Decision::Served { index, major: false, tries: 2 },
        ] {
            log.record(decision);
        }
        log.access(1);
        log.record(Decision::Locked(Lock::Vma));
        assert_eq!(log.accesses(), [0, 0, 1]);
        assert_eq!(log.into_lines()[..2], [Shown::Faulted { index }, Shown::LookedUp { index }]);
    }

    /// Before 6.6 VMAs have no lock: a fault begins with `mmap_lock`, and its retry takes it again.
    #[test]
    fn a_fault_may_begin_with_another_lock() {
        let mut log = ShownLog::default().beginning_with(Lock::Mmap);
        for index in [7, 9].map(PageIndex) {
            for decision in [
                Decision::Locked(Lock::Mmap),
                Decision::Dropped(Lock::Mmap),
                Decision::Locked(Lock::Mmap),
                Decision::Served { index, major: false, tries: 2 },
            ] {
                log.record(decision);
            }
        }
        let faulted = [7, 9].map(|index| Shown::Faulted { index: PageIndex(index) });
        assert_eq!(log.into_lines(), faulted);
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

//! Makes every first touch of a recorded mapping a fault of its own: the mapping is advised
//! MADV_RANDOM from outside, and pages that were read before are dropped.

mod advised_mapping;
mod held_pages;
mod late;

use std::collections::{HashMap, HashSet, VecDeque};
use std::fs::File;
use std::path::Path;
use std::sync::{Arc, OnceLock};
use std::thread::sleep;
use std::time::{Duration, Instant};

use filemap_attach::process::{self, ReadaheadMode};
use filemap_attach::tracepoints::TraceEvent;
use filemap_attach::{
    EventSource, FileId, InjectionReport, MappedFile, MappedRange, MemoryAdvice, PopulateInjection,
    Refusal, advise_all, advise_any, is_populating, now_ns,
};
use filemap_kernel::cold_cache::drop_pages;
use filemap_kernel::residency::CacheStat;

use crate::journal::{AdviceJournal, start_ticks};
use crate::recorder::file_filter::ProcessFile;
use crate::run_directory::run_directory;
use advised_mapping::AdvisedMapping;
use held_pages::{DROP_INTERVAL, HeldPages, UnfaultedPages};
pub use late::{LateFile, LateMappings, is_of_system};

/// Time limit of an attempt to hold a thread: zero tries each thread of the process once.
const SINGLE_ROUND: Duration = Duration::ZERO;

/// Maximum number of mappings of one file for which it is dropped. Each drop takes milliseconds.
const MAX_DROPS: u32 = 256;

/// Attempts to drop a file whose pages are under I/O.
const MAX_DROP_ATTEMPTS: usize = 10;

/// Maximum mappings waiting for a thread that can be held.
const MAX_PENDING: usize = 1024;

/// Above this number, the mappings of exited processes are forgotten.
const MAX_ADVISED: usize = 4096;

/// Maximum number of forks remembered; mappings made before them are reported within milliseconds.
const MAX_FORKS: usize = 256;

/// Pause between two attempts to advise a mapping; it doubles from the minimum to the maximum.
const MIN_RETRY_INTERVAL: Duration = Duration::from_micros(500);
const MAX_RETRY_INTERVAL: Duration = Duration::from_millis(100);

/// Attempts to restore the advice of a mapping.
const MAX_RESTORE_ATTEMPTS: u32 = 20;

/// Maximum injected calls remembered; the kernel reports each within milliseconds.
const MAX_OWN_ADVICE: usize = 4096;

/// A call that did not return in time is expected to be reported within this time.
const UNFINISHED_CALL_NS: u64 = 1_000_000_000;

/// Advises the mappings of recorded processes so that their pages come one at a time.
pub struct SinglePages {
    /// Drops a file from the page cache when it is first mapped.
    drops_files: bool,
    /// Reads the previous advice of a mapping from smaps, where madvise(2) calls are not reported.
    reads_advice: bool,
    /// Fault-around is on, so that a fault maps cached pages around it.
    has_fault_around: bool,
    /// By process and address: the advice that a mapping had before.
    previous: HashMap<(u32, u64), ReadaheadMode>,
    /// How often each file was dropped, and when last.
    drops: HashMap<FileId, (u32, u64)>,
    advised: Vec<AdvisedMapping>,
    /// The advised mappings on disk, for `filemap govern --release` after a kill.
    journal: Option<AdviceJournal>,
    /// Mappings whose processes had no thread that could be held yet.
    pending: Vec<PendingMapping>,
    /// Mappings whose thread still populates them in mmap(2).
    populating: Vec<PopulatingMapping>,
    /// Injected calls, to recognise them among the reported ones.
    own: VecDeque<OwnAdvice>,
    /// The first refusal that is not worth a retry.
    pub refused: Option<Refusal>,
    /// Mappings that were touched before they were advised.
    late: LateMappings,
    /// The pages of such mappings that may have been touched, as far as they are known.
    unseen: Vec<MissedTouches>,
    /// The last forks: a mapping that the parent made before is in the child too, also if its event
    /// is read later.
    forks: VecDeque<ForkedProcess>,
}

/// Pages that a thread may have touched without a fault of their own.
pub struct MissedTouches {
    pub pid: u32,
    pub tid: u32,
    pub pages: UnfaultedPages,
}

/// A call of madvise(2) that was injected, or may have been.
struct OwnAdvice {
    pid: u32,
    address: u64,
    advice: u64,
    from_ns: u64,
    until_ns: u64,
}

/// A process that was forked.
struct ForkedProcess {
    parent: u32,
    pid: u32,
    tid: u32,
    at_ns: u64,
}

/// A mapping that could not be advised yet.
#[derive(Clone)]
struct PendingMapping {
    event: TraceEvent,
    range: MappedRange,
    next_try: Instant,
    retry: Retry,
}

/// What a retry has of the first attempt.
#[derive(Clone, Copy)]
struct Retry {
    /// The pause before it.
    interval: Duration,
    /// The advice of the mapping.
    previous: ReadaheadMode,
    /// The mapping is older than the recording.
    was_mapped_before: bool,
}

/// A mapping that is being advised.
struct MappingAttempt {
    event: TraceEvent,
    range: MappedRange,
    /// Its file, if it is to be dropped from the page cache.
    file: Option<Arc<File>>,
    /// The page table when a thread was held.
    held: Arc<OnceLock<HeldPages>>,
    previous: ReadaheadMode,
    /// The mapping is older than the recording.
    was_mapped_before: bool,
    /// The pause before this retry; `None` at the first attempt.
    interval: Option<Duration>,
    /// Its thread mapped all pages in mmap(2), and must be held before it returns.
    is_populated: bool,
}

/// A mapping that is advised as soon as its thread returns from mmap(2).
struct PopulatingMapping {
    attempt: MappingAttempt,
    injection: PopulateInjection,
    from_ns: u64,
}

/// The calls that unmap the pages of a mapping, and have them read one at a time from then on.
const SINGLE_PAGE_ADVICE: [MemoryAdvice; 2] = [MemoryAdvice::Random, MemoryAdvice::PageOut];

impl SinglePages {
    /// For programs that are started. Files are dropped when they are first mapped.
    /// `fault_around_off` says that no fault maps pages around it.
    pub fn for_children(source: &EventSource, fault_around_off: bool) -> SinglePages {
        let reads_advice = !source.reports_syscalls();
        SinglePages { has_fault_around: !fault_around_off, ..SinglePages::new(true, reads_advice) }
    }

    /// For running processes.
    pub fn for_processes(drops_files: bool, pids: &[u32]) -> SinglePages {
        let mut single = SinglePages::new(drops_files, true);
        for pid in pids {
            let maps = process::maps_with_advice(*pid).unwrap_or_default().into_iter();
            let previous = maps.map(|(range, advice)| ((*pid, range.address), advice.readahead));
            single.previous.extend(previous);
        }
        single
    }

    fn new(drops_files: bool, reads_advice: bool) -> SinglePages {
        SinglePages {
            drops_files,
            reads_advice,
            has_fault_around: true,
            previous: HashMap::new(),
            drops: HashMap::new(),
            advised: Vec::new(),
            journal: run_directory().and_then(|directory| AdviceJournal::create(&directory).ok()),
            pending: Vec::new(),
            populating: Vec::new(),
            own: VecDeque::new(),
            refused: None,
            late: LateMappings::default(),
            unseen: Vec::new(),
            forks: VecDeque::new(),
        }
    }

    /// A recorded file was mapped; this process can open it at `path`.
    /// `is_populated` says that mmap(2) reads all of it before it returns.
    pub fn on_mapping(
        &mut self,
        source: &mut EventSource,
        event: &TraceEvent,
        range: &MappedRange,
        path: &Path,
        is_populated: bool,
    ) {
        self.advise_mapping(source, (event, range), path, None, is_populated);
        let inherits = |fork: &&ForkedProcess| fork.parent == event.pid && fork.at_ns > event.at_ns;
        let children = self.forks.iter().filter(inherits);
        let children: Vec<_> = children
            .map(|fork| {
                let (pid, tid, at_ns) = (fork.pid, fork.tid, fork.at_ns);
                TraceEvent { pid, tid, at_ns, ..event.clone() }
            })
            .collect();
        for event in children {
            self.advise_mapping(source, (&event, range), path, None, false);
        }
    }

    /// A recorded file was mapped, but the event arrived after the end. The mapping was never
    /// advised, so its touched pages came together with others.
    pub fn on_missed_mapping(
        &mut self,
        source: &EventSource,
        event: &TraceEvent,
        range: &MappedRange,
    ) {
        if !(self.drops_files && self.has_fault_around) {
            return;
        }
        let faulted = source.faulted_pages(event.pid, range, event.at_ns, u64::MAX);
        if !faulted.is_empty() {
            self.add_unseen(event, range, UnfaultedPages::around(&faulted, range, event.at_ns));
        }
    }

    /// Advises a mapping, or queues it for a retry, by which time its faults may have been taken
    /// out of the source, and its previous advice out of `previous`.
    fn advise_mapping(
        &mut self,
        source: &mut EventSource,
        (event, range): (&TraceEvent, &MappedRange),
        path: &Path,
        retry: Option<Retry>,
        is_populated: bool,
    ) {
        let key = (event.pid, range.address);
        let was_mapped_before = match retry {
            Some(retry) => retry.was_mapped_before,
            None => self.previous.contains_key(&key),
        };
        if self.reads_advice && !was_mapped_before && retry.is_none() {
            let maps = process::maps_with_advice(event.pid).unwrap_or_default();
            let found = maps.into_iter().find(|(other, _)| other.address == range.address);
            self.previous.extend(found.map(|(_, advice)| (key, advice.readahead)));
        }
        let known = self.previous.get(&key).copied().unwrap_or_default();
        let previous = retry.map_or(known, |retry| retry.previous);
        let may_drop = self.drops_files && self.drops_of(range) < MAX_DROPS;
        let file = File::open(path).ok().filter(|_| may_drop).map(Arc::new);
        if previous != ReadaheadMode::Random {
            self.add_to_journal(event.pid, range);
        }
        let attempt = MappingAttempt {
            event: event.clone(),
            range: range.clone(),
            file,
            held: Arc::default(),
            previous,
            was_mapped_before,
            interval: retry.map(|retry| retry.interval),
            is_populated,
        };
        let is_done = match attempt.file.clone() {
            Some(file) if !range.is_private_writable() => {
                // Before a first attempt, the thread of an unknown call has hardly begun to wait.
                if is_populated || retry.is_some() && is_populating(event.pid, event.tid) {
                    return self.await_populate(attempt, file);
                }
                // Pages are dropped while the thread is held, so that it finds none of those that
                // came with its first touches.
                self.advise_and_drop(event, range, file, attempt.held.clone())
            }
            _ => {
                let (mapping, held, pid) = (range.clone(), attempt.held.clone(), event.pid);
                let read = move || {
                    held.get_or_init(|| HeldPages::read(pid, &mapping));
                };
                self.inject(event, range, &[MemoryAdvice::Random], read)
            }
        };
        if is_done {
            self.on_advised(source, attempt, false);
        } else {
            self.retry_later(attempt);
        }
    }

    /// How often the file of a mapping was dropped.
    fn drops_of(&self, range: &MappedRange) -> u32 {
        let id = range.file.as_ref().map(|file| file.id);
        id.and_then(|id| self.drops.get(&id)).map_or(0, |(count, _)| *count)
    }

    /// Has the thread that maps a range advise it, and drop its pages, when it returns from
    /// mmap(2).
    fn await_populate(&mut self, mut attempt: MappingAttempt, file: Arc<File>) {
        attempt.is_populated = true;
        let MappingAttempt { event, range, held, .. } = &attempt;
        let from_ns = now_ns();
        let then = Arc::new(hold_and_drop(event.pid, range, file, held.clone()));
        let (pid, tid) = (event.pid, event.tid);
        let injection = PopulateInjection::start(pid, tid, range, &SINGLE_PAGE_ADVICE, then);
        self.add_own_advice(pid, range, &SINGLE_PAGE_ADVICE, (from_ns, u64::MAX));
        self.populating.push(PopulatingMapping { attempt, injection, from_ns });
    }

    /// Ends the calls of an injection that began at `from_ns`.
    fn end_own_advice(&mut self, pid: u32, from_ns: u64, is_unfinished: bool) {
        let until_ns = now_ns() + if is_unfinished { UNFINISHED_CALL_NS } else { 0 };
        for own in self.own.iter_mut().filter(|own| (own.pid, own.from_ns) == (pid, from_ns)) {
            own.until_ns = until_ns;
        }
    }

    /// Completes the mappings whose thread has returned from mmap(2).
    fn end_populating(&mut self, source: &mut EventSource) {
        let mut still = Vec::new();
        for mapping in std::mem::take(&mut self.populating) {
            let Some(result) = mapping.injection.poll() else {
                still.push(mapping);
                continue;
            };
            let PopulatingMapping { attempt, from_ns, .. } = mapping;
            let is_unfinished = matches!(result, Err(Refusal::Unfinished { .. }));
            self.end_own_advice(attempt.event.pid, from_ns, is_unfinished);
            let is_at_return = result.as_ref().is_ok_and(|report| report.is_at_mmap_return);
            if self.is_settled((&attempt.event, &attempt.range), result, &SINGLE_PAGE_ADVICE) {
                self.on_advised(source, attempt, is_at_return);
            } else {
                self.retry_later(attempt);
            }
        }
        self.populating.append(&mut still);
    }

    fn retry_later(&mut self, attempt: MappingAttempt) {
        let MappingAttempt { event, range, previous, was_mapped_before, .. } = attempt;
        if self.pending.len() < MAX_PENDING {
            let longer = |last: Duration| (last * 2).min(MAX_RETRY_INTERVAL);
            let interval = attempt.interval.map_or(MIN_RETRY_INTERVAL, longer);
            let next_try = Instant::now() + interval;
            let retry = Retry { interval, previous, was_mapped_before };
            self.pending.push(PendingMapping { event, range, next_try, retry });
        } else {
            self.add_unseen_mapping(&event, &range);
        }
    }

    /// Any of the `pages` of a mapping may have been touched unseen.
    fn add_unseen(&mut self, event: &TraceEvent, range: &MappedRange, pages: UnfaultedPages) {
        if pages.count() == 0 {
            return;
        }
        self.late.add(range, pages.count());
        self.unseen.push(MissedTouches { pid: event.pid, tid: event.tid, pages });
    }

    /// Any page of a mapping may have been touched unseen.
    fn add_unseen_mapping(&mut self, event: &TraceEvent, range: &MappedRange) {
        self.add_unseen(event, range, UnfaultedPages::all(range, event.at_ns));
    }

    /// A mapping was advised, and its pages were dropped if it has a file for that. Counts the
    /// pages whose touches may be missing.
    fn on_advised(
        &mut self,
        source: &mut EventSource,
        attempt: MappingAttempt,
        is_at_mmap_return: bool,
    ) {
        let MappingAttempt { event, range, file, held, previous, was_mapped_before, .. } = attempt;
        let (event, range) = (&event, &range);
        let is_retry = attempt.interval.is_some();
        let until_ns = now_ns();
        self.advised.retain(|own| own.pid != event.pid || own.range.address != range.address);
        self.advised.push(AdvisedMapping {
            pid: event.pid,
            range: range.clone(),
            previous,
            advised: Some((event.clone(), until_ns)),
        });
        let (id, drops) = (range.file.as_ref().map(|file| file.id), self.drops_of(range));
        let dropped_ns = id.and_then(|id| self.drops.get(&id)).map_or(0, |(_, at_ns)| *at_ns);
        self.drops.extend(id.map(|id| (id, (drops + 1, until_ns))));
        if self.drops_files && drops >= MAX_DROPS && !range.is_private_writable() {
            // Its pages came with each other until it was advised, and stay cached.
            let pages = held.get().and_then(|held| held.unfaulted_pages(source, event, range));
            match pages {
                Some(pages) => self.add_unseen(event, range, pages),
                None => self.add_unseen_mapping(event, range),
            }
        }
        let Some(file) = file.filter(|_| source.read_events().is_ok()) else { return };
        if range.is_private_writable() {
            // Its pages are not unmapped, as some may be anonymous.
            let pages = held.get().and_then(|held| held.unfaulted_pages(source, event, range));
            match pages {
                _ if attempt.is_populated => self.add_unseen_mapping(event, range),
                Some(pages) if !was_mapped_before => self.add_unseen(event, range, pages),
                _ => {}
            }
            return drop_pages(&file);
        }
        if attempt.is_populated {
            // Where the thread was held later, any of the pages may have been touched.
            match held.get().and_then(HeldPages::stayed_pages) {
                Some(stayed) if is_at_mmap_return => self.add_unseen(event, range, stayed),
                _ => self.add_unseen_mapping(event, range),
            }
            return;
        }
        let unfaulted = held.get().and_then(|held| held.unfaulted_pages(source, event, range));
        let faulted = source.faulted_pages(event.pid, range, event.at_ns, until_ns);
        let faults = faulted.len() as u64;
        // Without the page table, each fault may have mapped all pages around it.
        // Nor does the page table have what was unmapped when the file was dropped for another
        // mapping meanwhile.
        let around = || UnfaultedPages::around(&faulted, range, event.at_ns);
        let unfaulted = match unfaulted {
            Some(unfaulted) if dropped_ns < event.at_ns => unfaulted,
            Some(unfaulted) => unfaulted.join(around()),
            None => around(),
        };
        // Without a fault, the program populated the mapping itself.
        let mut unseen = Vec::from_iter((is_retry || faults > 0).then_some(unfaulted));
        let mut late_pages: u64 = unseen.iter().map(UnfaultedPages::count).sum();
        let mut more_arrive = held.get().is_some_and(HeldPages::more_arrive);
        // Pages that other threads read meanwhile can only be dropped now.
        let mut last_cached = u64::MAX;
        for _ in 0..MAX_DROP_ATTEMPTS {
            let cached = CacheStat::query(&file, ..).map_or(u64::MAX, |stat| stat.cached);
            let touched = source.faulted_pages(event.pid, range, until_ns, u64::MAX).len() as u64;
            // Without progress, other processes have the pages mapped.
            if cached <= touched || !more_arrive && cached >= last_cached {
                break;
            }
            last_cached = cached;
            sleep(DROP_INTERVAL);
            let held: Arc<OnceLock<HeldPages>> = Arc::default();
            let is_done = self.advise_and_drop(event, range, file.clone(), held.clone());
            if source.read_events().is_err() || !is_done {
                break;
            }
            let unfaulted = held.get().and_then(|held| held.unfaulted_pages(source, event, range));
            late_pages += unfaulted.as_ref().map_or(0, UnfaultedPages::count);
            unseen.extend(unfaulted);
            more_arrive = held.get().is_some_and(HeldPages::more_arrive);
        }
        if !was_mapped_before {
            // The process exited before it could be advised.
            let was_missed = self.has_fault_around && held.get().is_none() && faults > 0;
            if late_pages > 0 || more_arrive || was_missed {
                self.late.add(range, late_pages.max(1));
            }
            let touches = |pages| MissedTouches { pid: event.pid, tid: event.tid, pages };
            self.unseen.extend(unseen.into_iter().map(touches));
        }
    }

    /// Advises a mapping MADV_RANDOM and drops its pages, in one stop of a thread. `held` gets the
    /// state of the page table at the stop.
    fn advise_and_drop(
        &mut self,
        event: &TraceEvent,
        range: &MappedRange,
        file: Arc<File>,
        held: Arc<OnceLock<HeldPages>>,
    ) -> bool {
        let then = hold_and_drop(event.pid, range, file, held);
        self.inject(event, range, &SINGLE_PAGE_ADVICE, then)
    }

    /// Takes the pages that threads may have touched unseen until `at_ns`.
    pub fn take_unseen(&mut self, at_ns: u64) -> Vec<MissedTouches> {
        let is_over = |touches: &MissedTouches| touches.pages.at_ns <= at_ns;
        if at_ns == u64::MAX {
            let never_advised = self.pending.iter().map(|mapping| MissedTouches {
                pid: mapping.event.pid,
                tid: mapping.event.tid,
                pages: UnfaultedPages::all(&mapping.range, mapping.event.at_ns),
            });
            self.unseen.extend(never_advised);
        }
        let (taken, later) = std::mem::take(&mut self.unseen).into_iter().partition(is_over);
        self.unseen = later;
        taken
    }

    /// Mappings that were touched before they were advised, or never were.
    pub fn late(&self) -> LateMappings {
        let mut late = self.late.clone();
        self.pending.iter().for_each(|mapping| late.add_all(&mapping.range));
        late
    }

    /// Whether a fault maps cached pages around it.
    pub fn has_fault_around(&self) -> bool {
        self.has_fault_around
    }

    /// Whether the page at an address may be reclaimed: it belongs to the file of an advised
    /// mapping.
    pub fn may_reclaim(&self, pid: u32, address: u64) -> bool {
        let contains = |own: &AdvisedMapping| own.pid == pid && own.range.contains(address);
        self.advised.iter().any(|own| contains(own) && !own.range.is_private_writable())
    }

    /// A mmap event: the range was mapped over existing mappings, or its protection was changed.
    pub fn on_replaced(&mut self, pid: u32, map: &MappedRange) {
        if self.advised.iter().any(|own| own.is_replaced_by(pid, map)) {
            let advised = std::mem::take(&mut self.advised).into_iter();
            self.advised = advised.flat_map(|own| own.without(pid, map)).collect();
        }
    }

    /// The process has called execve(2).
    pub fn forget(&mut self, pid: u32) {
        self.advised.retain(|own| own.pid != pid);
    }

    /// Retries pending mappings that are due, and completes those that have been populated.
    pub fn retry(&mut self, source: &mut EventSource) {
        self.end_populating(source);
        let now = Instant::now();
        let is_due = |mapping: &PendingMapping| mapping.next_try <= now;
        let (due, pending) = std::mem::take(&mut self.pending).into_iter().partition(is_due);
        self.pending = pending;
        for PendingMapping { event, range, retry, .. } in due {
            if let Some(MappedFile { id, path }) = &range.file {
                let found = ProcessFile::find(event.pid, *id, path, Some(range.address));
                self.advise_mapping(source, (&event, &range), &found.link, Some(retry), false);
            }
        }
    }

    /// Takes the `MADV_` number of the advice that a mapping had before, if it was not the default.
    pub fn take_previous_advice(&mut self, pid: u32, address: u64) -> Option<u32> {
        let advice = match self.previous.remove(&(pid, address))? {
            ReadaheadMode::Normal => return None,
            ReadaheadMode::Random => libc::MADV_RANDOM,
            ReadaheadMode::Sequential => libc::MADV_SEQUENTIAL,
        };
        Some(advice.cast_unsigned())
    }

    /// Whether a reported madvise(2) was injected by this process.
    pub fn is_own(&self, event: &TraceEvent, address: u64, advice: u64) -> bool {
        self.own.iter().any(|own| {
            (own.pid, own.address, own.advice) == (event.pid, address, advice)
                && (own.from_ns..=own.until_ns).contains(&event.at_ns)
        })
    }

    /// The program called madvise(2) itself. Its advice is restored in the end, and overridden
    /// until then.
    pub fn on_program_advice(
        &mut self,
        event: &TraceEvent,
        (address, length): (u64, u64),
        advice: u64,
    ) {
        let previous = match i32::try_from(advice) {
            Ok(libc::MADV_NORMAL) => ReadaheadMode::Normal,
            Ok(libc::MADV_RANDOM) => ReadaheadMode::Random,
            Ok(libc::MADV_SEQUENTIAL) => ReadaheadMode::Sequential,
            _ => return,
        };
        let end = address.saturating_add(length);
        let mut overridden = Vec::new();
        for own in self.advised.iter_mut().filter(|own| own.pid == event.pid) {
            if own.range.address < end && address < own.range.end() {
                own.previous = previous;
                overridden.extend((previous != ReadaheadMode::Random).then(|| own.range.clone()));
            }
        }
        for range in overridden {
            self.inject(event, &range, &[MemoryAdvice::Random], || ());
        }
    }

    /// A process was forked. It inherits the advice of its parent's mappings; those that are not
    /// advised yet are advised in it too.
    pub fn on_fork(&mut self, event: &TraceEvent, parent: u32) {
        let pid = event.pid;
        self.forks.push_back(ForkedProcess { parent, pid, tid: event.tid, at_ns: event.at_ns });
        if self.forks.len() > MAX_FORKS {
            self.forks.pop_front();
        }
        let pending = self.pending.iter().filter(|mapping| mapping.event.pid == parent);
        let mut unadvised: Vec<PendingMapping> = pending.cloned().collect();
        // Those that were advised after the fork.
        unadvised.extend(self.advised.iter().filter(|own| own.pid == parent).filter_map(|own| {
            let (mapped, advised_ns) = own.advised.as_ref()?;
            let is_between = mapped.at_ns < event.at_ns && event.at_ns < *advised_ns;
            let (interval, previous) = (MIN_RETRY_INTERVAL, own.previous);
            is_between.then(|| PendingMapping {
                event: mapped.clone(),
                range: own.range.clone(),
                next_try: Instant::now(),
                retry: Retry { interval, previous, was_mapped_before: false },
            })
        }));
        for mapping in unadvised {
            let (tid, at_ns) = (event.tid, event.at_ns);
            let event = TraceEvent { pid, tid, at_ns, ..mapping.event.clone() };
            if self.pending.len() < MAX_PENDING {
                self.pending.push(PendingMapping { event, ..mapping });
            } else {
                self.add_unseen_mapping(&event, &mapping.range);
            }
        }
        if self.advised.len() > MAX_ADVISED {
            self.advised.retain(|own| start_ticks(own.pid).is_some());
        }
        let inherited = self.advised.iter().filter(|own| own.pid == parent);
        let inherited: Vec<_> = inherited.map(|own| (own.range.clone(), own.previous)).collect();
        for (range, previous) in inherited {
            if previous != ReadaheadMode::Random {
                self.add_to_journal(pid, &range);
            }
            self.advised.push(AdvisedMapping { pid, range, previous, advised: None });
        }
    }

    fn add_to_journal(&mut self, pid: u32, range: &MappedRange) {
        if let Some(journal) = &mut self.journal {
            // Without the entry the advice is still restored, unless this process is killed.
            let _ = journal.add(pid, range);
        }
    }

    /// Restores the advice of all mappings. Returns those where that failed, with their processes;
    /// they stay in the journal.
    pub fn restore(&mut self) -> Vec<(u32, MappedRange)> {
        for PopulatingMapping { attempt, injection, .. } in std::mem::take(&mut self.populating) {
            // A thread that is still in mmap(2) has touched nothing.
            if let Ok(_) | Err(Refusal::Unfinished { .. } | Refusal::Failed { .. }) =
                injection.cancel()
            {
                let MappingAttempt { event, range, previous, .. } = attempt;
                let (pid, advised) = (event.pid, None);
                self.advised.push(AdvisedMapping { pid, range, previous, advised });
            }
        }
        let pids: HashSet<u32> = self.advised.iter().map(|own| own.pid).collect();
        let mut unrestored = Vec::new();
        for pid in pids {
            for (range, current) in process::maps_with_advice(pid).unwrap_or_default() {
                let own = self.advised.iter().find(|own| own.pid == pid && own.has_part(&range));
                let advice = match own.map(|own| own.previous) {
                    Some(ReadaheadMode::Normal) => MemoryAdvice::Normal,
                    Some(ReadaheadMode::Sequential) => MemoryAdvice::Sequential,
                    _ => continue,
                };
                if current.readahead == ReadaheadMode::Random {
                    let mut results = (0..MAX_RESTORE_ATTEMPTS)
                        .map(|_| advise_any(pid, pid, &range, advice))
                        .skip_while(|result| result.as_ref().is_err_and(|e| !e.is_lasting()));
                    let has_failed = match results.next() {
                        Some(Ok(_) | Err(Refusal::Changed { .. })) => false,
                        Some(Err(_)) | None => true,
                    };
                    if has_failed && start_ticks(pid).is_some() {
                        unrestored.push((pid, range));
                    }
                }
            }
        }
        if let Some(journal) = self.journal.take() {
            // The next command removes stale entries.
            let _ = journal.finish(&unrestored);
        }
        unrestored
    }

    /// Has a thread of the process make the calls of `advice`, with `after_call` after each of
    /// them. Returns whether that is settled: done, or refused for good.
    fn inject(
        &mut self,
        event: &TraceEvent,
        range: &MappedRange,
        advice: &[MemoryAdvice],
        after_call: impl Fn() + Send + Sync + 'static,
    ) -> bool {
        let after_call = Arc::new(after_call);
        let from_ns = now_ns();
        let result = advise_all(event.pid, event.tid, range, advice, after_call, SINGLE_ROUND);
        // A call that did not return in time may still be made.
        let is_unfinished = matches!(result, Err(Refusal::Unfinished { .. }));
        let until_ns = now_ns() + if is_unfinished { UNFINISHED_CALL_NS } else { 0 };
        self.add_own_advice(event.pid, range, advice, (from_ns, until_ns));
        self.is_settled((event, range), result, advice)
    }

    /// Remembers calls made in the given time, to recognise their events.
    fn add_own_advice(
        &mut self,
        pid: u32,
        range: &MappedRange,
        advice: &[MemoryAdvice],
        (from_ns, until_ns): (u64, u64),
    ) {
        for advice in advice {
            let (address, advice) = (range.address, advice.number().unsigned_abs().into());
            self.own.push_back(OwnAdvice { pid, address, advice, from_ns, until_ns });
        }
        while self.own.len() > MAX_OWN_ADVICE {
            self.own.pop_front();
        }
    }

    /// Whether the calls of `advice` for a mapping were made, or refused for good.
    fn is_settled(
        &mut self,
        (event, range): (&TraceEvent, &MappedRange),
        result: Result<InjectionReport, Refusal>,
        advice: &[MemoryAdvice],
    ) -> bool {
        match result {
            Ok(_) | Err(Refusal::Unfinished { .. }) => {}
            // MADV_PAGEOUT failed: the pages are locked in memory.
            Err(Refusal::Failed { .. }) if advice.len() > 1 => {
                self.add_unseen_mapping(event, range);
            }
            Err(refusal) if !refusal.is_lasting() => return false,
            Err(Refusal::Gone { .. } | Refusal::Changed { .. }) => {}
            Err(refusal) => {
                self.add_unseen_mapping(event, range);
                self.refused.get_or_insert(refusal);
            }
        }
        true
    }
}

/// To be run after each call of [`SINGLE_PAGE_ADVICE`], while the thread is held: reads the page
/// table into `held`, then drops the file.
fn hold_and_drop(
    pid: u32,
    range: &MappedRange,
    file: Arc<File>,
    held: Arc<OnceLock<HeldPages>>,
) -> impl Fn() + Send + Sync + 'static {
    let mapping = range.clone();
    move || {
        let is_after_random = held.get().is_none();
        let held = held.get_or_init(|| HeldPages::read(pid, &mapping));
        if !is_after_random {
            held.drop_file(&file);
            held.read_stayed(pid, &mapping);
        }
    }
}

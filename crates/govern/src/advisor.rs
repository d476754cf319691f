//! Threads for tasks that may block: opening files, injecting madvise(2) into a process, reading
//! `/proc/PID/maps`. All tasks of one process run in order on the same thread, and a process that
//! blocks delays only the processes that share its thread.

use std::collections::{HashMap, HashSet};
use std::io;
use std::path::PathBuf;
use std::slice;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::mpsc::{Receiver, Sender, SyncSender, channel, sync_channel};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::thread::{self, JoinHandle};
use std::time::{Duration, Instant};

use filemap_attach::process::{self, ReadaheadMode, VmaAdvice, maps_with_advice_before};
use filemap_attach::{
    Error, InjectionReport, MappedRange, MemoryAdvice, Refusal, advise_any, madvise,
};
use filemap_policy::{Costs, PageRange, TouchHistory};

use crate::costs;
use crate::decision::{FileDecision, FileWay};
use crate::file::OpenFile;
use crate::history_format::FileIdentity;
use crate::history_store::HistoryStore;
use crate::journal::{AdviceJournal, start_ticks};
use crate::process::page_bytes;
use crate::range::GovernedRange;
use crate::recorded::{GivenPlan, GivenPlans};
use crate::release::{UnrestoredMapping, restore};
use crate::request::{
    AdviceOrigin, AdvisorReply, AdvisorTask, ReleaseMapping, TakeMapping, TakeResult,
};
use crate::settings::GovernSettings;

/// Maximum number of queued tasks per thread.
const MAX_QUEUED: usize = 2048;

/// Number of threads, hence of processes that can be waited for concurrently.
const THREADS: usize = 4;

/// After this many attempts with the thread that has just run, the other threads are tried too.
const MAX_TRIES_BY_ONE: u32 = 3;

/// A read time far above the expected one is measured again, up to this number of samples, with
/// this pause between two.
const MAX_SAMPLES: usize = 4;
const SAMPLE_INTERVAL: Duration = Duration::from_millis(250);

/// How long a process is not tried again after none of its threads could be held.
const UNHELD_BACKOFF: Duration = Duration::from_millis(500);

/// The advisor threads and their queues.
#[derive(Debug)]
pub struct AdvisorPool {
    tasks: Vec<SyncSender<AdvisorTask>>,
    answers: Receiver<AdvisorReply>,
    shared: Arc<AdvisorShared>,
    threads: Vec<JoinHandle<()>>,
}

/// State shared by the threads.
#[derive(Debug)]
struct AdvisorShared {
    observe_only: bool,
    /// Where touches are remembered.
    memory: Option<HistoryStore>,
    given: Option<Arc<GivenPlans>>,
    costs: Costs,
    is_stopping: AtomicBool,
    journal: Mutex<Option<AdviceJournal>>,
    /// Devices (major, minor) whose read time has been sampled, or is being sampled.
    sampled: Mutex<HashSet<(u32, u32)>>,
}

impl AdvisorPool {
    /// Starts the threads. With `observe_only` they advise nothing. Otherwise the mappings that
    /// they advise are written to a journal in `directory`, if one is given.
    pub fn start(settings: &GovernSettings, directory: Option<PathBuf>) -> io::Result<AdvisorPool> {
        let journal = match directory.filter(|_| !settings.observe_only) {
            Some(directory) => Some(AdviceJournal::create(&directory)?),
            None => None,
        };
        let shared = Arc::new(AdvisorShared {
            observe_only: settings.observe_only,
            memory: settings.memory.clone(),
            given: settings.given.clone(),
            costs: settings.costs,
            is_stopping: AtomicBool::new(false),
            journal: Mutex::new(journal),
            sampled: Mutex::default(),
        });
        let (answer, answers) = channel();
        let (mut tasks, mut threads) = (Vec::new(), Vec::new());
        for _ in 0..THREADS {
            let (sender, todo) = sync_channel(MAX_QUEUED);
            let work = AdvisorThread {
                unheld: HashMap::new(),
                answer: answer.clone(),
                shared: Arc::clone(&shared),
                snapshot: None,
            };
            let builder = thread::Builder::new().name("advisor".to_string());
            threads.push(builder.spawn(move || work.run(&todo))?);
            tasks.push(sender);
        }
        Ok(AdvisorPool { tasks, answers, shared, threads })
    }

    /// Takes no further mappings: queued [`AdvisorTask::Take`] tasks are answered
    /// [`TakeResult::Gone`] without being tried.
    pub fn stop_taking(&self) {
        self.shared.is_stopping.store(true, Ordering::Relaxed);
    }

    /// Queues a task. Returns it if the queue of its thread is full.
    pub fn submit(&self, task: AdvisorTask) -> Option<AdvisorTask> {
        use std::sync::mpsc::TrySendError::{Disconnected, Full};
        match self.tasks[task.pid() as usize % THREADS].try_send(task) {
            Ok(()) => None,
            Err(Full(task) | Disconnected(task)) => Some(task),
        }
    }

    /// The next reply, without waiting; `None` if none has arrived.
    pub fn next_reply(&self) -> Option<AdvisorReply> {
        self.answers.try_recv().ok()
    }

    /// Forgets all processes but `pids` in the journal. Skipped while the journal is locked: the
    /// caller repeats it on every tick.
    pub fn retain_processes(&self, pids: &HashSet<u32>) {
        if let Ok(mut journal) = self.shared.journal.try_lock()
            && let Some(journal) = &mut *journal
        {
            journal.retain_processes(|pid| pids.contains(&pid));
        }
    }

    /// Drains the queues, joins the threads and restores the advice of `ranges`. Returns the
    /// mappings where that failed; they stay in the journal.
    pub fn end(self, ranges: Vec<(u32, MappedRange)>) -> Vec<UnrestoredMapping> {
        drop(self.tasks);
        self.threads.into_iter().for_each(|thread| drop(thread.join()));
        let alive = ranges.into_iter().filter(|(pid, _)| start_ticks(*pid).is_some());
        let left = restore(alive.collect());
        if let Some(journal) = self.shared.journal().take() {
            let kept: Vec<_> = left.iter().map(|own| (own.pid, own.range.clone())).collect();
            // Stale entries are removed by the next command.
            let _ = journal.finish(&kept);
        }
        left
    }
}

impl AdvisorShared {
    fn journal(&self) -> MutexGuard<'_, Option<AdviceJournal>> {
        self.journal.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn sampled(&self) -> MutexGuard<'_, HashSet<(u32, u32)>> {
        self.sampled.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Adds a mapping to the journal, before it is advised.
    fn add_to_journal(&self, pid: u32, range: &MappedRange) {
        if let Some(journal) = &mut *self.journal() {
            // Without the entry the advice is still restored, unless this process is killed.
            let _ = journal.add(pid, range);
        }
    }

    fn remove_from_journal(&self, pid: u32, range: &MappedRange) {
        if let Some(journal) = &mut *self.journal() {
            journal.remove(pid, range);
        }
    }
}

/// State of one advisor thread.
struct AdvisorThread {
    /// Processes none of whose threads could be held, with the time until which they are not tried
    /// again.
    unheld: HashMap<u32, Instant>,
    answer: Sender<AdvisorReply>,
    shared: Arc<AdvisorShared>,
    snapshot: Option<AdviceSnapshot>,
}

/// The advice of a process's mappings, as last read from `/proc/PID/smaps`.
struct AdviceSnapshot {
    pid: u32,
    until: Instant,
    maps: Vec<(MappedRange, VmaAdvice)>,
}

impl AdvisorThread {
    fn run(mut self, todo: &Receiver<AdvisorTask>) {
        while let Ok(task) = todo.recv() {
            match task {
                AdvisorTask::Take(take) => {
                    let took = self.take_mapping(&take);
                    let _ =
                        self.answer.send(AdvisorReply::Took { id: take.id, pid: take.pid, took });
                }
                AdvisorTask::Leave(leave) => {
                    let stopped_ns = self.release_mapping(&leave);
                    let _ = self.answer.send(AdvisorReply::Released { leave, stopped_ns });
                }
                AdvisorTask::Restore { pid, range } => drop(restore(vec![(pid, range)])),
                AdvisorTask::NoteInherited { pid, ranges } => {
                    ranges.iter().for_each(|range| self.shared.add_to_journal(pid, range));
                }
                AdvisorTask::Check { id, pid, range } => {
                    let kept = self.vma_advice(pid, &GovernedRange::new(range, id));
                    let _ = self.answer.send(AdvisorReply::Checked {
                        id,
                        pid,
                        is_random: is_random(&kept),
                    });
                }
                AdvisorTask::ReadMaps { pid, before } => self.read_maps(pid, before),
            }
        }
    }

    fn take_mapping(&mut self, take: &TakeMapping) -> TakeResult {
        let TakeMapping { pid, ref range, .. } = *take;
        if self.shared.is_stopping.load(Ordering::Relaxed) {
            return TakeResult::Gone;
        }
        let file = match filemap_attach::file::open(pid, range) {
            Ok(file) => file,
            Err(Error::Gone { .. }) => return TakeResult::Gone,
            Err(_) if !process::is_mapped(pid, range) => return TakeResult::Gone,
            Err(error) => return TakeResult::Ignored(error.to_string()),
        };
        let file = match OpenFile::new(file, page_bytes()) {
            Ok(file) => Arc::new(file),
            Err(reason) => return TakeResult::Ignored(reason.to_string()),
        };
        let Ok(pages) = file.pages(page_bytes()) else {
            return TakeResult::Ignored("its file cannot be examined".to_string());
        };
        let decision = match &take.decision {
            Some(decision) => Arc::clone(decision),
            None => Arc::new(self.decide(&file, range, pages)),
        };
        let origin = match self.advise(take, &decision) {
            Ok(origin) => origin,
            Err(took) => return took,
        };
        if decision.way == FileWay::RentOrBuy {
            self.sample_read_time(&file, range, pages);
        }
        TakeResult::Governed { file, pages, origin, decision }
    }

    /// How the file of `range` (of `pages` pages) is governed: by --plan, or by its history.
    fn decide(&self, file: &OpenFile, range: &MappedRange, pages: u64) -> FileDecision {
        let AdvisorShared { memory, given, costs, .. } = &*self.shared;
        let identity = FileIdentity::from_file(&file.file);
        let decide = |histories: &[TouchHistory]| {
            let measured =
                identity.as_ref().ok().and_then(|own| memory.as_ref()?.costs(own.device));
            FileDecision::from_histories(histories, (measured, *costs), file.window_pages, pages)
        };
        if let (Some(given), Ok(identity), Some(mapped)) = (given, &identity, &range.file) {
            match given.find(identity, &mapped.path) {
                Some(GivenPlan::Recorded(history)) => return decide(slice::from_ref(history)),
                Some(GivenPlan::Advised { is_random }) => return FileDecision::advised(is_random),
                None => {}
            }
        }
        let Some(memory) = memory else { return FileDecision::rent_or_buy() };
        let known = identity.as_ref().map_err(ToString::to_string);
        match known.and_then(|identity| memory.load(identity)) {
            Err(reason) => FileDecision::watch(&format!("watched only: {reason}")),
            Ok(histories) if histories.is_empty() => {
                FileDecision::watch("watched only: first time")
            }
            Ok(histories) => decide(&histories),
        }
    }

    /// Measures, in a detached thread, how long it takes to read an uncached page of `range`; once
    /// per device. The read may queue behind the program's own I/O, so nothing waits for it, not
    /// even shutdown.
    fn sample_read_time(&self, file: &Arc<OpenFile>, range: &MappedRange, pages: u64) {
        let device = range.file.as_ref().map(|file| (file.id.major, file.id.minor));
        let Some(device) = device.filter(|_| !self.shared.observe_only) else { return };
        if !self.shared.sampled().insert(device) {
            return;
        }
        let mapped = GovernedRange::new(range.clone(), 0).pages(page_bytes());
        let (file, answer, shared) =
            (Arc::clone(file), self.answer.clone(), Arc::clone(&self.shared));
        let sample = move || {
            let inside = PageRange { end: mapped.end.min(pages), ..mapped };
            let mut is_known = false;
            for _ in 0..MAX_SAMPLES {
                let Some(took_ns) = file.read_page_ns(inside, page_bytes()) else { break };
                is_known = answer.send(AdvisorReply::PageReadTime { took_ns }).is_ok();
                if !is_known || took_ns <= costs::DEFAULT_COSTS.fault_ns * 2 {
                    break;
                }
                // The read may have queued behind other I/O. The estimator keeps the minimum.
                thread::sleep(SAMPLE_INTERVAL);
            }
            if !is_known {
                // Every sampled page was cached: another file of the device may still be measured.
                shared.sampled().remove(&device);
            }
        };
        if thread::Builder::new().name("sampler".to_string()).spawn(sample).is_err() {
            self.shared.sampled().remove(&device);
        }
    }

    /// Advises a mapping MADV_RANDOM unless it already is, or `decision` has no need of it. Leaves
    /// alone mappings that the program has advised MADV_SEQUENTIAL or MADV_HUGEPAGE.
    fn advise(
        &mut self,
        take: &TakeMapping,
        decision: &FileDecision,
    ) -> Result<AdviceOrigin, TakeResult> {
        let TakeMapping { pid, ref range, may_be_inherited, .. } = *take;
        let whole = GovernedRange::new(range.clone(), 0);
        let kept = self.vma_advice(pid, &whole);
        if kept.is_empty() {
            return Err(TakeResult::Gone);
        }
        let has_word = kept.iter().any(|kept| {
            kept.readahead == ReadaheadMode::Sequential || kept.huge_pages == Some(true)
        });
        if has_word {
            return Err(TakeResult::Ignored("the program advises it itself".to_string()));
        }
        if is_random(&kept) {
            if may_be_inherited {
                self.shared.add_to_journal(pid, range);
            }
            return Ok(if may_be_inherited {
                AdviceOrigin::Inherited
            } else {
                AdviceOrigin::Program
            });
        }
        if !decision.advises_random() {
            return Ok(AdviceOrigin::Watched);
        }
        if self.shared.observe_only {
            return Ok(AdviceOrigin::ObserveOnly);
        }
        if take.prefers_kernel {
            return Ok(AdviceOrigin::Left);
        }
        let now = Instant::now();
        self.unheld.retain(|_, until| now < *until);
        if self.unheld.contains_key(&pid) && !take.has_faulted {
            return Err(TakeResult::Retry("its threads are in system calls".to_string()));
        }
        self.shared.add_to_journal(pid, range);
        match advise_random(take) {
            Ok(stopped_ns) => Ok(AdviceOrigin::Governor { stopped_ns }),
            Err(refusal) => {
                self.shared.remove_from_journal(pid, range);
                Err(match refusal {
                    Refusal::Changed { .. } | Refusal::Gone { .. } => TakeResult::Gone,
                    refusal if refusal.is_lasting() => TakeResult::Refused(refusal.to_string()),
                    refusal => {
                        if take.tries > MAX_TRIES_BY_ONE && !take.has_faulted {
                            self.unheld.insert(pid, Instant::now() + UNHELD_BACKOFF);
                        }
                        TakeResult::Retry(refusal.to_string())
                    }
                })
            }
        }
    }

    /// Restores the advice of a mapping. Returns how long a thread was stopped, in nanoseconds;
    /// `None` if no thread could be held.
    fn release_mapping(&mut self, leave: &ReleaseMapping) -> Option<u64> {
        let ReleaseMapping { pid, tid, ref range, .. } = *leave;
        let stopped_ns = stopped_ns(madvise(pid, tid, range, MemoryAdvice::Normal)).ok()?;
        self.shared.remove_from_journal(pid, range);
        Some(stopped_ns)
    }

    /// The advice of the VMAs in a range. Reading smaps walks the page tables and is slow for large
    /// mappings, so a snapshot is reused for as long as it took to read.
    fn vma_advice(&mut self, pid: u32, range: &GovernedRange) -> Vec<VmaAdvice> {
        let of_range = |seen: &AdviceSnapshot| -> Vec<VmaAdvice> {
            let overlapping =
                seen.maps.iter().filter(|(mapped, _)| range.overlap(mapped).is_some());
            overlapping.map(|(_, kept)| *kept).collect()
        };
        let begin = Instant::now();
        let fresh = self.snapshot.as_ref().filter(|seen| seen.pid == pid && begin < seen.until);
        let kept = fresh.map(of_range).unwrap_or_default();
        if !kept.is_empty() {
            return kept;
        }
        // Mappings that were made after this one are mostly below it, and are in the snapshot.
        let maps = maps_with_advice_before(pid, range.mapped.end()).unwrap_or_default();
        let until = Instant::now() + begin.elapsed();
        let seen = AdviceSnapshot { pid, until, maps };
        let kept = of_range(&seen);
        self.snapshot = Some(seen);
        kept
    }

    fn read_maps(&self, pid: u32, before: u64) {
        let start = Instant::now();
        let Ok(maps) = process::maps(pid) else {
            let _ = self.answer.send(AdvisorReply::NoMaps { pid });
            return;
        };
        let maps = join_adjacent(maps.into_iter().filter(|range| range.file.is_some()));
        let elapsed_ns = start.elapsed().as_nanos() as u64;
        let _ = self.answer.send(AdvisorReply::Maps { pid, before, maps, elapsed_ns });
    }
}

/// Whether a mapping has VMAs, all of them advised MADV_RANDOM.
fn is_random(kept: &[VmaAdvice]) -> bool {
    !kept.is_empty() && kept.iter().all(|kept| kept.readahead == ReadaheadMode::Random)
}

/// Advises a mapping MADV_RANDOM. Returns how long a thread was stopped, in nanoseconds.
fn advise_random(take: &TakeMapping) -> Result<u64, Refusal> {
    let TakeMapping { pid, tid, ref range, tries, has_faulted, .. } = *take;
    let advised = if has_faulted || tries <= MAX_TRIES_BY_ONE {
        madvise(pid, tid, range, MemoryAdvice::Random)
    } else {
        advise_any(pid, tid, range, MemoryAdvice::Random)
    };
    stopped_ns(match advised {
        Err(Refusal::Gone { .. }) => advise_any(pid, pid, range, MemoryAdvice::Random),
        advised => advised,
    })
}

/// How long the thread was stopped, in nanoseconds, also if the injected call did not return in
/// time.
fn stopped_ns(advised: Result<InjectionReport, Refusal>) -> Result<u64, Refusal> {
    match advised {
        Ok(advised) => Ok(advised.stopped_ns),
        Err(Refusal::Unfinished { milliseconds, .. }) => Ok(milliseconds * 1_000_000),
        Err(refusal) => Err(refusal),
    }
}

/// Joins adjacent VMAs that differ only in their advice, which splits VMAs.
fn join_adjacent(maps: impl Iterator<Item = MappedRange>) -> Vec<MappedRange> {
    let mut all: Vec<MappedRange> = Vec::new();
    for range in maps {
        let id = |range: &MappedRange| range.file.as_ref().map(|file| file.id);
        match all.last_mut() {
            Some(last)
                if last.end() == range.address
                    && last.offset_bytes + last.length_bytes == range.offset_bytes
                    && id(last) == id(&range)
                    && (last.protection, last.is_shared) == (range.protection, range.is_shared) =>
            {
                last.length_bytes += range.length_bytes;
            }
            _ => all.push(range),
        }
    }
    all
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::range::tests::mapped;

    #[test]
    fn parts_of_a_mapping_are_joined() {
        let mut behind = mapped(0x3000, 0x1000, 1);
        behind.offset_bytes = 0x2000;
        let mut other = mapped(0x4000, 0x1000, 1);
        other.offset_bytes = 0x9000;
        let maps = [mapped(0x1000, 0x2000, 1), behind, other.clone()];
        assert_eq!(join_adjacent(maps.into_iter()), [mapped(0x1000, 0x3000, 1), other]);
    }
}

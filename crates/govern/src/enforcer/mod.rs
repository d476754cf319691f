//! Advises the mappings of a running program from outside. A thread of this process follows the
//! program and applies the matching rules to each mapping as soon as its event arrives.
//!
//! The program may touch a mapping before the advice reaches it, and default readahead would then
//! have filled the page cache. For the first mapping of a file these pages are dropped while a
//! thread of the program is held, so that the program continues as if it had called madvise(2)
//! right after mmap(2).

mod rule;

use std::collections::{HashSet, VecDeque};
use std::fs::File;
use std::path::PathBuf;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU64, AtomicUsize, Ordering};
use std::thread::{self, JoinHandle, sleep};
use std::time::{Duration, Instant};

use filemap_attach::drain_lru_batches;
use filemap_attach::process::maps_with_advice;
use filemap_attach::{
    Error, EventKind, Follower, InjectionReport, MappedRange, MemoryAdvice, Refusal, advise_all,
    advise_any,
};
use filemap_kernel::cold_cache::drop_pages;
use filemap_kernel::residency::CacheStat;

pub use rule::{AdviceRule, FileExtent};

/// Timeout of one wait for events.
const POLL_INTERVAL: Duration = Duration::from_millis(1);

/// Pause before a mapping is retried or its advice is verified; it doubles from the minimum to the
/// maximum.
const MIN_RETRY_INTERVAL: Duration = Duration::from_millis(1);
const MAX_RETRY_INTERVAL: Duration = Duration::from_millis(256);

/// Pages cached by then may have been read before the first advice of a mapping took effect; later
/// advice drops nothing.
const STARTUP_TIME: Duration = Duration::from_millis(20);

/// Pages under I/O cannot be dropped yet, so dropping is repeated this often, with this pause
/// between two attempts.
const MAX_DROP_ATTEMPTS: usize = 10;
const DROP_INTERVAL: Duration = Duration::from_millis(1);

/// Advises the programs that this process starts, from [`AdviceEnforcer::start`] to
/// [`AdviceEnforcer::finish`].
pub struct AdviceEnforcer {
    is_over: Arc<AtomicBool>,
    thread: JoinHandle<EnforcementReport>,
}

/// Which advice was applied, and what that cost.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct EnforcementReport {
    /// For each rule, in order: whether it was applied to at least one mapping.
    pub applied_rules: Vec<bool>,
    /// Number of mappings that a rule matched.
    pub mappings: u64,
    /// Those among them that the program may have touched before they were advised, or that were
    /// gone by then: all but the first mapping of each file.
    pub late_mappings: u64,
    /// The first lasting refusal to advise a mapping.
    pub refusal: Option<Refusal>,
    /// Pages that were read before the advice took effect, and dropped.
    pub dropped_pages: u64,
    /// Pages of some file were not dropped: the kernel refuses cachestat(2) on it to this user.
    pub has_uncounted_reads: bool,
    /// How long a thread of the program was held while pages were dropped, in nanoseconds.
    pub held_ns: u64,
}

impl AdviceEnforcer {
    /// Checks whether children of this process can be followed.
    ///
    /// # Errors
    /// The kernel refuses the events.
    pub fn check() -> Result<(), Error> {
        Follower::for_children_without_faults()?;
        Ok(())
    }

    /// Starts the thread that follows and advises the programs which the calling thread starts from
    /// now on.
    ///
    /// # Errors
    /// The kernel refuses the events.
    pub fn start(rules: &[AdviceRule]) -> Result<AdviceEnforcer, Error> {
        let report = EnforcementReport {
            applied_rules: vec![false; rules.len()],
            ..EnforcementReport::default()
        };
        let work = EnforcerThread {
            follower: Follower::for_children_without_faults()?,
            rules: rules.to_vec(),
            mappings: Vec::new(),
            seen_files: HashSet::new(),
            report,
        };
        let is_over = Arc::new(AtomicBool::new(false));
        let ends = Arc::clone(&is_over);
        Ok(AdviceEnforcer { is_over, thread: thread::spawn(move || work.run(&ends)) })
    }

    /// Stops the thread. Called after the program has exited.
    pub fn finish(self) -> EnforcementReport {
        self.is_over.store(true, Ordering::Relaxed);
        self.thread.join().expect("advising does not panic")
    }
}

struct EnforcerThread {
    follower: Follower,
    rules: Vec<AdviceRule>,
    mappings: Vec<RuleMapping>,
    /// Files with at least one mapping that a rule matched.
    seen_files: HashSet<PathBuf>,
    report: EnforcementReport,
}

/// A mapping that at least one rule matches.
struct RuleMapping {
    pid: u32,
    /// The thread that called mmap(2).
    tid: u32,
    range: MappedRange,
    /// No earlier mapping of the same file was matched by a rule.
    is_first: bool,
    /// Indexes of the rules that are still to be applied, in order.
    pending_rules: VecDeque<usize>,
    /// When all its rules were applied for the first time.
    advised_at: Option<Instant>,
    /// When it is retried or verified next, and the pause after that.
    next_try: Instant,
    retry_interval: Duration,
}

impl EnforcerThread {
    fn run(mut self, is_over: &AtomicBool) -> EnforcementReport {
        while !is_over.load(Ordering::Relaxed) {
            let mut mapped = Vec::new();
            let waited = self.follower.wait(POLL_INTERVAL).and_then(|_| {
                self.follower.read_events(&mut |event| {
                    if let EventKind::Map(range) = event.kind {
                        mapped.push((event.pid, event.tid, range));
                    }
                })
            });
            if waited.is_err() {
                // Mappings whose events are not read stay unadvised; `applied_rules` shows that.
                sleep(POLL_INTERVAL);
            }
            mapped.into_iter().for_each(|(pid, tid, range)| self.on_mapping(pid, tid, range));
            let now = Instant::now();
            for mut mapping in std::mem::take(&mut self.mappings) {
                if mapping.next_try > now || self.advise(&mut mapping) {
                    self.mappings.push(mapping);
                }
            }
        }
        self.report
    }

    fn on_mapping(&mut self, pid: u32, tid: u32, range: MappedRange) {
        let overlaps = |rule_mapping: &RuleMapping| {
            rule_mapping.range.address < range.end() && range.address < rule_mapping.range.end()
        };
        self.mappings.retain(|mapping| mapping.pid != pid || !overlaps(mapping));
        let is_about = |number: &usize| self.rules[*number].advised_part(&range).is_some();
        let due: VecDeque<usize> = (0..self.rules.len()).filter(is_about).collect();
        let Some(file) = range.file.as_ref().filter(|_| !due.is_empty()) else { return };
        let is_first = self.seen_files.insert(file.path.clone());
        self.report.mappings += 1;
        self.report.late_mappings += u64::from(!is_first);
        let (next, pause) = (Instant::now(), MIN_RETRY_INTERVAL);
        self.mappings.push(RuleMapping {
            pid,
            tid,
            range,
            is_first,
            pending_rules: due,
            advised_at: None,
            next_try: next,
            retry_interval: pause,
        });
    }

    /// Applies the pending rules. Returns whether the mapping has to be visited again: for a retry,
    /// or because a rule overrides the program's own advice.
    fn advise(&mut self, mapping: &mut RuleMapping) -> bool {
        if mapping.pending_rules.is_empty() {
            let Some(due) = self.overridden_rules(mapping) else { return false };
            mapping.pending_rules = due;
        }
        let had_lost = mapping.advised_at.is_some() && !mapping.pending_rules.is_empty();
        while let Some(number) = mapping.pending_rules.front().copied() {
            match self.apply_rule(mapping, number) {
                Ok(_) | Err(Refusal::Unfinished { .. }) => self.report.applied_rules[number] = true,
                Err(refusal) if !refusal.is_lasting() => return schedule_retry(mapping),
                Err(Refusal::Gone { .. } | Refusal::Changed { .. }) => {
                    let is_missed = mapping.is_first && mapping.advised_at.is_none();
                    self.report.late_mappings += u64::from(is_missed);
                    return false;
                }
                Err(refusal) => drop(self.report.refusal.get_or_insert(refusal)),
            }
            mapping.pending_rules.pop_front();
        }
        if mapping.advised_at.is_none() || had_lost {
            mapping.retry_interval = MIN_RETRY_INTERVAL;
        }
        mapping.advised_at.get_or_insert_with(Instant::now);
        let watches = |rule: &AdviceRule| {
            rule.overrides_program && rule.advised_part(&mapping.range).is_some()
        };
        self.rules.iter().any(watches) && schedule_retry(mapping)
    }

    /// The rules to apply again because the program has replaced their advice with its own; empty
    /// if the advice still holds, `None` if the mapping is gone.
    fn overridden_rules(&self, mapping: &RuleMapping) -> Option<VecDeque<usize>> {
        let parts: Vec<(usize, MappedRange)> = (0..self.rules.len())
            .filter(|number| self.rules[*number].readahead_mode().is_some())
            .filter_map(|number| Some((number, self.rules[number].advised_part(&mapping.range)?)))
            .collect();
        let (mut is_there, mut is_lost) = (false, false);
        for (range, kept) in maps_with_advice(mapping.pid).ok()? {
            let covers = |(_, part): &&(usize, MappedRange)| {
                part.address <= range.address && range.address < part.end()
            };
            // Later rules override earlier ones.
            if let Some((number, _)) = parts.iter().rev().find(covers) {
                is_there |= range.file == mapping.range.file;
                is_lost |= self.rules[*number].readahead_mode() != Some(kept.readahead);
            }
        }
        let numbers = parts.into_iter().map(|(number, _)| number);
        is_there.then(|| if is_lost { numbers.collect() } else { VecDeque::new() })
    }

    fn apply_rule(
        &mut self,
        mapping: &RuleMapping,
        number: usize,
    ) -> Result<InjectionReport, Refusal> {
        let rule = &self.rules[number];
        let Some(part) = rule.advised_part(&mapping.range) else {
            return Err(Refusal::Changed { address: mapping.range.address });
        };
        let begins = mapping.advised_at.is_none_or(|since| since.elapsed() < STARTUP_TIME);
        let drops = mapping.is_first && begins && rule.readahead_mode().is_some();
        let (pid, tid, advice) = (mapping.pid, mapping.tid, rule.advice);
        if !drops {
            return advise_any(pid, tid, &part, advice);
        }
        match File::open(&rule.path).ok().filter(|file| CacheStat::query(file, ..).is_ok()) {
            Some(file) => self.apply_and_drop(mapping, &part, advice, file),
            None => {
                self.report.has_uncounted_reads = true;
                advise_any(pid, tid, &part, advice)
            }
        }
    }

    /// Applies `advice`, unmaps the pages with MADV_PAGEOUT and drops the file from the page cache,
    /// in one stop of a thread.
    fn apply_and_drop(
        &mut self,
        mapping: &RuleMapping,
        part: &MappedRange,
        advice: MemoryAdvice,
        file: File,
    ) -> Result<InjectionReport, Refusal> {
        // A private writable mapping may have anonymous (copied-on-write) pages, which MADV_PAGEOUT
        // would swap out.
        let all = [advice, MemoryAdvice::PageOut];
        let all = if part.is_private_writable() { &all[..1] } else { &all };
        let (calls, had) = (AtomicUsize::new(all.len()), AtomicU64::new(0));
        let dropped = Arc::new(AtomicU64::new(0));
        let counted = Arc::clone(&dropped);
        let drops = move || {
            let calls_left = calls.fetch_sub(1, Ordering::Relaxed) - 1;
            had.fetch_max(cached_pages(&file), Ordering::Relaxed);
            if calls_left == 0 {
                let left = drop_file(&file);
                let dropped = had.load(Ordering::Relaxed).saturating_sub(left);
                counted.store(dropped, Ordering::Relaxed);
            }
        };
        let limit = Duration::ZERO;
        let outcome = advise_all(mapping.pid, mapping.tid, part, all, Arc::new(drops), limit);
        self.report.dropped_pages += dropped.load(Ordering::Relaxed);
        match outcome {
            Ok(advised) => {
                self.report.held_ns += advised.stopped_ns;
                Ok(advised)
            }
            // MADV_PAGEOUT fails on a mapping that is locked in memory (VM_LOCKED): only advise
            // then.
            Err(Refusal::Failed { .. }) => advise_any(mapping.pid, mapping.tid, part, advice),
            refused => refused,
        }
    }
}

/// Schedules the next visit of a mapping and doubles the pause after it. Returns `true`.
fn schedule_retry(mapping: &mut RuleMapping) -> bool {
    mapping.next_try = Instant::now() + mapping.retry_interval;
    mapping.retry_interval = (mapping.retry_interval * 2).min(MAX_RETRY_INTERVAL);
    true
}

/// Drops the unmapped pages of a file from the page cache. Returns the number of pages that stay.
fn drop_file(file: &File) -> u64 {
    let mut left = cached_pages(file);
    for round in 0..MAX_DROP_ATTEMPTS {
        if left == 0 {
            break;
        }
        if round > 0 {
            sleep(DROP_INTERVAL);
        }
        drain_lru_batches();
        drop_pages(file);
        left = left.min(cached_pages(file));
    }
    left
}

fn cached_pages(file: &File) -> u64 {
    CacheStat::query(file, ..).map_or(0, |stat| stat.cached)
}

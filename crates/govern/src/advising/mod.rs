//! A program is advised from outside while it runs, by a thread of this process: each mapping that
//! a rule is about, once it is seen.
//!
//! By then the program may have touched the first mapping of a file. What was read for that is
//! dropped while a thread of the program is held, so that it goes on as if it had given the advice
//! itself before.

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
use filemap_kernel::cold::drop_pages;
use filemap_kernel::residency::CacheStat;

pub use rule::{AdviceRule, FileExtent};

/// For how long nothing is read at most.
const POLL_INTERVAL: Duration = Duration::from_millis(1);

/// Between two tries with a mapping, and two looks at whether its advice still holds.
const MIN_RETRY_INTERVAL: Duration = Duration::from_millis(1);
const MAX_RETRY_INTERVAL: Duration = Duration::from_millis(256);

/// After so long a time, what was read for a mapping was read with its advice.
const STARTUP_TIME: Duration = Duration::from_millis(20);

/// Pages that are being read can be dropped only then: so often it is tried, and how long after
/// each other.
const MAX_DROP_ATTEMPTS: usize = 10;
const DROP_INTERVAL: Duration = Duration::from_millis(1);

/// The programs that this process starts are advised as long as this is there.
pub struct AdviceEnforcer {
    is_over: Arc<AtomicBool>,
    thread: JoinHandle<EnforcementReport>,
}

/// What became of the advice.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct EnforcementReport {
    /// Which rules were given to something, in their order.
    pub applied_rules: Vec<bool>,
    /// Why something could not be advised.
    pub refusal: Option<Refusal>,
    /// Pages that were read before their advice held, and were dropped.
    pub dropped_pages: u64,
    /// Some were not dropped, as this user is not told which of a file are cached.
    pub has_uncounted_reads: bool,
    /// For how long the program was held for that.
    pub held_ns: u64,
}

impl AdviceEnforcer {
    /// Whether a program could be followed.
    ///
    /// # Errors
    /// When the kernel refuses it.
    pub fn check() -> Result<(), Error> {
        Follower::for_children_without_faults()?;
        Ok(())
    }

    /// Begins with the program that the calling thread starts next.
    ///
    /// # Errors
    /// When it cannot be followed.
    pub fn start(rules: &[AdviceRule]) -> Result<AdviceEnforcer, Error> {
        let given = EnforcementReport {
            applied_rules: vec![false; rules.len()],
            ..EnforcementReport::default()
        };
        let work = EnforcerThread {
            follower: Follower::for_children_without_faults()?,
            rules: rules.to_vec(),
            mappings: Vec::new(),
            seen_files: HashSet::new(),
            report: given,
        };
        let is_over = Arc::new(AtomicBool::new(false));
        let ends = Arc::clone(&is_over);
        Ok(AdviceEnforcer { is_over, thread: thread::spawn(move || work.run(&ends)) })
    }

    /// Ends it, after the program.
    pub fn finish(self) -> EnforcementReport {
        self.is_over.store(true, Ordering::Relaxed);
        self.thread.join().expect("advising does not panic")
    }
}

struct EnforcerThread {
    follower: Follower,
    rules: Vec<AdviceRule>,
    mappings: Vec<RuleMapping>,
    /// The files that were mapped.
    seen_files: HashSet<PathBuf>,
    report: EnforcementReport,
}

/// A mapping that rules are about.
struct RuleMapping {
    pid: u32,
    /// The thread that made it.
    tid: u32,
    range: MappedRange,
    /// It is the first one of its file.
    is_first: bool,
    /// Rules that are not given yet, by their positions.
    pending_rules: VecDeque<usize>,
    /// Since when its advice holds.
    advised_at: Option<Instant>,
    /// When it is looked at again, and how long after the last time.
    next_try: Instant,
    retry_interval: Duration,
}

impl EnforcerThread {
    fn run(mut self, is_over: &AtomicBool) -> EnforcementReport {
        while !is_over.load(Ordering::Relaxed) {
            let mut mapped = Vec::new();
            let told = self.follower.wait(POLL_INTERVAL).and_then(|_| {
                self.follower.read_events(&mut |event| {
                    if let EventKind::Map(range) = event.kind {
                        mapped.push((event.pid, event.tid, range));
                    }
                })
            });
            if told.is_err() {
                // What is mapped from now on is not advised, which its rules show.
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
        let overlaps =
            |of: &RuleMapping| of.range.address < range.end() && range.address < of.range.end();
        self.mappings.retain(|of| of.pid != pid || !overlaps(of));
        let is_about = |number: &usize| self.rules[*number].advised_part(&range).is_some();
        let due: VecDeque<usize> = (0..self.rules.len()).filter(is_about).collect();
        let Some(file) = range.file.as_ref().filter(|_| !due.is_empty()) else { return };
        let is_first = self.seen_files.insert(file.path.clone());
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

    /// Gives what is due. Returns whether the mapping is to be looked at again.
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
                Err(Refusal::Gone { .. } | Refusal::Changed { .. }) => return false,
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

    /// The rules whose advice a mapping had and has no more, as the program has advised it itself;
    /// nothing where it is gone.
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
            // The last rule is the one that holds.
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

    /// Gives advice, and drops what was read before that.
    fn apply_and_drop(
        &mut self,
        mapping: &RuleMapping,
        part: &MappedRange,
        advice: MemoryAdvice,
        file: File,
    ) -> Result<InjectionReport, Refusal> {
        // In the table of a mapping that is private and written to may be what is in no file.
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
        let given = advise_all(mapping.pid, mapping.tid, part, all, Arc::new(drops), limit);
        self.report.dropped_pages += dropped.load(Ordering::Relaxed);
        match given {
            Ok(advised) => {
                self.report.held_ns += advised.stopped_ns;
                Ok(advised)
            }
            // Only the second can fail so where it is locked in memory: then it stays.
            Err(Refusal::Failed { .. }) => advise_any(mapping.pid, mapping.tid, part, advice),
            refused => refused,
        }
    }
}

/// Has a mapping looked at again, each time after a longer pause.
fn schedule_retry(mapping: &mut RuleMapping) -> bool {
    mapping.next_try = Instant::now() + mapping.retry_interval;
    mapping.retry_interval = (mapping.retry_interval * 2).min(MAX_RETRY_INTERVAL);
    true
}

/// Drops a file from the page cache, as far as it is not mapped. Returns how many pages are left.
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

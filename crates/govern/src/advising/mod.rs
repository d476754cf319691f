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

use filemap_attach::process::advised_maps;
use filemap_attach::settle_lists;
use filemap_attach::{
    Advice, Advised, Error, Follower, MappedRange, Refusal, What, advise_all, advise_any,
};
use filemap_kernel::cold::drop_pages;
use filemap_kernel::residency::CacheStat;

pub use rule::{Extent, Rule};

/// For how long nothing is read at most.
const WAIT: Duration = Duration::from_millis(1);

/// Between two tries with a mapping, and two looks at whether its advice still holds.
const SHORTEST_PAUSE: Duration = Duration::from_millis(1);
const LONGEST_PAUSE: Duration = Duration::from_millis(256);

/// After so long a time, what was read for a mapping was read with its advice.
const BEGINNING: Duration = Duration::from_millis(20);

/// Pages that are being read can be dropped only then: so often it is tried, and how long after
/// each other.
const DROPS: usize = 10;
const BETWEEN_DROPS: Duration = Duration::from_millis(1);

/// The programs that this process starts are advised as long as this is there.
pub struct Advising {
    is_over: Arc<AtomicBool>,
    thread: JoinHandle<Given>,
}

/// What became of the advice.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Given {
    /// Which rules were given to something, in their order.
    pub rules: Vec<bool>,
    /// Why something could not be advised.
    pub refused: Option<Refusal>,
    /// Pages that were read before their advice held, and were dropped.
    pub dropped_pages: u64,
    /// Some were not dropped, as this user is not told which of a file are cached.
    pub is_kept: bool,
    /// For how long the program was held for that.
    pub held_ns: u64,
}

impl Advising {
    /// Whether a program could be followed.
    ///
    /// # Errors
    /// When the kernel refuses it.
    pub fn check() -> Result<(), Error> {
        Follower::of_children_without_faults()?;
        Ok(())
    }

    /// Begins with the program that the calling thread starts next.
    ///
    /// # Errors
    /// When it cannot be followed.
    pub fn begin(rules: &[Rule]) -> Result<Advising, Error> {
        let given = Given { rules: vec![false; rules.len()], ..Given::default() };
        let work = Work {
            follower: Follower::of_children_without_faults()?,
            rules: rules.to_vec(),
            mappings: Vec::new(),
            known: HashSet::new(),
            given,
        };
        let is_over = Arc::new(AtomicBool::new(false));
        let ends = Arc::clone(&is_over);
        Ok(Advising { is_over, thread: thread::spawn(move || work.until(&ends)) })
    }

    /// Ends it, after the program.
    pub fn end(self) -> Given {
        self.is_over.store(true, Ordering::Relaxed);
        self.thread.join().expect("advising does not panic")
    }
}

struct Work {
    follower: Follower,
    rules: Vec<Rule>,
    mappings: Vec<Mapping>,
    /// The files that were mapped.
    known: HashSet<PathBuf>,
    given: Given,
}

/// A mapping that rules are about.
struct Mapping {
    pid: u32,
    /// The thread that made it.
    tid: u32,
    range: MappedRange,
    /// It is the first one of its file.
    is_first: bool,
    /// Rules that are not given yet, by their positions.
    due: VecDeque<usize>,
    /// Since when its advice holds.
    since: Option<Instant>,
    /// When it is looked at again, and how long after the last time.
    next: Instant,
    pause: Duration,
}

impl Work {
    fn until(mut self, is_over: &AtomicBool) -> Given {
        while !is_over.load(Ordering::Relaxed) {
            let mut mapped = Vec::new();
            let told = self.follower.wait(WAIT).and_then(|_| {
                self.follower.read(&mut |event| {
                    if let What::Map(range) = event.what {
                        mapped.push((event.pid, event.tid, range));
                    }
                })
            });
            if told.is_err() {
                // What is mapped from now on is not advised, which its rules show.
                sleep(WAIT);
            }
            mapped.into_iter().for_each(|(pid, tid, range)| self.mapped(pid, tid, range));
            let now = Instant::now();
            for mut mapping in std::mem::take(&mut self.mappings) {
                if mapping.next > now || self.advise(&mut mapping) {
                    self.mappings.push(mapping);
                }
            }
        }
        self.given
    }

    fn mapped(&mut self, pid: u32, tid: u32, range: MappedRange) {
        let overlaps =
            |of: &Mapping| of.range.address < range.end() && range.address < of.range.end();
        self.mappings.retain(|of| of.pid != pid || !overlaps(of));
        let is_about = |number: &usize| self.rules[*number].of_mapping(&range).is_some();
        let due: VecDeque<usize> = (0..self.rules.len()).filter(is_about).collect();
        let Some(file) = range.file.as_ref().filter(|_| !due.is_empty()) else { return };
        let is_first = self.known.insert(file.path.clone());
        let (next, pause) = (Instant::now(), SHORTEST_PAUSE);
        self.mappings.push(Mapping { pid, tid, range, is_first, due, since: None, next, pause });
    }

    /// Gives what is due. Returns whether the mapping is to be looked at again.
    fn advise(&mut self, mapping: &mut Mapping) -> bool {
        if mapping.due.is_empty() {
            let Some(due) = self.lost(mapping) else { return false };
            mapping.due = due;
        }
        let had_lost = mapping.since.is_some() && !mapping.due.is_empty();
        while let Some(number) = mapping.due.front().copied() {
            match self.give(mapping, number) {
                Ok(_) | Err(Refusal::Unfinished { .. }) => self.given.rules[number] = true,
                Err(refusal) if !refusal.is_lasting() => return again(mapping),
                Err(Refusal::Gone { .. } | Refusal::Changed { .. }) => return false,
                Err(refusal) => drop(self.given.refused.get_or_insert(refusal)),
            }
            mapping.due.pop_front();
        }
        if mapping.since.is_none() || had_lost {
            mapping.pause = SHORTEST_PAUSE;
        }
        mapping.since.get_or_insert_with(Instant::now);
        let watches = |rule: &Rule| rule.is_over_own && rule.of_mapping(&mapping.range).is_some();
        self.rules.iter().any(watches) && again(mapping)
    }

    /// The rules whose advice a mapping had and has no more, as the program has advised it itself;
    /// nothing where it is gone.
    fn lost(&self, mapping: &Mapping) -> Option<VecDeque<usize>> {
        let parts: Vec<(usize, MappedRange)> = (0..self.rules.len())
            .filter(|number| self.rules[*number].kept().is_some())
            .filter_map(|number| Some((number, self.rules[number].of_mapping(&mapping.range)?)))
            .collect();
        let (mut is_there, mut is_lost) = (false, false);
        for (range, kept) in advised_maps(mapping.pid).ok()? {
            let covers = |(_, part): &&(usize, MappedRange)| {
                part.address <= range.address && range.address < part.end()
            };
            // The last rule is the one that holds.
            if let Some((number, _)) = parts.iter().rev().find(covers) {
                is_there |= range.file == mapping.range.file;
                is_lost |= self.rules[*number].kept() != Some(kept.readahead);
            }
        }
        let numbers = parts.into_iter().map(|(number, _)| number);
        is_there.then(|| if is_lost { numbers.collect() } else { VecDeque::new() })
    }

    fn give(&mut self, mapping: &Mapping, number: usize) -> Result<Advised, Refusal> {
        let rule = &self.rules[number];
        let Some(part) = rule.of_mapping(&mapping.range) else {
            return Err(Refusal::Changed { address: mapping.range.address });
        };
        let begins = mapping.since.is_none_or(|since| since.elapsed() < BEGINNING);
        let drops = mapping.is_first && begins && rule.kept().is_some();
        let (pid, tid, advice) = (mapping.pid, mapping.tid, rule.advice);
        if !drops {
            return advise_any(pid, tid, &part, advice);
        }
        match File::open(&rule.path).ok().filter(|file| CacheStat::query(file, ..).is_ok()) {
            Some(file) => self.give_anew(mapping, &part, advice, file),
            None => {
                self.given.is_kept = true;
                advise_any(pid, tid, &part, advice)
            }
        }
    }

    /// Gives advice, and drops what was read before that.
    fn give_anew(
        &mut self,
        mapping: &Mapping,
        part: &MappedRange,
        advice: Advice,
        file: File,
    ) -> Result<Advised, Refusal> {
        // In the table of a mapping that is private and written to may be what is in no file.
        let all = [advice, Advice::PageOut];
        let all = if part.is_private_writable() { &all[..1] } else { &all };
        let (calls, had) = (AtomicUsize::new(all.len()), AtomicU64::new(0));
        let dropped = Arc::new(AtomicU64::new(0));
        let counted = Arc::clone(&dropped);
        let drops = move || {
            let calls_left = calls.fetch_sub(1, Ordering::Relaxed) - 1;
            had.fetch_max(cached_pages(&file), Ordering::Relaxed);
            if calls_left == 0 {
                let left = drop_what_was_read(&file);
                let dropped = had.load(Ordering::Relaxed).saturating_sub(left);
                counted.store(dropped, Ordering::Relaxed);
            }
        };
        let limit = Duration::ZERO;
        let given = advise_all(mapping.pid, mapping.tid, part, all, Arc::new(drops), limit);
        self.given.dropped_pages += dropped.load(Ordering::Relaxed);
        match given {
            Ok(advised) => {
                self.given.held_ns += advised.stopped_ns;
                Ok(advised)
            }
            // Only the second can fail so where it is locked in memory: then it stays.
            Err(Refusal::Failed { .. }) => advise_any(mapping.pid, mapping.tid, part, advice),
            refused => refused,
        }
    }
}

/// Has a mapping looked at again, each time after a longer pause.
fn again(mapping: &mut Mapping) -> bool {
    mapping.next = Instant::now() + mapping.pause;
    mapping.pause = (mapping.pause * 2).min(LONGEST_PAUSE);
    true
}

/// Drops a file from the page cache, as far as it is not mapped. Returns how many pages are left.
fn drop_what_was_read(file: &File) -> u64 {
    let mut left = cached_pages(file);
    for round in 0..DROPS {
        if left == 0 {
            break;
        }
        if round > 0 {
            sleep(BETWEEN_DROPS);
        }
        settle_lists();
        drop_pages(file);
        left = left.min(cached_pages(file));
    }
    left
}

fn cached_pages(file: &File) -> u64 {
    CacheStat::query(file, ..).map_or(0, |stat| stat.cached)
}

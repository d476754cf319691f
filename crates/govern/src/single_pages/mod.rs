//! Has pages come one at a time, so that each first touch is a fault: a mapping that is recorded is
//! advised MADV_RANDOM from outside, and what was read before that is dropped.

mod advised;
mod held;
mod page_cache;

use std::collections::{HashMap, HashSet, VecDeque};
use std::fs::File;
use std::path::{Path, PathBuf};
use std::sync::{Arc, OnceLock};
use std::thread::sleep;
use std::time::{Duration, Instant};

use filemap_attach::process::{self, Readahead};
use filemap_attach::trace_points::Event as Seen;
use filemap_attach::{
    Advice, FileId, MappedRange, Refusal, Source, advise_all, advise_any, now_ns,
};
use filemap_kernel::cold::drop_pages;
use filemap_kernel::residency::CacheStat;

use crate::journal::{Journal, start_ticks};
use crate::run_directory::run_directory;
use advised::Advised;
use held::Held;
use page_cache::BETWEEN_ROUNDS;

/// What is done to processes so that pages come one at a time.
pub struct SinglePages {
    /// Files are dropped from the page cache where they are mapped first.
    drops: bool,
    /// Looks at the advice that a mapping has, as nobody tells of it.
    looks: bool,
    /// Faults map cached pages around theirs.
    maps_around: bool,
    /// The advice that mappings had before they were advised from here.
    before: HashMap<(u32, u64), Readahead>,
    /// How often each file was dropped.
    dropped: HashMap<FileId, u32>,
    advised: Vec<Advised>,
    /// The same for `filemap govern --release`, where this process is killed.
    noted: Option<Journal>,
    /// Mappings whose threads could not be held until now.
    waiting: Vec<Waiting>,
    /// Advice of this process that the kernel is about to tell of, as it tells of all.
    own: VecDeque<Own>,
    /// The first refusal that lasts.
    pub refused: Option<Refusal>,
    /// Mappings of which pages came with others that were touched before they were advised.
    late: u64,
    /// How many pages these were, as far as that is known.
    late_pages: u64,
}

/// Advice that was tried from here.
struct Own {
    pid: u32,
    address: u64,
    advice: u64,
    /// When that was: it may have been given although the answer is a refusal.
    from_ns: u64,
    until_ns: u64,
}

/// A mapping whose threads could not be held.
struct Waiting {
    seen: Seen,
    range: MappedRange,
    /// When it is tried again, and how long after the last time.
    next: Instant,
    pause: Duration,
}

impl SinglePages {
    /// Of programs that are started. What is mapped is dropped where it is mapped first. Where
    /// fault-around `is_off`, no page comes with others in the page cache.
    pub fn of_children(source: &Source, is_off: bool) -> SinglePages {
        SinglePages { maps_around: !is_off, ..SinglePages::new(true, !source.tells_calls()) }
    }

    /// Of processes that run.
    pub fn of_processes(drops: bool, pids: &[u32]) -> SinglePages {
        let mut single = SinglePages::new(drops, true);
        for pid in pids {
            let maps = process::advised_maps(*pid).unwrap_or_default().into_iter();
            let before = maps.map(|(range, kept)| ((*pid, range.address), kept.readahead));
            single.before.extend(before);
        }
        single
    }

    fn new(drops: bool, looks: bool) -> SinglePages {
        SinglePages {
            drops,
            looks,
            maps_around: true,
            before: HashMap::new(),
            dropped: HashMap::new(),
            advised: Vec::new(),
            noted: run_directory().and_then(|directory| Journal::create(&directory).ok()),
            waiting: Vec::new(),
            own: VecDeque::new(),
            refused: None,
            late: 0,
            late_pages: 0,
        }
    }

    /// A file that is recorded was mapped, at the path that it has here.
    pub fn mapped(&mut self, source: &mut Source, seen: &Seen, range: &MappedRange, path: &Path) {
        self.single_out(source, (seen, range), path, None);
    }

    /// A file that is recorded was mapped, which is told only after the end. Nothing was done to
    /// the mapping, so that pages came with others where any was touched.
    pub fn missed(&mut self, source: &Source, seen: &Seen, range: &MappedRange) {
        if !(self.drops && self.maps_around) {
            return;
        }
        let faulted = source.faults(seen.pid, range, seen.at_ns, u64::MAX).len() as u64;
        self.late += u64::from(faulted > 0);
        self.late_pages += faulted.saturating_sub(1);
    }

    /// Does it, or tries again after twice the pause. There is one if this is another try, before
    /// which faults may have been taken from the source.
    fn single_out(
        &mut self,
        source: &mut Source,
        (seen, range): (&Seen, &MappedRange),
        path: &Path,
        paused: Option<Duration>,
    ) {
        let is_retry = paused.is_some();
        let key = (seen.pid, range.address);
        // It has been there before it was followed.
        let was_there = self.before.contains_key(&key);
        if self.looks && !was_there {
            let maps = process::advised_maps(seen.pid).unwrap_or_default();
            let found = maps.into_iter().find(|(of, _)| of.address == range.address);
            self.before.extend(found.map(|(_, kept)| (key, kept.readahead)));
        }
        let was = self.before.get(&key).copied().unwrap_or_default();
        let id = range.file.as_ref().map(|file| file.id);
        let times = id.and_then(|id| self.dropped.get(&id)).copied().unwrap_or_default();
        let drops = self.drops && times < MOST_DROPS;
        let dropped = File::open(path).ok().filter(|_| drops).map(Arc::new);
        let is_private = range.is_private_writable();
        if was != Readahead::Random {
            self.note(seen.pid, range);
        }
        let held: Arc<OnceLock<Held>> = Arc::default();
        let is_done = match dropped.clone() {
            // Before the thread goes on, so that it finds nothing of what came with its first
            // touches.
            Some(file) if !is_private => self.take_pages(seen, range, file, held.clone()),
            _ => self.advise(seen, range, &[Advice::Random], || ()),
        };
        if !is_done {
            if self.waiting.len() < MOST_WAITING {
                let (seen, range) = (seen.clone(), range.clone());
                let pause = paused.map_or(SHORTEST_PAUSE, |pause| (pause * 2).min(LONGEST_PAUSE));
                let next = Instant::now() + pause;
                self.waiting.push(Waiting { seen, range, next, pause });
            } else {
                self.late += 1;
            }
            return;
        }
        let until_ns = now_ns();
        self.advised.retain(|of| of.pid != seen.pid || of.range.address != range.address);
        self.advised.push(Advised { pid: seen.pid, range: range.clone(), was });
        self.dropped.extend(id.map(|id| (id, times + 1)));
        self.late += u64::from(self.drops && !drops);
        let Some(file) = dropped.filter(|_| source.pull().is_ok()) else { return };
        if is_private {
            return drop_pages(&file);
        }
        let came = held.get().and_then(|held| held.came_with_others(source, seen, range));
        let faulted = source.faults(seen.pid, range, seen.at_ns, until_ns).len() as u64;
        // Where it cannot be told, each fault but the first may have come with the one before.
        let mut late_pages = came.unwrap_or(faulted.saturating_sub(1));
        // Where nothing was touched, the program has had the pages mapped itself.
        late_pages *= u64::from(is_retry || faulted > 0);
        let mut arrives = held.get().is_some_and(Held::arrives);
        // What other threads have read meanwhile, or read then, can only be dropped later.
        let mut left_before = u64::MAX;
        for _ in 0..MOST_ROUNDS {
            let left = CacheStat::of(&file, ..).map_or(u64::MAX, |stat| stat.cached);
            let touched = source.faults(seen.pid, range, until_ns, u64::MAX).len() as u64;
            // Others have it in use where it does not get less.
            if left <= touched || !arrives && left >= left_before {
                break;
            }
            left_before = left;
            sleep(BETWEEN_ROUNDS);
            let held: Arc<OnceLock<Held>> = Arc::default();
            let is_held = self.take_pages(seen, range, file.clone(), held.clone());
            if source.pull().is_err() || !is_held {
                break;
            }
            let came = held.get().and_then(|held| held.came_with_others(source, seen, range));
            late_pages += came.unwrap_or_default();
            arrives = held.get().is_some_and(Held::arrives);
        }
        if !was_there {
            self.late_pages += late_pages;
            // Its process has ended before anything was done to it.
            let was_left = self.maps_around && held.get().is_none() && faulted > 0;
            self.late += u64::from(late_pages > 0 || arrives || was_left);
        }
    }

    /// Has the pages of a mapping come one at a time from here on, and takes those that are there.
    /// What the page tables had then is in `held`.
    fn take_pages(
        &mut self,
        seen: &Seen,
        range: &MappedRange,
        file: Arc<File>,
        held: Arc<OnceLock<Held>>,
    ) -> bool {
        let (pid, of) = (seen.pid, range.clone());
        self.advise(seen, range, &[Advice::Random, Advice::PageOut], move || {
            let is_advised = held.get().is_none();
            let held = held.get_or_init(|| Held::look(pid, &of));
            if !is_advised {
                held.drop_arriving(&file);
            }
        })
    }

    /// Mappings of which pages may have come with others that were touched: those that were touched
    /// before they were advised, and those whose threads could not be held until the end.
    pub fn late(&self) -> u64 {
        self.late + self.waiting.len() as u64
    }

    /// How many pages these were, as far as that is known.
    pub fn late_pages(&self) -> u64 {
        self.late_pages
    }

    /// Whether the page at an address may be taken from its process: it is its file's.
    pub fn may_be_taken(&self, pid: u32, address: u64) -> bool {
        let is_there = |of: &Advised| of.pid == pid && of.range.contains(address);
        self.advised.iter().any(|of| is_there(of) && !of.range.is_private_writable())
    }

    /// Something is mapped in place of what was there, or has another protection.
    pub fn replaced(&mut self, pid: u32, map: &MappedRange) {
        if self.advised.iter().any(|of| of.is_cut_by(pid, map)) {
            let advised = std::mem::take(&mut self.advised).into_iter();
            self.advised = advised.flat_map(|of| of.without(pid, map)).collect();
        }
    }

    /// A process is another program.
    pub fn forget(&mut self, pid: u32) {
        self.advised.retain(|of| of.pid != pid);
    }

    /// Tries again with mappings whose threads could not be held.
    pub fn try_again(&mut self, source: &mut Source, path_of: impl Fn(&FileId) -> Option<PathBuf>) {
        let now = Instant::now();
        let is_due = |of: &Waiting| of.next <= now;
        let (due, waiting) = std::mem::take(&mut self.waiting).into_iter().partition(is_due);
        self.waiting = waiting;
        for Waiting { seen, range, pause, .. } in due {
            if let Some(path) = range.file.as_ref().and_then(|file| path_of(&file.id)) {
                self.single_out(source, (&seen, &range), &path, Some(pause));
            }
        }
    }

    /// The advice that the program gave a mapping before it was looked at, by its number.
    pub fn taken_over(&mut self, pid: u32, address: u64) -> Option<u32> {
        let advice = match self.before.remove(&(pid, address))? {
            Readahead::Normal => return None,
            Readahead::Random => libc::MADV_RANDOM,
            Readahead::Sequential => libc::MADV_SEQUENTIAL,
        };
        Some(advice.cast_unsigned())
    }

    /// Whether advice that the kernel tells of was given here.
    pub fn is_own(&self, seen: &Seen, address: u64, advice: u64) -> bool {
        self.own.iter().any(|own| {
            (own.pid, own.address, own.advice) == (seen.pid, address, advice)
                && (own.from_ns..=own.until_ns).contains(&seen.at_ns)
        })
    }

    /// The program has advised a part of its mappings itself. Its word is what is restored.
    pub fn program_advised(&mut self, seen: &Seen, (address, length): (u64, u64), advice: u64) {
        let was = match i32::try_from(advice) {
            Ok(libc::MADV_NORMAL) => Readahead::Normal,
            Ok(libc::MADV_RANDOM) => Readahead::Random,
            Ok(libc::MADV_SEQUENTIAL) => Readahead::Sequential,
            _ => return,
        };
        let end = address.saturating_add(length);
        let mut again = Vec::new();
        for of in self.advised.iter_mut().filter(|of| of.pid == seen.pid) {
            if of.range.address < end && address < of.range.end() {
                of.was = was;
                again.extend((was != Readahead::Random).then(|| of.range.clone()));
            }
        }
        for range in again {
            self.advise(seen, &range, &[Advice::Random], || ());
        }
    }

    /// A process was made by `parent`: its mappings have the advice that its parent's have.
    pub fn forked(&mut self, parent: u32, pid: u32) {
        if self.advised.len() > MOST_ADVISED {
            self.advised.retain(|of| start_ticks(of.pid).is_some());
        }
        let of_parent = self.advised.iter().filter(|of| of.pid == parent);
        let inherited: Vec<_> = of_parent.map(|of| (of.range.clone(), of.was)).collect();
        for (range, was) in inherited {
            if was != Readahead::Random {
                self.note(pid, &range);
            }
            self.advised.push(Advised { pid, range, was });
        }
    }

    /// Notes a mapping that is about to be advised, or has inherited it.
    fn note(&mut self, pid: u32, range: &MappedRange) {
        if let Some(noted) = &mut self.noted {
            // What cannot be noted is restored all the same, unless this process is killed.
            let _ = noted.add(pid, range);
        }
    }

    /// Gives all mappings that are there the advice back that they had. Returns those of which it
    /// could not be restored, with their processes: they stay noted.
    pub fn restore(&mut self) -> Vec<(u32, MappedRange)> {
        let pids: HashSet<u32> = self.advised.iter().map(|of| of.pid).collect();
        let mut left = Vec::new();
        for pid in pids {
            for (range, kept) in process::advised_maps(pid).unwrap_or_default() {
                let of = self.advised.iter().find(|of| of.pid == pid && of.has(&range));
                let advice = match of.map(|of| of.was) {
                    Some(Readahead::Normal) => Advice::Normal,
                    Some(Readahead::Sequential) => Advice::Sequential,
                    _ => continue,
                };
                if kept.readahead == Readahead::Random {
                    let mut tries = (0..RESTORE_TRIES)
                        .map(|_| advise_any(pid, pid, &range, advice))
                        .skip_while(|given| given.as_ref().is_err_and(|why| !why.is_lasting()));
                    let is_left = match tries.next() {
                        Some(Ok(_) | Err(Refusal::Changed { .. })) => false,
                        Some(Err(_)) | None => true,
                    };
                    if is_left && start_ticks(pid).is_some() {
                        left.push((pid, range));
                    }
                }
            }
        }
        if let Some(noted) = self.noted.take() {
            // What is there too much is removed by the next command.
            let _ = noted.end(&left);
        }
        left
    }

    /// Whether it was done, or never will be.
    fn advise(
        &mut self,
        seen: &Seen,
        range: &MappedRange,
        advice: &[Advice],
        then: impl Fn() + Send + Sync + 'static,
    ) -> bool {
        let then = Arc::new(then);
        let from_ns = now_ns();
        let given = advise_all(seen.pid, seen.tid, range, advice, then, ONCE);
        // One whose time is over may still be given.
        let is_unfinished = matches!(given, Err(Refusal::Unfinished { .. }));
        let until_ns = now_ns() + if is_unfinished { LONGEST_CALL_NS } else { 0 };
        for advice in advice {
            let advice = advice.number().unsigned_abs().into();
            let (pid, address) = (seen.pid, range.address);
            self.own.push_back(Own { pid, address, advice, from_ns, until_ns });
        }
        while self.own.len() > MOST_OWN {
            self.own.pop_front();
        }
        if is_unfinished {
            return true;
        }
        match given {
            Ok(_) => {}
            // It is locked in memory, or may not be taken from it: it is as it was.
            Err(Refusal::Failed { .. }) if advice.len() > 1 => self.late += 1,
            Err(refusal) if !refusal.is_lasting() => return false,
            // The process, or the mapping, is gone again.
            Err(Refusal::Gone { .. } | Refusal::Changed { .. }) => {}
            Err(refusal) => drop(self.refused.get_or_insert(refusal)),
        }
        true
    }
}

/// The threads of a process are looked at once.
const ONCE: Duration = Duration::ZERO;

/// So many mappings of a file have it dropped. Each takes some milliseconds.
const MOST_DROPS: u32 = 256;

/// So often a file is dropped of which pages are being read.
const MOST_ROUNDS: usize = 10;

/// So many mappings wait for a thread that can be held.
const MOST_WAITING: usize = 1024;

/// Of more, those of processes that have ended are forgotten.
const MOST_ADVISED: usize = 4096;

/// Between two tries with a mapping.
const SHORTEST_PAUSE: Duration = Duration::from_micros(500);
const LONGEST_PAUSE: Duration = Duration::from_millis(100);

const RESTORE_TRIES: u32 = 20;

/// Tries that are kept: the kernel tells of them within milliseconds.
const MOST_OWN: usize = 4096;

/// A call for advice that takes longer than it was waited for ends by then.
const LONGEST_CALL_NS: u64 = 1_000_000_000;

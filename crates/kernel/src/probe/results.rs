//! Costs of each step, thread and process of a probe.

use std::sync::atomic::{AtomicU64, Ordering};

use filemap_job::waits::{Call, Histogram, Wait};
use serde::{Deserialize, Serialize};

use super::process::ProbeProcess;
use super::sync::{SharedCounter, SharedMemory};
use super::thread::ThreadCosts;
use crate::clock::now_ns;
use crate::governor::GovernorProcess;
use crate::residency::PageSet;

/// Number of words of an encoded cost.
pub(super) const COST_WORDS: usize = 9;

/// Cost of a phase.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct PhaseCost {
    /// Number of accesses.
    pub accesses: u64,
    /// Minor faults.
    pub minor: u64,
    /// Major faults.
    pub major: u64,
    /// Bytes read from storage on the child's behalf, if the kernel accounts them.
    pub read_bytes: Option<u64>,
    /// Elapsed time.
    pub elapsed_ns: u64,
    /// Cached and evicted pages of all files at its end: known for a single-threaded process that
    /// runs several steps once each, if `cachestat` is permitted.
    pub cache: Option<CacheCounts>,
    /// Pages of its file that the step dropped from the cache, if known.
    pub dropped: Option<u64>,
    /// Whether `major` also counts pages that were only waited for.
    pub counts_waits: bool,
}

impl PhaseCost {
    /// Encodes the cost as words; all ones is an unknown value.
    pub(super) fn to_words(self) -> [u64; COST_WORDS] {
        let left = self.cache.unwrap_or(CacheCounts { cached: u64::MAX, evicted: 0 });
        [
            self.accesses,
            self.minor,
            self.major,
            self.read_bytes.unwrap_or(u64::MAX),
            self.elapsed_ns,
            left.cached,
            left.evicted,
            self.dropped.unwrap_or(u64::MAX),
            u64::from(self.counts_waits),
        ]
    }

    pub(super) fn from_words(words: [u64; COST_WORDS]) -> PhaseCost {
        let [
            accesses,
            minor,
            major,
            read_bytes,
            elapsed_ns,
            cached,
            evicted,
            dropped,
            counts_waits,
        ] = words;
        let known = |word: u64| Some(word).filter(|&word| word != u64::MAX);
        PhaseCost {
            accesses,
            minor,
            major,
            read_bytes: known(read_bytes),
            elapsed_ns,
            cache: known(cached).map(|cached| CacheCounts { cached, evicted }),
            dropped: known(dropped),
            counts_waits: counts_waits != 0,
        }
    }

    /// The sum of both costs; `again` is the later one.
    pub(super) fn plus(self, again: PhaseCost) -> PhaseCost {
        let both =
            |one: Option<u64>, other: Option<u64>| one.zip(other).map(|(one, two)| one + two);
        PhaseCost {
            accesses: self.accesses + again.accesses,
            minor: self.minor + again.minor,
            major: self.major + again.major,
            read_bytes: both(self.read_bytes, again.read_bytes),
            elapsed_ns: self.elapsed_ns + again.elapsed_ns,
            cache: again.cache,
            dropped: both(self.dropped, again.dropped),
            counts_waits: self.counts_waits || again.counts_waits,
        }
    }
}

/// Cached and evicted pages after a phase.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct CacheCounts {
    /// Pages in the cache.
    pub cached: u64,
    /// Pages that reclaim evicted and that were not read again.
    pub evicted: u64,
}

/// The result of a process.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct ProbeResult {
    /// Whether the child's own memory was locked, so that none of the faults are on it.
    pub locked: bool,
    /// Result of each thread.
    pub threads: Vec<ThreadResult>,
    /// Durations of their calls that change mappings, by name.
    pub calls: Vec<Wait>,
    /// `CLOCK_MONOTONIC` when the last thread ended.
    pub ended_ns: u64,
    /// Mapped pages, counted from the start of the first mapping; empty if not requested.
    pub mapped: PageSet,
    /// Number of accesses that a single-threaded process had begun after 2, 4, 6 and so on seconds:
    /// at each flush of the cgroup statistics, if it began at one.
    pub begun_at_flushes: Vec<u64>,
    /// Bytes read from storage by all steps and by a governor, if the kernel accounts them.
    pub read_bytes: Option<u64>,
}

impl ProbeResult {
    /// A result without a governor.
    pub(super) fn new(
        locked: bool,
        (threads, ended_ns): (Vec<ThreadResult>, u64),
        calls: Vec<Wait>,
        mapped: PageSet,
        begun_at_flushes: Vec<u64>,
    ) -> ProbeResult {
        let steps = threads.iter().flat_map(|thread| &thread.steps);
        let read_bytes = steps.map(|step| step.read_bytes).sum();
        ProbeResult { locked, threads, calls, ended_ns, mapped, begun_at_flushes, read_bytes }
    }

    /// Adds the bytes that `governor` read, and ends it. The bytes of steps become unknown, since
    /// the governor's cannot be attributed to them.
    pub(super) fn with_governor(mut self, governor: GovernorProcess) -> ProbeResult {
        let read_bytes = self.read_bytes.zip(governor.read_bytes());
        self.read_bytes = read_bytes.map(|(own, governors)| own + governors);
        governor.end();
        let steps = self.threads.iter_mut().flat_map(|thread| &mut thread.steps);
        steps.for_each(|step| step.read_bytes = None);
        self
    }
}

/// The result of one thread.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct ThreadResult {
    /// Time from the common start to the end of the thread.
    pub elapsed_ns: u64,
    /// Number of rounds of its steps.
    pub rounds: u64,
    /// Cost of each step, over all rounds.
    pub steps: Vec<PhaseCost>,
}

/// Results of all threads, in memory that the processes share.
pub(super) struct SharedResults {
    /// Number of rounds of each thread, and its end time.
    threads: &'static [AtomicU64],
    /// Cost of each step, thread by thread.
    costs: &'static [[AtomicU64; COST_WORDS]],
    /// Index of each thread's first step, and the number of steps.
    firsts: Vec<usize>,
    /// Durations of the calls of all threads.
    calls: &'static [[AtomicU64; Histogram::WORDS]],
    ended: &'static SharedCounter,
}

impl SharedResults {
    pub(super) fn new(process: &ProbeProcess, memory: &mut SharedMemory) -> SharedResults {
        let mut firsts = vec![0];
        for thread in &process.threads {
            firsts.push(firsts[firsts.len() - 1] + thread.steps.len());
        }
        let threads = memory.take(2 * process.threads.len());
        let costs = memory.take(firsts[firsts.len() - 1]);
        let calls = memory.take(Call::ALL.len());
        SharedResults { threads, costs, firsts, calls, ended: &memory.take(1)[0] }
    }

    /// Records the results of thread `number`, which has finished. Waits until all have, since an
    /// exiting thread would disturb the others.
    pub(super) fn finish_thread(
        &self,
        number: usize,
        ThreadCosts { rounds, costs, calls }: &ThreadCosts,
    ) {
        let ended_ns = now_ns();
        for (to, spans) in self.calls.iter().zip(calls) {
            let [sums @ .., longest_ns] = spans.words();
            to.iter().zip(sums).for_each(|(to, sum)| {
                to.fetch_add(sum, Ordering::Relaxed);
            });
            to[Histogram::WORDS - 1].fetch_max(longest_ns, Ordering::Relaxed);
        }
        for (to, cost) in self.costs[self.firsts[number]..].iter().zip(costs) {
            let words = to.iter().zip(cost.to_words());
            words.for_each(|(to, word)| to.store(word, Ordering::Relaxed));
        }
        self.threads[2 * number].store(*rounds, Ordering::Relaxed);
        self.threads[2 * number + 1].store(ended_ns, Ordering::Relaxed);
        self.ended.increment();
        self.await_all();
    }

    /// Waits until all threads have finished.
    pub(super) fn await_all(&self) {
        self.ended.wait_for(self.firsts.len() - 1);
    }

    /// Durations of the calls of all finished threads, by name.
    pub(super) fn call_waits(&self) -> Vec<Wait> {
        let spans = self.calls.iter().map(|words| {
            Histogram::from_words(words.each_ref().map(|word| word.load(Ordering::Relaxed)))
        });
        let calls = Call::ALL.iter().zip(spans);
        calls.filter_map(|(call, spans)| Wait::from_histogram(call.name(), &spans)).collect()
    }

    /// Results of all finished threads, and when the last of them finished.
    pub(super) fn thread_results(&self, begins_ns: u64) -> (Vec<ThreadResult>, u64) {
        let word = |at: usize| self.threads[at].load(Ordering::Relaxed);
        let threads = self.firsts.windows(2).enumerate().map(|(number, steps)| {
            let costs = self.costs[steps[0]..steps[1]].iter();
            let cost = |words: &[AtomicU64; COST_WORDS]| {
                PhaseCost::from_words(words.each_ref().map(|word| word.load(Ordering::Relaxed)))
            };
            ThreadResult {
                elapsed_ns: word(2 * number + 1).saturating_sub(begins_ns),
                rounds: word(2 * number),
                steps: costs.map(cost).collect(),
            }
        });
        let threads: Vec<ThreadResult> = threads.collect();
        let longest = threads.iter().map(|thread| thread.elapsed_ns).max();
        (threads, begins_ns + longest.unwrap_or(0))
    }
}

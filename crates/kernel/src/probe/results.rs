//! What the threads of all processes did, in memory that the first process reads in the end.

use std::sync::atomic::{AtomicU64, Ordering};

use filemap_job::waits::{Call, Histogram, Wait};

use super::outcome::COST_WORDS;
use super::process::ProbeProcess;
use super::shared::{SharedCounter, SharedMemory};
use super::thread::ThreadCosts;
use super::{PhaseCost, ThreadResult};
use crate::clock::now_ns;

/// What each thread did.
pub(super) struct SharedResults {
    /// Rounds of each thread, and when it ended.
    threads: &'static [AtomicU64],
    /// Each step, one thread after the other.
    costs: &'static [[AtomicU64; COST_WORDS]],
    /// Where the steps of each thread begin, and where those of the last end.
    firsts: Vec<usize>,
    /// How long calls of all threads took.
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

    /// Thread `number` has made so many rounds, in which its steps cost that, and ends now. Waits
    /// until all have: one that goes would disturb the others.
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

    /// Waits until all threads have ended.
    pub(super) fn await_all(&self) {
        self.ended.wait_for(self.firsts.len() - 1);
    }

    /// How long calls of all threads took that have ended, by name.
    pub(super) fn call_waits(&self) -> Vec<Wait> {
        let spans = self.calls.iter().map(|words| {
            Histogram::from_words(words.each_ref().map(|word| word.load(Ordering::Relaxed)))
        });
        let calls = Call::ALL.iter().zip(spans);
        calls.filter_map(|(call, spans)| Wait::of(call.name(), &spans)).collect()
    }

    /// What all threads did that have ended, and when the last of them did.
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

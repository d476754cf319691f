//! Where the time of the threads goes.

use filemap_job::waits::{Call, Cause, Histogram, Wait};

const CAUSES: usize = Cause::ALL.len();

/// Spans of time by cause.
#[derive(Debug)]
pub(super) struct Spent {
    spans: [Histogram; CAUSES],
    /// How long calls took that change what is mapped.
    calls: [Histogram; Call::ALL.len()],
    /// The wait of each thread for a lock, until it is known to have ended: it may be woken from it
    /// more than once.
    of_locks: Vec<Option<(Cause, u64)>>,
}

impl Spent {
    /// Nothing yet.
    pub(super) fn new(threads: usize) -> Spent {
        let (spans, calls) = ([Histogram::default(); CAUSES], Default::default());
        Spent { spans, calls, of_locks: vec![None; threads] }
    }

    /// The time of `thread` from `from_ns` to `to_ns` went into `cause`.
    pub(super) fn add(&mut self, thread: usize, cause: Cause, from_ns: u64, to_ns: u64) {
        if from_ns >= to_ns {
            return;
        }
        let ns = to_ns - from_ns;
        if cause.is_lock() {
            let so_far = self.of_locks[thread].map_or(0, |(_, ns)| ns);
            self.of_locks[thread] = Some((cause, so_far + ns));
        } else {
            self.spans[cause as usize].add(ns);
        }
    }

    /// `thread` does not wait for a lock any more.
    pub(super) fn has_lock(&mut self, thread: usize) {
        if let Some((cause, ns)) = self.of_locks[thread].take() {
            self.spans[cause as usize].add(ns);
        }
    }

    /// A thread made `call`, which took `ns`.
    pub(super) fn called(&mut self, call: Call, ns: u64) {
        self.calls[call as usize].add(ns);
    }

    /// How long calls took, by name.
    pub(super) fn calls(&self) -> Vec<Wait> {
        let calls = Call::ALL.iter().zip(&self.calls);
        calls.filter_map(|(call, spans)| Wait::of(call.name(), spans)).collect()
    }

    /// The spans, by cause.
    pub(super) fn waits(&self) -> Vec<Wait> {
        let spans = Cause::ALL.iter().zip(&self.spans);
        spans.filter_map(|(cause, spans)| Wait::of(cause.name(), spans)).collect()
    }
}

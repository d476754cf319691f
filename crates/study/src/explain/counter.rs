//! The counter of misses while a log goes on: its course, and what moved it.

use filemap_core::decision::{Cause, Decision, Found};
use filemap_core::readahead::miss::{CAP, THRESHOLD};
use filemap_core::units::PageCount;
use filemap_job::{Job, SplitProt};
use serde::{Deserialize, Serialize};

use super::counter_course::CounterCourse;
use super::parts::Parts;

/// How much of the counter a log shows.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Sight {
    /// Each change: a log of the model.
    Every,
    /// Its value where readahead was entered by a mark or a stream: a log of tracepoints.
    Entered,
    /// Nothing of it: a log of tracepoints without those of readahead.
    Nothing,
}

/// What moved the counter, over the whole log. Of a log that shows it in places only, the
/// changes are 0 and the misses and retries stand.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize, schemars::JsonSchema)]
pub struct Moves {
    /// Misses that looked at the counter.
    pub misses: u64,
    /// Of these, at the cap, so that nothing was added.
    pub misses_at_cap: u64,
    /// Of these, above the threshold: they read a single page.
    pub misses_above: u64,
    /// Misses whose own retry mapped pages around.
    pub retries: u64,
    /// Of these, retries that took at least one from the counter.
    pub retries_taking: u64,
    /// Taken by retries.
    pub taken_by_retries: u64,
    /// Faults without a miss that mapped pages around and took at least one.
    pub arounds_taking: u64,
    /// Taken by these.
    pub taken_by_arounds: u64,
    /// Faults that found their page themselves, and took one.
    pub hits_taking: u64,
    /// Credit beyond 0, which is lost.
    pub lost_at_zero: u64,
    /// Changes that nothing in the log explains: 0.
    pub unexplained: u64,
}

/// What a log says of the counter.
#[derive(Clone, Debug, PartialEq)]
pub struct Misses {
    /// How much of it the log shows.
    pub sight: Sight,
    /// Its last value.
    pub last: u16,
    /// Its highest value.
    pub max: u16,
    /// What moved it.
    pub moves: Moves,
    /// Accesses done when it first rose above the threshold, and what had moved it by then.
    pub first_above: Option<(u64, Moves)>,
    /// How often it rose above the threshold.
    pub rises: u64,
    /// Its course.
    pub course: CounterCourse,
    /// Misses that read a single page because readahead is off for them.
    pub off: u64,
}

/// The counter while a log goes on.
#[derive(Debug)]
pub(super) struct Counter {
    /// What is known so far.
    known: Misses,
    /// Hits that a fault finds itself are counted at all.
    counts_hits: bool,
    locked_hit_counts: bool,
    huge_page_counts: bool,
    /// A fault that reads no window looked at the counter.
    consulted: bool,
    /// The fault at hand missed.
    missed: bool,
    /// The fault at hand found its page, and the log has not yet shown whether that counts.
    hit: bool,
}

impl Counter {
    pub(super) fn new(job: &Job, sight: Sight) -> Self {
        let accesses = job.accesses().map(|phase| phase.accesses).sum();
        let rules = &job.rules;
        let of_split =
            job.mappings[0].mapping.split.is_some_and(|split| split.prot == SplitProt::Exec);
        let executable = of_split || Parts::of(job).executable();
        let no_pages = job.machine.read_ahead == PageCount(0);
        let advice = job.mappings[0].mapping.advice;
        let huge_page_counts = rules.huge_page_counts && !advice.is_sequential();
        let off = no_pages || advice.is_random();
        let known = Misses {
            sight,
            last: 0,
            max: 0,
            moves: Moves::default(),
            first_above: None,
            rises: 0,
            course: CounterCourse::new(accesses),
            off: 0,
        };
        Counter {
            known,
            counts_hits: !off,
            locked_hit_counts: rules.locked_hit_counts,
            huge_page_counts,
            consulted: !off
                || (!no_pages && executable && rules.executable_readahead)
                || (advice.is_huge() && huge_page_counts),
            missed: false,
            hit: false,
        }
    }

    /// What is known, once the log has ended.
    pub(super) fn finish(self) -> Misses {
        self.known
    }

    /// Takes the next decision; `done` accesses came before.
    pub(super) fn decision(&mut self, decision: &Decision, done: u64) {
        match *decision {
            Decision::Lookup { hit, tried, mmap_miss, .. } => {
                self.show(mmap_miss, done);
                self.missed |= !hit;
                // What a hit takes does not show where the counter does not.
                let is_shown = self.known.sight == Sight::Every;
                self.hit = hit && !tried && self.counts_hits && is_shown;
            }
            Decision::Entered { cause, found: Found { mmap_miss, .. } } => {
                self.hit &= cause == Cause::AsyncFault;
                if self.known.sight == Sight::Entered {
                    self.set(mmap_miss, done);
                } else if self.hit && mmap_miss < self.known.last {
                    self.take_hit(done);
                }
                self.hit = false;
                self.show(mmap_miss, done);
            }
            Decision::Readahead { cause, mmap_miss, .. } => {
                let counted = match cause {
                    Cause::ReadAround | Cause::Executable => true,
                    Cause::HugePage => self.huge_page_counts,
                    _ => false,
                };
                if counted {
                    self.miss(mmap_miss, done);
                }
                self.show(mmap_miss, done);
            }
            Decision::NoReadahead { mmap_miss, .. } => {
                let before = self.known.moves.misses;
                if self.consulted {
                    self.miss(mmap_miss, done);
                }
                let counted = self.known.moves.misses - before;
                self.known.moves.misses_above += counted;
                self.known.off += u64::from(counted == 0);
                self.show(mmap_miss, done);
            }
            Decision::MapPages { credit, .. } => self.around(credit, done),
            Decision::Waited { .. } | Decision::Dropped { .. } if self.hit => {
                self.hit = false;
                if self.locked_hit_counts {
                    self.take_hit(done);
                }
            }
            Decision::Served { .. } => {
                if std::mem::take(&mut self.hit) {
                    self.take_hit(done);
                }
                self.missed = false;
            }
            _ => {}
        }
    }

    /// A miss after which the counter is `shown`.
    fn miss(&mut self, shown: u16, done: u64) {
        match self.known.sight {
            Sight::Entered | Sight::Nothing => self.known.moves.misses += 1,
            Sight::Every if shown == CAP && self.known.last == CAP => {
                self.known.moves.misses += 1;
                self.known.moves.misses_at_cap += 1;
            }
            Sight::Every if shown == self.known.last + 1 => {
                self.known.moves.misses += 1;
                self.set(shown, done);
            }
            // Not a miss that looks at the counter.
            Sight::Every => {}
        }
    }

    fn around(&mut self, credit: u32, done: u64) {
        let taken = u64::from(credit).min(self.known.last.into());
        let takes = u64::from(taken > 0);
        if self.missed {
            self.known.moves.retries += 1;
            self.known.moves.retries_taking += takes;
            self.known.moves.taken_by_retries += taken;
        } else {
            self.known.moves.arounds_taking += takes;
            self.known.moves.taken_by_arounds += taken;
        }
        self.known.moves.lost_at_zero += u64::from(credit) - taken;
        if taken > 0 {
            self.set(self.known.last - taken as u16, done);
        }
    }

    fn take_hit(&mut self, done: u64) {
        if self.known.last > 0 {
            self.known.moves.hits_taking += 1;
            self.set(self.known.last - 1, done);
        }
    }

    /// The log shows the counter.
    fn show(&mut self, shown: u16, done: u64) {
        if self.known.sight == Sight::Every && shown != self.known.last {
            self.known.moves.unexplained += 1;
            self.set(shown, done);
        }
    }

    fn set(&mut self, value: u16, done: u64) {
        if value > THRESHOLD && self.known.last <= THRESHOLD {
            self.known.rises += 1;
            if self.known.first_above.is_none() {
                self.known.first_above = Some((done, self.known.moves));
            }
        }
        self.known.last = value;
        self.known.max = self.known.max.max(value);
        self.known.course.put(done, value);
    }
}

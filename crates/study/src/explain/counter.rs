//! The course of `mmap_miss`, and what moved it.

use filemap_core::decision::{Cause, Decision, Found};
use filemap_core::readahead::miss::{CAP, THRESHOLD};
use filemap_core::units::PageCount;
use filemap_job::{Job, SplitProt};
use serde::{Deserialize, Serialize};

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
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, schemars::JsonSchema)]
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

/// The counter while a log goes on.
#[derive(Debug)]
pub(super) struct Counter {
    sight: Sight,
    /// Hits that a fault finds itself are counted at all.
    counts_hits: bool,
    locked_hit_counts: bool,
    huge_page_counts: bool,
    /// A fault that reads no window looked at the counter.
    consulted: bool,
    value: u16,
    pub(super) highest: u16,
    pub(super) moves: Moves,
    pub(super) course: Course,
    /// Accesses done when it first rose above the threshold.
    pub(super) first_above: Option<u64>,
    /// The moves up to then.
    pub(super) moves_before: Moves,
    /// How often it rose above the threshold.
    pub(super) rises: u64,
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
        Counter {
            sight,
            counts_hits: !off,
            locked_hit_counts: rules.locked_hit_counts,
            huge_page_counts,
            consulted: !off
                || (!no_pages && executable && rules.executable_readahead)
                || (advice.is_huge() && huge_page_counts),
            value: 0,
            highest: 0,
            moves: Moves::default(),
            course: Course::new(accesses),
            first_above: None,
            moves_before: Moves::default(),
            rises: 0,
            missed: false,
            hit: false,
        }
    }

    pub(super) fn sight(&self) -> Sight {
        self.sight
    }

    pub(super) fn value(&self) -> u16 {
        self.value
    }

    /// Takes the next decision; `done` accesses came before.
    pub(super) fn decision(&mut self, decision: &Decision, done: u64) {
        match *decision {
            Decision::Lookup { hit, tried, mmap_miss, .. } => {
                self.show(mmap_miss, done);
                self.missed |= !hit;
                // What a hit takes does not show where the counter does not.
                let is_shown = self.sight == Sight::Every;
                self.hit = hit && !tried && self.counts_hits && is_shown;
            }
            Decision::Entered { cause, found: Found { mmap_miss, .. } } => {
                self.hit &= cause == Cause::AsyncFault;
                if self.sight == Sight::Entered {
                    self.set(mmap_miss, done);
                } else if self.hit && mmap_miss < self.value {
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
                let before = self.moves.misses;
                if self.consulted {
                    self.miss(mmap_miss, done);
                }
                self.moves.misses_above += self.moves.misses - before;
                self.show(mmap_miss, done);
            }
            Decision::MapPages { credit, .. } => self.around(credit, done),
            Decision::Waited { .. } | Decision::Dropped(_) if self.hit => {
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
        match self.sight {
            Sight::Entered | Sight::Nothing => self.moves.misses += 1,
            Sight::Every if shown == CAP && self.value == CAP => {
                self.moves.misses += 1;
                self.moves.misses_at_cap += 1;
            }
            Sight::Every if shown == self.value + 1 => {
                self.moves.misses += 1;
                self.set(shown, done);
            }
            // Not a miss that looks at the counter.
            Sight::Every => {}
        }
    }

    fn around(&mut self, credit: u32, done: u64) {
        let taken = u64::from(credit).min(self.value.into());
        let takes = u64::from(taken > 0);
        if self.missed {
            self.moves.retries += 1;
            self.moves.retries_taking += takes;
            self.moves.taken_by_retries += taken;
        } else {
            self.moves.arounds_taking += takes;
            self.moves.taken_by_arounds += taken;
        }
        self.moves.lost_at_zero += u64::from(credit) - taken;
        if taken > 0 {
            self.set(self.value - taken as u16, done);
        }
    }

    fn take_hit(&mut self, done: u64) {
        if self.value > 0 {
            self.moves.hits_taking += 1;
            self.set(self.value - 1, done);
        }
    }

    /// The log shows the counter.
    fn show(&mut self, shown: u16, done: u64) {
        if self.sight == Sight::Every && shown != self.value {
            self.moves.unexplained += 1;
            self.set(shown, done);
        }
    }

    fn set(&mut self, value: u16, done: u64) {
        if value > THRESHOLD && self.value <= THRESHOLD {
            self.rises += 1;
            if self.first_above.is_none() {
                self.first_above = Some(done);
                self.moves_before = self.moves;
            }
        }
        self.value = value;
        self.highest = self.highest.max(value);
        self.course.put(done, value);
    }
}

/// The counter by access number, in at most [`COURSE_POINTS`] equal pieces of the run.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Course {
    accesses: u64,
    points: Vec<Option<Point>>,
}

/// Pieces of a [`Course`].
pub const COURSE_POINTS: u64 = 512;

/// The counter in one piece of the run.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, schemars::JsonSchema)]
pub struct Point {
    /// Number of the first access of the piece, from 0.
    pub access: u64,
    /// Lowest value.
    pub low: u16,
    /// Highest value.
    pub high: u16,
    /// Last value.
    pub last: u16,
}

impl Course {
    pub(super) fn new(accesses: u64) -> Self {
        Course { accesses, points: vec![None; accesses.clamp(1, COURSE_POINTS) as usize] }
    }

    /// Accesses of the run.
    pub fn accesses(&self) -> u64 {
        self.accesses
    }

    pub(super) fn put(&mut self, done: u64, value: u16) {
        let pieces = self.points.len() as u64;
        let total = self.accesses.max(1);
        let piece = (u128::from(done) * u128::from(pieces) / u128::from(total)) as u64;
        let piece = piece.min(pieces - 1);
        let access = (u128::from(piece) * u128::from(total)).div_ceil(pieces.into()) as u64;
        let new = Point { access, low: value, high: value, last: value };
        let point = self.points[piece as usize].get_or_insert(new);
        point.low = point.low.min(value);
        point.high = point.high.max(value);
        point.last = value;
    }

    /// The pieces in which the counter was shown or changed, in order.
    pub fn points(&self) -> impl Iterator<Item = Point> {
        self.points.iter().copied().flatten()
    }

    /// The highest value in each of `columns` equal pieces of the run; where nothing changed,
    /// the last value before.
    pub(super) fn highs(&self, columns: usize) -> Vec<u16> {
        let mut highs = Vec::with_capacity(columns);
        let mut last = 0;
        for column in 0..columns {
            let start = column * self.points.len() / columns;
            let end = ((column + 1) * self.points.len()).div_ceil(columns);
            let mut high = last;
            for point in self.points[start..end.max(start + 1)].iter().flatten() {
                high = high.max(point.high);
                last = point.last;
            }
            highs.push(high);
        }
        highs
    }
}

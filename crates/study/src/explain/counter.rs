//! Follows `mmap_miss`, the miss counter of an open file description, through a log.

use filemap_core::decision::{MissChange, MissChangeCause};
use serde::{Deserialize, Serialize};

use super::history::{CounterPoint, first_access, interval_of};

/// How much of the counter a log shows.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum CounterVisibility {
    /// Each change: a log of the model.
    Every,
    /// Its value where a mark or a stream enters readahead: a log of tracepoints.
    Entered,
    /// Nothing: a log of a kernel without the tracepoints of readahead.
    Hidden,
}

/// Counts of the events that changed the counter. In a log that does not show each change, only
/// misses and retries are counted.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize, schemars::JsonSchema)]
pub struct CounterMoves {
    /// Misses that consulted the counter.
    pub misses: u64,
    /// Misses that found the counter at its cap, and did not increment it.
    pub misses_at_cap: u64,
    /// Misses that read a single page because of the counter.
    pub misses_above: u64,
    /// Misses whose own retry mapped pages around.
    pub retries: u64,
    /// Retries that decremented the counter.
    pub retries_taking: u64,
    /// Total of these decrements.
    pub taken_by_retries: u64,
    /// Faults without a miss whose fault-around decremented the counter.
    pub arounds_taking: u64,
    /// Total of their decrements.
    pub taken_by_arounds: u64,
    /// Faults that found their own page cached and decremented the counter by one.
    pub hits_taking: u64,
    /// Decrements that were lost because the counter stops at 0.
    pub lost_at_zero: u64,
    /// Mismatches between the counter in the log and the sum of its changes. Always 0 unless there
    /// is a bug.
    pub unexplained: u64,
}

impl CounterMoves {
    /// Total of all decrements.
    pub(super) fn decrements(&self) -> u64 {
        self.taken_by_retries + self.taken_by_arounds + self.hits_taking
    }
}

/// The counter of one open file description over a run.
#[derive(Clone, Debug, PartialEq)]
pub struct Counter {
    /// How much of it the log shows.
    pub visibility: CounterVisibility,
    /// A miss reads a single page while the counter is above this.
    pub threshold: u16,
    /// Its last value.
    pub last: u16,
    /// Its highest value.
    pub max: u16,
    /// What changed it.
    pub moves: CounterMoves,
    /// Number of the access, from 0, whose miss was the first to read a single page because of the
    /// counter, and the moves up to and with that miss.
    pub first_above: Option<(u64, CounterMoves)>,
    /// Number of times that it rose above the threshold.
    pub rises: u64,
    /// Number of changes of its value.
    pub changes: u64,
    /// Its values along the run; absent beyond the first open files.
    pub curve: Option<CounterCurve>,
    /// Misses that read a single page because readahead is disabled for them.
    pub off: u64,
    /// The last miss was refused a window, and its single-page read is not logged yet.
    is_refused: bool,
}

impl Counter {
    pub(super) fn new(
        visibility: CounterVisibility,
        threshold: u16,
        curve: Option<CounterCurve>,
    ) -> Self {
        Counter {
            visibility,
            threshold,
            last: 0,
            max: 0,
            moves: CounterMoves::default(),
            first_above: None,
            rises: 0,
            changes: 0,
            curve,
            off: 0,
            is_refused: false,
        }
    }

    /// Records that a rule consulted or changed the counter during `access`; `has_missed` tells
    /// whether the fault missed.
    pub(super) fn change(&mut self, change: MissChange, has_missed: bool, access: u64) {
        let is_shown = self.visibility == CounterVisibility::Every;
        if is_shown && change.before != self.last {
            self.show(change.before, access);
        }
        let taken = u64::from(change.before.saturating_sub(change.after));
        let moves = &mut self.moves;
        match change.cause {
            MissChangeCause::Miss { reads_window } => {
                moves.misses += 1;
                let is_at_cap = is_shown && change.before == change.after && change.after > 0;
                moves.misses_at_cap += u64::from(is_at_cap);
                moves.misses_above += u64::from(!reads_window);
                self.is_refused = !reads_window;
                if !reads_window && self.first_above.is_none() {
                    self.first_above = Some((access, self.moves));
                }
            }
            MissChangeCause::Hit => moves.hits_taking += u64::from(taken > 0),
            MissChangeCause::Around { hits } => {
                let takes = u64::from(taken > 0);
                if has_missed {
                    moves.retries += 1;
                    moves.retries_taking += takes;
                    moves.taken_by_retries += taken;
                } else {
                    moves.arounds_taking += takes;
                    moves.taken_by_arounds += taken;
                }
                moves.lost_at_zero += u64::from(hits) - taken;
            }
        }
        if is_shown && change.after != self.last {
            self.set(change.after, access);
        }
    }

    /// Records a miss that reads a single page.
    pub(super) fn read_alone(&mut self) {
        if !std::mem::take(&mut self.is_refused) {
            self.off += 1;
        }
    }

    /// Sets the counter from a log that shows it when readahead is entered.
    pub(super) fn enter(&mut self, value: u16, access: u64) {
        match self.visibility {
            CounterVisibility::Every => self.show(value, access),
            CounterVisibility::Entered => self.set(value, access),
            CounterVisibility::Hidden => {}
        }
    }

    /// Sets the counter from a log that shows each change, and counts mismatches.
    pub(super) fn show(&mut self, value: u16, access: u64) {
        if self.visibility == CounterVisibility::Every && value != self.last {
            self.moves.unexplained += 1;
            self.set(value, access);
        }
    }

    fn set(&mut self, value: u16, access: u64) {
        self.rises += u64::from(value > self.threshold && self.last <= self.threshold);
        self.changes += u64::from(value != self.last);
        self.last = value;
        self.max = self.max.max(value);
        self.curve.iter_mut().for_each(|curve| curve.add(access, value));
    }

    /// Its values along the run.
    pub(super) fn points(&self) -> Vec<CounterPoint> {
        self.curve.iter().flat_map(CounterCurve::points).collect()
    }
}

/// The counter by access number, in at most [`MAX_POINTS`] equal pieces of the run.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct CounterCurve {
    accesses: u64,
    points: Vec<Option<CounterPoint>>,
}

/// Pieces of a [`CounterCurve`].
const MAX_POINTS: u64 = 512;

impl CounterCurve {
    pub(super) fn new(accesses: u64) -> Self {
        CounterCurve { accesses, points: vec![None; accesses.clamp(1, MAX_POINTS) as usize] }
    }

    fn add(&mut self, access: u64, value: u16) {
        let pieces = self.points.len() as u64;
        let piece = interval_of(access, self.accesses, pieces);
        let access = first_access(piece, self.accesses.max(1), pieces);
        let new = CounterPoint { access, low: value, high: value, last: value };
        let point = self.points[piece as usize].get_or_insert(new);
        point.low = point.low.min(value);
        point.high = point.high.max(value);
        point.last = value;
    }

    /// The pieces in which the counter was shown or changed, in order.
    pub fn points(&self) -> impl Iterator<Item = CounterPoint> {
        self.points.iter().copied().flatten()
    }
}

//! The course of the counter of misses.

use super::history::{Point, first_access, interval_of};

/// The counter by access number, in at most [`COURSE_POINTS`] equal pieces of the run.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct CounterCourse {
    accesses: u64,
    points: Vec<Option<Point>>,
}

/// Pieces of a [`CounterCourse`].
pub const COURSE_POINTS: u64 = 512;

impl CounterCourse {
    pub(super) fn new(accesses: u64) -> Self {
        CounterCourse { accesses, points: vec![None; accesses.clamp(1, COURSE_POINTS) as usize] }
    }

    /// Accesses of the run.
    pub fn accesses(&self) -> u64 {
        self.accesses
    }

    pub(super) fn put(&mut self, done: u64, value: u16) {
        let piece = self.piece(done);
        let access = first_access(piece as u64, self.accesses.max(1), self.points.len() as u64);
        let new = Point { access, low: value, high: value, last: value };
        let point = self.points[piece].get_or_insert(new);
        point.low = point.low.min(value);
        point.high = point.high.max(value);
        point.last = value;
    }

    /// The piece of an access.
    fn piece(&self, access: u64) -> usize {
        interval_of(access, self.accesses, self.points.len() as u64) as usize
    }

    /// The pieces in which the counter was shown or changed, in order.
    pub fn points(&self) -> impl Iterator<Item = Point> {
        self.points.iter().copied().flatten()
    }
}

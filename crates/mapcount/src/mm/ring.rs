//! Frames in a circle, through links in the frames themselves: a `list_head`.

use std::sync::atomic::Ordering::Relaxed;

use super::frame::{Frame, Pfn};
use crate::mapcount::Mapcount;

/// A circle of frames. Only who holds it changes the links of its frames.
#[derive(Default)]
pub struct Ring {
    newest: Option<Pfn>,
    len: usize,
}

impl Ring {
    /// How many there are.
    pub fn len(&self) -> usize {
        self.len
    }

    /// Adds a frame as the newest.
    #[inline]
    pub fn push<C: Mapcount>(&mut self, frames: &[Frame<C>], pfn: Pfn) {
        self.push_oldest(frames, pfn);
        self.newest = Some(pfn);
    }

    /// Adds a frame as the oldest.
    #[inline]
    pub fn push_oldest<C: Mapcount>(&mut self, frames: &[Frame<C>], pfn: Pfn) {
        let newest = *self.newest.get_or_insert(pfn);
        let oldest = if newest == pfn { pfn } else { self.newer(frames, newest) };
        frames[pfn as usize].older.store(newest, Relaxed);
        frames[pfn as usize].newer.store(oldest, Relaxed);
        frames[newest as usize].newer.store(pfn, Relaxed);
        frames[oldest as usize].older.store(pfn, Relaxed);
        self.len += 1;
    }

    /// Takes a frame out of the circle, in which it is.
    #[inline]
    pub fn remove<C: Mapcount>(&mut self, frames: &[Frame<C>], pfn: Pfn) {
        let frame = &frames[pfn as usize];
        let (older, newer) = (frame.older.load(Relaxed), frame.newer.load(Relaxed));
        frames[older as usize].newer.store(newer, Relaxed);
        frames[newer as usize].older.store(older, Relaxed);
        if self.newest == Some(pfn) {
            self.newest = (older != pfn).then_some(older);
        }
        self.len -= 1;
    }

    /// Takes the newest frame.
    #[inline]
    pub fn pop<C: Mapcount>(&mut self, frames: &[Frame<C>]) -> Option<Pfn> {
        let newest = self.newest?;
        self.remove(frames, newest);
        Some(newest)
    }

    /// Takes the oldest frame.
    #[inline]
    pub fn pop_oldest<C: Mapcount>(&mut self, frames: &[Frame<C>]) -> Option<Pfn> {
        let oldest = self.newer(frames, self.newest?);
        self.remove(frames, oldest);
        Some(oldest)
    }

    /// The neighbour on one side, which for the newest is the oldest.
    #[inline]
    fn newer<C: Mapcount>(&self, frames: &[Frame<C>], pfn: Pfn) -> Pfn {
        frames[pfn as usize].newer.load(Relaxed)
    }
}

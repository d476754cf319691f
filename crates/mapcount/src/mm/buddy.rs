//! Free memory: blocks of 2^n frames, split and merged.

use super::frame::{Frame, Pfn};
use super::ring::Ring;
use crate::mapcount::Mapcount;
use crate::order::Order;

/// Free blocks by their order. A block of 2^n frames begins at a multiple of 2^n, and its buddy is
/// the other half of the block of 2^(n+1) frames.
#[derive(Default)]
pub struct Buddies {
    blocks: [Ring; ORDERS],
    /// Frames in all of them.
    pub pages: usize,
}

const ORDERS: usize = Order::MAX.get() as usize + 1;

impl Buddies {
    /// All frames are free.
    pub fn all<C: Mapcount>(frames: &[Frame<C>]) -> Buddies {
        let mut buddies = Buddies { pages: frames.len(), ..Buddies::default() };
        let mut first = 0;
        while first < frames.len() {
            let fits = (frames.len() - first).ilog2().min(Order::MAX.get());
            let order = fits.min(first.trailing_zeros());
            buddies.put_oldest(frames, first as Pfn, order);
            first += 1 << order;
        }
        buddies
    }

    /// Takes a block of 2^`order` frames: the first part of the smallest that is large enough.
    ///
    /// Mirrors `__rmqueue_smallest`, 6.12. Test: `tests/address_spaces.rs`.
    pub fn take<C: Mapcount>(&mut self, frames: &[Frame<C>], order: Order) -> Option<Pfn> {
        let order = order.get() as usize;
        let large = (order..ORDERS).find(|&large| self.blocks[large].len() > 0)?;
        let first = self.blocks[large].pop(frames)?;
        frames[first as usize].set_free(None);
        for half in (order..large).rev() {
            self.put(frames, first + (1 << half), half as u32);
        }
        self.pages -= 1 << order;
        Some(first)
    }

    /// Gives a block back, which becomes one with its buddy where that is free too.
    ///
    /// Mirrors `__free_one_page`, 6.12. Test: `tests/address_spaces.rs`.
    pub fn give<C: Mapcount>(&mut self, frames: &[Frame<C>], mut first: Pfn, order: Order) {
        self.pages += order.pages();
        let mut order = order.get();
        while order < Order::MAX.get() {
            let buddy = first ^ (1 << order);
            let frame = frames.get(buddy as usize);
            if !frame.is_some_and(|frame| frame.is_free(order)) {
                break;
            }
            self.blocks[order as usize].remove(frames, buddy);
            frames[buddy as usize].set_free(None);
            first &= buddy;
            order += 1;
        }
        self.put(frames, first, order);
    }

    fn put<C: Mapcount>(&mut self, frames: &[Frame<C>], first: Pfn, order: u32) {
        frames[first as usize].set_free(Some(order));
        self.blocks[order as usize].push(frames, first);
    }

    fn put_oldest<C: Mapcount>(&mut self, frames: &[Frame<C>], first: Pfn, order: u32) {
        frames[first as usize].set_free(Some(order));
        self.blocks[order as usize].push_oldest(frames, first);
    }
}

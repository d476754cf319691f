//! Memory as it is on a machine that has run for a while.

use super::memory::{Memory, locked};
use crate::anon_cow::shuffle;
use crate::mapcount::Mapcount;
use crate::order::Order;

/// Of so many blocks side by side one is in use.
const ONE_IN: usize = 4;

/// How much memory has `pages` free pages after [`Memory::scatter`], at least.
pub fn scattered_pages(pages: usize, order: Order) -> usize {
    let blocks = pages.div_ceil(order.pages() * (ONE_IN - 1)) * ONE_IN;
    blocks * order.pages()
}

impl<C: Mapcount> Memory<C> {
    /// Scatters what is free: of each four blocks of 2^`order` pages one is in use from now on, by
    /// nobody in particular, and the others are free in an order that looks random.
    ///
    /// Blocks that are free side by side would become larger ones, and folios that are made one
    /// after the other would lie in memory one after the other. On a machine in use they do not.
    pub fn scatter(&self, order: Order) {
        let mut free = locked(&self.free);
        let mut blocks = Vec::new();
        while let Some(first) = free.take(&self.frames, order) {
            if (first as usize / order.pages()).is_multiple_of(ONE_IN) {
                continue;
            }
            blocks.push(first);
        }
        shuffle(&mut blocks, 1);
        for first in blocks {
            free.give(&self.frames, first, order);
        }
    }
}

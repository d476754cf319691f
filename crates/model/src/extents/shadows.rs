//! What evicted pages leave behind.

use std::collections::VecDeque;

/// The eviction of consecutive pages of a chunk that left at consecutive clocks, or of one large
/// folio or a part of it; or that evictions of pages are forgotten.
#[derive(Clone, Copy, Debug)]
pub struct Shadow {
    /// First page, from the start of the chunk.
    pub offset: u16,
    pub pages: u16,
    /// Clock at the eviction of the first page.
    pub clock: u64,
    /// All pages left together, as one folio.
    pub is_folio: bool,
    pub workingset: bool,
    /// Not an eviction: what was noted of these pages before does not count any more.
    pub forgets: bool,
}

impl Shadow {
    /// The clock at which the page at `offset` was evicted; `None` where it was not.
    fn clock_of(&self, offset: u16) -> Option<u64> {
        let within = offset.checked_sub(self.offset).filter(|&within| within < self.pages)?;
        Some(if self.is_folio { self.clock } else { self.clock + u64::from(within) })
    }

    /// The clock behind the eviction.
    fn end(&self) -> u64 {
        self.clock + u64::from(self.pages)
    }
}

/// The newest eviction of a chunk, if there was one: its number, from 1, or 0.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Newest(u64);

/// Evictions of all chunks in one row, so that noting one does not wait for memory that its chunk
/// used long ago. A page may be in several: the last one counts.
#[derive(Debug, Default)]
pub struct Shadows {
    /// Oldest first, each with the one before it in its chunk.
    evictions: VecDeque<(Shadow, Newest)>,
    /// How many were forgotten.
    forgotten: u64,
}

impl Shadows {
    /// Bytes of memory that they take.
    pub fn held_bytes(&self) -> u64 {
        (self.evictions.len() * size_of::<(Shadow, Newest)>()) as u64
    }

    /// Forgets those that left before the clock `oldest`.
    pub fn forget(&mut self, oldest: u64) {
        let old = self.evictions.iter().take_while(|(shadow, _)| shadow.end() < oldest).count();
        self.evictions.drain(..old);
        self.forgotten += old as u64;
    }

    /// Notes an eviction in the chunk whose last one was `newest`, joined to that one where it goes
    /// on with it.
    #[inline(always)]
    pub fn push(&mut self, newest: &mut Newest, shadow: Shadow) {
        let count = self.forgotten + self.evictions.len() as u64;
        if newest.0 == count
            && let Some((last, _)) = self.evictions.back_mut()
            && !last.is_folio
            && !shadow.is_folio
            && last.workingset == shadow.workingset
            && last.offset + last.pages == shadow.offset
            && last.end() == shadow.clock
        {
            last.pages += shadow.pages;
            return;
        }
        self.evictions.push_back((shadow, *newest));
        *newest = Newest(count + 1);
    }

    /// Clock and workingset flag of the last eviction of the page at `offset` of a chunk.
    pub fn last(&self, mut newest: Newest, offset: usize) -> Option<(u64, bool)> {
        while let Some((shadow, before)) = self.get(newest) {
            if let Some(clock) = shadow.clock_of(offset as u16) {
                return (!shadow.forgets).then_some((clock, shadow.workingset));
            }
            newest = *before;
        }
        None
    }

    /// Whether an eviction in a chunk at or after `clock` is noted.
    pub fn any_since(&self, newest: Newest, clock: u64) -> bool {
        self.get(newest).is_some_and(|(shadow, _)| shadow.end() > clock)
    }

    fn get(&self, eviction: Newest) -> Option<&(Shadow, Newest)> {
        self.evictions.get(eviction.0.checked_sub(self.forgotten + 1)? as usize)
    }
}

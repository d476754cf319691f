//! Ids of address spaces.

use std::num::NonZeroU32;
use std::sync::atomic::Ordering::{Acquire, Relaxed, Release};

use crate::atomics::{Atomic, Atomics, StdAtomics};
use crate::error::{Error, Misuse};

/// The id of an mm: 31 bits, not 0.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct MmId(NonZeroU32);

impl MmId {
    /// Bits of an id on 64-bit machines, 6.18.
    pub const BITS: u32 = 31;
    /// The largest id.
    pub const LAST: MmId = MmId(NonZeroU32::new((1 << MmId::BITS) - 1).unwrap());

    /// The id with this number.
    ///
    /// # Errors
    /// When it is 0 or has more than 31 bits.
    pub const fn new(id: u32) -> Result<MmId, Error> {
        match NonZeroU32::new(id) {
            Some(some) if id <= MmId::LAST.get() => Ok(MmId(some)),
            _ => Err(Error::Id(id)),
        }
    }

    /// The number.
    pub const fn get(self) -> u32 {
        self.0.get()
    }
}

/// An allocator of ids.
///
/// An id may be reused as soon as its mm has unmapped everything: counters then hold at most the id
/// in a slot whose count is 0, which is right for the next owner of the id too. Releasing an id
/// happens before its next allocation.
///
/// The search is cyclic, so that ids are not reused soon. That only helps readers of traces.
///
/// Mirrors `mm_alloc_id`, 6.18. Test: `tests/mm_ids.rs`.
pub struct MmIds<A: Atomics = StdAtomics> {
    /// A bit for each id, set while it is in use. Bit 0 is id 1.
    words: Box<[A::U64]>,
    ids: u32,
    /// Index of the bit where the next search starts.
    next: A::U32,
}

const WORD_BITS: u32 = u64::BITS;

impl<A: Atomics> MmIds<A> {
    /// The ids 1 to `ids`, none of them in use.
    ///
    /// # Errors
    /// When `ids` is 0 or larger than [`MmId::LAST`].
    pub fn new(ids: u32) -> Result<MmIds<A>, Error> {
        if ids == 0 || ids > MmId::LAST.get() {
            return Err(Error::Ids(ids));
        }
        let words: Box<[A::U64]> =
            (0..ids.div_ceil(WORD_BITS)).map(|_| A::U64::default()).collect();
        // Bits after the last id stay set.
        if !ids.is_multiple_of(WORD_BITS) {
            words[words.len() - 1].store(!0 << (ids % WORD_BITS), Release);
        }
        Ok(MmIds { words, ids, next: A::U32::default() })
    }

    /// Allocates an id.
    ///
    /// # Errors
    /// When all are in use.
    pub fn allocate(&self) -> Result<MmId, Error> {
        let next = self.next.load(Relaxed) % self.ids;
        let (first, bit) = ((next / WORD_BITS) as usize, next % WORD_BITS);
        let words = self.words.len();
        // The first word is searched twice: from `next` on, and last of all before it.
        let rest = (1..=words).map(|step| ((first + step) % words, !0));
        let found = [(first, !0 << bit)].into_iter().chain(rest);
        let found = found.into_iter().find_map(|(word, mask)| self.take(word, mask));
        let index = found.ok_or(Error::NoIdLeft { ids: self.ids })?;
        self.next.store(index + 1, Relaxed);
        Ok(MmId::new(index + 1).expect("there are no more words than ids need"))
    }

    /// Releases `id`. Its mm must have unmapped everything.
    ///
    /// # Panics
    /// When it is not in use.
    pub fn release(&self, id: MmId) {
        let index = id.get() - 1;
        if index >= self.ids {
            Misuse::IdNotInUse { mm: id.get() }.panic();
        }
        let bit = 1 << (index % WORD_BITS);
        let old = self.words[(index / WORD_BITS) as usize].fetch_and(!bit, Release);
        if old & bit == 0 {
            Misuse::IdNotInUse { mm: id.get() }.panic();
        }
    }

    /// Sets a clear bit of those in `mask`, and returns its index over all words.
    fn take(&self, word: usize, mask: u64) -> Option<u32> {
        loop {
            let free = !self.words[word].load(Relaxed) & mask;
            if free == 0 {
                return None;
            }
            let bit = free.trailing_zeros();
            if self.words[word].fetch_or(1 << bit, Acquire) & (1 << bit) == 0 {
                return Some(word as u32 * WORD_BITS + bit);
            }
        }
    }
}

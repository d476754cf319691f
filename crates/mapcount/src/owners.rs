//! Who owns a folio and its number of mappings, in memory that threads share.

use std::marker::PhantomData;
use std::sync::atomic::Ordering::{Acquire, Relaxed};

use crate::atomics::{Atomic, Atomics};
use crate::broken::Broken;
use crate::lock::locked;
use crate::mapcount::Counts;
use crate::mm_id::MmId;

/// Most mappings, so that no sum of two counts overflows.
pub const MAX_MAPPINGS: u32 = i32::MAX as u32;

/// How owners are kept in 16 bytes, beside the number of mappings.
pub trait OwnerRules: Send + Sync + 'static {
    /// `mm` has so many `more` mappings, and the folio has `mappings` of them now.
    fn map(words: Words, mm: MmId, more: u32, mappings: u32) -> Words;

    /// `mm` has so many `fewer` mappings, and the folio still has `mappings` of them.
    ///
    /// # Errors
    /// When `mm` had not so many, as far as the rules can tell.
    fn unmap(words: Words, mm: MmId, fewer: u32, mappings: u32) -> Result<Words, Broken>;

    /// Whether `mm` is known to have all `mappings` mappings of the folio.
    fn owned_by(words: Words, mm: MmId, mappings: u32) -> bool;
}

/// The 16 bytes without the lock: where a kernel has `_mm_id_mapcount` and `_mm_ids`.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Words {
    /// What the word with the lock has beside it: [`FREE_BITS`].
    pub free: u64,
    /// More than one mm may map the folio.
    pub shared: bool,
    /// The other word.
    pub second: u64,
}

/// Bits of the word with the lock that are neither the lock nor the mark.
pub const FREE_BITS: u32 = 62;

/// Owners of a folio, the number of its mappings and of those of the whole folio.
///
/// Everything is changed under one lock, a bit of the first word. A change is one
/// read-modify-write for the lock, and loads and stores while it is held, however many pages it is
/// about. Whether the folio may be shared is a bit of the same word, and is read without the lock.
pub struct Owners<A: Atomics, R> {
    /// What the rules have in it, the mark at bit 62 and the lock at bit 63.
    first: A::U64,
    /// The rules' alone.
    second: A::U64,
    /// The number of mappings, and above its 32 bits that of the whole folio.
    mapped: A::U64,
    rules: PhantomData<R>,
}

const SHARED: u64 = 1 << FREE_BITS;

impl<A: Atomics, R> Default for Owners<A, R> {
    fn default() -> Self {
        Owners {
            first: A::U64::default(),
            second: A::U64::default(),
            mapped: A::U64::default(),
            rules: PhantomData,
        }
    }
}

impl<A: Atomics, R: OwnerRules> Owners<A, R> {
    /// `mm` has so many `more` mappings, so many of them `entire`.
    #[inline]
    pub fn map(&self, mm: MmId, more: u32, entire: u32) -> Counts {
        locked::<A, _>(&self.first, |first| {
            let (old, old_entire) = self.mapped();
            let new = old.checked_add(more).filter(|&new| new <= MAX_MAPPINGS);
            let new = new.ok_or(Broken::TooManyMappings { most: MAX_MAPPINGS })?;
            let words = R::map(self.words(first), mm, more, new);
            let counts = Counts { old, new, old_entire, new_entire: old_entire + entire };
            Ok((self.keep(words, counts), counts))
        })
    }

    /// `mm` has so many `fewer` mappings, so many of them `entire`.
    #[inline]
    pub fn unmap(&self, mm: MmId, fewer: u32, entire: u32) -> Counts {
        locked::<A, _>(&self.first, |first| {
            let (old, old_entire) = self.mapped();
            let new = old.checked_sub(fewer).ok_or(Broken::NotMapped)?;
            let new_entire = old_entire.checked_sub(entire).ok_or(Broken::NotMappedEntirely)?;
            if new_entire > new {
                return Err(Broken::NotMapped);
            }
            let words = R::unmap(self.words(first), mm, fewer, new)?;
            let counts = Counts { old, new, old_entire, new_entire };
            Ok((self.keep(words, counts), counts))
        })
    }

    /// How many mappings there are, if `mm` is known to have all of them and there is one.
    #[inline]
    pub fn owned_by(&self, mm: MmId) -> Option<u32> {
        // The mark only says who may look further: it is of one moment, the counts of another.
        if self.maybe_shared() || self.mappings() == 0 {
            return None;
        }
        locked::<A, _>(&self.first, |first| {
            let (mappings, _) = self.mapped();
            let owned = R::owned_by(self.words(first), mm, mappings);
            Ok((first, owned.then_some(mappings)))
        })
    }

    /// Whether the folio is marked as shared.
    #[inline]
    pub fn maybe_shared(&self) -> bool {
        self.first.load(Acquire) & SHARED != 0
    }

    /// How many mappings there are.
    #[inline]
    pub fn mappings(&self) -> u32 {
        self.mapped().0
    }

    /// How many of them are of the whole folio.
    #[inline]
    pub fn entire(&self) -> u32 {
        self.mapped().1
    }

    #[inline]
    fn mapped(&self) -> (u32, u32) {
        halves(self.mapped.load(Relaxed))
    }

    #[inline]
    fn words(&self, first: u64) -> Words {
        let (free, shared) = (first & (SHARED - 1), first & SHARED != 0);
        Words { free, shared, second: self.second.load(Relaxed) }
    }

    /// Stores all but the word with the lock, and returns what that will be.
    #[inline]
    fn keep(&self, words: Words, counts: Counts) -> u64 {
        self.mapped.store(whole([counts.new, counts.new_entire]), Relaxed);
        self.second.store(words.second, Relaxed);
        let mark = if words.shared { SHARED } else { 0 };
        mark | words.free
    }
}

/// The lower and the upper half of a word.
#[inline]
pub fn halves(word: u64) -> (u32, u32) {
    (word as u32, (word >> u32::BITS) as u32)
}

/// The word of these halves.
#[inline]
pub fn whole([low, high]: [u32; 2]) -> u64 {
    u64::from(low) | u64::from(high) << u32::BITS
}

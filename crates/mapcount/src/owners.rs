//! Owners and mappings of a folio, in memory that threads share.

use std::marker::PhantomData;
use std::sync::atomic::Ordering::{Acquire, Relaxed, Release};

use crate::atomics::{Atomic, Atomics};
use crate::error::Misuse;
use crate::mapcount::MappingCounts;
use crate::mm_id::MmId;

/// Maximum number of mappings, so that no sum of two counts overflows.
pub const MAX_MAPPINGS: u32 = i32::MAX as u32;

/// How owners are encoded in 16 bytes.
pub trait OwnerRules: Send + Sync + 'static {
    /// Adds `count` mappings of `mm`; the folio has `mappings` afterwards.
    fn map(words: OwnerWords, mm: MmId, count: u32, mappings: u32) -> OwnerWords;

    /// Removes `count` mappings of `mm`; the folio has `mappings` afterwards.
    ///
    /// # Errors
    /// When `mm` had fewer, as far as the rules can tell.
    fn unmap(words: OwnerWords, mm: MmId, count: u32, mappings: u32) -> Result<OwnerWords, Misuse>;

    /// Whether `mm` is known to have all `mappings` of the folio.
    fn owned_by(words: OwnerWords, mm: MmId, mappings: u32) -> bool;
}

/// The 16 bytes without the lock bit. A kernel has `_mm_id_mapcount` and `_mm_ids` there.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct OwnerWords {
    /// The lower [`FIRST_BITS`] of the first word.
    pub first: u64,
    /// More than one mm may map the folio.
    pub shared: bool,
    /// The second word.
    pub second: u64,
}

/// Bits of the first word without the lock and the *shared* mark.
pub const FIRST_BITS: u32 = 62;

/// The *shared* mark of the first word.
const SHARED: u64 = 1 << FIRST_BITS;

/// The lock of the first word.
const LOCK: u64 = 1 << 63;

/// Owners of a folio and the number of its mappings.
///
/// Everything is changed under one lock, a bit of the first word. A change is one
/// read-modify-write, which takes the lock, however many pages it is about; the rest are loads and
/// stores. The *shared* mark is read without the lock.
pub struct Owners<A: Atomics, R> {
    first: A::U64,
    second: A::U64,
    mappings: A::U32,
    rules: PhantomData<R>,
}

impl<A: Atomics, R> Default for Owners<A, R> {
    fn default() -> Self {
        Owners {
            first: A::U64::default(),
            second: A::U64::default(),
            mappings: A::U32::default(),
            rules: PhantomData,
        }
    }
}

impl<A: Atomics, R: OwnerRules> Owners<A, R> {
    /// Adds `count` mappings of `mm`.
    #[inline]
    pub fn map(&self, mm: MmId, count: u32) -> MappingCounts {
        self.with_lock(|first| {
            let old = self.mappings();
            let new = old.checked_add(count).filter(|&new| new <= MAX_MAPPINGS);
            let new = new.ok_or(Misuse::TooManyMappings { max: MAX_MAPPINGS })?;
            let words = R::map(self.words(first), mm, count, new);
            Ok((self.store(words, new), MappingCounts { old, new }))
        })
    }

    /// Removes `count` mappings of `mm`.
    #[inline]
    pub fn unmap(&self, mm: MmId, count: u32) -> MappingCounts {
        self.with_lock(|first| {
            let old = self.mappings();
            let new = old.checked_sub(count).ok_or(Misuse::NotMapped)?;
            let words = R::unmap(self.words(first), mm, count, new)?;
            Ok((self.store(words, new), MappingCounts { old, new }))
        })
    }

    /// The number of mappings, if `mm` is known to have all of them and there is one.
    #[inline]
    pub fn owned_by(&self, mm: MmId) -> Option<u32> {
        // A cheap test before the lock. It proves nothing: mark and count may be of two moments.
        if self.maybe_shared() || self.mappings() == 0 {
            return None;
        }
        self.with_lock(|first| {
            let mappings = self.mappings();
            let owned = R::owned_by(self.words(first), mm, mappings);
            Ok((first, owned.then_some(mappings)))
        })
    }

    /// Whether the folio is marked as shared.
    #[inline]
    pub fn maybe_shared(&self) -> bool {
        self.first.load(Acquire) & SHARED != 0
    }

    /// The number of mappings.
    #[inline]
    pub fn mappings(&self) -> u32 {
        self.mappings.load(Relaxed)
    }

    #[inline]
    fn words(&self, first: u64) -> OwnerWords {
        OwnerWords {
            first: first & (SHARED - 1),
            shared: first & SHARED != 0,
            second: self.second.load(Relaxed),
        }
    }

    /// Stores all but the first word, and returns that.
    #[inline]
    fn store(&self, words: OwnerWords, mappings: u32) -> u64 {
        self.mappings.store(mappings, Relaxed);
        self.second.store(words.second, Relaxed);
        let mark = if words.shared { SHARED } else { 0 };
        mark | words.first
    }

    /// Runs `change` under the lock, with the first word. It returns the new first word, whose
    /// store releases the lock without a second read-modify-write.
    ///
    /// # Panics
    /// When `change` fails, after the lock was released. It must not have changed anything.
    #[inline]
    fn with_lock<T>(&self, change: impl FnOnce(u64) -> Result<(u64, T), Misuse>) -> T {
        let old = self.lock();
        match change(old) {
            Ok((new, value)) => {
                self.first.store(new, Release);
                value
            }
            Err(misuse) => {
                self.first.store(old, Release);
                misuse.panic()
            }
        }
    }

    /// Takes the lock and returns the first word without it.
    #[inline]
    fn lock(&self) -> u64 {
        loop {
            let old = self.first.fetch_or(LOCK, Acquire);
            if old & LOCK == 0 {
                return old;
            }
            // Only loads, so that the cache line stays shared until the lock is released.
            while self.first.load(Relaxed) & LOCK != 0 {
                A::relax();
            }
        }
    }
}

/// The lower and the upper half of a word.
#[inline]
pub fn split_word(word: u64) -> [u32; 2] {
    [word as u32, (word >> u32::BITS) as u32]
}

/// The word with these halves.
#[inline]
pub fn join_word([low, high]: [u32; 2]) -> u64 {
    u64::from(low) | u64::from(high) << u32::BITS
}

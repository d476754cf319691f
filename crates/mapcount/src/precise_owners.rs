//! Exact for any number of mms: three sums instead of slots.
//!
//! # Proof
//!
//! Let c(i) >= 0 be the mappings of mm i, and
//!
//! ```text
//! S0 = sum c(i)      S1 = sum c(i) * i      S2 = sum c(i) * i^2
//! ```
//!
//! For any mm m the sum of c(i) * (i - m)^2 is S2 - 2 * m * S1 + m^2 * S0, as a square is
//! multiplied out. No summand is negative, so the sum is 0 exactly when each summand is, that is
//! when c(i) = 0 for all i but m. So **m alone maps the folio exactly when S0 > 0 and that sum
//! is 0**. Which mms came before, and in which order, does not matter.
//!
//! Who the owner is follows too. If m owns the folio alone, then S1 = S0 * m. So there is one owner
//! exactly when S0 divides S1 and the sum is 0 for the quotient, and the owner is the quotient.
//!
//! # Limits
//!
//! An id has 20 bits, and S0 < 2^24. So S1 < 2^44 and S2 < 2^64. The sum for m is at most
//! S0 * (2^20 - 1)^2 and thus below 2^64 as well. It is computed modulo 2^64, where intermediate
//! results may wrap, and is exact since its true value fits. No 128 bits are needed: up to 32,767
//! mms can map all 512 pages of a 2 MiB folio one by one. More mappings are a panic. A kernel would
//! have to refuse the fork, or keep S2 in 128 bits. Mappings of the whole folio have 20 bits, which
//! is one for each mm that there can be.
//!
//! An unmapping is refused where the sums show that it is wrong. They do not always show it. What
//! they let pass still leaves S2 <= L^2 * S0 for the largest id L, so no sum overflows later.
//!
//! # Layout
//!
//! Three words of 64 bits:
//!
//! | Word | Bits 0.. | Above them |
//! |---|---|---|
//! | `head` | S0, 24 bits | version, 39 bits; lock, bit 63 |
//! | `first` | S1, 44 bits | mappings of the whole folio, 20 bits |
//! | `second` | S2, 64 bits | |
//!
//! The three sums need 132 bits, so one 128-bit exchange could not change them. The lock's
//! read-modify-write is the only one of a change, and returns S0 and the version.
//!
//! A reader takes no lock. It reads `head`, the sums, and `head` again, until both are the same
//! and not locked. Each change has its own version, so the sums are those of one moment, unless
//! 2^39 changes happen within a read; at 5 ns each they would take 45 minutes.

use std::sync::atomic::Ordering::{Acquire, Relaxed, Release};

use crate::atomics::{Atomic, Atomics, Real};
use crate::broken::Broken;
use crate::lock::{LOCK, locked};
use crate::mapcount::{Change, Counts, Mapcount, Pages, average, check_batch, whole};
use crate::mm_id::MmId;
use crate::order::Order;
use crate::sums::{MAPPING_BITS, Sums};

/// The owners of a folio by three sums, the mappings of the whole folio, and no counts of pages.
///
/// A batch is one read-modify-write. What pages count as is the same as with
/// [`NoPageMapcount`](crate::NoPageMapcount), but whether the folio is shared is never wrong.
pub struct PreciseOwners<A: Atomics = Real> {
    head: A::U64,
    first: A::U64,
    second: A::U64,
}

const S0_MASK: u64 = (1 << MAPPING_BITS) - 1;
const S1_BITS: u32 = MAPPING_BITS + MmId::BITS;
const VERSION: u64 = 1 << MAPPING_BITS;
const MAX_ENTIRE: u64 = (1 << (u64::BITS - S1_BITS)) - 1;

impl<A: Atomics> Default for PreciseOwners<A> {
    fn default() -> Self {
        PreciseOwners {
            head: A::U64::default(),
            first: A::U64::default(),
            second: A::U64::default(),
        }
    }
}

impl<A: Atomics> PreciseOwners<A> {
    /// The only mm that maps the folio, if there is one. Exact, and takes no lock.
    pub fn owner(&self) -> Option<MmId> {
        self.read().0.owner()
    }

    /// The sums of one moment, and the number of mappings of the whole folio.
    #[inline]
    fn read(&self) -> (Sums, u64) {
        loop {
            let head = self.head.load(Acquire);
            // These come before the second look at `head`, and show no change that it would not.
            let first = self.first.load(Acquire);
            let second = self.second.load(Acquire);
            if head & LOCK == 0 && self.head.load(Relaxed) == head {
                return unpack(head, first, second);
            }
            A::relax();
        }
    }

    #[inline]
    fn change(
        &self,
        entire: impl FnOnce(u64) -> Result<u64, Broken>,
        change: impl FnOnce(Sums) -> Result<Sums, Broken>,
    ) -> Counts {
        locked::<A, _>(&self.head, |head| {
            let (old, old_entire) =
                unpack(head, self.first.load(Relaxed), self.second.load(Relaxed));
            let new = change(old)?;
            let new_entire = entire(old_entire)?;
            if new_entire > new.mappings() {
                return Err(Broken::NotMapped);
            }
            // A reader that sees one of these also sees that the lock was taken before.
            self.first.store(new.first | new_entire << S1_BITS, Release);
            self.second.store(new.second, Release);
            let counts = Counts {
                old: old.mappings() as u32,
                new: new.mappings() as u32,
                old_entire: old_entire as u32,
                new_entire: new_entire as u32,
            };
            let version = (head & !S0_MASK).wrapping_add(VERSION) & !LOCK;
            Ok((version | new.mappings(), counts))
        })
    }

    #[inline]
    fn add(&self, mm: MmId, mappings: u32, entire: u64) -> Counts {
        let entirely = |old: u64| {
            let more = old + entire;
            let most = Broken::TooManyEntireMappings { most: MAX_ENTIRE as u32 };
            if more <= MAX_ENTIRE { Ok(more) } else { Err(most) }
        };
        self.change(entirely, |sums| sums.map(mm, mappings))
    }

    #[inline]
    fn remove(&self, mm: MmId, mappings: u32, entire: u64) -> Counts {
        let entirely = |old: u64| old.checked_sub(entire).ok_or(Broken::NotMappedEntirely);
        self.change(entirely, |sums| sums.unmap(mm, mappings))
    }
}

#[inline]
fn unpack(head: u64, first: u64, second: u64) -> (Sums, u64) {
    let sums = Sums { zeroth: head & S0_MASK, first: first & ((1 << S1_BITS) - 1), second };
    (sums, first >> S1_BITS)
}

impl<A: Atomics> Mapcount for PreciseOwners<A> {
    type Page = ();

    const MAX_MAPPINGS: u32 = S0_MASK as u32;

    #[inline]
    fn map<'a>(&self, order: Order, mm: MmId, pages: impl Pages<'a, ()>) -> Change {
        whole(order, self.add(mm, check_batch(order, pages.len()), 0))
    }

    #[inline]
    fn unmap<'a>(&self, order: Order, mm: MmId, pages: impl Pages<'a, ()>) -> Change {
        whole(order, self.remove(mm, check_batch(order, pages.len()), 0))
    }

    fn map_entirely(&self, order: Order, mm: MmId) -> Change {
        whole(order, self.add(mm, 1, 1))
    }

    fn unmap_entirely(&self, order: Order, mm: MmId) -> Change {
        whole(order, self.remove(mm, 1, 1))
    }

    #[inline]
    fn mappings(&self) -> u32 {
        (self.head.load(Relaxed) & S0_MASK) as u32
    }

    fn entire_mappings(&self) -> u32 {
        (self.first.load(Relaxed) >> S1_BITS) as u32
    }

    /// Whether more than one mm maps the folio. Here this is exact.
    fn maybe_shared(&self) -> bool {
        let (sums, _) = self.read();
        sums.mappings() > 0 && sums.owner().is_none()
    }

    #[inline]
    fn owned_by(&self, mm: MmId) -> Option<u32> {
        let (sums, _) = self.read();
        sums.owned_by(mm).then(|| sums.mappings() as u32)
    }

    fn page_mappings(&self, order: Order, (): &()) -> u32 {
        let (sums, entire) = self.read();
        average(order, sums.mappings() as u32, entire as u32)
    }
}

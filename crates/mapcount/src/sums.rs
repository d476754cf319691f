//! Exact owners in the 16 bytes that two slots take: three sums in one number.
//!
//! # Proof
//!
//! Let n be the number of mappings, and c(i) >= 0 those of mm i. The halves of an id are a point
//! p(i) = (x, y). Let o be the middle of all points, and q(i) = |p(i) - o|^2. The sums are
//!
//! ```text
//! X = sum c(i) * x(i)      Y = sum c(i) * y(i)      Q = sum c(i) * q(i)
//! ```
//!
//! For any mm m the sum of c(i) * |p(i) - p(m)|^2 is a combination of n, X, Y and Q, as the square
//! is multiplied out. No summand is negative, so it is 0 exactly when c(i) = 0 for all i but m. If
//! X, Y and Q are n times those of m, it is what it is where m has all mappings, which is 0. So
//! **m alone maps the folio exactly when n > 0 and the sums are n * x(m), n * y(m) and n * q(m)**.
//!
//! Whether there is one owner, whoever it is, is the equality of Cauchy and Schwarz. n * Q is no
//! less than |sum c(i) * (p(i) - o)|^2, and **they are equal exactly when all mappings are of one
//! point**. Which mms came before, and in which order, does not matter.
//!
//! # Limits
//!
//! An id has 31 bits, so x has 16, y has 15, and q is at most 2^30 + 2^28. X below 2^37, Y below
//! 2^36 and Q below 2^53 are 126 bits, and hold 2^21 mappings of any mms: 4,096 that map all of a
//! folio of 2 MiB page by page. With an id as one number in place of a point, 126 bits would hold
//! 2^17 mappings.
//!
//! The sums are one number, to which n * (x + 2^37 * y + 2^73 * q) is added modulo 2^126. Above
//! 2^21 mappings its fields run into each other, and the folio counts as shared. What is added is
//! also taken away, so that the number is right again below, and nothing sticks.
//!
//! The id and its square, summed modulo 2^64, would not do. Of 64 mappings let 32 be of m + 2^29
//! and 32 of m - 2^29. The squares of their distances from m add up to 2^64, and m, which has none
//! of them, would be told to be alone.

use crate::broken::Broken;
use crate::mm_id::MmId;
use crate::no_page_mapcount::NoPageMapcount;
use crate::owners::{FREE_BITS, OwnerRules, Words};

/// Exact owners, the mappings of the whole folio, and no counts of pages.
///
/// A batch is one read-modify-write. What pages count as is the same as with two slots, but whether
/// the folio is shared is not wrong up to [`EXACT_MAPPINGS`] mappings.
pub type PreciseOwners<A = crate::atomics::Real> = NoPageMapcount<A, ExactSums>;

/// The rules by which sums tell owners.
pub struct ExactSums;

/// Up to so many mappings of a folio it is known exactly whether one mm has all. Above it the folio
/// counts as shared.
pub const EXACT_MAPPINGS: u32 = 1 << 21;

/// Bits of the lower half of an id, and of the upper.
const X: u32 = MmId::BITS.div_ceil(2);
const Y: u32 = MmId::BITS - X;

/// Where Y and Q begin.
const SECOND: u32 = X + EXACT_MAPPINGS.ilog2();
const THIRD: u32 = SECOND + Y + EXACT_MAPPINGS.ilog2();

/// The square of the distance of a corner from the middle: no point is farther away.
const FARTHEST: u64 = (1 << (2 * X - 2)) + (1 << (2 * Y - 2));

const MASK: u128 = (1 << (u64::BITS + FREE_BITS)) - 1;

const _: () = assert!(
    FARTHEST as u128 * EXACT_MAPPINGS as u128 <= MASK >> THIRD,
    "the sum of squares has no room"
);

/// The sums over the mappings of a folio, and how many these are.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
pub struct Sums {
    /// X, Y and Q above each other.
    sum: u128,
    mappings: u32,
}

impl Sums {
    /// With so many `more` mappings of `mm`.
    #[inline]
    #[must_use]
    pub fn map(self, mm: MmId, more: u32) -> Sums {
        let sum = self.sum.wrapping_add(of(mm, more)) & MASK;
        Sums { sum, mappings: self.mappings + more }
    }

    /// With so many `fewer` mappings of `mm`.
    ///
    /// # Errors
    /// When the sums show that `mm` had not so many: what would be left is not the sums of any
    /// mappings.
    #[inline]
    pub fn unmap(self, mm: MmId, fewer: u32) -> Result<Sums, Broken> {
        let mappings = self.mappings.checked_sub(fewer).ok_or(Broken::NotMapped)?;
        let left = Sums { sum: self.sum.wrapping_sub(of(mm, fewer)) & MASK, mappings };
        if left.can_be() { Ok(left) } else { Err(Broken::NotMappedByMm { mm: mm.get() }) }
    }

    /// The number of mappings.
    pub fn mappings(self) -> u32 {
        self.mappings
    }

    /// Whether `mm` is known to have all mappings, and there is one.
    #[inline]
    pub fn owned_by(self, mm: MmId) -> bool {
        (1..=EXACT_MAPPINGS).contains(&self.mappings) && self.sum == of(mm, self.mappings)
    }

    /// Whether some mm is known to have all mappings, and there is one.
    #[inline]
    pub fn has_owner(self) -> bool {
        (1..=EXACT_MAPPINGS).contains(&self.mappings) && {
            let (squares, square) = self.squares();
            squares == square
        }
    }

    /// Whether the mappings may be of several mms.
    #[inline]
    fn is_shared(self) -> bool {
        self.mappings > 0 && !self.has_owner()
    }

    #[inline]
    fn fields(self) -> [u64; 3] {
        let second = (self.sum >> SECOND) as u64 & ((1 << (THIRD - SECOND)) - 1);
        [self.sum as u64 & ((1 << SECOND) - 1), second, (self.sum >> THIRD) as u64]
    }

    /// n * Q, and the square of the sum of all points as seen from the middle.
    #[inline]
    fn squares(self) -> (u128, u128) {
        let [x, y, q] = self.fields();
        let n = u64::from(self.mappings);
        let [x, y] = [x.abs_diff(n << (X - 1)), y.abs_diff(n << (Y - 1))].map(u128::from);
        (u128::from(n) * u128::from(q), x * x + y * y)
    }

    /// Whether these may be the sums of some mappings, as far as the two sides of a bound tell. The
    /// mean of the squares is no less than the square of the mean. And no point is outside: the sum
    /// of c(i) * (x(i) * (x(last) - x(i)) + y(i) * (y(last) - y(i))) is not below 0.
    #[inline]
    fn can_be(self) -> bool {
        let [x, y, q] = self.fields();
        match self.mappings {
            0 => self.sum == 0,
            1..=EXACT_MAPPINGS => {
                let (squares, square) = self.squares();
                square <= squares && x + y + q <= u64::from(self.mappings) * FARTHEST
            }
            _ => true,
        }
    }
}

/// What `mappings` of `mm` add.
#[inline]
fn of(mm: MmId, mappings: u32) -> u128 {
    let id = u64::from(mm.get());
    let (x, y) = (id & ((1 << X) - 1), id >> X);
    let [dx, dy] = [x.abs_diff(1 << (X - 1)), y.abs_diff(1 << (Y - 1))];
    let one = u128::from(x | y << SECOND) + (u128::from(dx * dx + dy * dy) << THIRD);
    one.wrapping_mul(u128::from(mappings)) & MASK
}

/// The largest power of two of mappings up to which sums in 126 bits tell an owner among ids of so
/// many bits: of the halves of an id as a point, or of the id itself. A folio has fewer than 2^31.
pub fn exact_mappings(id_bits: u32, halves: bool) -> u64 {
    let upper = if halves { id_bits / 2 } else { 0 };
    let middle = |bits: u32| if bits > 0 { 1_u128 << (2 * bits - 2) } else { 0 };
    let most = |bits: u32| (1_u128 << bits) - 1;
    let lower = id_bits - upper;
    let sums = [most(lower), most(upper), middle(lower) + middle(upper)];
    let bits = |mappings: u32| -> u32 {
        sums.iter().map(|most| u128::BITS - (most << mappings).leading_zeros()).sum()
    };
    let fits = |mappings: &u32| bits(*mappings) <= u64::BITS + FREE_BITS;
    (0..31).rev().find(fits).map_or(0, |mappings| 1 << mappings)
}

impl OwnerRules for ExactSums {
    #[inline]
    fn map(words: Words, mm: MmId, more: u32, mappings: u32) -> Words {
        let sums = unpack(words, mappings - more).map(mm, more);
        // If one mm has all of them, it is the one that has some now.
        pack(sums, !sums.owned_by(mm))
    }

    #[inline]
    fn unmap(words: Words, mm: MmId, fewer: u32, mappings: u32) -> Result<Words, Broken> {
        let sums = unpack(words, mappings + fewer).unmap(mm, fewer)?;
        Ok(pack(sums, sums.is_shared()))
    }

    #[inline]
    fn owned_by(words: Words, mm: MmId, mappings: u32) -> bool {
        unpack(words, mappings).owned_by(mm)
    }
}

#[inline]
fn unpack(words: Words, mappings: u32) -> Sums {
    Sums { sum: u128::from(words.free) << u64::BITS | u128::from(words.second), mappings }
}

#[inline]
fn pack(sums: Sums, shared: bool) -> Words {
    Words { free: (sums.sum >> u64::BITS) as u64, shared, second: sums.sum as u64 }
}

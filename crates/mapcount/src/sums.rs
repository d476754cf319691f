//! Exact owners in the 16 bytes of two slots: three sums in one number.
//!
//! # Proof
//!
//! Let n be the number of mappings, and c(i) >= 0 the mappings of mm i. The halves of an id are a
//! point p(i) = (x, y). Let o be the middle of all points, and q(i) = |p(i) - o|^2. The sums are
//!
//! ```text
//! X = sum c(i) * x(i)      Y = sum c(i) * y(i)      Q = sum c(i) * q(i)
//! ```
//!
//! For any mm m, expand the square in the sum of c(i) * |p(i) - p(m)|^2: it is a function of n, X,
//! Y and Q. No summand is negative, so it is 0 exactly when c(i) = 0 for all i but m. If X = n *
//! x(m), Y = n * y(m) and Q = n * q(m), it has the value that it has when m has all mappings, which
//! is 0. So **m alone maps the folio exactly when n > 0 and the sums are n * x(m), n * y(m), n *
//! q(m)**.
//!
//! Whether there is one owner, whichever it is, follows from the Cauchy-Schwarz inequality: n * Q
//! is at least |sum c(i) * (p(i) - o)|^2, and **both sides are equal exactly when all mappings are
//! of one point**. Earlier mms and the order of events do not matter.
//!
//! # Limits
//!
//! An id has 31 bits, so x has 16, y has 15, and q is at most 2^30 + 2^28. X < 2^37, Y < 2^36 and Q
//! < 2^53 take 126 bits and hold 2^21 mappings of any mms: 4,096 mms that map all pages of a folio
//! of 2 MiB. If the id were one number instead of a point, 126 bits would hold 2^17 mappings.
//!
//! The sums are one number, to which n * (x + 2^37 * y + 2^73 * q) is added modulo 2^126. Above
//! 2^21 mappings its fields overflow into each other, and the folio counts as shared. Since the
//! same is subtracted later, the number is right again once there are fewer mappings.
//!
//! Sums of the id and its square modulo 2^64 would be wrong. Let 32 mappings be of m + 2^29 and 32
//! of m - 2^29. The squares of their distances from m add up to 2^64, so m would count as the only
//! owner, and has no mapping at all.

use crate::error::Misuse;
use crate::mm_id::MmId;
use crate::mm_owner::NoPageMapcount;
use crate::owners::{FIRST_BITS, OwnerRules, OwnerWords};

/// Exact owners, without counts of pages.
///
/// A batch is one read-modify-write, as in [`NoPageMapcount`], but *shared* is right up to
/// [`EXACT_MAPPINGS`] mappings.
pub type PreciseOwners<A = crate::atomics::StdAtomics> = NoPageMapcount<A, ExactSums>;

/// Owners by sums of points.
pub struct ExactSums;

/// Maximum number of mappings for which owners are exact. A folio with more counts as shared.
pub const EXACT_MAPPINGS: u32 = 1 << 21;

/// Bits of the lower half of an id.
const X: u32 = MmId::BITS.div_ceil(2);
/// Bits of the upper half.
const Y: u32 = MmId::BITS - X;

/// Shift of the sum Y.
const Y_SHIFT: u32 = X + EXACT_MAPPINGS.ilog2();
/// Shift of the sum Q.
const Q_SHIFT: u32 = Y_SHIFT + Y + EXACT_MAPPINGS.ilog2();

/// Maximum of q: the square of the distance of a corner from the middle.
const MAX_Q: u64 = (1 << (2 * X - 2)) + (1 << (2 * Y - 2));

const MASK: u128 = (1 << (u64::BITS + FIRST_BITS)) - 1;

const _: () = assert!(
    MAX_Q as u128 * EXACT_MAPPINGS as u128 <= MASK >> Q_SHIFT,
    "the sum of squares has no room"
);

/// The sums over the mappings of a folio, and their number.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
pub struct Sums {
    /// X, Y and Q in one number.
    sum: u128,
    mappings: u32,
}

impl Sums {
    /// The sums with `count` more mappings of `mm`.
    #[inline]
    #[must_use]
    pub fn map(self, mm: MmId, count: u32) -> Sums {
        let sum = self.sum.wrapping_add(multiple(mm, count)) & MASK;
        Sums { sum, mappings: self.mappings + count }
    }

    /// The sums with `count` mappings of `mm` less.
    ///
    /// # Errors
    /// When the result cannot be the sums of any mappings, which shows that `mm` had fewer.
    #[inline]
    pub fn unmap(self, mm: MmId, count: u32) -> Result<Sums, Misuse> {
        let mappings = self.mappings.checked_sub(count).ok_or(Misuse::NotMapped)?;
        let sums = Sums { sum: self.sum.wrapping_sub(multiple(mm, count)) & MASK, mappings };
        if sums.is_possible() { Ok(sums) } else { Err(Misuse::NotMappedByMm { mm: mm.get() }) }
    }

    /// The number of mappings.
    pub fn mappings(self) -> u32 {
        self.mappings
    }

    /// Whether `mm` is known to have all mappings, and there is one.
    #[inline]
    pub fn owned_by(self, mm: MmId) -> bool {
        (1..=EXACT_MAPPINGS).contains(&self.mappings) && self.sum == multiple(mm, self.mappings)
    }

    /// Whether any one mm is known to have all mappings, and there is one.
    #[inline]
    pub fn has_owner(self) -> bool {
        (1..=EXACT_MAPPINGS).contains(&self.mappings) && {
            let (n_q, norm) = self.cauchy_schwarz();
            n_q == norm
        }
    }

    /// Whether the mappings may be of several mms.
    #[inline]
    fn is_shared(self) -> bool {
        self.mappings > 0 && !self.has_owner()
    }

    #[inline]
    fn fields(self) -> [u64; 3] {
        let y = (self.sum >> Y_SHIFT) as u64 & ((1 << (Q_SHIFT - Y_SHIFT)) - 1);
        [self.sum as u64 & ((1 << Y_SHIFT) - 1), y, (self.sum >> Q_SHIFT) as u64]
    }

    /// Both sides of the inequality: n * Q, and |sum c(i) * (p(i) - o)|^2.
    #[inline]
    fn cauchy_schwarz(self) -> (u128, u128) {
        let [x, y, q] = self.fields();
        let n = u64::from(self.mappings);
        let [x, y] = [x.abs_diff(n << (X - 1)), y.abs_diff(n << (Y - 1))].map(u128::from);
        (u128::from(n) * u128::from(q), x * x + y * y)
    }

    /// Whether these may be the sums of some mappings, by two necessary conditions: the inequality,
    /// and that no point is outside: the sum of c(i) * (x(i) * (x(last) - x(i)) + y(i) * (y(last) -
    /// y(i))) is at least 0.
    #[inline]
    fn is_possible(self) -> bool {
        let [x, y, q] = self.fields();
        match self.mappings {
            0 => self.sum == 0,
            1..=EXACT_MAPPINGS => {
                let (n_q, norm) = self.cauchy_schwarz();
                norm <= n_q && x + y + q <= u64::from(self.mappings) * MAX_Q
            }
            _ => true,
        }
    }
}

/// The contribution of `mappings` of `mm`.
#[inline]
fn multiple(mm: MmId, mappings: u32) -> u128 {
    let id = u64::from(mm.get());
    let (x, y) = (id & ((1 << X) - 1), id >> X);
    let [dx, dy] = [x.abs_diff(1 << (X - 1)), y.abs_diff(1 << (Y - 1))];
    let one = u128::from(x | y << Y_SHIFT) + (u128::from(dx * dx + dy * dy) << Q_SHIFT);
    one.wrapping_mul(u128::from(mappings)) & MASK
}

/// The largest power of two of mappings for which sums in 126 bits are exact with ids of `id_bits`:
/// by the halves of an id as a point, or by the id as one number. A folio has fewer than 2^31.
pub fn exact_mappings(id_bits: u32, halves: bool) -> u64 {
    let upper = if halves { id_bits / 2 } else { 0 };
    let middle = |bits: u32| if bits > 0 { 1_u128 << (2 * bits - 2) } else { 0 };
    let max = |bits: u32| (1_u128 << bits) - 1;
    let lower = id_bits - upper;
    let max_sums = [max(lower), max(upper), middle(lower) + middle(upper)];
    let bits = |mappings: u32| -> u32 {
        max_sums.iter().map(|max| u128::BITS - (max << mappings).leading_zeros()).sum()
    };
    let fits = |mappings: &u32| bits(*mappings) <= u64::BITS + FIRST_BITS;
    (0..31).rev().find(fits).map_or(0, |mappings| 1 << mappings)
}

impl OwnerRules for ExactSums {
    #[inline]
    fn map(words: OwnerWords, mm: MmId, count: u32, mappings: u32) -> OwnerWords {
        let sums = unpack(words, mappings - count).map(mm, count);
        // If one mm has all of them, it is this one, which has some.
        pack(sums, !sums.owned_by(mm))
    }

    #[inline]
    fn unmap(words: OwnerWords, mm: MmId, count: u32, mappings: u32) -> Result<OwnerWords, Misuse> {
        let sums = unpack(words, mappings + count).unmap(mm, count)?;
        Ok(pack(sums, sums.is_shared()))
    }

    #[inline]
    fn owned_by(words: OwnerWords, mm: MmId, mappings: u32) -> bool {
        unpack(words, mappings).owned_by(mm)
    }
}

#[inline]
fn unpack(words: OwnerWords, mappings: u32) -> Sums {
    Sums { sum: u128::from(words.first) << u64::BITS | u128::from(words.second), mappings }
}

#[inline]
fn pack(sums: Sums, shared: bool) -> OwnerWords {
    OwnerWords { first: (sums.sum >> u64::BITS) as u64, shared, second: sums.sum as u64 }
}

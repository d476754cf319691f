//! Sums over the mappings of a folio: how many, by id, and by the square of the id.

use crate::broken::Broken;
use crate::mm_id::MmId;

/// Bits of the number of mappings. With the bits of an id, twice, they are the 64 of the largest
/// sum.
pub const MAPPING_BITS: u32 = u64::BITS - 2 * MmId::BITS;

/// S0, S1 and S2 of [`precise_owners`](crate::precise_owners).
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
pub struct Sums {
    /// The number of mappings, below 2^24.
    pub zeroth: u64,
    /// The sum of their mms' ids, below 2^44.
    pub first: u64,
    /// The sum of the squares of these ids.
    pub second: u64,
}

impl Sums {
    /// With so many `more` mappings of `mm`.
    ///
    /// # Errors
    /// When these are too many.
    #[inline]
    pub fn map(self, mm: MmId, more: u32) -> Result<Sums, Broken> {
        let (more, id) = (u64::from(more), u64::from(mm.get()));
        let zeroth = self.zeroth + more;
        if zeroth >> MAPPING_BITS != 0 {
            return Err(Broken::TooManyMappings { most: (1 << MAPPING_BITS) - 1 });
        }
        let (first, second) = (self.first + more * id, self.second + more * id * id);
        Ok(Sums { zeroth, first, second })
    }

    /// With so many `fewer` mappings of `mm`.
    ///
    /// # Errors
    /// When the sums show that `mm` had not so many. They show it where the sums that would be left
    /// are those of no mappings: where S1^2 > S0 * S2, or S2 + L * S0 > (L + 1) * S1 for the
    /// largest id L.
    #[inline]
    pub fn unmap(self, mm: MmId, fewer: u32) -> Result<Sums, Broken> {
        let (fewer, id) = (u64::from(fewer), u64::from(mm.get()));
        let less = |sum: u64, by: u64| sum.checked_sub(by);
        let zeroth = less(self.zeroth, fewer).ok_or(Broken::NotMapped)?;
        let first = less(self.first, fewer * id);
        let second = less(self.second, fewer * id * id);
        let left = first.zip(second).map(|(first, second)| Sums { zeroth, first, second });
        left.filter(|left| left.can_be()).ok_or(Broken::NotMappedByMm { mm: mm.get() })
    }

    /// The number of mappings.
    #[inline]
    pub fn mappings(self) -> u64 {
        self.zeroth
    }

    /// Whether `mm` has all mappings, and there is one.
    #[inline]
    pub fn owned_by(self, mm: MmId) -> bool {
        self.zeroth > 0 && self.distance(u64::from(mm.get())) == 0
    }

    /// The only mm with mappings.
    #[inline]
    pub fn owner(self) -> Option<MmId> {
        if self.zeroth == 0 || !self.first.is_multiple_of(self.zeroth) {
            return None;
        }
        let mean = self.first / self.zeroth;
        if self.distance(mean) != 0 {
            return None;
        }
        MmId::new(mean as u32).ok()
    }

    /// The sum of c(i) * (i - m)^2, which fits, whatever wraps on the way.
    #[inline]
    fn distance(self, m: u64) -> u64 {
        let (once, twice) = (self.first.wrapping_mul(2 * m), self.zeroth.wrapping_mul(m * m));
        self.second.wrapping_sub(once).wrapping_add(twice)
    }

    /// Whether these may be the sums of some mappings. The mean of the squares is no less than the
    /// square of the mean. No id is below 1 or above L, so the sum of c(i) * (i - 1) * (i - L) is
    /// not above 0, and where there is nothing, the sums are 0.
    ///
    /// Both together keep the mean within 1 and L, and S2 within L^2 * S0. So no sum overflows
    /// later, not even after an mm has unmapped what another one had mapped unnoticed.
    #[inline]
    fn can_be(self) -> bool {
        let wide = u128::from;
        // L + 1 is 2^20, and S1 < 2^44.
        let most =
            (self.first << MmId::BITS).checked_sub(u64::from(MmId::LAST.get()) * self.zeroth);
        most.is_some_and(|most| self.second <= most)
            && wide(self.first) * wide(self.first) <= wide(self.zeroth) * wide(self.second)
    }
}

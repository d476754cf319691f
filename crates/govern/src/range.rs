//! A mapping, or the remaining part of one, and its state.

use filemap_attach::MappedRange;
use filemap_policy::PageRange;

use crate::request::AdviceOrigin;

/// A mapping that is governed or requested.
#[derive(Clone, Debug)]
pub struct GovernedRange {
    pub mapped: MappedRange,
    /// ID of the request to govern it. The parts of a mapping that was cut share it.
    pub id: u64,
    /// If the kernel shows it as MADV_RANDOM, that may be this governor's advice rather than the
    /// program's.
    pub may_be_inherited: bool,
    pub state: RangeState,
    /// It counts as a user of its file.
    pub is_counted: bool,
    /// Earliest time of the next attempt to leave it to the kernel; `None` while one is under way.
    pub leave_at_ns: Option<u64>,
    /// Its advice was looked at again after some faults.
    pub is_checked: bool,
    pub counts: RangeCounts,
    /// Touches before it was governed: thread and page.
    pub early_touches: Vec<(u32, u64)>,
}

/// State of a mapping.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum RangeState {
    /// Requested for the `tries`th time. With `is_due` the last attempt failed and the next waits.
    Requested { tries: u32, is_due: bool },
    /// Governed.
    Governed(AdviceOrigin),
    /// Cannot be governed. Kept so that it is not requested again.
    Ignored,
}

/// Counters of a mapping.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct RangeCounts {
    /// Major faults.
    pub major_faults: u64,
    /// Reported touches that were not major faults.
    pub other_faults: u64,
    /// Pages of the readahead requests.
    pub pages: u64,
    /// Readahead requests.
    pub calls: u64,
    /// Major faults before it was governed.
    pub early_faults: u64,
    /// How long threads were stopped to advise it, in nanoseconds.
    pub stopped_ns: u64,
}

impl GovernedRange {
    /// A mapping just requested, by request `id`.
    pub fn new(mapped: MappedRange, id: u64) -> GovernedRange {
        let state = RangeState::Requested { tries: 1, is_due: false };
        let (is_counted, counts) = (false, RangeCounts::default());
        GovernedRange {
            mapped,
            id,
            may_be_inherited: false,
            state,
            is_counted,
            leave_at_ns: Some(0),
            is_checked: false,
            counts,
            early_touches: Vec::new(),
        }
    }

    /// A copy with all counters at zero.
    pub fn copy_uncounted(&self) -> GovernedRange {
        let (counts, early_touches) = (RangeCounts::default(), Vec::new());
        GovernedRange { counts, early_touches, leave_at_ns: Some(0), ..self.clone() }
    }

    /// The mapped pages of the file.
    pub fn pages(&self, page_bytes: u64) -> PageRange {
        let first = self.mapped.offset_bytes / page_bytes;
        PageRange { first, end: first + self.mapped.length_bytes / page_bytes }
    }

    /// The page of the file at `address`, which lies in the range.
    pub fn page(&self, address: u64, page_bytes: u64) -> u64 {
        (self.mapped.offset_bytes + (address - self.mapped.address)) / page_bytes
    }

    /// Whether `other` covers it with the same file at the same offsets.
    pub fn is_within(&self, other: &MappedRange) -> bool {
        let own = &self.mapped;
        let id = |range: &MappedRange| range.file.as_ref().map(|file| file.id);
        id(own) == id(other)
            && other.address <= own.address
            && own.end() <= other.end()
            && own.offset_bytes.checked_sub(other.offset_bytes) == Some(own.address - other.address)
    }

    /// The part of `other` that maps the same bytes of the same file at the same addresses, if any.
    pub fn overlap(&self, other: &MappedRange) -> Option<MappedRange> {
        let own = &self.mapped;
        let (start, end) = (own.address.max(other.address), own.end().min(other.end()));
        let mut both = other.clone();
        both.address = start;
        both.length_bytes = end.checked_sub(start).filter(|length| *length > 0)?;
        both.offset_bytes += start - other.address;
        let part = GovernedRange { mapped: both.clone(), ..self.clone() };
        part.is_within(own).then_some(both)
    }

    /// The remaining parts without `start..end`: the one before, which keeps the counters, and the
    /// one after, with counters at zero.
    pub fn without(self, start: u64, end: u64) -> [Option<GovernedRange>; 2] {
        let own = (self.mapped.address, self.mapped.end());
        let after = (end < own.1).then(|| {
            let cut = end.max(own.0) - own.0;
            let mut after = self.copy_uncounted();
            after.mapped.address += cut;
            after.mapped.offset_bytes += cut;
            after.mapped.length_bytes -= cut;
            after
        });
        let before = (own.0 < start).then(|| {
            let mut before = self;
            before.mapped.length_bytes = start.min(own.1) - own.0;
            before
        });
        [before, after]
    }
}

#[cfg(test)]
pub mod tests {
    use filemap_attach::{FileId, MappedFile};

    use super::*;

    /// A shared read-only mapping of file `inode` from offset 0.
    pub fn mapped(address: u64, length_bytes: u64, inode: u64) -> MappedRange {
        MappedRange {
            address,
            length_bytes,
            offset_bytes: 0,
            file: Some(MappedFile {
                id: FileId { major: 8, minor: 1, inode },
                path: format!("/data/{inode}").into(),
            }),
            protection: libc::PROT_READ.cast_unsigned(),
            is_shared: true,
        }
    }

    #[test]
    fn replaced_range_is_cut_out() {
        // (start and end of the replaced range, remaining parts as (address, length, offset))
        for (start, end, left) in [
            (0x1000, 0x5000, vec![]),
            (0, 0x9000, vec![]),
            (0, 0x2000, vec![(0x2000, 0x3000, 0x1000)]),
            (0x4000, 0x9000, vec![(0x1000, 0x3000, 0)]),
            (0x2000, 0x3000, vec![(0x1000, 0x1000, 0), (0x3000, 0x2000, 0x2000)]),
        ] {
            let mut range = GovernedRange::new(mapped(0x1000, 0x4000, 1), 5);
            range.counts.calls = 3;
            let pieces: Vec<GovernedRange> =
                range.without(start, end).into_iter().flatten().collect();
            let places = pieces
                .iter()
                .map(|piece| &piece.mapped)
                .map(|own| (own.address, own.length_bytes, own.offset_bytes));
            assert_eq!(places.collect::<Vec<_>>(), left, "{start:x}-{end:x}");
            assert!(pieces.iter().all(|piece| piece.id == 5 && piece.counts.calls % 3 == 0));
            let whole = mapped(0x1000, 0x4000, 1);
            assert!(pieces.iter().all(|piece| piece.is_within(&whole)));
        }
    }
}

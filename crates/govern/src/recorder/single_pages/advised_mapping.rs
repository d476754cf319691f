//! A mapping that was advised MADV_RANDOM.

use filemap_attach::process::ReadaheadMode;
use filemap_attach::tracepoints::TraceEvent;
use filemap_attach::{FileId, MappedRange};

pub struct AdvisedMapping {
    pub pid: u32,
    pub range: MappedRange,
    /// Its advice before.
    pub previous: ReadaheadMode,
    /// The event of its mmap(2), and when it was advised; `None` if a fork made it.
    pub advised: Option<(TraceEvent, u64)>,
}

impl AdvisedMapping {
    /// Whether `range` overlaps it and maps the same file.
    pub fn has_part(&self, range: &MappedRange) -> bool {
        let id = |range: &MappedRange| -> Option<FileId> { Some(range.file.as_ref()?.id) };
        id(&self.range) == id(range) && self.overlaps(range)
    }

    /// Whether `map` of process `pid` replaces it or a part of it.
    pub fn is_replaced_by(&self, pid: u32, map: &MappedRange) -> bool {
        self.pid == pid && self.overlaps(map) && !self.is_same_mapping(map)
    }

    /// The parts of it that `map` does not replace.
    pub fn without(self, pid: u32, map: &MappedRange) -> Vec<AdvisedMapping> {
        if !self.is_replaced_by(pid, map) {
            return vec![self];
        }
        let AdvisedMapping { range, previous, advised, .. } = self;
        let parts = [range.part(range.address, map.address), range.part(map.end(), range.end())];
        let part = |range| AdvisedMapping { pid, range, previous, advised: advised.clone() };
        parts.into_iter().flatten().map(part).collect()
    }

    /// Whether `map` is a part of this mapping with another protection.
    fn is_same_mapping(&self, map: &MappedRange) -> bool {
        let start = |range: &MappedRange| range.offset_bytes.wrapping_sub(range.address);
        self.has_part(map) && start(&self.range) == start(map)
    }

    fn overlaps(&self, map: &MappedRange) -> bool {
        self.range.address < map.end() && map.address < self.range.end()
    }
}

#[cfg(test)]
mod tests {
    use filemap_attach::MappedFile;

    use super::*;

    fn range(address: u64, length_bytes: u64, offset_bytes: u64, inode: u64) -> MappedRange {
        let id = FileId { major: 8, minor: 1, inode };
        let file = (inode > 0).then(|| MappedFile { id, path: "/data".into() });
        MappedRange { address, length_bytes, offset_bytes, file, protection: 1, is_shared: true }
    }

    #[test]
    fn cuts_out_replaced_part() {
        let left = |map: &MappedRange, pid: u32| {
            let range = range(0x10000, 0x8000, 0x4000, 7);
            let own =
                AdvisedMapping { pid: 1, range, previous: ReadaheadMode::Normal, advised: None };
            let left = own.without(pid, map).into_iter();
            left.map(|own| (own.range.address, own.range.end(), own.range.offset_bytes))
                .collect::<Vec<_>>()
        };
        let whole = vec![(0x10000, 0x18000, 0x4000)];
        let memory = range(0x12000, 0x2000, 0, 0);
        let parts = vec![(0x10000, 0x12000, 0x4000), (0x14000, 0x18000, 0x8000)];
        assert_eq!(left(&memory, 1), parts);
        assert_eq!(left(&memory, 2), whole);
        // mprotect(2) of a part keeps the mapping; another part of the file replaces it.
        assert_eq!(left(&range(0x12000, 0x2000, 0x6000, 7), 1), whole);
        assert_eq!(left(&range(0x12000, 0x2000, 0, 7), 1), parts);
        assert_eq!(left(&range(0x10000, 0x8000, 0x4000, 9), 1), []);
        assert_eq!(left(&range(0x18000, 0x1000, 0, 0), 1), whole);
    }
}

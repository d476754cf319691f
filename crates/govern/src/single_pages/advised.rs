//! A mapping that was advised MADV_RANDOM.

use filemap_attach::process::Readahead;
use filemap_attach::{FileId, MappedRange};

pub struct Advised {
    pub pid: u32,
    pub range: MappedRange,
    /// What it was advised before.
    pub was: Readahead,
}

impl Advised {
    /// Whether a part of `range` is one of the same file's.
    pub fn has(&self, range: &MappedRange) -> bool {
        let id = |range: &MappedRange| -> Option<FileId> { Some(range.file.as_ref()?.id) };
        id(&self.range) == id(range) && self.overlaps(range)
    }

    /// Whether `map`, which process `pid` has now, is in place of it or of a part of it.
    pub fn is_cut_by(&self, pid: u32, map: &MappedRange) -> bool {
        self.pid == pid && self.overlaps(map) && !self.goes_on_as(map)
    }

    /// What is left of it.
    pub fn without(self, pid: u32, map: &MappedRange) -> Vec<Advised> {
        if !self.is_cut_by(pid, map) {
            return vec![self];
        }
        let Advised { range, was, .. } = self;
        let parts = [range.part(range.address, map.address), range.part(map.end(), range.end())];
        parts.into_iter().flatten().map(|range| Advised { pid, range, was }).collect()
    }

    /// Whether it is a part of the same mapping that has another protection.
    fn goes_on_as(&self, map: &MappedRange) -> bool {
        let start = |of: &MappedRange| of.offset_bytes.wrapping_sub(of.address);
        self.has(map) && start(&self.range) == start(map)
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
    fn what_is_mapped_in_its_place_is_cut_out() {
        let left = |map: &MappedRange, pid: u32| {
            let range = range(0x10000, 0x8000, 0x4000, 7);
            let of = Advised { pid: 1, range, was: Readahead::Normal };
            let left = of.without(pid, map).into_iter();
            left.map(|of| (of.range.address, of.range.end(), of.range.offset_bytes))
                .collect::<Vec<_>>()
        };
        let whole = vec![(0x10000, 0x18000, 0x4000)];
        let memory = range(0x12000, 0x2000, 0, 0);
        let parts = vec![(0x10000, 0x12000, 0x4000), (0x14000, 0x18000, 0x8000)];
        assert_eq!(left(&memory, 1), parts);
        assert_eq!(left(&memory, 2), whole);
        // Another protection of a part is no other mapping; another part of the file is.
        assert_eq!(left(&range(0x12000, 0x2000, 0x6000, 7), 1), whole);
        assert_eq!(left(&range(0x12000, 0x2000, 0, 7), 1), parts);
        assert_eq!(left(&range(0x10000, 0x8000, 0x4000, 9), 1), []);
        assert_eq!(left(&range(0x18000, 0x1000, 0, 0), 1), whole);
    }
}

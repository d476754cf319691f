//! Rules that say which mappings of a file get which advice.

use std::path::{Path, PathBuf};

use filemap_attach::process::ReadaheadMode;
use filemap_attach::{MappedRange, MemoryAdvice};
use filemap_kernel::storage::layer_file;

/// A byte range of a file.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
#[allow(missing_docs, reason = "their names say it")]
pub struct FileExtent {
    pub offset_bytes: u64,
    pub length_bytes: u64,
}

/// Advice for the mappings of one file.
#[derive(Clone, Debug, PartialEq, Eq)]
#[allow(missing_docs, reason = "their names say it")]
pub struct AdviceRule {
    pub advice: MemoryAdvice,
    /// Limits the rule to mappings of exactly this range; `None` matches every mapping of the file.
    pub mapping: Option<FileExtent>,
    /// The range of the file to advise; `None` advises all of each mapping.
    pub part: Option<FileExtent>,
    /// The path of the file as the kernel reports it: absolute, symbolic links resolved.
    pub path: PathBuf,
    /// The program advises these mappings itself; the rule is applied again whenever it does.
    pub overrides_program: bool,
}

impl AdviceRule {
    /// The part of `range` to advise; `None` if the rule does not match it.
    pub fn advised_part(&self, range: &MappedRange) -> Option<MappedRange> {
        let file = range.file.as_ref().filter(|file| self.matches(&file.path))?;
        let whole =
            FileExtent { offset_bytes: range.offset_bytes, length_bytes: range.length_bytes };
        if self.mapping.is_some_and(|own| own != whole) {
            return None;
        }
        let FileExtent { offset_bytes, length_bytes } = self.part.unwrap_or(whole);
        let first = offset_bytes.max(whole.offset_bytes);
        let end = offset_bytes.saturating_add(length_bytes);
        let end = end.min(whole.offset_bytes.saturating_add(whole.length_bytes));
        (first < end).then(|| MappedRange {
            address: range.address + (first - whole.offset_bytes),
            length_bytes: end - first,
            offset_bytes: first,
            file: Some(file.clone()),
            ..range.clone()
        })
    }

    /// Whether `path` of a mapped file is the rule's, or the path in an overlay of the rule's file,
    /// which is the one in the layer.
    fn matches(&self, path: &Path) -> bool {
        path == self.path
            || path.file_name() == self.path.file_name()
                && layer_file(path).is_some_and(|layer| layer == self.path)
    }

    /// The readahead mode that the advice sets on the VMA; `None` for advice that takes effect once
    /// and leaves no flag.
    pub fn readahead_mode(&self) -> Option<ReadaheadMode> {
        match self.advice {
            MemoryAdvice::Normal => Some(ReadaheadMode::Normal),
            MemoryAdvice::Random => Some(ReadaheadMode::Random),
            MemoryAdvice::Sequential => Some(ReadaheadMode::Sequential),
            MemoryAdvice::WillNeed | MemoryAdvice::PopulateRead | MemoryAdvice::PageOut => None,
        }
    }
}

#[cfg(test)]
mod tests {
    use filemap_attach::{FileId, MappedFile};

    use super::*;

    #[test]
    fn advises_mapped_part() {
        let id = FileId { major: 8, minor: 1, inode: 7 };
        let range = MappedRange {
            address: 0x10000,
            length_bytes: 0x8000,
            offset_bytes: 0x4000,
            file: Some(MappedFile { id, path: "/a".into() }),
            protection: 1,
            is_shared: true,
        };
        let rule = |mapping: Option<(u64, u64)>, part: Option<(u64, u64)>, path: &str| {
            let extent = |(offset_bytes, length_bytes)| FileExtent { offset_bytes, length_bytes };
            let (mapping, part) = (mapping.map(extent), part.map(extent));
            AdviceRule {
                advice: MemoryAdvice::Random,
                mapping,
                part,
                path: path.into(),
                overrides_program: false,
            }
        };
        let advised = |rule: AdviceRule| {
            let found = rule.advised_part(&range)?;
            assert_eq!(found.address - found.offset_bytes, 0x10000 - 0x4000);
            Some((found.address, found.length_bytes))
        };
        let whole = Some((0x10000, 0x8000));
        assert_eq!(advised(rule(None, None, "/a")), whole);
        assert_eq!(advised(rule(Some((0x4000, 0x8000)), None, "/a")), whole);
        assert_eq!(advised(rule(Some((0x4000, 0x7000)), None, "/a")), None);
        assert_eq!(advised(rule(None, None, "/b")), None);
        assert_eq!(advised(rule(None, Some((0, 0x6000)), "/a")), Some((0x10000, 0x2000)));
        assert_eq!(advised(rule(None, Some((0x5000, u64::MAX)), "/a")), Some((0x11000, 0x7000)));
        assert_eq!(advised(rule(None, Some((0xc000, 0x1000)), "/a")), None);
    }
}

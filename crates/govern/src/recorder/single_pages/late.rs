//! Mappings whose pages came together with others, so that touches of these may be missing.

use std::path::PathBuf;

use filemap_attach::MappedRange;
use filemap_kernel::page_size;

/// Such mappings, with their pages.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct LateMappings {
    /// Their number.
    pub mappings: u64,
    /// Maximum number of pages whose touches may be missing.
    pub pages: u64,
    /// The same by file.
    pub files: Vec<(PathBuf, u64)>,
}

impl LateMappings {
    /// Adds a mapping of which the touches of `pages` may be missing.
    pub fn add(&mut self, range: &MappedRange, pages: u64) {
        self.mappings += 1;
        self.pages = self.pages.saturating_add(pages);
        let Some(file) = &range.file else { return };
        match self.files.iter_mut().find(|(path, _)| *path == file.path) {
            Some((_, known)) => *known = known.saturating_add(pages),
            None => self.files.push((file.path.clone(), pages)),
        }
    }

    /// Adds a mapping of which it is not known which pages were touched.
    pub fn add_all(&mut self, range: &MappedRange) {
        self.add(range, range.length_bytes.div_ceil(page_size()));
    }
}

//! Mappings whose pages came together with others, so that touches of these may be missing.

use std::fs::File;
use std::io::Read;
use std::path::{Path, PathBuf};

use filemap_attach::MappedRange;
use filemap_job::file_contents::{FIRST_BYTES, FileContents};
use filemap_kernel::page_size;

/// Such mappings, by file.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct LateMappings {
    /// The files.
    pub files: Vec<LateFile>,
}

/// Such mappings of one file.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct LateFile {
    /// Its path.
    pub path: PathBuf,
    /// Number of mappings.
    mappings: u64,
    /// Maximum number of pages whose touches may be missing.
    pub pages: u64,
}

impl LateMappings {
    /// Adds a mapping whose touches of `pages` may be missing.
    pub fn add(&mut self, range: &MappedRange, pages: u64) {
        let Some(file) = &range.file else { return };
        match self.files.iter_mut().find(|known| known.path == file.path) {
            Some(known) => {
                known.pages = known.pages.saturating_add(pages);
                known.mappings += 1;
            }
            None => self.files.push(LateFile { path: file.path.clone(), mappings: 1, pages }),
        }
    }

    /// Adds a mapping whose every page may have been touched.
    pub fn add_all(&mut self, range: &MappedRange) {
        self.add(range, range.length_bytes.div_ceil(page_size()));
    }

    /// Maximum number of pages whose touches may be missing: at least one for each mapping.
    pub fn pages(&self) -> u64 {
        let pages = self.files.iter().map(|file| file.pages.max(file.mappings));
        pages.fold(0, u64::saturating_add)
    }

    /// Without libraries, locales and the like.
    pub fn without_system_files(mut self) -> LateMappings {
        self.files.retain(|file| !is_of_system(&file.path));
        self
    }
}

/// Whether the file at `path` is a library, a locale or the like.
pub fn is_of_system(path: &Path) -> bool {
    let mut first = Vec::new();
    let file = File::open(path).map(|file| file.take(FIRST_BYTES as u64));
    // A file of another mount namespace is known by its name.
    let _ = file.and_then(|mut file| file.read_to_end(&mut first));
    FileContents::identify(&first, path).is_of_system()
}

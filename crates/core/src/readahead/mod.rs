//! Readahead: which windows are read, and in which folios.

pub mod bound;
pub mod forced;
pub mod layout;
pub mod marked;
pub mod miss;
pub mod on_demand;
pub mod rent;
pub mod search;
mod state;
mod stream;
pub mod sync;
pub mod window_size;

use crate::cache::FolioRun;
use crate::rules::{Arch, Rules};
use crate::units::{Order, PageCount, PageIndex};

pub use self::state::{ReadaheadState, Request, Window};

/// The properties of machine and file that limit readahead and fault-around.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Limits {
    /// The kernel's rules.
    pub rules: Rules,
    /// The architecture.
    pub arch: Arch,
    /// Readahead size.
    pub ra_pages: PageCount,
    /// The device's optimal I/O size.
    pub io_pages: PageCount,
    /// Fault-around size: a power of two; 1 is off.
    pub fault_around: PageCount,
    /// Largest folio of the filesystem; `None` if it only has base pages.
    pub max_folio: Option<Order>,
    /// Smallest folio of the file: one filesystem block.
    pub min_folio: Order,
    /// Pages of the file, the last partial one included: at least 1.
    pub file_pages: PageCount,
}

impl Limits {
    /// The last page of the file.
    pub fn last_page(&self) -> PageIndex {
        PageIndex(self.file_pages.0 - 1)
    }

    /// The folio that is read if `index` is read on its own: of the smallest order, naturally
    /// aligned.
    ///
    /// Mirrors `__filemap_get_folio` and `filemap_create_folio`, 6.12 and 6.18.
    /// Test: `tests/blocks.rs`.
    pub fn smallest_folio(&self, index: PageIndex) -> FolioRun {
        let order = self.min_folio;
        FolioRun { start: index.align_down(order), order, folios: 1, marked: None }
    }

    /// The largest window for a request of `req` pages: mirrors `ractl_max_pages`, 6.12 and 6.18.
    /// Test: `tests/on_demand.rs`.
    pub fn max_window(&self, req: PageCount) -> PageCount {
        if req > self.ra_pages && self.io_pages > self.ra_pages {
            req.min(self.io_pages)
        } else {
            self.ra_pages
        }
    }
}

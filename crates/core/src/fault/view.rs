//! The state that faults use.

use crate::address::page_table::PageTables;
use crate::address::vma::Vma;
use crate::readahead::{Limits, ReadaheadState};

/// The state that a step of a fault uses. The caller owns it between steps.
#[derive(Debug)]
pub struct View<'a, C, L> {
    /// Bounds of readahead and fault-around.
    pub limits: &'a Limits,
    /// The VMA of the fault.
    pub vma: &'a Vma,
    /// Readahead state of the open file.
    pub ra: &'a mut ReadaheadState,
    /// Page tables of the process.
    pub tables: &'a mut PageTables,
    /// The page cache of the file and the page-table entries of this mapping.
    pub cache: &'a mut C,
    /// The decision log.
    pub log: &'a mut L,
}

//! What a fault looks at and changes.

use crate::address::page_table::PageTables;
use crate::address::vma::Vma;
use crate::readahead::{Limits, ReadaheadState};

/// What a step of a fault looks at and changes. The caller owns it between steps.
#[derive(Debug)]
pub struct View<'a, C, L> {
    /// Bounds of readahead and fault-around.
    pub limits: &'a Limits,
    /// The VMA that the fault lies in.
    pub vma: &'a Vma,
    /// Readahead state of the open file.
    pub ra: &'a mut ReadaheadState,
    /// Page tables of the process.
    pub tables: &'a mut PageTables,
    /// What is cached of the file, and the entries that map it there.
    pub cache: &'a mut C,
    /// Where decisions go.
    pub log: &'a mut L,
}

//! Address spaces: VMAs, page tables, and the reverse map.

pub mod advice;
pub mod entries;
pub mod mapping;
pub mod page_table;
mod pieces;
pub mod protection;
pub mod reverse_map;
pub mod vma;

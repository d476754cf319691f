//! What processes map: VMAs, page tables, and who maps a page of a file.

pub mod advice;
pub mod entries;
pub mod mapping;
pub mod page_table;
mod pieces;
pub mod protection;
pub mod reverse_map;
pub mod vma;

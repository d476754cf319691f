//! How far readahead started by a fault may go.

use super::Limits;
use crate::address::vma::Vma;
use crate::series::Switch;
use crate::units::{PageCount, PageIndex};

/// The first page that read-around may read: any, or with vma-bound the first of the VMA.
///
/// Mirrors `do_sync_mmap_readahead`, 6.12 and 6.18. Test: `tests/bound.rs`.
pub fn first(vma: &Vma, limits: &Limits) -> PageIndex {
    if limits.rules.series.has(Switch::VmaBound) { vma.pgoff } else { PageIndex(0) }
}

/// The last page that readahead started by a fault in `vma` may read: the last one of the file;
/// with vma-bound, of the VMA; with exec-unify, of an executable VMA.
///
/// Mirrors `page_cache_ra_order` and `do_page_cache_ra`, 6.12 and 6.18. Test: `tests/bound.rs`.
pub fn last(vma: &Vma, limits: &Limits) -> PageIndex {
    let series = limits.rules.series;
    let executable = vma.executable && limits.rules.executable_readahead;
    if series.has(Switch::VmaBound) || (executable && series.has(Switch::ExecUnify)) {
        limits.last_page().min(vma.end() - PageCount(1))
    } else {
        limits.last_page()
    }
}

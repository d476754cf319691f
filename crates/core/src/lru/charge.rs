//! Kernel memory charged to a memory cgroup.

use crate::cache::WORD_PAGES;
use crate::units::PageCount;

/// Bytes charged per node of the page-cache index: the node, and the pointer to its `obj_cgroup`.
pub const NODE_BYTES: u64 = 576 + 8;

/// Number of leaf nodes in the index, of which `used` hold a page. Nodes that `ever` held one stay
/// for their shadows, as long as there are at most an eighth as many as `cached` pages.
///
/// Mirrors `count_shadow_nodes`, 6.12 and 6.18. Test: `tests/charge.rs`.
pub fn nodes(used: u64, ever: u64, cached: PageCount) -> u64 {
    used + ever.saturating_sub(used).min(cached.0 / 8)
}

/// Pages charged for page tables, and for an index with `nodes` leaf nodes and one inner node per
/// 64 of them.
///
/// Mirrors `pte_alloc_one` and `obj_full_size`, 6.12 and 6.18. Test: `tests/charge.rs`.
pub fn kernel_pages(tables: PageCount, nodes: u64, page_size: u64) -> PageCount {
    let nodes = nodes + nodes.div_ceil(WORD_PAGES);
    tables + PageCount((nodes * NODE_BYTES).div_ceil(page_size))
}

//! What the kernel's own memory takes of a memory cgroup's limit.

use crate::cache::WORD_PAGES;
use crate::units::PageCount;

/// Bytes charged for one node of a page cache's index: the node, and the pointer to its owner.
pub const NODE_BYTES: u64 = 576 + 8;

/// Leaf nodes of the index that exist, of which `used` hold a page. Each of the `ever` that held
/// one stays while shadows are in it, as long as they are not more than an eighth of the `cached`
/// pages.
///
/// Mirrors `count_shadow_nodes`, 6.12 and 6.18. Test: `tests/charge.rs`.
pub fn nodes(used: u64, ever: u64, cached: PageCount) -> u64 {
    used + ever.saturating_sub(used).min(cached.0 / 8)
}

/// Pages charged for page-table pages and for an index with so many leaf nodes and a node above
/// each 64 of them.
///
/// Mirrors `pte_alloc_one` and `obj_full_size`, 6.12 and 6.18. Test: `tests/charge.rs`.
pub fn kernel_pages(tables: PageCount, nodes: u64, page_size: u64) -> PageCount {
    let nodes = nodes + nodes.div_ceil(WORD_PAGES);
    tables + PageCount((nodes * NODE_BYTES).div_ceil(page_size))
}

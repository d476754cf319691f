//! What a CPU keeps for itself, so that threads do not meet at every step.

use super::frame::Pfn;

/// A CPU's own counters and lists. A thread passes its own to each call.
#[derive(Default)]
pub struct Cpu {
    /// Pages that are mapped, as counters judge it: what this CPU added, and took away.
    pub mapped_pages: i64,
    /// Folios of which unmapping left a part, as far as counters can tell.
    pub left_in_part: u64,
    /// Free folios of one page.
    pub(super) free: Vec<Pfn>,
    /// New folios that are not on the LRU yet.
    pub(super) new: Vec<Pfn>,
    /// Folios with their mappings that are gone when the TLB has been flushed.
    pub(super) gathered: Vec<(Pfn, u32)>,
}

/// New folios that go to the LRU together (`PAGEVEC_SIZE`).
pub const NEW_FOLIOS: usize = 31;

/// Free folios of one page that a CPU takes together.
pub const FREE_FOLIOS: usize = 63;

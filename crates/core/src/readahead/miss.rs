//! The counter of misses that switches readahead off (`file_ra_state::mmap_miss`).

/// A fault reads no window while the counter is above this (`MMAP_LOTSAMISS`).
pub const THRESHOLD: u16 = 100;

/// The counter never rises above this (`10 * MMAP_LOTSAMISS`).
pub const CAP: u16 = 1000;

/// The counter after a miss that consults it: mirrors `do_sync_mmap_readahead`, 6.12 and 6.18.
/// Test: `tests/miss.rs`.
pub fn missed(mmap_miss: u16) -> u16 {
    if mmap_miss < CAP { mmap_miss + 1 } else { mmap_miss }
}

/// Whether a miss still reads a window.
pub fn reads_window(mmap_miss: u16) -> bool {
    mmap_miss <= THRESHOLD
}

/// The counter after `hits` hits: mirrors `filemap_map_pages` and `do_async_mmap_readahead`, 6.12
/// and 6.18. Test: `tests/miss.rs`.
pub fn credited(mmap_miss: u16, hits: u32) -> u16 {
    (u32::from(mmap_miss)).saturating_sub(hits) as u16
}

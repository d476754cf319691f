//! A task that has charged more than `memory.high` allows.

use filemap_core::lru::high::delay_ns;
use filemap_core::units::PageCount;

/// The delay for a batch is the square of the overage times 64 seconds, 2 seconds at most.
#[test]
fn the_delay_grows_with_the_square_of_the_overage() {
    let high = PageCount(262_144);
    let delay_ns = |over: u64, pages| delay_ns(high + PageCount(over), high, PageCount(pages));
    assert_eq!(delay_ns(0, 64), 0);
    // 1/64 of high: 64 s / 4096.
    assert_eq!(delay_ns(4096, 64), 15_625_000);
    assert_eq!(delay_ns(4096, 128), 31_250_000);
    assert_eq!(delay_ns(8192, 64), 62_500_000);
    assert_eq!(delay_ns(262_144, 64), 2_000_000_000);
}

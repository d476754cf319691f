//! Blocks that are larger than a page (`mapping_min_folio_order`): no folio is smaller.

use filemap_core::address::vma::Advice;
use filemap_core::decision::{Cause, Decision};
use filemap_core::readahead::layout::Layout;
use filemap_core::readahead::{Limits, ReadaheadState, Request, Window, forced};
use filemap_core::rules::Kernel::{self, V6_6, V6_12, V6_18};
use filemap_core::rules::Rules;
use filemap_core::series::Series;
use filemap_core::units::{Order, PageCount, PageIndex};

use crate::support::engine::{Engine, Io};
use crate::support::machine::{advised, stream, window, xfs};
use crate::support::map;

/// A file with blocks of 4 pages.
fn blocks(kernel: Kernel, pages: u64) -> Limits {
    Limits { min_folio: Order(2), ..xfs(kernel, PageCount(pages)) }
}

/// A window: start, size, pages after the mark, order, and the last page of the file.
type Asked = (u64, u64, u64, u8, u64);

#[track_caller]
fn check(kernel: Kernel, asked: Asked, base_pages: bool, before: &str, after: &str) {
    let (start, size, async_size, order, last) = asked;
    let mut engine = Engine::new(blocks(kernel, last + 1), Io::Waited, before);
    engine.ra = stream(start, size, async_size, order);
    engine.read_window(Window { base_pages, ..window(start, size, async_size, order, last) });
    map::assert_cache(&format!("{} {asked:?} in {before}", kernel.name()), &engine.cache, after);
}

#[test]
fn windows_are_block_aligned() {
    for kernel in [V6_12, V6_18] {
        check(kernel, (5, 7, 0, 0, 31), false, "32.", "4. (--)(--) 20.");
        // Also after the end of the file.
        check(kernel, (5, 7, 0, 0, 8), false, "32.", "4. (--)(--) 20.");
        // The window is too small for large folios.
        check(kernel, (6, 2, 0, 0, 31), false, "32.", "4. (--) 24.");
        // Larger folios where they fit, down to a block at the end.
        let order = if kernel == V6_12 { 2 } else { 4 };
        check(kernel, (6, 22, 0, order, 31), false, "32.", "4. (--)(6-)(6-)(--) 4.");
        // In the smallest folios only.
        check(kernel, (5, 6, 0, 0, 31), true, "32.", "4. (--)(--) 20.");
    }
}

#[test]
fn block_with_the_mark_is_marked() {
    for kernel in [V6_12, V6_18] {
        check(kernel, (5, 6, 2, 0, 31), false, "32.", "4. (--)<--> 20.");
        // Also if the window has no part after the mark, and ends inside a block.
        check(kernel, (5, 6, 0, 0, 31), false, "32.", "4. (--)<--> 20.");
        check(kernel, (5, 6, 4, 0, 31), false, "32.", "4. <-->(--) 20.");
        // In the smallest folios the mark is rounded up.
        check(kernel, (5, 6, 4, 0, 31), true, "32.", "4. (--)<--> 20.");
    }
    // A window of less than 4 pages is laid out so on 6.12.
    check(V6_12, (6, 3, 2, 0, 31), false, "32.", "4. (--)<--> 20.");
    check(V6_18, (6, 3, 2, 0, 31), false, "32.", "4. <-->(--) 20.");
}

#[test]
fn mark_before_remainder_is_rounded_up_before_6_18() {
    // One of three pages remains, and the mark precedes the last two: it is page 11.
    check(V6_12, (12, 3, 2, 0, 12), true, "32.", "12. <--> 16.");
    check(V6_18, (12, 3, 2, 0, 12), true, "32.", "12. (--) 16.");
    // In a file of one page the mark would be page -1.
    check(V6_12, (0, 3, 2, 0, 0), true, "32.", "<--> 28.");
    check(V6_18, (0, 3, 2, 0, 0), true, "32.", "(--) 28.");
}

#[test]
fn pages_after_cached_block_are_read_unless_window_began_in_it_since_6_18() {
    for kernel in [V6_12, V6_18] {
        check(kernel, (4, 8, 0, 0, 31), false, "4. [--] 24.", "4. [--](--) 20.");
    }
    check(V6_12, (5, 6, 0, 0, 31), false, "4. [--] 24.", "4. [--](--) 20.");
    // The kernel counts what was laid out from page 5 on from page 4, and unsigned.
    check(V6_18, (5, 6, 0, 0, 31), false, "4. [--] 24.", "4. [--] 24.");
}

#[test]
fn forced_chunks_begin_at_block_end() {
    let mut limits = blocks(V6_18, 4096);
    limits.io_pages = PageCount(2048);
    let (index, pages) = (PageIndex(10), PageCount(1200));
    let request = Request { cause: Cause::WillNeed, index, pages, last: limits.last_page() };
    let (mut ra, mut log) = (ReadaheadState::NEW, Vec::new());
    let window = forced::window(request, &limits);
    let mut layout = Layout::new(&window, &limits, &mut ra, &mut log);
    let cache = map::cache("4096.");
    let mut added = Vec::new();
    while let Some(run) = layout.next(&cache, &mut log) {
        assert_eq!(run.order, Order(2));
        added.push((run.start.0, run.end().0));
    }
    assert_eq!(added, [(8, 524), (524, 1036), (1036, 1212)]);
    let chunk = |decision: &Decision| match decision {
        Decision::BasePages { start, size, .. } => Some((start.0, size.0)),
        _ => None,
    };
    let chunks: Vec<_> = log.iter().filter_map(chunk).collect();
    assert_eq!(chunks, [(10, 512), (524, 512), (1036, 176)]);
}

#[test]
fn single_page_is_read_with_its_block() {
    for kernel in [V6_12, V6_18] {
        let mut engine = Engine::new(blocks(kernel, 64), Io::Waited, "64.");
        engine.vma = advised(Advice::RANDOM, engine.vma);
        engine.touch(7);
        map::assert_cache(kernel.name(), &engine.cache, "4. [--] 56.");
    }
}

#[test]
fn read_requests_whole_blocks_since_6_18() {
    for (kernel, window) in [(V6_12, "stream:5+2-1 "), (V6_18, "stream:5+8-5")] {
        let mut engine = Engine::new(blocks(kernel, 64), Io::Immediate, "64.");
        engine.ra.previous_end = Some(5 * 4096);
        engine.read(5, 1);
        let course = engine.course();
        assert!(course.starts_with(window), "{} {course}", kernel.name());
    }
}

#[test]
fn xfs_supports_large_blocks_since_6_12() {
    let has = |kernel| Rules::new(kernel, Series::BASELINE).xfs_large_blocks;
    assert_eq!([V6_6, V6_12, V6_18].map(has), [false, true, true]);
}

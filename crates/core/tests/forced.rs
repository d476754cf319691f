//! Forced readahead: requests of a program, in chunks, without a mark.

use crate::support::machine::limits;
use crate::support::map;
use filemap_core::decision::{Cause, Decision};
use filemap_core::readahead::layout::Layout;
use filemap_core::readahead::{ReadaheadState, Request, forced, on_demand};
use filemap_core::rules::Kernel;
use filemap_core::units::{PageCount, PageIndex};

#[test]
fn forced_read_is_bounded_by_larger_of_readahead_and_io_size() {
    for (asked, ra, io, expected) in
        [(10, 32, 64, 10), (100, 32, 64, 64), (100, 128, 64, 100), (200, 128, 64, 128)]
    {
        let mut limits = limits(Kernel::V6_18, PageCount(4096));
        (limits.ra_pages, limits.io_pages) = (PageCount(ra), PageCount(io));
        let request = Request {
            cause: Cause::WillNeed,
            index: PageIndex(7),
            pages: PageCount(asked),
            last: limits.last_page(),
        };
        let window = forced::window(request, &limits);
        assert_eq!((window.start, window.size), (PageIndex(7), PageCount(expected)));
        assert_eq!((window.async_size, window.base_pages), (PageCount(0), true));
    }
}

#[test]
fn forced_read_has_chunks_of_2_mib_around_cached_pages() {
    let mut limits = limits(Kernel::V6_18, PageCount(4096));
    limits.io_pages = PageCount(2048);
    let request = Request {
        cause: Cause::WillNeed,
        index: PageIndex(10),
        pages: PageCount(1200),
        last: limits.last_page(),
    };
    let (mut ra, mut log) = (ReadaheadState::NEW, Vec::new());
    let window = forced::window(request, &limits);
    let mut layout = Layout::new(&window, &limits, &mut ra, &mut log);
    let cache = map::cache("600. 8# 3488.");
    let mut added = Vec::new();
    while let Some(run) = layout.next(&cache, &mut log) {
        assert_eq!(run.marked, None);
        added.push((run.start.0, run.end().0));
    }
    assert_eq!(added, [(10, 522), (522, 600), (608, 1034), (1034, 1210)]);
    let chunk = |decision: &Decision| match decision {
        Decision::BasePages { start, size, .. } => Some((start.0, size.0)),
        _ => None,
    };
    let chunks: Vec<_> = log.iter().filter_map(chunk).collect();
    assert_eq!(chunks, [(10, 512), (522, 512), (1034, 176)]);
    assert_eq!(ra, ReadaheadState::NEW, "the stream stays as it was");
}

#[test]
fn miss_of_file_advised_random_reads_the_request() {
    let limits = limits(Kernel::V6_18, PageCount(4096));
    let before = ReadaheadState { is_random: true, ..ReadaheadState::NEW };
    for (cause, expected) in
        [(Cause::ReadStream, Cause::ReadForced), (Cause::SequentialFault, Cause::SequentialForced)]
    {
        let mut ra = before;
        let (index, pages) = (PageIndex(0), PageCount(4));
        let request = Request { cause, index, pages, last: limits.last_page() };
        let window = on_demand::on_miss(request, &limits, &mut ra, &map::cache("4096."));
        assert_eq!((window.cause, window.size), (expected, PageCount(4)));
        assert_eq!(ra, before);
    }
}

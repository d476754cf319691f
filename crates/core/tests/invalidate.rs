//! POSIX_FADV_DONTNEED: which pages it covers, and which stay.

use filemap_core::cache::Folio;
use filemap_core::lru::invalidate::{is_dropped, range};
use filemap_core::units::{Order, PageIndex};

#[test]
fn partial_pages_stay_except_at_file_end() {
    let file = 10 * 4096 + 100;
    for (offset, len, expected) in [
        (0, None, (0, 11)),
        (1, None, (1, 11)),
        (4096, None, (1, 11)),
        (0, Some(4096), (0, 1)),
        (0, Some(4097), (0, 1)),
        (0, Some(4095), (0, 0)),
        (1, Some(4096), (1, 1)),
        (4095, Some(8193), (1, 3)),
        // Up to the last byte of the file: the last page is dropped too.
        (0, Some(file), (0, 11)),
        (10 * 4096, Some(100), (10, 11)),
        (10 * 4096, Some(99), (10, 10)),
        (10 * 4096 + 1, Some(99), (11, 11)),
    ] {
        let (from, end) = range(offset, len, file, 4096);
        assert_eq!((from.0, end.0), expected, "{offset} {len:?}");
    }
}

#[test]
fn folio_is_dropped_whole_or_kept() {
    let folio = Folio { head: PageIndex(8), order: Order(2), locked: false, marked: true };
    for (from, end, goes) in
        [(8, 12, true), (0, 64, true), (9, 12, false), (8, 11, false), (12, 20, false)]
    {
        assert_eq!(
            is_dropped(folio, PageIndex(from), PageIndex(end), false),
            goes,
            "{from}..{end}"
        );
        assert!(!is_dropped(folio, PageIndex(from), PageIndex(end), true), "it is mapped");
        let locked = Folio { locked: true, ..folio };
        assert!(!is_dropped(locked, PageIndex(from), PageIndex(end), false), "it is being read");
    }
}

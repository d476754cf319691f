//! Kernel memory charged to a limit.

use filemap_core::address::page_table::PageTables;
use filemap_core::lru::charge::{kernel_pages, nodes};
use filemap_core::units::{PageCount, Vpn};

#[test]
fn shadow_nodes_are_kept_up_to_an_eighth_of_the_cache() {
    assert_eq!(nodes(0, 0, PageCount(0)), 0);
    // The nodes that stay, of all nodes that ever had a page; 3 nodes hold 160 cached pages.
    for (ever, kept) in [(3, 3), (10, 10), (23, 23), (24, 23), (1000, 23)] {
        assert_eq!(nodes(3, ever, PageCount(160)), kept, "3 of {ever}");
    }
}

#[test]
fn nodes_and_page_tables_are_charged() {
    let cases = [
        // Page-table pages, leaf nodes, page size: pages.
        (0, 0, 4096, 0),
        (3, 0, 4096, 3),
        // With one node above: 1168 bytes.
        (0, 1, 4096, 1),
        // 8 with the one above: 4672 bytes.
        (2, 7, 4096, 4),
        // 4 GiB of 4 KiB pages: 256 nodes above 16384.
        (2053, 16384, 4096, 2053 + 2373),
        (2053, 16384, 65536, 2053 + 149),
    ];
    for (tables, nodes, page_size, pages) in cases {
        let charged = kernel_pages(PageCount(tables), nodes, page_size);
        assert_eq!(charged, PageCount(pages), "{tables} tables, {nodes} nodes");
    }
}

#[test]
fn page_tables_have_two_levels_above_them() {
    let mut tables = PageTables::default();
    let mut pages_after = |vpn| {
        tables.install(Vpn(vpn), 512);
        tables.pages().0
    };
    assert_eq!(pages_after(0), 3, "the first brings its two");
    assert_eq!(pages_after(511), 3, "the same page-table page");
    assert_eq!(pages_after(512), 4);
    assert_eq!(pages_after(512 * 512), 6, "the next GiB has a page of its own above");
    assert_eq!(pages_after(512 * 512 * 512), 9);
}

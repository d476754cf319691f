//! One page cache for several files: lists and clock are shared, indexes and entries are not.

use filemap_core::address::entries::{Layer, MappedFile};
use filemap_core::address::mapping::FileMapping;
use filemap_core::address::reverse_map::ReverseMap;
use filemap_core::cache::{FileCache, FolioRun};
use filemap_core::decision::{Decision, Log};
use filemap_core::lru::lists::{LruLists, Scan};
use filemap_core::page_cache::PageCache;
use filemap_core::plain::PlainCache;
use filemap_core::units::{FileId, Order, PageCount, PageIndex};

use crate::support::machine::part;

const FIRST: FileId = FileId::FIRST;
const SECOND: FileId = FileId::new(1);

/// Evictions with their files.
#[derive(Default)]
struct Evictions(FileId, Vec<(usize, u64, u64)>);

impl Log for Evictions {
    fn record(&mut self, decision: Decision) {
        if let Decision::Evicted { start, pages } = decision {
            self.1.push((self.0.number(), start.0, pages.0));
        }
    }

    fn about(&mut self, file: FileId) {
        self.0 = file;
    }
}

fn add(cache: &mut PlainCache, file: FileId, start: u64, pages: u64) {
    let start = PageIndex(start);
    cache.add(file, FolioRun { start, order: Order(0), folios: pages, marked: None });
    cache.unlock(file, start, PageCount(pages));
}

/// Pages 0 to 3 of the first file, then 4 to 7 of the second.
fn two_files() -> (PlainCache, ReverseMap) {
    let mut cache = PlainCache::new(None);
    add(&mut cache, FIRST, 0, 4);
    add(&mut cache, SECOND, 4, 4);
    let mut mappings = ReverseMap::new(2);
    for file in [FIRST, SECOND] {
        mappings.file_mut(file).insert(FileMapping::new(part(0, 8), None));
    }
    (cache, mappings)
}

#[test]
fn each_file_has_its_own_index() {
    let (mut cache, _) = two_files();
    let has =
        |cache: &mut PlainCache, file, page| cache.file(file).folio(PageIndex(page)).is_some();
    assert!(has(&mut cache, FIRST, 3) && !has(&mut cache, FIRST, 4));
    assert!(!has(&mut cache, SECOND, 3) && has(&mut cache, SECOND, 4));
    let all = (PageIndex(0), PageIndex(100));
    assert_eq!(cache.file(FIRST).cached(all.0, all.1), PageCount(4));
    assert_eq!(cache.file(SECOND).next_present(all.0, all.1), PageIndex(4));
    assert_eq!(cache.inactive(), PageCount(8));
}

#[test]
fn files_leave_lists_in_insertion_order() {
    let (mut cache, mappings) = two_files();
    let mut log = Evictions::default();
    cache.shrink(Scan::until(PageCount(6)), &mappings, &mut log);
    assert_eq!(log.1, [(0, 0, 4), (1, 4, 2)]);
}

#[test]
fn entry_of_one_file_does_not_protect_another() {
    let (mut cache, mappings) = two_files();
    cache.mapped(SECOND, Layer::FIRST).map(0, 1 << 5, 1 << 5);
    assert!(!cache.mapped(FIRST, Layer::FIRST).touch(PageIndex(5)));
    let mut log = Evictions::default();
    let shrunk = cache.shrink(Scan::until(PageCount(8)), &mappings, &mut log);
    assert_eq!((shrunk.evicted, shrunk.kept), (PageCount(7), PageCount(1)));
    assert_eq!(log.1, [(0, 0, 4), (1, 4, 1), (1, 6, 2)]);
}

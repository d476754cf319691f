//! The page cache of one file that is mapped once.

use std::cell::RefCell;

use filemap_core::address::entries::{Layer, MappedFile, UnmappedPages, WordPages};
use filemap_core::address::mapping::FileMapping;
use filemap_core::address::reverse_map::ReverseMap;
use filemap_core::cache::{FileCache, Folio, FolioRun};
use filemap_core::decision::Log;
use filemap_core::lru::lists::{LruLists, Scan, ShrinkStats};
use filemap_core::lru::statistics::LruvecStats;
use filemap_core::page_cache::PageCache;
use filemap_core::plain::PlainCache;
use filemap_core::units::{FileId, PageCount, PageIndex};

/// A page cache with only its first file and layer.
#[derive(Debug, Default)]
pub struct OneFile(RefCell<PlainCache>);

impl OneFile {
    pub fn add(&mut self, run: FolioRun) {
        self.0.get_mut().add(FileId::FIRST, run);
    }

    pub fn unlock(&mut self, start: PageIndex, pages: PageCount) {
        self.0.get_mut().unlock(FileId::FIRST, start, pages);
    }
}

/// The mappings of one file, as reclaim sees them.
pub fn mapped(mapping: FileMapping) -> ReverseMap {
    let mut mappings = ReverseMap::new(1);
    mappings.file_mut(FileId::FIRST).insert(mapping);
    mappings
}

impl FileCache for OneFile {
    fn folio(&self, index: PageIndex) -> Option<Folio> {
        self.0.borrow_mut().file(FileId::FIRST).folio(index)
    }

    fn next_absent(&self, from: PageIndex, end: PageIndex) -> PageIndex {
        self.0.borrow_mut().file(FileId::FIRST).next_absent(from, end)
    }

    fn next_present(&self, from: PageIndex, end: PageIndex) -> PageIndex {
        self.0.borrow_mut().file(FileId::FIRST).next_present(from, end)
    }

    fn previous_absent(&self, last: PageIndex, floor: PageIndex) -> Option<PageIndex> {
        self.0.borrow_mut().file(FileId::FIRST).previous_absent(last, floor)
    }

    fn cached(&self, from: PageIndex, end: PageIndex) -> PageCount {
        self.0.borrow_mut().file(FileId::FIRST).cached(from, end)
    }

    fn clear_mark(&mut self, index: PageIndex) {
        self.0.get_mut().file(FileId::FIRST).clear_mark(index);
    }

    fn set_referenced(&mut self, index: PageIndex) {
        self.0.get_mut().file(FileId::FIRST).set_referenced(index);
    }

    fn mark_accessed(&mut self, index: PageIndex) {
        self.0.get_mut().file(FileId::FIRST).mark_accessed(index);
    }
}

impl MappedFile for OneFile {
    fn pages(&self, word: u64, mask: u64) -> WordPages {
        self.0.borrow_mut().mapped(FileId::FIRST, Layer::FIRST).pages(word, mask)
    }

    fn map(&mut self, word: u64, mask: u64, young: u64) {
        self.0.get_mut().mapped(FileId::FIRST, Layer::FIRST).map(word, mask, young);
    }

    fn touch(&mut self, index: PageIndex) -> bool {
        self.0.get_mut().mapped(FileId::FIRST, Layer::FIRST).touch(index)
    }

    fn make_old(&mut self, word: u64, mask: u64) -> u64 {
        self.0.get_mut().mapped(FileId::FIRST, Layer::FIRST).make_old(word, mask)
    }

    fn copy(&mut self, index: PageIndex) -> bool {
        self.0.get_mut().mapped(FileId::FIRST, Layer::FIRST).copy(index)
    }

    fn words_with_entries(&self, from: PageIndex, end: PageIndex) -> Vec<u64> {
        self.0.borrow_mut().mapped(FileId::FIRST, Layer::FIRST).words_with_entries(from, end)
    }

    fn unmap(&mut self, word: u64, mask: u64) -> UnmappedPages {
        self.0.get_mut().mapped(FileId::FIRST, Layer::FIRST).unmap(word, mask)
    }
}

impl LruLists for OneFile {
    fn inactive(&self) -> PageCount {
        self.0.borrow().inactive()
    }

    fn active(&self) -> PageCount {
        self.0.borrow().active()
    }

    fn lruvec_stats(&self) -> LruvecStats {
        self.0.borrow().lruvec_stats()
    }

    fn lruvec_stats_mut(&mut self) -> &mut LruvecStats {
        self.0.get_mut().lruvec_stats_mut()
    }

    fn age(&mut self, pages: PageCount, mappings: &ReverseMap) {
        self.0.get_mut().age(pages, mappings);
    }

    fn shrink(&mut self, scan: Scan, mappings: &ReverseMap, log: &mut impl Log) -> ShrinkStats {
        self.0.get_mut().shrink(scan, mappings, log)
    }
}

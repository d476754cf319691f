//! The [`PageCache`] implementation.

use filemap_core::address::entries::{Layer, MappedFile};
use filemap_core::address::reverse_map::ReverseMap;
use filemap_core::cache::{FileCache, Folio, FolioRun};
use filemap_core::decision::Log;
use filemap_core::lru::lists::{LruLists, Scan, ShrinkStats};
use filemap_core::lru::statistics::LruvecStats;
use filemap_core::page_cache::PageCache;
use filemap_core::units::{FileId, PageCount, PageIndex};

use super::Extents;
use super::file::{ExtentFile, first_page};

impl<const W: usize> LruLists for Extents<W> {
    fn inactive(&self) -> PageCount {
        PageCount(self.inactive.pages)
    }

    fn active(&self) -> PageCount {
        PageCount(self.active.pages)
    }

    fn lruvec_stats(&self) -> LruvecStats {
        self.known
    }

    fn lruvec_stats_mut(&mut self) -> &mut LruvecStats {
        &mut self.known
    }

    fn age(&mut self, pages: PageCount, mappings: &ReverseMap) {
        self.age_active(pages.0, mappings);
    }

    fn shrink(&mut self, scan: Scan, mappings: &ReverseMap, log: &mut impl Log) -> ShrinkStats {
        if scan.counts_unmapped {
            self.shrink_inactive::<true>(scan, mappings, log)
        } else {
            self.shrink_inactive::<false>(scan, mappings, log)
        }
    }
}

impl<const W: usize> PageCache for Extents<W> {
    fn held_bytes(&self) -> u64 {
        let lists = self.inactive.held_bytes() + self.active.held_bytes();
        let retired = (self.retired.len() * size_of::<(u64, u64)>()) as u64;
        self.chunks.held_bytes()
            + lists
            + self.shadows.held_bytes()
            + self.paged_out.held_bytes()
            + retired
    }

    fn file(&mut self, file: FileId) -> impl FileCache {
        ExtentFile::new(self, file, Layer::FIRST)
    }

    fn mapped(&mut self, file: FileId, layer: Layer) -> impl MappedFile {
        ExtentFile::new(self, file, layer)
    }

    #[inline(always)]
    fn add(&mut self, file: FileId, run: FolioRun) {
        let first = first_page(file);
        let (start, end) = (first + run.start.0, first + run.end().0);
        self.locked.insert(start, end);
        self.add_folios(start, end, run.order);
        if let Some(marked) = run.marked {
            let head = first + marked.0;
            self.set_range(head, head + run.order.pages(), |flags, mask| flags.marked |= mask);
        }
    }

    fn lock(&mut self, file: FileId, start: PageIndex, pages: PageCount) {
        let from = first_page(file) + start.0;
        self.locked.insert(from, from + pages.0);
    }

    fn unlock(&mut self, file: FileId, start: PageIndex, pages: PageCount) {
        let from = first_page(file) + start.0;
        self.locked.remove(from, from + pages.0);
    }

    fn invalidate(
        &mut self,
        file: FileId,
        from: PageIndex,
        end: PageIndex,
        log: &mut impl Log,
    ) -> PageCount {
        self.invalidate_pages(file, from, end, log)
    }

    fn mapped_in(
        &mut self,
        file: FileId,
        from: PageIndex,
        end: PageIndex,
    ) -> Vec<(Layer, PageCount)> {
        let first = first_page(file);
        self.mapped_layers(first + from.0, first + end.0)
    }

    fn split(&mut self, file: FileId, folio: Folio, reversed: bool) {
        self.split_folio(file, folio, reversed);
    }

    fn deactivate(&mut self, file: FileId, folios: &[Folio]) {
        self.deactivate_folios(file, folios);
    }

    fn page_out(&mut self, file: FileId, folios: &[Folio], of_machine: bool, log: &mut impl Log) {
        self.page_out_folios(file, folios, of_machine, log);
    }

    fn nodes(&self) -> u64 {
        self.nodes
    }
}

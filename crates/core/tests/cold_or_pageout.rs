//! MADV_COLD and MADV_PAGEOUT: which folios are given up, split or skipped.

use filemap_core::address::entries::{Layer, MappedFile};
use filemap_core::address::mapping::FileMapping;
use filemap_core::address::page_table::PageTables;
use filemap_core::address::reverse_map::ReverseMap;
use filemap_core::address::vma::Vma;
use filemap_core::cache::{FileCache, Folio, FolioRun, by_word};
use filemap_core::cold_or_pageout::{
    AdvisedAction, AdvisedRange, FolioUsers, MappedFolio, advised_action,
};
use filemap_core::decision::Decision;
use filemap_core::lru::lists::{LruLists, Scan};
use filemap_core::lru::reclaim::FolioVerdict;
use filemap_core::page_cache::PageCache;
use filemap_core::plain::PlainCache;
use filemap_core::readahead::Limits;
use filemap_core::rules::AdvisedFolios::{
    self, KeepByEntries, KeepByProcesses, SplitByFirstPage, SplitByPage,
};
use filemap_core::rules::Kernel::{self, V6_1, V6_12, V6_18};
use filemap_core::units::{FileId, Order, PageCount, PageIndex};

use crate::support::machine::{part, small_tables, xfs};

const FILE: FileId = FileId::FIRST;
const RULES: [AdvisedFolios; 4] = [SplitByPage, SplitByFirstPage, KeepByEntries, KeepByProcesses];

fn folio(head: u64, order: u8) -> Folio {
    Folio { head: PageIndex(head), order: Order(order), locked: false, marked: false }
}

/// The action of each rule, in order, for a folio of `order` with `entries` entries in the range.
fn fates(order: u8, entries: u64, is_huge: bool, users: FolioUsers) -> [AdvisedAction; 4] {
    let met = MappedFolio { folio: folio(0, order), entries: PageCount(entries), is_huge };
    RULES.map(|rule| advised_action(&met, &users, rule))
}

/// A folio that one VMA maps with this many entries.
fn alone(entries: u64) -> FolioUsers {
    FolioUsers {
        entries: PageCount(entries),
        first_page_vmas: 1,
        page_vmas: 1,
        has_other_process: false,
    }
}

#[test]
fn base_page_is_given_up_if_mapped_once() {
    assert_eq!(fates(0, 1, false, alone(1)), [AdvisedAction::Apply; 4]);
    let twice = FolioUsers {
        entries: PageCount(2),
        first_page_vmas: 2,
        page_vmas: 2,
        has_other_process: false,
    };
    assert_eq!(fates(0, 1, false, twice), [AdvisedAction::Keep; 4]);
}

#[test]
fn partly_advised_large_folio_is_split() {
    use AdvisedAction::{Apply, Keep, SkipTable, Split};
    assert_eq!(fates(2, 4, false, alone(4)), [Split, Split, Apply, Apply]);
    assert_eq!(fates(2, 3, false, alone(4)), [Split; 4]);
    assert_eq!(fates(2, 3, false, alone(3)), [Split; 4]);
    // Another VMA of the process maps one of the other pages, and then the first one too.
    let other = FolioUsers {
        entries: PageCount(4),
        first_page_vmas: 1,
        page_vmas: 1,
        has_other_process: false,
    };
    assert_eq!(fates(2, 3, false, other), [Split; 4]);
    let first = FolioUsers { first_page_vmas: 2, ..other };
    assert_eq!(fates(2, 3, false, first), [Split, SkipTable, Keep, Split]);
    let met = FolioUsers { page_vmas: 2, ..other };
    assert_eq!(fates(2, 3, false, met), [SkipTable, Split, Split, Split]);
    // 6.6 looks at the first page even where nobody maps it.
    let unmapped = FolioUsers { first_page_vmas: 0, ..other };
    assert_eq!(fates(2, 3, false, unmapped), [Split, SkipTable, Split, Split]);
    let many = FolioUsers { entries: PageCount(5), ..other };
    assert_eq!(fates(2, 3, false, many), [Split, Split, Keep, Split]);
    assert_eq!(fates(2, 4, false, many), [Split, Split, Keep, Keep]);
    let several = FolioUsers { has_other_process: true, ..other };
    assert_eq!(fates(2, 3, false, several), [Split, Split, Split, Keep]);
}

#[test]
fn pmd_mapped_folio_is_given_up_whole_or_split() {
    use AdvisedAction::{Apply, Keep, Split};
    assert_eq!(fates(4, 16, true, alone(16)), [Apply; 4]);
    assert_eq!(fates(4, 9, true, alone(16)), [Split; 4]);
    let twice = FolioUsers {
        entries: PageCount(32),
        first_page_vmas: 2,
        page_vmas: 2,
        has_other_process: false,
    };
    assert_eq!(fates(4, 16, true, twice), [Keep, Keep, Keep, Apply]);
    assert_eq!(fates(4, 9, true, twice), [Keep, Keep, Keep, Split]);
    let several = FolioUsers { has_other_process: true, ..twice };
    assert_eq!(fates(4, 16, true, several), [Keep; 4]);
}

#[test]
fn folio_held_by_task_is_not_split() {
    let locked = Folio { locked: true, ..folio(0, 2) };
    let met = MappedFolio { folio: locked, entries: PageCount(3), is_huge: false };
    let fates = RULES.map(|rule| advised_action(&met, &alone(3), rule));
    assert_eq!(
        fates,
        [
            AdvisedAction::SkipTable,
            AdvisedAction::SkipTable,
            AdvisedAction::Keep,
            AdvisedAction::Keep
        ]
    );
    let whole = MappedFolio { entries: PageCount(4), ..met };
    assert_eq!(advised_action(&whole, &alone(4), KeepByProcesses), AdvisedAction::Apply);
}

/// 64 pages on page tables of 16 entries: in folios of four pages, then from page 32 on base pages.
struct Scene {
    cache: PlainCache,
    mappings: ReverseMap,
    tables: PageTables,
    limits: Limits,
}

impl Scene {
    fn new(kernel: Kernel) -> Scene {
        let limits = small_tables(xfs(kernel, PageCount(64)));
        let mut cache = PlainCache::new(None);
        for (start, order, folios) in [(0, 2, 8), (32, 0, 32)] {
            let start = PageIndex(start);
            cache.add(FILE, FolioRun { start, order: Order(order), folios, marked: None });
        }
        cache.unlock(FILE, PageIndex(0), PageCount(64));
        let mut tables = PageTables::default();
        for first in (0..64).step_by(16) {
            tables.install(part(0, 64).vpn(PageIndex(first)), 16);
        }
        Scene { cache, mappings: ReverseMap::new(1), tables, limits }
    }

    /// A process maps pages of the file, all of them accessed.
    fn maps(&mut self, process: u32, from: u64, end: u64) -> (FileMapping, Layer) {
        let mut mapping = FileMapping::new(part(from, end), None);
        mapping.process = process;
        let layer = self.mappings.file_mut(FILE).insert(mapping.clone());
        for (word, mask) in by_word(PageIndex(from), PageIndex(end)) {
            self.cache.mapped(FILE, layer).map(word, mask, mask);
        }
        (mapping, layer)
    }

    /// Advises the pages `from..end` of a mapping. Returns the first pages and orders of the folios
    /// given up.
    fn take(
        &mut self,
        (mapping, layer): &(FileMapping, Layer),
        from: u64,
        end: u64,
    ) -> Vec<(u64, u8)> {
        let mappings = self.mappings.file(FILE);
        let (tables, limits) = (&self.tables, &self.limits);
        let advised = AdvisedRange { file: FILE, mapping, layer: *layer, mappings, tables, limits };
        let parts = advised.parts(PageIndex(from), PageIndex(end));
        let folios =
            parts.into_iter().flat_map(|part| advised.collect_folios(part, &mut self.cache));
        folios.map(|folio| (folio.head.0, folio.order.0)).collect()
    }

    /// The action on the folio of pages 4 to 7, which a mapping is to give up.
    fn judge(&mut self, (mapping, layer): &(FileMapping, Layer)) -> FolioVerdict {
        let mappings = self.mappings.file(FILE);
        let (tables, limits) = (&self.tables, &self.limits);
        let advised = AdvisedRange { file: FILE, mapping, layer: *layer, mappings, tables, limits };
        advised.judge(folio(4, 2), &mut self.cache)
    }

    fn mapped(&mut self, layer: Layer) -> u64 {
        self.cache.mapped(FILE, layer).pages(0, u64::MAX).mapped
    }

    fn order(&mut self, page: u64) -> u8 {
        self.cache.file(FILE).folio(PageIndex(page)).unwrap().order.0
    }
}

#[test]
fn folios_at_range_ends_are_split_and_unmapped() {
    let mut scene = Scene::new(V6_18);
    let mapping = scene.maps(0, 0, 64);
    assert_eq!(scene.take(&mapping, 2, 14), [(4, 2), (8, 2)]);
    assert_eq!([0, 4, 8, 12].map(|page| scene.order(page)), [0, 2, 2, 0]);
    assert_eq!(scene.mapped(mapping.1), !0xf00f);
    assert_eq!(scene.take(&mapping, 0, 4), [], "nothing is mapped there any more");
    assert_eq!(scene.take(&mapping, 32, 34), [(32, 0), (33, 0)]);
    // 6.1 splits every large folio; its pages are then unmapped.
    let mut scene = Scene::new(V6_1);
    let mapping = scene.maps(0, 0, 64);
    assert_eq!(scene.take(&mapping, 2, 34), [(32, 0), (33, 0)]);
    assert_eq!(scene.mapped(mapping.1), u64::MAX << 32);
}

#[test]
fn folio_mapped_by_others_is_skipped() {
    for (kernel, split) in [(V6_12, false), (V6_18, true)] {
        let mut scene = Scene::new(kernel);
        let (mapping, own) = (scene.maps(0, 0, 64), scene.maps(0, 0, 40));
        assert_eq!(scene.take(&mapping, 2, 42), [(40, 0), (41, 0)]);
        // Only a folio in part of the range is split, and both lose their entries.
        let lost = if split { 0xf } else { 0 };
        assert_eq!(scene.mapped(mapping.1), !lost);
        assert_eq!(scene.mapped(own.1), ((1 << 40) - 1) & !lost);
    }
    let mut scene = Scene::new(V6_18);
    let (mapping, _) = (scene.maps(0, 0, 64), scene.maps(1, 3, 4));
    assert_eq!(scene.take(&mapping, 1, 10), [(4, 2)]);
    assert_eq!([0, 8].map(|page| scene.order(page)), [2, 0]);
}

#[test]
fn foreign_accesses_are_judged_before_6_12() {
    use FolioVerdict::{Activate, Evict, Keep};
    for (kernel, once, twice) in [(V6_1, Keep, Activate), (V6_12, Evict, Evict)] {
        let mut scene = Scene::new(kernel);
        let mapping = scene.maps(0, 0, 64);
        assert_eq!(scene.judge(&mapping), Evict, "its own accesses do not count");
        scene.maps(0, 5, 6);
        assert_eq!(scene.judge(&mapping), once);
        assert_eq!(scene.judge(&mapping), Evict, "the entry is not accessed any more");
        scene.maps(0, 5, 6);
        scene.maps(1, 4, 9);
        assert_eq!(scene.judge(&mapping), twice);
    }
}

#[test]
fn large_folio_across_page_tables_is_handled_in_parts() {
    let mut scene = Scene::new(V6_18);
    let mapping = FileMapping::new(Vma { pgoff: PageIndex(0), ..part(2, 66) }, None);
    let layer = scene.mappings.file_mut(FILE).insert(mapping.clone());
    scene.cache.mapped(FILE, layer).map(0, 0xffff_ffff, 0);
    // Tables end before pages 14 and 30.
    let given_up = scene.take(&(mapping, layer), 0, 32);
    assert_eq!(given_up, [(0, 2), (4, 2), (8, 2), (16, 2), (20, 2), (24, 2)]);
    assert_eq!([12, 28].map(|page| scene.order(page)), [0, 0]);
}

/// Pages that one scan of the inactive list evicts, in order.
fn evicted(cache: &mut PlainCache) -> Vec<(u64, u64)> {
    let mut log: Vec<Decision> = Vec::new();
    let mut mappings = ReverseMap::new(1);
    mappings.file_mut(FILE).insert(FileMapping::new(part(0, 64), None));
    cache.shrink(Scan::until(PageCount(u64::MAX)), &mappings, &mut log);
    let evicted = |decision: Decision| match decision {
        Decision::Evicted { start, pages } => (start.0, pages.0),
        other => panic!("{other:?}"),
    };
    log.into_iter().map(evicted).collect()
}

#[test]
fn split_pages_keep_list_position() {
    for (reversed, expected) in
        [(false, vec![(0, 64)]), (true, vec![(0, 5), (7, 1), (6, 1), (5, 1), (8, 56)])]
    {
        let Scene { mut cache, .. } = Scene::new(V6_18);
        cache.split(FILE, folio(4, 2), reversed);
        assert_eq!((cache.inactive(), evicted(&mut cache)), (PageCount(64), expected));
    }
}

#[test]
fn cold_folios_move_to_inactive_head() {
    let Scene { mut cache, .. } = Scene::new(V6_18);
    for page in [4, 4, 32, 32, 33] {
        cache.file(FILE).mark_accessed(PageIndex(page));
    }
    assert_eq!(cache.active(), PageCount(5));
    cache.deactivate(FILE, &[folio(4, 2), folio(33, 0)]);
    assert_eq!(cache.active(), PageCount(1));
    let workingset = cache.mapped(FILE, Layer::FIRST).pages(0, u64::MAX).workingset;
    assert_eq!(workingset, 0xf0, "page 33 was not active");
    // Page 33 is no longer referenced, and keeps its place.
    assert_eq!(evicted(&mut cache), [(0, 4), (8, 24), (33, 31), (4, 4)]);
}

#[test]
fn paged_out_folio_returns_to_active_list() {
    let all = FolioRun { start: PageIndex(0), order: Order(2), folios: 2, marked: None };
    for (of_machine, active) in [(false, 8), (true, 0)] {
        let Scene { mut cache, .. } = Scene::new(V6_18);
        for page in [4, 4] {
            cache.file(FILE).mark_accessed(PageIndex(page));
        }
        cache.page_out(FILE, &[folio(0, 2), folio(4, 2)], of_machine, &mut ());
        assert_eq!((cache.inactive(), cache.active()), (PageCount(56), PageCount(0)));
        // The statistics are not flushed: reclaim takes the active list of the machine to be empty.
        cache.add(FILE, all);
        assert_eq!(cache.active(), PageCount(active));
        let workingset = cache.mapped(FILE, Layer::FIRST).pages(0, u64::MAX).workingset;
        assert_eq!(workingset, if of_machine { 0 } else { 0xf0 });
    }
}

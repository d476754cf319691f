//! `madvise(2)` and `posix_fadvise(2)`.

use filemap_core::address::entries::MappedFile;
use filemap_core::address::mapping::VmaChange;
use filemap_core::cache::{FileCache, Folio};
use filemap_core::cold_or_pageout::AdvisedRange;
use filemap_core::decision::{Cause, Log};
use filemap_core::fault::map;
use filemap_core::lru::invalidate;
use filemap_core::lru::reclaim::FolioVerdict;
use filemap_core::page_cache::PageCache;
use filemap_core::readahead::{Request, forced};
use filemap_core::units::{PageCount, PageIndex, Vpn};
use filemap_job::program::{Fadvise, Madvise};

use crate::open::OpenFile;
use crate::pending::PendingFault;
use crate::process::{MappedArea, PageLocation};
use crate::task::Task;
use crate::wait_queue::Pause;

impl<C: PageCache> Task<'_, '_, C> {
    /// `madvise(2)` for `pages` pages of a mapping of `open`, from page `first` of the mapping. For
    /// MADV_POPULATE_READ this is only the system call; [`Task::begin_populating`] does the faults.
    pub fn madvise(
        &mut self,
        area: &mut MappedArea,
        advice: Madvise,
        (first, pages): (PageCount, PageCount),
        open: &mut OpenFile,
    ) {
        self.begin_advice(open);
        let from = area.mapping.whole.pgoff + first;
        let end = from + pages;
        match advice {
            Madvise::Flag(flag) => self.change(area, (from, end), VmaChange::Advice(flag), open),
            Madvise::WillNeed => {
                // The kernel handles each VMA separately.
                let parts: Vec<_> = area.mapping.vmas(from, end).collect();
                for (_, from, end) in parts {
                    self.will_need(Cause::WillNeed, from, end - from, open);
                }
            }
            Madvise::DontNeed => {
                self.zap_entries(area, from, end, open);
                let tables = &mut self.process.tables;
                map::free_tables(&area.mapping, from, end, &open.limits, tables);
            }
            Madvise::Cold | Madvise::PageOut => {
                self.cold_or_pageout(area, advice == Madvise::PageOut, (from, end), open);
            }
            // Done fault by fault, since other tasks may run in between.
            Madvise::PopulateRead => {}
        }
    }

    /// `posix_fadvise(2)` for `len_bytes` bytes of an open file from `offset_bytes`; `None` means
    /// to the end of the file.
    pub fn fadvise(
        &mut self,
        advice: Fadvise,
        offset_bytes: u64,
        len_bytes: Option<u64>,
        open: &mut OpenFile,
    ) {
        self.begin_advice(open);
        let page_size = open.limits.arch.page_size;
        match advice {
            Fadvise::Normal => {
                open.limits.ra_pages = open.device_ra_pages;
                open.ra.is_random = false;
                open.no_reuse = false;
            }
            Fadvise::Random => open.ra.is_random = true,
            Fadvise::Sequential => {
                open.limits.ra_pages = open.device_ra_pages + open.device_ra_pages;
                open.ra.is_random = false;
            }
            Fadvise::NoReuse => open.no_reuse = !open.limits.rules.random_accesses_count,
            Fadvise::WillNeed => {
                let end = len_bytes.map_or(open.size_bytes, |len| offset_bytes + len);
                let from = PageIndex(offset_bytes / page_size);
                let pages = PageIndex(end.div_ceil(page_size)) - from;
                self.will_need(Cause::WillNeed, from, pages, open);
            }
            Fadvise::DontNeed => {
                let (size_bytes, file) = (open.size_bytes, open.file);
                let (from, end) = invalidate::range(offset_bytes, len_bytes, size_bytes, page_size);
                let world = &mut *self.world;
                let dropped = world.memory.cache.invalidate(file, from, end, &mut world.log);
                world.tally.evicted_pages += dropped.0;
            }
        }
    }

    /// Charges the system call, which takes about as long as one try of a fault.
    fn begin_advice(&mut self, open: &OpenFile) {
        self.world.log.about(open.file);
        self.world.advance(self.world.profile.cost.fault_ns);
        self.world.process_completions();
    }

    /// Applies the NOREUSE state of `open` to `area`, one of its mappings.
    pub fn inherit_no_reuse(&mut self, area: &mut MappedArea, open: &OpenFile) {
        if area.mapping.no_reuse != open.no_reuse {
            area.mapping.no_reuse = open.no_reuse;
            self.update_reverse_map(area, open);
        }
    }

    /// Publishes the changed VMAs of `area` to the reverse map.
    fn update_reverse_map(&mut self, area: &MappedArea, open: &OpenFile) {
        let mappings = self.world.memory.mappings.file_mut(open.file);
        mappings.replace(area.layer, area.mapping.clone());
    }

    /// Changes the advice or protection of the pages `from..end` of `area`, splitting and merging
    /// VMAs and updating the reverse map.
    pub fn change(
        &mut self,
        area: &mut MappedArea,
        (from, end): (PageIndex, PageIndex),
        change: VmaChange,
        open: &OpenFile,
    ) {
        area.mapping.change(from, end, change);
        if matches!(change, VmaChange::Protection(_)) {
            let first = area.mapping.whole.vpn(from);
            self.process.tlb.flush(first, first + (end - from));
        }
        let is_new =
            |at: PageIndex| at < area.mapping.whole.end() && area.mapping.vma(at).pgoff == at;
        for at in [from, end].into_iter().filter(|&at| is_new(at)) {
            self.split_huge(area, at, open);
        }
        self.update_reverse_map(area, open);
    }

    fn split_huge(&mut self, area: &MappedArea, at: PageIndex, open: &OpenFile) {
        let Task { world, process } = self;
        let mut file = world.memory.cache.mapped(open.file, area.layer);
        map::split_huge(at, &area.mapping, &open.limits, &process.tables, &mut file);
    }

    /// One POSIX_FADV_WILLNEED call of the governor.
    pub fn read_ahead(&mut self, index: PageIndex, pages: PageCount, open: &mut OpenFile) {
        self.begin_advice(open);
        self.will_need(Cause::Governor, index, pages, open);
    }

    fn will_need(&mut self, cause: Cause, index: PageIndex, pages: PageCount, open: &mut OpenFile) {
        let last = open.limits.last_page();
        if index > last {
            return;
        }
        let request = Request { cause, index, pages, last };
        let window = forced::window(request, &open.limits);
        // Other tasks run when the call is done.
        while let Some(pause) = self.world.read_window(&window, index, open, &self.process.tables) {
            if let Pause::Throttled(until_ns) = pause {
                self.world.advance(until_ns.saturating_sub(self.world.now_ns()));
            }
        }
    }

    /// Zaps the entries of `from..end`, which have been unmapped, and frees page-table pages that
    /// map nothing else.
    pub fn unmap_part(
        &mut self,
        area: &mut MappedArea,
        (from, end): (PageIndex, PageIndex),
        open: &OpenFile,
    ) {
        self.zap_entries(area, from, end, open);
        let (whole, entries) = (area.mapping.whole, open.limits.arch.pte_entries);
        let (before, after) = area.mapping.mapped_neighbors(from, end);
        let (mut first, mut last) =
            (whole.vpn(from).0 / entries, whole.vpn(end).0.div_ceil(entries));
        first += u64::from(before.is_some_and(|end| first * entries < whole.vpn(end).0));
        last -= u64::from(after.is_some_and(|from| last * entries > whole.vpn(from).0));
        if first < last {
            // Upper levels stay: the rest of the mapping is within their reach.
            let pages = PageCount((last - first) * entries);
            self.process.tables.remove_lowest(Vpn(first * entries), pages, entries);
        }
    }

    /// Zaps page-table entries and frees the private copies behind them.
    fn zap_entries(
        &mut self,
        area: &mut MappedArea,
        from: PageIndex,
        end: PageIndex,
        open: &OpenFile,
    ) {
        area.forked.clear(from, end);
        self.split_huge(area, from, open);
        self.split_huge(area, end, open);
        let Task { world, process } = self;
        let mut file = world.memory.cache.mapped(open.file, area.layer);
        let copies = map::unmap(&area.mapping, from, end, &open.limits, &mut file);
        drop(file);
        world.memory.free_copies((open.file, area.layer), from..end, copies);
        let first = area.mapping.whole.vpn(from);
        process.tlb.flush(first, first + (end - from));
    }

    /// MADV_COLD deactivates the folios of the range; MADV_PAGEOUT (`evicts`) evicts them.
    fn cold_or_pageout(
        &mut self,
        area: &MappedArea,
        evicts: bool,
        (from, end): (PageIndex, PageIndex),
        open: &OpenFile,
    ) {
        let Task { world, process } = self;
        let memory = &mut world.memory;
        let of_machine = memory.is_machine_limit();
        let (file, limits, layer) = (open.file, &open.limits, area.layer);
        let (mapping, mappings, tables) =
            (&area.mapping, memory.mappings.file(file), &process.tables);
        let advised = AdvisedRange { file, mapping, layer, mappings, tables, limits };
        let mut evicted = 0;
        for part in advised.parts(from, end) {
            let folios = advised.collect_folios(part, &mut memory.cache);
            // A locked folio cannot be evicted. It moves to where reclaim finds it next.
            let (locked, ready): (Vec<Folio>, Vec<Folio>) =
                folios.into_iter().partition(|folio| folio.locked || !evicts);
            if !locked.is_empty() {
                if !evicts {
                    advised.make_old(&locked, &mut memory.cache);
                }
                memory.cache.deactivate(file, &locked);
            }
            let mut leaving = Vec::new();
            for folio in ready {
                match advised.judge(folio, &mut memory.cache) {
                    FolioVerdict::Evict => leaving.push(folio),
                    verdict => {
                        memory.cache.deactivate(file, &[folio]);
                        // The last of several uses leaves an active folio referenced.
                        let uses = if verdict == FolioVerdict::Keep { 1 } else { 3 };
                        (0..uses).for_each(|_| memory.cache.file(file).mark_accessed(folio.head));
                    }
                }
            }
            if !leaving.is_empty() {
                memory.cache.page_out(file, &leaving, of_machine, &mut world.log);
                evicted += leaving.iter().map(|folio| folio.order.pages()).sum::<u64>();
            }
        }
        world.tally.evicted_pages += evicted;
        world.advance(world.profile.cost.evict_page_ns.saturating_mul(evicted));
        let first = area.mapping.whole.vpn(from);
        process.tlb.flush(first, first + (end - from));
    }

    /// Starts populating a page: the fault to serve, or `None` if the page is already mapped or
    /// copied.
    pub fn begin_populating(&mut self, at: &PageLocation, open: &OpenFile) -> Option<PendingFault> {
        self.world.log.about(open.file);
        let file = self.world.memory.cache.mapped(open.file, at.layer);
        let (is_mapped, is_copied) = file.entry(at.index);
        drop(file);
        let number = self.world.accesses_begun();
        (!is_mapped && !is_copied).then(|| PendingFault::populating(number, *at))
    }

    /// The page was populated, which marks its folio accessed once per entry, but not if one PMD
    /// entry maps it.
    pub fn mark_populated(&mut self, at: &PageLocation, open: &OpenFile) {
        let entries = open.limits.arch.pte_entries;
        let file = self.world.memory.cache.mapped(open.file, at.layer);
        let is_mapped = file.entry(at.index).0;
        drop(file);
        if is_mapped && self.process.tables.is_installed(at.vma.vpn(at.index), entries) {
            self.world.memory.cache.file(open.file).mark_accessed(at.index);
        }
    }
}

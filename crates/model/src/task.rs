//! Tasks: their accesses to mapped and open files, and values kept per task.

use filemap_core::address::entries::MappedFile;
use filemap_core::decision::{Decision, Log};
use filemap_core::fault::{AccessKind, lock, map};
use filemap_core::page_cache::PageCache;
use filemap_core::units::{PageCount, PageIndex};
use filemap_job::program::DIRECT_BLOCK_BYTES;

use crate::open::OpenFile;
use crate::pending::{PendingRead, WpAction};
use crate::process::{MappedArea, PageLocation, Process};
use crate::tlb;
use crate::world::{DISK, HOLES, World};

/// The running task and its process.
pub struct Task<'r, 'a, C> {
    pub world: &'r mut World<'a, C>,
    pub process: &'r mut Process,
}

impl<C: PageCache> Task<'_, '_, C> {
    /// A write to a page mapped by a PMD entry removes that entry and faults normally.
    pub fn unmap_huge(&mut self, at: &PageLocation, open: &OpenFile) -> bool {
        let Task { world, process } = self;
        let mut file = world.memory.cache.mapped(open.file, at.layer);
        map::unmap_huge(at.index, &at.vma, &open.limits, &process.tables, &mut file)
    }

    /// Handles a write fault on a private page mapped read-only by copying the page. Returns false
    /// if another task has done so meanwhile.
    pub fn copy_mapped(&mut self, at: &PageLocation, open: &OpenFile) -> bool {
        let world = &mut *self.world;
        world.advance(world.profile.cost.fault_ns);
        world.tally.minor_faults += 1;
        world.log.record(Decision::Locked { lock: lock::access_lock(&open.limits.rules) });
        let mut file = world.memory.cache.mapped(open.file, at.layer);
        let is_new = map::copy_mapped(at.index, &mut file, &mut world.log);
        drop(file);
        world.log.record(Decision::Served { index: at.index, major: false, tries: 1 });
        is_new
    }

    /// Handles the first write to a private copy since a fork whose child has exited.
    pub fn reuse_copy(&mut self, at: &PageLocation, open: &OpenFile) {
        let world = &mut *self.world;
        world.advance(world.profile.cost.fault_ns);
        world.tally.minor_faults += 1;
        world.log.record(Decision::Locked { lock: lock::access_lock(&open.limits.rules) });
        world.log.record(Decision::Served { index: at.index, major: false, tries: 1 });
    }

    /// Unmaps a mapping of `open`.
    pub fn unmap(&mut self, area: &MappedArea, open: &OpenFile) {
        let Task { world, process } = self;
        let MappedArea { mapping, layer, .. } = area;
        let (whole, layer) = (&mapping.whole, *layer);
        let mut file = world.memory.cache.mapped(open.file, layer);
        let copies = map::unmap(mapping, whole.pgoff, whole.end(), &open.limits, &mut file);
        drop(file);
        world.memory.free_copies((open.file, layer), whole.pgoff..whole.end(), copies);
        let entries = open.limits.arch.pte_entries;
        process.tables.remove(whole.start, whole.pages, entries);
        process.tlb.flush(whole.start, whole.start + whole.pages);
        world.memory.mappings.file_mut(open.file).remove(layer, whole.pgoff);
    }
}

/// What touching a page found.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum TouchResult {
    /// The page is mapped for this access.
    Mapped,
    /// A fault.
    Fault,
    /// A write to a page that is mapped read-only.
    WpFault(WpAction),
}

impl<C: PageCache> Task<'_, '_, C> {
    /// Begins to touch a page through a mapping of `open`.
    pub fn begin_touch(
        &mut self,
        at: &PageLocation,
        access: AccessKind,
        open: &OpenFile,
    ) -> TouchResult {
        let world = &mut *self.world;
        world.begin_access(open);
        let mut file = world.memory.cache.mapped(open.file, at.layer);
        let is_mapped = file.touch(at.index);
        let is_copied = || file.entry(at.index).1;
        if world.log.is_kept() && !(is_mapped && is_copied()) {
            world.log.describe_access(at.index, PageCount(1));
        }
        if is_mapped {
            if access == AccessKind::Read || is_copied() {
                return TouchResult::Mapped;
            }
            drop(file);
            return if self.unmap_huge(at, open) {
                TouchResult::Fault
            } else {
                TouchResult::WpFault(WpAction::Copy)
            };
        }
        TouchResult::Fault
    }

    /// Looks up the iTLB translation of a page whose code is called; the page was touched before.
    pub fn look_up_code(&mut self, at: &PageLocation, open: &OpenFile) {
        let Task { world, process } = self;
        let file = world.memory.cache.mapped(open.file, at.layer);
        let translation = tlb::translation(at.index, &at.vma, &open.limits, &process.tables, &file);
        drop(file);
        let found_ns = process.tlb.look_up(translation, &mut world.tally.tlb);
        world.advance(world.profile.itlb.call_ns + found_ns);
    }

    /// Begins an O_DIRECT read of `bytes` bytes of `open`: the page cache is neither consulted nor
    /// filled. Returns when the last byte arrives.
    ///
    /// Linux first writes back dirty pages, which the model does not have, and leaves cached pages
    /// in place (`iomap_dio_rw`).
    pub fn begin_direct(&mut self, bytes: u64, open: &OpenFile) -> u64 {
        let world = &mut *self.world;
        world.begin_access(open);
        world.advance(world.profile.cost.call_ns);
        world.process_completions();
        // The last block of a file is read in full.
        let bytes = bytes.next_multiple_of(DIRECT_BLOCK_BYTES);
        let device = if open.is_hole() { HOLES } else { DISK };
        if device == DISK {
            world.tally.direct_bytes += bytes;
        }
        let now_ns = world.now_ns();
        world.devices[device].read_direct(bytes, now_ns)
    }

    /// Begins to read `bytes` bytes at byte `offset` of `open`.
    pub fn begin_read(&mut self, offset: u64, bytes: u64, open: &OpenFile) -> PendingRead {
        let number = self.world.begin_access(open);
        self.world.advance(self.world.profile.cost.read_ns);
        let (size, end) = (open.limits.arch.page_size, offset.saturating_add(bytes));
        let (first, end) = (offset / size, end.min(open.size_bytes).div_ceil(size));
        let pages = PageCount(end.saturating_sub(first));
        self.world.log.describe_access(PageIndex(first), pages);
        PendingRead::new(number, offset, bytes, open)
    }
}

/// An optional value for each task.
#[derive(Debug)]
pub struct PerTask<T> {
    slots: Vec<Option<T>>,
    count: usize,
}

impl<T> Default for PerTask<T> {
    /// No task has a value.
    fn default() -> PerTask<T> {
        PerTask { slots: Vec::new(), count: 0 }
    }
}

impl<T> PerTask<T> {
    /// Sets the value of `task`.
    ///
    /// # Panics
    /// If it has one already.
    pub fn insert(&mut self, task: usize, own: T) {
        if self.slots.len() <= task {
            self.slots.resize_with(task + 1, || None);
        }
        let before = self.slots[task].replace(own);
        assert!(before.is_none(), "a task has one at a time");
        self.count += 1;
    }

    /// Removes and returns the value of `task`.
    #[inline]
    pub fn take(&mut self, task: usize) -> Option<T> {
        if self.count == 0 {
            return None;
        }
        let own = self.slots.get_mut(task)?.take();
        self.count -= usize::from(own.is_some());
        own
    }

    /// Whether `task` has a value.
    pub fn has(&self, task: usize) -> bool {
        self.slots.get(task).is_some_and(Option::is_some)
    }

    /// Whether no task has a value.
    #[inline]
    pub fn is_empty(&self) -> bool {
        self.count == 0
    }

    /// The values of all tasks.
    pub fn iter(&self) -> impl Iterator<Item = &T> {
        self.slots.iter().flatten()
    }
}

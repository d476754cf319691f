//! The accesses of a task: touches, calls, and `read(2)`.

use filemap_core::address::entries::MappedFile;
use filemap_core::decision::Log;
use filemap_core::fault::Access;
use filemap_core::page_cache::PageCache;
use filemap_core::units::{PageCount, PageIndex};
use filemap_job::program::DIRECT_BLOCK_BYTES;

use crate::open::OpenFile;
use crate::process::Place;
use crate::task::Task;
use crate::tlb;
use crate::under_way::{ReadUnderWay, Written};

/// What an access to a page takes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Takes {
    /// Nothing more: the page is mapped for it.
    Nothing,
    /// A fault.
    Fault,
    /// A fault of a write to a page that is mapped to be read.
    Write(Written),
}

impl<C: PageCache, L: Log> Task<'_, '_, C, L> {
    /// Begins to touch a page through a mapping of `open`. Returns what that takes.
    pub fn begin_touch(&mut self, at: &Place, access: Access, open: &OpenFile) -> Takes {
        let world = &mut *self.world;
        world.begin_access(open);
        let mut file = world.memory.cache.mapped(open.file, at.layer);
        let is_mapped = file.touch(at.index);
        let is_copied = || file.entry(at.index).1;
        if L::IS_KEPT && !(is_mapped && is_copied()) {
            world.log.accessed(at.index, PageCount(1));
        }
        if is_mapped {
            if access == Access::Read || is_copied() {
                return Takes::Nothing;
            }
            drop(file);
            return if self.unmap_huge(at, open) {
                Takes::Fault
            } else {
                Takes::Write(Written::Copied)
            };
        }
        Takes::Fault
    }

    /// Looks up the translation of a page whose code is called, and that was touched before.
    pub fn call(&mut self, at: &Place, open: &OpenFile) {
        let Task { world, process } = self;
        let file = world.memory.cache.mapped(open.file, at.layer);
        let translation = tlb::translation(at.index, &at.vma, &open.limits, &process.tables, &file);
        drop(file);
        let found_ns = process.tlb.look_up(translation, &mut world.tally.tlb);
        world.pass(world.profile.itlb.call_ns + found_ns);
    }

    /// Begins to read `bytes` bytes of `open` past the page cache: nothing is looked up, added or
    /// copied. Returns when all has arrived.
    ///
    /// Linux writes back what is dirty before, of which there is nothing here, and leaves what is
    /// cached (`iomap_dio_rw`).
    pub fn begin_direct(&mut self, bytes: u64, open: &OpenFile) -> u64 {
        let world = &mut *self.world;
        world.begin_access(open);
        world.pass(world.profile.cost.call_ns);
        world.arrivals();
        // The last block of a file is read whole.
        let bytes = bytes.next_multiple_of(DIRECT_BLOCK_BYTES);
        world.tally.direct_bytes += bytes;
        let now_ns = world.now_ns();
        world.devices[open.device].read_direct(bytes, now_ns)
    }

    /// Begins to read `bytes` bytes at byte `offset` of `open`.
    pub fn begin_read(&mut self, offset: u64, bytes: u64, open: &OpenFile) -> ReadUnderWay {
        let number = self.world.begin_access(open);
        let (size, end) = (open.limits.arch.page_size, offset.saturating_add(bytes));
        let (first, end) = (offset / size, end.min(open.size_bytes).div_ceil(size));
        let pages = PageCount(end.saturating_sub(first));
        self.world.log.accessed(PageIndex(first), pages);
        ReadUnderWay::new(number, offset, bytes, open)
    }
}

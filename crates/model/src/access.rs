//! The accesses of a task: touches, calls, and `read(2)`.

use filemap_core::address::entries::MappedFile;
use filemap_core::decision::Log;
use filemap_core::fault::Access;
use filemap_core::governor::Touch;
use filemap_core::page_cache::PageCache;
use filemap_core::units::{PageCount, PageIndex};

use crate::Error;
use crate::open::OpenFile;
use crate::process::Place;
use crate::task::Task;
use crate::tlb;
use crate::under_way::{FaultUnderWay, ReadUnderWay};

impl<C: PageCache, L: Log> Task<'_, '_, C, L> {
    /// Begins to touch a page through a mapping of `open`. Returns the fault that it takes, if it
    /// takes one.
    pub fn begin_touch(
        &mut self,
        at: &Place,
        access: Access,
        open: &OpenFile,
    ) -> Option<FaultUnderWay> {
        let world = &mut *self.world;
        let number = world.begin_access(open);
        let mut file = world.memory.cache.mapped(open.file, at.layer);
        let is_mapped = file.touch(at.index);
        let is_copied = || file.entry(at.index).1;
        if L::IS_KEPT && !(is_mapped && is_copied()) {
            world.log.accessed(at.index, PageCount(1));
        }
        if is_mapped {
            if access == Access::Read || is_copied() {
                return None;
            }
            drop(file);
            if self.unmap_huge(at, open) {
                return Some(FaultUnderWay::new(number, *at, access));
            }
            self.copy_mapped(at, open);
            return Some(FaultUnderWay::copied(number, *at));
        }
        Some(FaultUnderWay::new(number, *at, access))
    }

    /// Touches a page through a mapping of `open`, where no other task is left. Returns what is
    /// seen of that from outside.
    ///
    /// # Errors
    /// When the memory is too small to hold what the access needs.
    pub fn touch(
        &mut self,
        at: &Place,
        access: Access,
        open: &mut OpenFile,
    ) -> Result<Option<(PageIndex, Touch)>, Error> {
        let Some(mut fault) = self.begin_touch(at, access, open) else { return Ok(None) };
        let pause = fault.go_on(self, open)?;
        assert!(pause.is_none(), "a task that is alone waits in place");
        Ok(fault.seen())
    }

    /// Calls the code in a page: touches it and looks its translation up.
    ///
    /// # Errors
    /// As for [`Task::touch`].
    pub fn call(&mut self, at: &Place, open: &mut OpenFile) -> Result<(), Error> {
        self.touch(at, Access::Read, open)?;
        let Task { world, process } = self;
        let file = world.memory.cache.mapped(open.file, at.layer);
        let translation = tlb::translation(at.index, &at.vma, &open.limits, &process.tables, &file);
        drop(file);
        world.pass(world.profile.itlb.call_ns + process.tlb.look_up(translation));
        Ok(())
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

    /// Reads `bytes` bytes at byte `offset` of `open`, where no other task is left.
    ///
    /// # Errors
    /// As for [`Task::touch`].
    pub fn read(&mut self, offset: u64, bytes: u64, open: &mut OpenFile) -> Result<(), Error> {
        let pause = self.begin_read(offset, bytes, open).go_on(self, open)?;
        assert!(pause.is_none(), "a task that is alone waits in place");
        Ok(())
    }
}

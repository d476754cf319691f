//! What a task does: touches, calls, and `read(2)`.

use filemap_core::address::entries::MappedFile;
use filemap_core::cache::WORD_PAGES;
use filemap_core::decision::{Decision, Lock, Log};
use filemap_core::fault::map;
use filemap_core::fault::read::{Read, ReadView};
use filemap_core::fault::{Access, Fault, Step, View};
use filemap_core::page_cache::PageCache;
use filemap_core::units::PageIndex;

use crate::Error;
use crate::open::OpenFile;
use crate::process::{Area, Place, Process};
use crate::tlb;
use crate::world::World;

/// A task at work in a process.
pub struct Task<'r, 'a, C, L> {
    pub world: &'r mut World<'a, C, L>,
    pub process: &'r mut Process,
}

impl<C: PageCache, L: Log> Task<'_, '_, C, L> {
    /// Touches a page through a mapping of `open`.
    ///
    /// # Errors
    /// When the memory is too small to hold what the access needs.
    pub fn touch(&mut self, at: &Place, access: Access, open: &mut OpenFile) -> Result<(), Error> {
        let Task { world, process } = self;
        world.begin_access(open.file);
        let mut file = world.memory.cache.mapped(open.file, at.layer);
        if file.touch(at.index) {
            let is_copied = || {
                let word = file.word(at.index.0 / WORD_PAGES);
                word.copied >> (at.index.0 % WORD_PAGES) & 1 == 1
            };
            if access == Access::Read || is_copied() {
                return Ok(());
            }
            drop(file);
            return self.copy_mapped(at, open);
        }
        drop(file);
        let mut fault = Fault::new(at.index, access);
        let mut misses_at_first = 0;
        let outcome = loop {
            world.arrivals();
            let step = fault.step(&mut View {
                limits: &open.limits,
                vma: &at.vma,
                ra: &mut open.ra,
                tables: &mut process.tables,
                cache: &mut world.memory.cache.mapped(open.file, at.layer),
                log: &mut world.log,
            });
            let highest = &mut world.tally.mmap_miss_max;
            *highest = open.ra.mmap_miss.max(*highest);
            match step {
                Step::Lock(_) => {
                    world.pass(world.profile.cost.fault_ns);
                    if fault.tries() == 2 {
                        misses_at_first = fault.misses();
                    }
                }
                Step::Unlock => world.tally.lock_drops += 1,
                Step::Done(outcome) => break outcome,
                step => carry_out(step, at.index, open, world, process)?,
            }
        };
        let retry_misses = if outcome.tries > 1 { fault.misses() - misses_at_first } else { 0 };
        world.tally.retry_misses += u64::from(retry_misses);
        world.tally.major_faults += u64::from(fault.misses());
        world.tally.minor_faults += u64::from(!outcome.major);
        let mapped = world.log.take_mapped();
        world.pass(world.profile.cost.map_page_ns.saturating_mul(mapped.0));
        world.memory.cache.mapped(open.file, at.layer).touch(at.index);
        if access == Access::WritePrivate {
            world.hold_page(at.index, open.file, &process.tables)?;
        }
        world.check_held(&process.tables)
    }

    /// Writes to a page that a private mapping has mapped to read.
    fn copy_mapped(&mut self, at: &Place, open: &OpenFile) -> Result<(), Error> {
        let Task { world, process } = self;
        world.pass(world.profile.cost.fault_ns);
        world.tally.minor_faults += 1;
        world.log.record(Decision::Locked(Lock::Vma));
        let mut file = world.memory.cache.mapped(open.file, at.layer);
        map::copy_mapped(at.index, &mut file, &mut world.log);
        drop(file);
        world.log.record(Decision::Served { index: at.index, major: false, tries: 1 });
        world.hold_page(at.index, open.file, &process.tables)
    }

    /// Takes away a mapping of `open`.
    pub fn unmap(&mut self, area: &Area, open: &OpenFile) {
        let Task { world, process } = self;
        let Area { mapping, layer } = *area;
        let mut file = world.memory.cache.mapped(open.file, layer);
        let copies = map::unmap(&mapping.whole, &mut file);
        drop(file);
        world.memory.release(copies);
        let entries = open.limits.arch.pte_entries;
        process.tables.remove(mapping.whole.start, mapping.whole.pages, entries);
        world.memory.mappings.of_mut(open.file).remove(layer, mapping.whole.pgoff);
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

    /// Reads `bytes` bytes at byte `offset` of `open`.
    ///
    /// # Errors
    /// As for [`Task::touch`].
    pub fn read(&mut self, offset: u64, bytes: u64, open: &mut OpenFile) -> Result<(), Error> {
        let Task { world, process } = self;
        world.begin_access(open.file);
        let mut read = Read::new(offset, bytes, open.size_bytes, &open.limits);
        loop {
            world.arrivals();
            let step = read.step(&mut ReadView {
                limits: &open.limits,
                ra: &mut open.ra,
                cache: &mut world.memory.cache.file(open.file),
                log: &mut world.log,
            });
            match step {
                Some(step) => carry_out(step, read.position(), open, world, process)?,
                None => return world.check_held(&process.tables),
            }
        }
    }
}

/// Does what a fault or a read at page `first` asks for.
fn carry_out<C: PageCache, L: Log>(
    step: Step,
    first: PageIndex,
    open: &mut OpenFile,
    world: &mut World<'_, C, L>,
    process: &Process,
) -> Result<(), Error> {
    match step {
        Step::Read(window) => world.read_window(window, first, open, &process.tables),
        Step::ReadPage(index) => world.read_page(index, open, &process.tables)?,
        Step::Wait(index) => world.wait(open.file, index),
        Step::Lock(_) | Step::Unlock | Step::Done(_) => {}
    }
    Ok(())
}

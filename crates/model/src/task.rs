//! A task, and what it does to the pages that it has mapped.

use filemap_core::decision::{Decision, Log};
use filemap_core::fault::{lock, map};
use filemap_core::page_cache::PageCache;

use crate::open::OpenFile;
use crate::process::{Area, Place, Process};
use crate::world::World;

/// A task at work in a process.
pub struct Task<'r, 'a, C, L> {
    pub world: &'r mut World<'a, C, L>,
    pub process: &'r mut Process,
}

impl<C: PageCache, L: Log> Task<'_, '_, C, L> {
    /// A write to a page that one PMD entry maps takes that away, and is a fault like any other.
    pub fn unmap_huge(&mut self, at: &Place, open: &OpenFile) -> bool {
        let Task { world, process } = self;
        let mut file = world.memory.cache.mapped(open.file, at.layer);
        map::unmap_huge(at.index, &at.vma, &open.limits, &process.tables, &mut file)
    }

    /// Writes to a page that a private mapping has mapped to read.
    pub fn copy_mapped(&mut self, at: &Place, open: &OpenFile) {
        let world = &mut *self.world;
        world.pass(world.profile.cost.fault_ns);
        world.tally.minor_faults += 1;
        world.log.record(Decision::Locked { lock: lock::of_access(&open.limits.rules) });
        let mut file = world.memory.cache.mapped(open.file, at.layer);
        map::copy_mapped(at.index, &mut file, &mut world.log);
        drop(file);
        world.log.record(Decision::Served { index: at.index, major: false, tries: 1 });
    }

    /// Writes to a private copy for the first time since a fork, whose child is gone.
    pub fn reuse_copy(&mut self, at: &Place, open: &OpenFile) {
        let world = &mut *self.world;
        world.pass(world.profile.cost.fault_ns);
        world.tally.minor_faults += 1;
        world.log.record(Decision::Locked { lock: lock::of_access(&open.limits.rules) });
        world.log.record(Decision::Served { index: at.index, major: false, tries: 1 });
    }

    /// Takes away a mapping of `open`.
    pub fn unmap(&mut self, area: &Area, open: &OpenFile) {
        let Task { world, process } = self;
        let Area { mapping, layer, .. } = area;
        let (whole, layer) = (&mapping.whole, *layer);
        let mut file = world.memory.cache.mapped(open.file, layer);
        let copies = map::unmap(mapping, whole.pgoff, whole.end(), &open.limits, &mut file);
        drop(file);
        world.memory.release(copies);
        let entries = open.limits.arch.pte_entries;
        process.tables.remove(whole.start, whole.pages, entries);
        process.tlb.flush(whole.start, whole.start + whole.pages);
        world.memory.mappings.of_mut(open.file).remove(layer, whole.pgoff);
    }
}

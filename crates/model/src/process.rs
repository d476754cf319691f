//! A process: its page tables and its mappings.

use std::collections::BTreeMap;

use filemap_core::address::entries::Layer;
use filemap_core::address::mapping::FileMapping;
use filemap_core::address::page_table::PageTables;
use filemap_core::address::reverse_map::FileMappings;
use filemap_core::address::vma::Vma;
use filemap_core::cache::{WORD_PAGES, by_word};
use filemap_core::units::{PageCount, PageIndex};

use crate::mm::Locks;
use crate::tlb::Tlb;

/// A process.
#[derive(Debug)]
pub struct Process {
    pub tables: PageTables,
    pub tlb: Tlb,
    /// Anonymous pages that it holds besides private copies.
    pub held: PageCount,
    /// Present if its tasks can wait for each other's locks; otherwise every lock is granted.
    pub locks: Option<Locks>,
}

impl Process {
    /// A process without mappings.
    pub fn new(tlb: Tlb) -> Process {
        Process { tables: PageTables::default(), tlb, held: PageCount(0), locks: None }
    }
}

/// A mapping of the job in a process: one mapped range, or one for each segment of an executable.
/// Pages are numbered across all of them.
#[derive(Clone, Debug)]
pub struct MappedAreas {
    areas: Vec<MappedArea>,
    /// For each area, the number of pages in earlier areas.
    before: Vec<PageCount>,
}

/// A mapped range and the layer of its page-table entries.
#[derive(Clone, Debug)]
pub struct MappedArea {
    pub mapping: FileMapping,
    pub layer: Layer,
    /// Private copies that are write-protected since a fork: their next write faults.
    pub forked: ForkedCopies,
}

/// A set of pages of a file, 64 to a word.
#[derive(Clone, Debug, Default)]
pub struct ForkedCopies(BTreeMap<u64, u64>);

impl ForkedCopies {
    /// Adds the pages of `mask` in `word`.
    pub fn add(&mut self, word: u64, mask: u64) {
        *self.0.entry(word).or_default() |= mask;
    }

    /// Removes a page. Returns whether it was in the set.
    pub fn remove(&mut self, index: PageIndex) -> bool {
        let Some(word) = self.0.get_mut(&(index.0 / WORD_PAGES)) else { return false };
        let bit = 1 << (index.0 % WORD_PAGES);
        let was_in = *word & bit != 0;
        *word &= !bit;
        was_in
    }

    /// Removes the pages `from..end`.
    pub fn clear(&mut self, from: PageIndex, end: PageIndex) {
        if self.0.is_empty() {
            return;
        }
        for (word, mask) in by_word(from, end) {
            if let Some(pages) = self.0.get_mut(&word) {
                *pages &= !mask;
            }
        }
    }

    /// Whether the set was never filled.
    pub fn is_empty(&self) -> bool {
        self.0.is_empty()
    }
}

/// A file page as mapped by a process.
#[derive(Clone, Copy, Debug)]
pub struct PageLocation {
    /// Page of the file.
    pub index: PageIndex,
    pub vma: Vma,
    pub layer: Layer,
}

impl MappedArea {
    /// A new mapping.
    pub fn new(mapping: FileMapping, layer: Layer) -> MappedArea {
        MappedArea { mapping, layer, forked: ForkedCopies::default() }
    }

    /// Page `page` of the mapping, from 0.
    #[inline(always)]
    pub fn locate(&self, page: u64) -> PageLocation {
        let index = self.mapping.whole.pgoff + PageCount(page);
        PageLocation { index, vma: self.mapping.vma(index), layer: self.layer }
    }
}

impl MappedAreas {
    /// Maps one or more ranges of a file.
    pub fn map(mappings: &[FileMapping], of_file: &mut FileMappings) -> MappedAreas {
        let layers = of_file.insert_all(mappings);
        let areas = mappings.iter().cloned().zip(layers);
        let areas: Vec<MappedArea> =
            areas.map(|(mapping, layer)| MappedArea::new(mapping, layer)).collect();
        let mut pages = PageCount(0);
        let before = areas.iter().map(|area| {
            pages += area.mapping.whole.pages;
            pages - area.mapping.whole.pages
        });
        MappedAreas { before: before.collect(), areas }
    }

    /// The only area of the mapping.
    ///
    /// # Panics
    /// If there are several.
    pub fn single_area(&mut self) -> &mut MappedArea {
        let [only] = self.areas.as_mut_slice() else { panic!("it is of segments") };
        only
    }

    /// All areas.
    pub fn areas(&self) -> &[MappedArea] {
        &self.areas
    }

    /// All areas, mutable.
    pub fn areas_mut(&mut self) -> &mut [MappedArea] {
        &mut self.areas
    }

    /// Refreshes the VMA of a page. VMAs of segments never change.
    pub fn find_vma(&self, at: &mut PageLocation) {
        if let [only] = self.areas.as_slice() {
            at.vma = only.mapping.vma(at.index);
        }
    }

    /// Page `page` of the mapping, which has to have it.
    // Few callers, millions of calls.
    #[inline(always)]
    pub fn locate(&self, page: u64) -> PageLocation {
        if let [only] = self.areas.as_slice() {
            return only.locate(page);
        }
        let number = self.before.partition_point(|before| before.0 <= page) - 1;
        self.areas[number].locate(page - self.before[number].0)
    }
}

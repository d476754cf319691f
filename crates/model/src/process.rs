//! A process: its page tables and its mappings.

use std::collections::BTreeMap;

use filemap_core::address::entries::Layer;
use filemap_core::address::mapping::Mapping;
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
    /// Where its tasks wait for locks of each other: elsewhere all that are asked for are had.
    pub locks: Option<Locks>,
}

impl Process {
    /// A process that has mapped nothing yet.
    pub fn new(tlb: Tlb) -> Process {
        Process { tables: PageTables::default(), tlb, locks: None }
    }
}

/// What a mapping of the job is: a mapping, or those of the segments of a program, whose pages are
/// counted through.
#[derive(Clone, Debug)]
pub struct Row {
    areas: Vec<Area>,
    /// For each of them the pages of those before it.
    before: Vec<PageCount>,
}

/// A mapping, and the layer that its entries are in.
#[derive(Clone, Debug)]
pub struct Area {
    pub mapping: Mapping,
    pub layer: Layer,
    /// Private copies that no write has touched since a fork: their entries do not let it write.
    pub forked: Forked,
}

/// Pages of a file, 64 to a word.
#[derive(Clone, Debug, Default)]
pub struct Forked(BTreeMap<u64, u64>);

impl Forked {
    /// Adds the pages `mask` of a word.
    pub fn add(&mut self, word: u64, mask: u64) {
        *self.0.entry(word).or_default() |= mask;
    }

    /// Takes a page out. Whether it was in.
    pub fn take(&mut self, index: PageIndex) -> bool {
        let Some(word) = self.0.get_mut(&(index.0 / WORD_PAGES)) else { return false };
        let bit = 1 << (index.0 % WORD_PAGES);
        let was_in = *word & bit != 0;
        *word &= !bit;
        was_in
    }

    /// Takes the pages `from..end` out.
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

    /// Whether there are none, and never were any.
    pub fn is_empty(&self) -> bool {
        self.0.is_empty()
    }
}

/// A page as a process sees it.
#[derive(Clone, Copy, Debug)]
pub struct Place {
    /// Its page in the file.
    pub index: PageIndex,
    pub vma: Vma,
    pub layer: Layer,
}

impl Area {
    /// A mapping that has not been there before.
    pub fn new(mapping: Mapping, layer: Layer) -> Area {
        Area { mapping, layer, forked: Forked::default() }
    }

    /// Page `page` of the mapping, counted from its first.
    #[inline(always)]
    pub fn locate(&self, page: u64) -> Place {
        let index = self.mapping.whole.pgoff + PageCount(page);
        Place { index, vma: self.mapping.vma(index), layer: self.layer }
    }
}

impl Row {
    /// Maps `mappings` of a file: one or more.
    pub fn map(mappings: &[Mapping], of_file: &mut FileMappings) -> Row {
        let layers = of_file.insert_all(mappings);
        let areas = mappings.iter().cloned().zip(layers);
        let areas: Vec<Area> = areas.map(|(mapping, layer)| Area::new(mapping, layer)).collect();
        let mut pages = PageCount(0);
        let before = areas.iter().map(|area| {
            pages += area.mapping.whole.pages;
            pages - area.mapping.whole.pages
        });
        Row { before: before.collect(), areas }
    }

    /// The mapping of a row that has no other.
    ///
    /// # Panics
    /// When it has others.
    pub fn only(&mut self) -> &mut Area {
        let [only] = self.areas.as_mut_slice() else { panic!("it is of segments") };
        only
    }

    /// All of them.
    pub fn areas(&self) -> &[Area] {
        &self.areas
    }

    /// All of them, to be changed.
    pub fn areas_mut(&mut self) -> &mut [Area] {
        &mut self.areas
    }

    /// The VMA of a page now. Those of segments stay as they were made.
    pub fn find_vma(&self, at: &mut Place) {
        if let [only] = self.areas.as_slice() {
            at.vma = only.mapping.vma(at.index);
        }
    }

    /// Page `page` of the row, which has it.
    // Its callers are few, and locate pages by the million.
    #[inline(always)]
    pub fn locate(&self, page: u64) -> Place {
        if let [only] = self.areas.as_slice() {
            return only.locate(page);
        }
        let number = self.before.partition_point(|before| before.0 <= page) - 1;
        self.areas[number].locate(page - self.before[number].0)
    }
}

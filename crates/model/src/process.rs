//! A process: its page tables and its mappings.

use filemap_core::address::entries::Layer;
use filemap_core::address::mapping::Mapping;
use filemap_core::address::page_table::PageTables;
use filemap_core::address::reverse_map::FileMappings;
use filemap_core::address::vma::Vma;
use filemap_core::units::{PageCount, PageIndex};

use crate::tlb::Tlb;

/// A process.
#[derive(Debug)]
pub struct Process {
    pub tables: PageTables,
    pub tlb: Tlb,
}

impl Process {
    /// A process that has mapped nothing yet.
    pub fn new(tlb: Tlb) -> Process {
        Process { tables: PageTables::default(), tlb }
    }
}

/// Mappings one behind the other, whose pages are counted through.
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
    /// Page `page` of the mapping, counted from its first.
    #[inline(always)]
    pub fn locate(&self, page: u64) -> Place {
        let index = self.mapping.whole.pgoff + PageCount(page);
        Place { index, vma: self.mapping.vma(index), layer: self.layer }
    }
}

impl Row {
    /// Maps `mappings`, the first of a file.
    pub fn map(mappings: &[Mapping], of_file: &mut FileMappings) -> Row {
        let layers = of_file.insert_all(mappings);
        let areas = mappings.iter().cloned().zip(layers);
        let areas: Vec<Area> = areas.map(|(mapping, layer)| Area { mapping, layer }).collect();
        let mut pages = PageCount(0);
        let before = areas.iter().map(|area| {
            pages += area.mapping.whole.pages;
            pages - area.mapping.whole.pages
        });
        Row { before: before.collect(), areas }
    }

    /// The mapping of a row that has no other.
    pub fn only(&mut self) -> &mut Area {
        &mut self.areas[0]
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

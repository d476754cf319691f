//! VMAs that map parts of a file in any order, some of its pages by more than one.

use std::cmp::Reverse;
use std::collections::BinaryHeap;

use crate::units::{PageCount, PageIndex};
use crate::vma::Vma;
use crate::word::{WORD_PAGES, word_mask};

/// One of the sets of page-table entries that a file's pages have. A page that several VMAs map
/// has an entry in each, so VMAs that share pages are in different layers.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Layer(pub u32);

impl Layer {
    /// The only one, where no page is mapped twice.
    pub const FIRST: Layer = Layer(0);
}

/// A VMA, and the layer that its entries are in.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Placed {
    /// The VMA.
    pub vma: Vma,
    /// Its layer.
    pub layer: Layer,
}

/// The VMAs of a program's segments, in the program's order.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Segments {
    placed: Vec<Placed>,
    /// For each VMA the pages of those before it.
    before: Vec<PageCount>,
    /// The VMAs of each layer, in the order of their pages.
    layers: Vec<Vec<Vma>>,
}

impl Segments {
    /// Puts each VMA into a layer that has its pages free, in as few layers as there can be.
    pub fn new(vmas: &[Vma]) -> Segments {
        let mut order: Vec<usize> = (0..vmas.len()).collect();
        order.sort_by_key(|&position| vmas[position].pgoff);
        let mut layers: Vec<Vec<Vma>> = Vec::new();
        let mut ends: BinaryHeap<Reverse<(PageIndex, usize)>> = BinaryHeap::new();
        let mut placed: Vec<Placed> =
            vmas.iter().map(|&vma| Placed { vma, layer: Layer::FIRST }).collect();
        for position in order {
            let vma = vmas[position];
            let layer = match ends.peek() {
                Some(&Reverse((end, layer))) if end <= vma.pgoff => {
                    ends.pop();
                    layer
                }
                _ => {
                    layers.push(Vec::new());
                    layers.len() - 1
                }
            };
            ends.push(Reverse((vma.end(), layer)));
            layers[layer].push(vma);
            placed[position].layer = Layer(layer as u32);
        }
        let mut pages = PageCount(0);
        let before = vmas.iter().map(|vma| {
            pages += vma.pages;
            pages - vma.pages
        });
        Segments { before: before.collect(), placed, layers }
    }

    /// The VMA that holds page `page` of all VMAs one behind the other, and the page of the file.
    /// `page` is one of them.
    pub fn locate(&self, page: u64) -> (Placed, PageIndex) {
        let behind = self.before.partition_point(|before| before.0 <= page);
        let placed = self.placed[behind - 1];
        (placed, placed.vma.pgoff + PageCount(page - self.before[behind - 1].0))
    }

    /// The VMA of `layer` that maps `index`.
    pub fn vma(&self, layer: Layer, index: PageIndex) -> Option<Vma> {
        let layer = self.layers.get(layer.0 as usize)?;
        let behind = layer.partition_point(|vma| vma.pgoff <= index);
        layer[..behind].last().copied().filter(|vma| index < vma.end())
    }

    /// The VMAs, in the program's order.
    pub fn iter(&self) -> impl Iterator<Item = Placed> {
        self.placed.iter().copied()
    }

    /// The pages of `word` that an executable VMA of `layer` maps.
    pub(crate) fn executable_mask(&self, layer: Layer, word: u64) -> u64 {
        let Some(vmas) = self.layers.get(layer.0 as usize) else { return 0 };
        let end = PageIndex((word + 1) * WORD_PAGES);
        let first = vmas.partition_point(|vma| vma.end().0 <= word * WORD_PAGES);
        vmas[first..]
            .iter()
            .take_while(|vma| vma.pgoff < end)
            .filter(|vma| vma.executable)
            .fold(0, |mask, vma| mask | word_mask(word, vma.pgoff, vma.end()))
    }
}

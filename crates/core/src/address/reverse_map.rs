//! Who maps a page: the mappings of each file, some of whose pages several of them map.

use std::cmp::Reverse;
use std::collections::BinaryHeap;

use super::entries::Layer;
use super::mapping::Mapping;
use super::vma::Vma;
use crate::units::{FileId, PageIndex};
use crate::word::{WORD_PAGES, word_mask};

/// The mappings of all files.
#[derive(Clone, Debug, Default)]
pub struct ReverseMap {
    files: Vec<FileMappings>,
}

impl ReverseMap {
    /// Of that many files, none of which is mapped.
    pub fn new(files: usize) -> ReverseMap {
        ReverseMap { files: vec![FileMappings::default(); files] }
    }

    /// The mappings of `file`.
    #[inline]
    pub fn of(&self, file: FileId) -> &FileMappings {
        &self.files[file.number()]
    }

    /// The mappings of `file`, to be changed.
    pub fn of_mut(&mut self, file: FileId) -> &mut FileMappings {
        &mut self.files[file.number()]
    }
}

/// The mappings of one file, each in a layer in which no other maps its pages.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct FileMappings {
    /// The mappings of each layer, in the order of their pages.
    layers: Vec<Vec<Mapping>>,
    /// Reclaim believes the accessed bits of no entry.
    is_ignored: bool,
    /// Reclaim believes those of some entries only.
    is_mixed: bool,
    /// Some VMA is executable.
    has_code: bool,
}

impl FileMappings {
    /// Adds `mapping` in the lowest layer that has its pages free.
    pub fn insert(&mut self, mapping: Mapping) -> Layer {
        let (first, end) = (mapping.whole.pgoff, mapping.whole.end());
        let has_room = |layer: &Vec<Mapping>| {
            let behind = layer.partition_point(|other| other.whole.end() <= first);
            layer.get(behind).is_none_or(|next| end <= next.whole.pgoff)
        };
        let layer = self.layers.iter().position(has_room).unwrap_or_else(|| {
            self.layers.push(Vec::new());
            self.layers.len() - 1
        });
        let mappings = &mut self.layers[layer];
        mappings.insert(mappings.partition_point(|other| other.whole.pgoff < first), mapping);
        self.note_kinds();
        Layer(layer as u32)
    }

    /// Adds mappings, in as few layers as there can be where they are the first. Returns the layer
    /// of each.
    pub fn insert_all(&mut self, mappings: &[Mapping]) -> Vec<Layer> {
        if !self.layers.is_empty() {
            return mappings.iter().map(|mapping| self.insert(mapping.clone())).collect();
        }
        let mut order: Vec<usize> = (0..mappings.len()).collect();
        order.sort_by_key(|&position| mappings[position].whole.pgoff);
        let mut ends: BinaryHeap<Reverse<(PageIndex, usize)>> = BinaryHeap::new();
        let mut of_each = vec![Layer::FIRST; mappings.len()];
        for position in order {
            let mapping = &mappings[position];
            let layer = match ends.peek() {
                Some(&Reverse((end, layer))) if end <= mapping.whole.pgoff => {
                    ends.pop();
                    layer
                }
                _ => {
                    self.layers.push(Vec::new());
                    self.layers.len() - 1
                }
            };
            ends.push(Reverse((mapping.whole.end(), layer)));
            self.layers[layer].push(mapping.clone());
            of_each[position] = Layer(layer as u32);
        }
        self.note_kinds();
        of_each
    }

    /// Takes away the mapping of `layer` that begins at page `first`.
    ///
    /// # Panics
    /// When there is none.
    pub fn remove(&mut self, layer: Layer, first: PageIndex) {
        let mappings = &mut self.layers[layer.0 as usize];
        let at = mappings.partition_point(|mapping| mapping.whole.pgoff < first);
        assert_eq!(mappings[at].whole.pgoff, first, "the mapping is there");
        mappings.remove(at);
        self.note_kinds();
    }

    /// The mapping of `layer` that begins where `mapping` does is like that from now on.
    ///
    /// # Panics
    /// When there is none.
    pub fn replace(&mut self, layer: Layer, mapping: Mapping) {
        let mappings = &mut self.layers[layer.0 as usize];
        let first = mapping.whole.pgoff;
        let at = mappings.partition_point(|mapping| mapping.whole.pgoff < first);
        assert_eq!(mappings[at].whole.pgoff, first, "the mapping is there");
        mappings[at] = mapping;
        self.note_kinds();
    }

    /// The VMA of `layer` that maps `index`.
    pub fn vma(&self, layer: Layer, index: PageIndex) -> Option<Vma> {
        self.mapping(layer, index).map(|mapping| mapping.vma(index))
    }

    /// The mapping of `layer` that `index` lies in.
    fn mapping(&self, layer: Layer, index: PageIndex) -> Option<&Mapping> {
        let mappings = self.layers.get(layer.0 as usize)?;
        let behind = mappings.partition_point(|mapping| mapping.whole.pgoff <= index);
        mappings[..behind].last().filter(|mapping| index < mapping.whole.end())
    }

    /// The pages of `from..end` that mappings of `layer` map that belong to other processes than
    /// `process`: the first of each, and the page after its last.
    pub fn of_others(
        &self,
        layer: Layer,
        (from, end): (PageIndex, PageIndex),
        process: u32,
    ) -> impl Iterator<Item = (PageIndex, PageIndex)> {
        let mappings = self.layers.get(layer.0 as usize).map_or(&[][..], Vec::as_slice);
        let first = mappings.partition_point(|mapping| mapping.whole.end() <= from);
        let within = mappings[first..].iter().take_while(move |of| of.whole.pgoff < end);
        let others = within.filter(move |mapping| mapping.process != process);
        others.map(move |of| (of.whole.pgoff.max(from), of.whole.end().min(end)))
    }

    /// Whether reclaim believes the accessed bits of any entry.
    #[inline]
    pub fn has_recency(&self) -> bool {
        !self.is_ignored
    }

    /// The pages of `word` whose accessed bits in `layer` reclaim believes.
    #[inline]
    pub fn believed_mask(&self, layer: Layer, word: u64) -> u64 {
        if !self.is_mixed {
            return if self.is_ignored { 0 } else { u64::MAX };
        }
        self.mask(layer, word, |mapping| match mapping.has_recency() {
            Some(true) => word_mask(word, mapping.whole.pgoff, mapping.whole.end()),
            Some(false) => 0,
            None => mapping.believed_mask(word),
        })
    }

    /// The pages of `word` that an executable VMA of `layer` maps.
    #[inline]
    pub fn executable_mask(&self, layer: Layer, word: u64) -> u64 {
        if !self.has_code {
            return 0;
        }
        self.mask(layer, word, |mapping| mapping.executable_mask(word))
    }

    /// What `of` says of each mapping of `layer` that maps pages of `word`, together.
    fn mask(&self, layer: Layer, word: u64, of: impl Fn(&Mapping) -> u64) -> u64 {
        self.of_word(layer, word).fold(0, |mask, mapping| mask | of(mapping))
    }

    /// The mappings of `layer` that map pages of `word`.
    fn of_word(&self, layer: Layer, word: u64) -> impl Iterator<Item = &Mapping> {
        let mappings = self.layers.get(layer.0 as usize).map_or(&[][..], Vec::as_slice);
        let (start, end) = (PageIndex(word * WORD_PAGES), PageIndex((word + 1) * WORD_PAGES));
        let first = mappings.partition_point(|mapping| mapping.whole.end() <= start);
        mappings[first..].iter().take_while(move |mapping| mapping.whole.pgoff < end)
    }

    fn note_kinds(&mut self) {
        self.has_code = self.layers.iter().flatten().any(Mapping::has_code);
        let mut recency = self.layers.iter().flatten().map(Mapping::has_recency);
        let first = recency.next().unwrap_or(Some(true));
        self.is_mixed = first.is_none() || recency.any(|other| other != first);
        self.is_ignored = first == Some(false) && !self.is_mixed;
    }
}

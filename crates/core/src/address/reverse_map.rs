//! The reverse map: which mappings map the pages of a file.

use std::cmp::Reverse;
use std::collections::BinaryHeap;

use super::entries::Layer;
use super::mapping::FileMapping;
use super::vma::Vma;
use crate::units::{FileId, PageIndex};
use crate::word::{WORD_PAGES, word_mask};

/// The mappings of all files.
#[derive(Clone, Debug, Default)]
pub struct ReverseMap {
    files: Vec<FileMappings>,
}

impl ReverseMap {
    /// A reverse map for `files` files without mappings.
    pub fn new(files: usize) -> ReverseMap {
        ReverseMap { files: vec![FileMappings::default(); files] }
    }

    /// The mappings of `file`.
    #[inline]
    pub fn file(&self, file: FileId) -> &FileMappings {
        &self.files[file.number()]
    }

    /// The mappings of `file`, mutable.
    pub fn file_mut(&mut self, file: FileId) -> &mut FileMappings {
        &mut self.files[file.number()]
    }
}

/// The mappings of one file, arranged in layers without overlap.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct FileMappings {
    /// The mappings of each layer, in the order of their pages.
    layers: Vec<Vec<FileMapping>>,
    /// No mapping has recency.
    ignores_recency: bool,
    /// Some mappings or parts of them have recency, others do not.
    has_mixed_recency: bool,
    /// Some VMA is executable.
    has_code: bool,
}

impl FileMappings {
    /// Adds `mapping` to the lowest layer where its pages are free.
    pub fn insert(&mut self, mapping: FileMapping) -> Layer {
        let (first, end) = (mapping.whole.pgoff, mapping.whole.end());
        let has_room = |layer: &Vec<FileMapping>| {
            let after = layer.partition_point(|other| other.whole.end() <= first);
            layer.get(after).is_none_or(|next| end <= next.whole.pgoff)
        };
        let layer = self.layers.iter().position(has_room).unwrap_or_else(|| {
            self.layers.push(Vec::new());
            self.layers.len() - 1
        });
        let mappings = &mut self.layers[layer];
        mappings.insert(mappings.partition_point(|other| other.whole.pgoff < first), mapping);
        self.update_summary();
        Layer(layer as u32)
    }

    /// Adds mappings, using as few layers as possible if they are the first ones. Returns the layer
    /// of each.
    pub fn insert_all(&mut self, mappings: &[FileMapping]) -> Vec<Layer> {
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
        self.update_summary();
        of_each
    }

    /// Removes the mapping of `layer` that begins at page `first`.
    ///
    /// # Panics
    /// If `layer` has no such mapping.
    pub fn remove(&mut self, layer: Layer, first: PageIndex) {
        let mappings = &mut self.layers[layer.0 as usize];
        let at = mappings.partition_point(|mapping| mapping.whole.pgoff < first);
        assert_eq!(mappings[at].whole.pgoff, first, "the mapping is there");
        mappings.remove(at);
        self.update_summary();
    }

    /// Replaces the mapping of `layer` that begins at the same page as `mapping`.
    ///
    /// # Panics
    /// If `layer` has no such mapping.
    pub fn replace(&mut self, layer: Layer, mapping: FileMapping) {
        let mappings = &mut self.layers[layer.0 as usize];
        let first = mapping.whole.pgoff;
        let at = mappings.partition_point(|mapping| mapping.whole.pgoff < first);
        assert_eq!(mappings[at].whole.pgoff, first, "the mapping is there");
        mappings[at] = mapping;
        self.update_summary();
    }

    /// The VMA of `layer` that maps `index`.
    pub fn vma(&self, layer: Layer, index: PageIndex) -> Option<Vma> {
        self.mapping(layer, index).map(|mapping| mapping.vma(index))
    }

    /// The mapping of `layer` that `index` lies in.
    fn mapping(&self, layer: Layer, index: PageIndex) -> Option<&FileMapping> {
        let mappings = self.layers.get(layer.0 as usize)?;
        let after = mappings.partition_point(|mapping| mapping.whole.pgoff <= index);
        mappings[..after].last().filter(|mapping| index < mapping.whole.end())
    }

    /// The parts of `from..end` that processes other than `process` map in `layer`, as first page
    /// and end.
    pub fn mapped_by_others(
        &self,
        layer: Layer,
        (from, end): (PageIndex, PageIndex),
        process: u32,
    ) -> impl Iterator<Item = (PageIndex, PageIndex)> {
        let mappings = self.layers.get(layer.0 as usize).map_or(&[][..], Vec::as_slice);
        let first = mappings.partition_point(|mapping| mapping.whole.end() <= from);
        let within = mappings[first..].iter().take_while(move |mapping| mapping.whole.pgoff < end);
        let others = within.filter(move |mapping| mapping.process != process);
        others.map(move |mapping| (mapping.whole.pgoff.max(from), mapping.whole.end().min(end)))
    }

    /// Whether any mapping has recency.
    #[inline]
    pub fn has_recency(&self) -> bool {
        !self.ignores_recency
    }

    /// The pages of `word` mapped with recency in `layer`.
    #[inline]
    pub fn recency_mask(&self, layer: Layer, word: u64) -> u64 {
        if !self.has_mixed_recency {
            return if self.ignores_recency { 0 } else { u64::MAX };
        }
        self.combined_mask(layer, word, |mapping| match mapping.has_recency() {
            Some(true) => word_mask(word, mapping.whole.pgoff, mapping.whole.end()),
            Some(false) => 0,
            None => mapping.recency_mask(word),
        })
    }

    /// The pages of `word` that an executable VMA of `layer` maps.
    #[inline]
    pub fn executable_mask(&self, layer: Layer, word: u64) -> u64 {
        if !self.has_code {
            return 0;
        }
        self.combined_mask(layer, word, |mapping| mapping.executable_mask(word))
    }

    /// Combines the masks returned by `mask_of` for each mapping of `layer` that maps pages of
    /// `word`.
    fn combined_mask(&self, layer: Layer, word: u64, mask_of: impl Fn(&FileMapping) -> u64) -> u64 {
        self.mappings_of_word(layer, word).fold(0, |mask, mapping| mask | mask_of(mapping))
    }

    /// The mappings of `layer` that map pages of `word`.
    fn mappings_of_word(&self, layer: Layer, word: u64) -> impl Iterator<Item = &FileMapping> {
        let mappings = self.layers.get(layer.0 as usize).map_or(&[][..], Vec::as_slice);
        let (start, end) = (PageIndex(word * WORD_PAGES), PageIndex((word + 1) * WORD_PAGES));
        let first = mappings.partition_point(|mapping| mapping.whole.end() <= start);
        mappings[first..].iter().take_while(move |mapping| mapping.whole.pgoff < end)
    }

    fn update_summary(&mut self) {
        self.has_code = self.layers.iter().flatten().any(FileMapping::has_code);
        let mut recency = self.layers.iter().flatten().map(FileMapping::has_recency);
        let first = recency.next().unwrap_or(Some(true));
        self.has_mixed_recency = first.is_none() || recency.any(|other| other != first);
        self.ignores_recency = first == Some(false) && !self.has_mixed_recency;
    }
}

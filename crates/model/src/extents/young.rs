//! Accessed bits of page-table entries: which pages reclaim finds used.

use filemap_core::address::entries::Layer;
use filemap_core::address::reverse_map::FileMappings;
use filemap_core::cache::{WORD_PAGES, word_mask, words};
use filemap_core::lru::reclaim::Referenced;
use filemap_core::units::PageIndex;

use super::Extents;
use super::aliases::Aliases;
use super::file::locate;

/// Accessed entries of base pages in one word.
#[derive(Default)]
pub(super) struct Accessed {
    pub(super) pages: u64,
    /// Those with accessed entries in several layers.
    pub(super) again: u64,
    /// Those with one in an executable VMA.
    pub(super) executable: u64,
}

impl Accessed {
    /// What is believed of the accessed entries in word `number` of the row, which is `word` of its
    /// file: in the first layer those given, in others those of the pages of the mask after them.
    #[inline]
    pub(super) fn of_word(
        (first, mask): (u64, u64),
        number: u64,
        word: u64,
        aliases: &mut Aliases,
        mappings: &FileMappings,
    ) -> Accessed {
        let mut young = Accessed::default();
        if mappings.has_recency() {
            young.add(Layer::FIRST, word, first, mappings);
            if !aliases.is_empty() {
                for (layer, entries) in aliases.of_word(number) {
                    young.add(layer, word, entries.young & mask, mappings);
                }
            }
        }
        young
    }

    /// Adds what of the accessed entries in a layer is believed.
    pub(super) fn add(&mut self, layer: Layer, word: u64, young: u64, mappings: &FileMappings) {
        if young == 0 {
            return;
        }
        let young = young & mappings.believed_mask(layer, word);
        self.again |= self.pages & young;
        self.pages |= young;
        self.executable |= young & mappings.executable_mask(layer, word);
    }
}

impl<const W: usize> Extents<W> {
    /// Clears the accessed bits of a folio, where they are believed. Returns what they were, and
    /// whether the folio is referenced.
    pub(super) fn take_young<'a>(
        &mut self,
        head: u64,
        pages: u64,
        mappings: &'a FileMappings,
    ) -> (Referenced<'a>, bool) {
        let mut young = Referenced::new(mappings);
        let mut referenced = false;
        let mut word = locate(head).1.0 / WORD_PAGES;
        self.set_range(head, head + pages, |flags, mask| {
            referenced |= flags.referenced & mask != 0;
            let believed = mask & mappings.believed_mask(Layer::FIRST, word);
            young.add(Layer::FIRST, word, flags.accessed(believed));
            flags.young &= !believed;
            word += 1;
        });
        if mappings.has_recency() && !self.aliases.is_empty() {
            self.take_young_aliases(head, pages, mappings, &mut young);
        }
        (young, referenced)
    }

    /// [`Extents::take_young`] in all layers but the first.
    fn take_young_aliases(
        &mut self,
        head: u64,
        pages: u64,
        mappings: &FileMappings,
        young: &mut Referenced<'_>,
    ) {
        let (from, end) = (PageIndex(head), PageIndex(head + pages));
        for layer in self.aliases.layers(from, end) {
            for number in words(from, end) {
                let word = locate(number * WORD_PAGES).1.0 / WORD_PAGES;
                let mask = word_mask(number, from, end) & mappings.believed_mask(layer, word);
                let entries = self.aliases.get_or_make(number, layer);
                young.add(layer, word, entries.young & mask);
                entries.young &= !mask;
            }
        }
    }
}

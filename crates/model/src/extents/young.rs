//! Accessed bits of page-table entries, as reclaim sees them.

use filemap_core::address::entries::Layer;
use filemap_core::address::reverse_map::FileMappings;
use filemap_core::cache::{WORD_PAGES, word_mask, words};
use filemap_core::lru::reclaim::Referenced;
use filemap_core::units::PageIndex;

use super::Extents;
use super::aliases::Aliases;
use super::file::locate;

/// Accessed base pages of one word.
#[derive(Default)]
pub(super) struct AccessedPages {
    pub(super) pages: u64,
    /// Pages accessed through several layers.
    pub(super) shared: u64,
    /// Pages accessed through an executable VMA.
    pub(super) executable: u64,
}

impl AccessedPages {
    /// Collects accessed pages of global word `number`, which is `word` of its file, as far as
    /// recency applies: `first` in the first layer, and pages of `mask` in the others.
    #[inline]
    pub(super) fn in_word(
        (first, mask): (u64, u64),
        number: u64,
        word: u64,
        aliases: &mut Aliases,
        mappings: &FileMappings,
    ) -> AccessedPages {
        let mut young = AccessedPages::default();
        if mappings.has_recency() {
            young.add(Layer::FIRST, word, first, mappings);
            if !aliases.is_empty() {
                for (layer, entries) in aliases.word_mut(number) {
                    young.add(layer, word, entries.young & mask, mappings);
                }
            }
        }
        young
    }

    /// Adds the accessed entries of a layer, as far as recency applies.
    pub(super) fn add(&mut self, layer: Layer, word: u64, young: u64, mappings: &FileMappings) {
        if young == 0 {
            return;
        }
        let young = young & mappings.recency_mask(layer, word);
        self.shared |= self.pages & young;
        self.pages |= young;
        self.executable |= young & mappings.executable_mask(layer, word);
    }
}

impl<const W: usize> Extents<W> {
    /// Clears the accessed bits of a folio in mappings with recency. Returns them, and whether the
    /// folio is referenced.
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
            let recency = mask & mappings.recency_mask(Layer::FIRST, word);
            young.add(Layer::FIRST, word, flags.accessed(recency));
            flags.young &= !recency;
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
                let mask = word_mask(number, from, end) & mappings.recency_mask(layer, word);
                let entries = self.aliases.entry(number, layer);
                young.add(layer, word, entries.young & mask);
                entries.young &= !mask;
            }
        }
    }
}

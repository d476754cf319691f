//! Page-table entries of pages mapped by several VMAs: all layers but the first.

use std::collections::BTreeMap;

use filemap_core::address::entries::{Layer, UnmappedPages};
use filemap_core::address::reverse_map::FileMappings;
use filemap_core::cache::{WORD_PAGES, words};
use filemap_core::units::PageIndex;

/// The entries of 64 pages in one layer.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct AliasEntries {
    pub mapped: u64,
    pub young: u64,
    pub copied: u64,
}

/// Entries by word and layer. Most programs have none.
#[derive(Debug, Default)]
pub struct Aliases {
    entries: BTreeMap<(u64, Layer), AliasEntries>,
}

impl Aliases {
    /// Whether there are no such entries.
    pub fn is_empty(&self) -> bool {
        self.entries.is_empty()
    }

    /// The entries of `word` in `layer`.
    #[inline(never)]
    pub fn get(&self, word: u64, layer: Layer) -> AliasEntries {
        self.entries.get(&(word, layer)).copied().unwrap_or_default()
    }

    /// The entries of `word` in `layer`, created if absent.
    #[inline(never)]
    pub fn entry(&mut self, word: u64, layer: Layer) -> &mut AliasEntries {
        self.entries.entry((word, layer)).or_default()
    }

    /// Sets the accessed bit of the entry for `index`, if there is one. Returns whether the page
    /// is mapped in `layer`, or copied.
    #[inline(never)]
    pub fn touch(&mut self, index: PageIndex, layer: Layer) -> bool {
        let Some(entries) = self.entries.get_mut(&(index.0 / WORD_PAGES, layer)) else {
            return false;
        };
        let bit = 1 << (index.0 % WORD_PAGES);
        entries.young |= entries.mapped & bit;
        (entries.mapped | entries.copied) & bit != 0
    }

    /// Replaces `index` in `layer` by a private copy. Returns whether it was none before.
    pub fn copy(&mut self, index: PageIndex, layer: Layer) -> bool {
        let entries = self.entry(index.0 / WORD_PAGES, layer);
        let bit = 1 << (index.0 % WORD_PAGES);
        entries.mapped &= !bit;
        entries.young &= !bit;
        let is_new = entries.copied & bit == 0;
        entries.copied |= bit;
        is_new
    }

    /// The words that have entries in `layer` for the pages `from..end`.
    pub fn words(&self, from: PageIndex, end: PageIndex, layer: Layer) -> Vec<u64> {
        let words = words(from, end);
        let keys = self.entries.range((words.start, Layer::FIRST)..(words.end, Layer::FIRST));
        let of_layer = keys.map(|(&key, _)| key).filter(|(_, entry_layer)| *entry_layer == layer);
        of_layer.map(|(word, _)| word).collect()
    }

    /// Removes the entries and private copies of the pages of `mask` in `word`.
    pub fn unmap(&mut self, word: u64, layer: Layer, mask: u64) -> UnmappedPages {
        let Some(entries) = self.entries.get_mut(&(word, layer)) else {
            return UnmappedPages::default();
        };
        let accessed = entries.mapped & entries.young & mask;
        let (mapped, copied) = (entries.mapped & mask, entries.copied & mask);
        let unmapped = UnmappedPages { mapped, accessed, copied };
        entries.mapped &= !mask;
        entries.young &= !mask;
        entries.copied &= !mask;
        if *entries == AliasEntries::default() {
            self.entries.remove(&(word, layer));
        }
        unmapped
    }

    /// Clears the accessed bits of the entries of the pages of `mask` in `word`. Returns those that
    /// were set.
    pub fn make_old(&mut self, word: u64, layer: Layer, mask: u64) -> u64 {
        let Some(entries) = self.entries.get_mut(&(word, layer)) else { return 0 };
        let young = entries.young & mask;
        entries.young &= !mask;
        young
    }

    /// The first page of `from..end` whose word has such an entry, or `end`.
    #[inline]
    pub fn next(&self, from: u64, end: u64) -> u64 {
        if self.is_empty() || from >= end { end } else { self.next_alias(from, end) }
    }

    #[inline(never)]
    fn next_alias(&self, from: u64, end: u64) -> u64 {
        let first = (from / WORD_PAGES, Layer::FIRST);
        let word = self.entries.range(first..).next().map(|(&(word, _), _)| word * WORD_PAGES);
        word.map_or(end, |page| page.clamp(from, end))
    }

    /// The entries of `word` in every layer that has any.
    pub fn word_mut(&mut self, word: u64) -> impl Iterator<Item = (Layer, &mut AliasEntries)> {
        let layers = (word, Layer::FIRST)..(word + 1, Layer::FIRST);
        self.entries.range_mut(layers).map(|(&(_, layer), entries)| (layer, entries))
    }

    /// Clears accessed bits of the pages of `mask` in global word `number`, which is `word` of its
    /// file, in mappings with recency.
    #[inline]
    pub fn forget_accesses(&mut self, number: u64, word: u64, mask: u64, mappings: &FileMappings) {
        if self.is_empty() {
            return;
        }
        for (layer, entries) in self.word_mut(number) {
            entries.young &= !(mask & mappings.recency_mask(layer, word));
        }
    }

    /// The layers that have entries for the pages `from..end`, lowest first.
    pub fn layers(&self, from: PageIndex, end: PageIndex) -> Vec<Layer> {
        let words = words(from, end);
        let keys = self.entries.range((words.start, Layer::FIRST)..(words.end, Layer::FIRST));
        let mut layers: Vec<_> = keys.map(|(&(_, layer), _)| layer).collect();
        layers.sort_unstable();
        layers.dedup();
        layers
    }

    /// Forgets the entries of the pages of `mask` in `word`, which leave the cache.
    pub fn clear(&mut self, word: u64, mask: u64) {
        for (_, entries) in self.word_mut(word) {
            entries.mapped &= !mask;
            entries.young &= !mask;
        }
    }
}

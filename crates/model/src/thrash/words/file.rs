//! One file of the cache, and its entries.

use filemap_core::address::entries::{MappedFile, Pages, Unmapped};
use filemap_core::cache::{FileCache, Folio, WORD_PAGES, by_word, word_mask, words};
use filemap_core::lru::reclaim::used_pages;
use filemap_core::units::{Order, PageCount, PageIndex};

use super::{Word, WordCache};

/// A word behind the end of a file.
const EMPTY: Word = Word {
    present: 0,
    locked: 0,
    marked: 0,
    mapped: 0,
    young: 0,
    referenced: 0,
    active: 0,
    workingset: 0,
};

/// One file of the cache.
pub struct WordFile<'a> {
    pub cache: &'a mut WordCache,
    /// Its first page in the cache.
    pub first: u64,
}

impl WordFile<'_> {
    fn word(&self, index: PageIndex) -> (&Word, u64) {
        let (number, bit) = (index.0 / WORD_PAGES, 1 << (index.0 % WORD_PAGES));
        if number >= self.cache.file_words {
            // Searches go on behind the end of the file, where nothing is cached.
            return (&EMPTY, bit);
        }
        (&self.cache.words[(self.first / WORD_PAGES + number) as usize], bit)
    }

    fn word_mut(&mut self, index: PageIndex) -> (&mut Word, u64) {
        let page = self.first + index.0;
        (&mut self.cache.words[(page / WORD_PAGES) as usize], 1 << (page % WORD_PAGES))
    }

    /// The first page of `from..end` that is cached, or that is not.
    fn find(&self, from: PageIndex, end: PageIndex, cached: bool) -> PageIndex {
        for number in words(from, end) {
            let present = self.word(PageIndex(number * WORD_PAGES)).0.present;
            let found = if cached { present } else { !present } & word_mask(number, from, end);
            if found != 0 {
                return PageIndex(number * WORD_PAGES + u64::from(found.trailing_zeros()));
            }
        }
        end
    }
}

impl FileCache for WordFile<'_> {
    fn folio(&self, head: PageIndex) -> Option<Folio> {
        let (word, bit) = self.word(head);
        let (locked, marked) = (word.locked & bit != 0, word.marked & bit != 0);
        (word.present & bit != 0).then_some(Folio { head, order: Order(0), locked, marked })
    }

    fn next_absent(&self, from: PageIndex, end: PageIndex) -> PageIndex {
        self.find(from, end, false)
    }

    fn next_present(&self, from: PageIndex, end: PageIndex) -> PageIndex {
        self.find(from, end, true)
    }

    fn previous_absent(&self, last: PageIndex, floor: PageIndex) -> Option<PageIndex> {
        words(floor, last + PageCount(1)).rev().find_map(|number| {
            let present = self.word(PageIndex(number * WORD_PAGES)).0.present;
            let absent = !present & word_mask(number, floor, last + PageCount(1));
            let last = absent.checked_ilog2()?;
            Some(PageIndex(number * WORD_PAGES + u64::from(last)))
        })
    }

    fn cached(&self, from: PageIndex, end: PageIndex) -> PageCount {
        let of_word = |number| {
            let present = self.word(PageIndex(number * WORD_PAGES)).0.present;
            u64::from((present & word_mask(number, from, end)).count_ones())
        };
        PageCount(words(from, end).map(of_word).sum())
    }

    fn clear_mark(&mut self, index: PageIndex) {
        let (word, bit) = self.word_mut(index);
        word.marked &= !bit;
    }

    fn set_referenced(&mut self, index: PageIndex) {
        let (word, bit) = self.word_mut(index);
        word.referenced |= word.present & bit;
    }

    fn mark_accessed(&mut self, index: PageIndex) {
        self.mark_pages_accessed(index.0 / WORD_PAGES, 1 << (index.0 % WORD_PAGES));
    }

    fn mark_pages_accessed(&mut self, word: u64, mask: u64) {
        let number = self.first / WORD_PAGES + word;
        let cache = &mut *self.cache;
        let word = &mut cache.words[number as usize];
        let used = used_pages(mask & word.present, word.referenced, word.active);
        word.referenced = word.referenced & !used.activate | used.reference;
        word.active |= used.activate;
        if used.activate != 0 {
            cache.leave_inactive(number, used.activate);
        }
    }
}

impl MappedFile for WordFile<'_> {
    fn pages(&self, word: u64, _: u64) -> Pages {
        let word = self.word(PageIndex(word * WORD_PAGES)).0;
        Pages {
            present: word.present,
            large: 0,
            locked: word.locked,
            marked: word.marked,
            workingset: word.workingset & word.present,
            mapped: word.mapped,
            copied: 0,
        }
    }

    fn map(&mut self, word: u64, mask: u64, young: u64) {
        let word = self.word_mut(PageIndex(word * WORD_PAGES)).0;
        word.mapped |= mask;
        word.young |= young;
    }

    fn touch_to(&mut self, from: PageIndex, end: PageIndex) -> PageIndex {
        let first = self.first;
        for (number, mask) in by_word(PageIndex(first + from.0), PageIndex(first + end.0)) {
            let word = &mut self.cache.words[number as usize];
            let unmapped = mask & !word.mapped;
            let before = unmapped.wrapping_sub(1) & !unmapped;
            word.young |= mask & before;
            if unmapped != 0 {
                let page = number * WORD_PAGES + u64::from(unmapped.trailing_zeros());
                return PageIndex(page - first);
            }
        }
        end
    }

    #[inline]
    fn touch(&mut self, index: PageIndex) -> bool {
        let (word, bit) = self.word_mut(index);
        let is_mapped = word.mapped & bit != 0;
        word.young |= word.mapped & bit;
        is_mapped
    }

    fn copy(&mut self, _: PageIndex) {
        unreachable!("these files are only read")
    }

    fn words_with_entries(&self, from: PageIndex, end: PageIndex) -> Vec<u64> {
        let has_entries = |number: &u64| {
            self.word(PageIndex(number * WORD_PAGES)).0.mapped & word_mask(*number, from, end) != 0
        };
        words(from, end).filter(has_entries).collect()
    }

    fn unmap(&mut self, word: u64, mask: u64) -> Unmapped {
        let word = self.word_mut(PageIndex(word * WORD_PAGES)).0;
        let mapped = word.mapped & mask;
        let accessed = mapped & word.young;
        word.mapped &= !mask;
        word.young &= !mask;
        Unmapped { mapped, accessed, copied: 0 }
    }
}

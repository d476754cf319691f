//! The page cache of many small files in base pages: a word of 64 pages is a cache line.

mod file;

use std::collections::BTreeMap;

use filemap_core::address::entries::{Layer, MappedFile};
use filemap_core::address::reverse_map::ReverseMap;
use filemap_core::cache::{FileCache, FolioRun, WORD_PAGES, by_word, up_to_bit};
use filemap_core::decision::{EvictionRun, Log};
use filemap_core::lru::lists::{Lists, Scan, Shrunk};
use filemap_core::lru::reclaim::{BATCH, judge_pages};
use filemap_core::lru::statistics::Known;
use filemap_core::lru::workingset;
use filemap_core::page_cache::PageCache;
use filemap_core::units::{FileId, Order, PageCount, PageIndex};

use self::file::WordFile;
use crate::extents::lists::{Extent, List, bits, runs};

/// The page cache of files that are as large as each other, in base pages, each mapped once and
/// only read.
///
/// [`crate::extents::ExtentCache`] is made for few large files of which much is cached, this for
/// many small ones of which little is. Both decide alike (`tests/thrash_caches.rs`).
#[derive(Debug)]
pub struct WordCache {
    words: Vec<Word>,
    /// Words of one file.
    file_words: u64,
    /// What was evicted, by page: the clock behind it, or 0.
    evicted: Vec<u64>,
    inactive: List,
    active: List,
    /// Entries of the inactive list whose page has left it from the middle, by word; and how many
    /// more than one there are of a page.
    stale: Vec<u64>,
    stale_again: BTreeMap<u64, u32>,
    stale_entries: u64,
    nodes: u64,
    clock: u64,
    known: Known,
    capacity: u64,
}

/// 64 pages: what each of them is, and their entries.
#[derive(Clone, Copy, Debug, Default)]
#[repr(align(64))]
struct Word {
    present: u64,
    locked: u64,
    marked: u64,
    mapped: u64,
    young: u64,
    referenced: u64,
    active: u64,
    /// Also of pages that were evicted.
    workingset: u64,
}

/// The word at the tail of `list`, and its pages there: at most `most`.
fn tail_word(list: &List, most: u64) -> Option<(u64, u64)> {
    let Extent { start, pages, .. } = list.tail()?;
    let offset = start % WORD_PAGES;
    let pages = pages.min(WORD_PAGES - offset).min(most);
    Some((start / WORD_PAGES, bits(pages as u32) << offset))
}

impl WordCache {
    /// An empty cache of `files` files of `file_pages` pages, which never holds more than
    /// `capacity` pages.
    pub fn new(files: usize, file_pages: PageCount, capacity: Option<PageCount>) -> WordCache {
        let file_words = file_pages.0.div_ceil(WORD_PAGES);
        let count = files * file_words as usize;
        WordCache {
            words: vec![Word::default(); count],
            file_words,
            evicted: vec![0; count * WORD_PAGES as usize],
            inactive: List::default(),
            active: List::default(),
            stale: vec![0; count],
            stale_again: BTreeMap::new(),
            stale_entries: 0,
            nodes: 0,
            clock: 0,
            known: Known::default(),
            capacity: capacity.map_or(u64::MAX, |pages| pages.0),
        }
    }

    fn first_page(&self, file: FileId) -> u64 {
        file.number() as u64 * self.file_words * WORD_PAGES
    }

    /// The file that a word belongs to, and its number there.
    fn locate(&self, word: u64) -> (FileId, u64) {
        (FileId::new((word / self.file_words) as u32), word % self.file_words)
    }

    fn each_word(
        &mut self,
        file: FileId,
        from: PageIndex,
        pages: PageCount,
        mut change: impl FnMut(&mut Word, u64),
    ) {
        let first = self.first_page(file) + from.0;
        for (word, mask) in by_word(PageIndex(first), PageIndex(first + pages.0)) {
            change(&mut self.words[word as usize], mask);
        }
    }

    /// The pages of `word` whose accessed bits reclaim believes.
    fn believed(&self, word: u64, mappings: &ReverseMap) -> u64 {
        let (file, number) = self.locate(word);
        let mappings = mappings.of(file);
        if mappings.has_recency() { mappings.believed_mask(Layer::FIRST, number) } else { 0 }
    }

    /// How many of `pages` entries of the inactive list, those of page `first` and of the pages
    /// behind it, are of locked pages, before the first that is not.
    fn locked_from(&self, first: u64, pages: u64) -> u64 {
        let mut found = 0;
        while found < pages {
            let (number, offset) = ((first + found) / WORD_PAGES, (first + found) % WORD_PAGES);
            let stale = if self.stale_entries == 0 { 0 } else { self.stale[number as usize] };
            let locked = (self.words[number as usize].locked & !stale) >> offset;
            let count = u64::from(locked.trailing_ones());
            found += count;
            if count < WORD_PAGES - offset {
                break;
            }
        }
        found.min(pages)
    }

    /// Judges pages at the tail that lie in one word, `left` at most, until `goal` are evicted.
    fn shrink_word(
        &mut self,
        (goal, left): (u64, u64),
        mappings: &ReverseMap,
        shrunk: &mut Shrunk,
        run: &mut EvictionRun,
        log: &mut impl Log,
    ) -> u64 {
        let (number, mut mask) =
            tail_word(&self.inactive, left).expect("pages are left on the list");
        let believed = self.believed(number, mappings);
        let stale = if self.stale_entries == 0 { 0 } else { self.stale[number as usize] & mask };
        let word = &mut self.words[number as usize];
        let young = word.mapped & word.young & believed & mask;
        let pages = mask & !stale & !word.locked;
        let mut verdicts = judge_pages(pages, young, word.referenced, 0);
        let mapped = word.mapped;
        if u64::from(verdicts.evict.count_ones()) >= goal {
            mask &= up_to_bit(verdicts.evict, goal);
            verdicts.evict &= mask;
            verdicts.keep &= mask;
            verdicts.activate &= mask;
        }
        let stale = stale & mask;
        let locked = word.locked & mask & !stale;
        let stays = verdicts.keep | verdicts.activate;
        word.young &= !(stays & believed);
        word.referenced |= stays;
        word.active |= verdicts.activate;
        let looked = u64::from((mask & !stale).count_ones());
        self.inactive.take(mask.count_ones().into(), looked);
        self.inactive.push_mask(number * WORD_PAGES, verdicts.keep | locked);
        self.active.push_mask(number * WORD_PAGES, verdicts.activate);
        if stale != 0 {
            self.take_stale(number, stale);
        }
        if verdicts.evict != 0 {
            self.evict(number, verdicts.evict, run, log);
        }
        let evicted = u64::from(verdicts.evict.count_ones());
        shrunk.evicted += PageCount(evicted);
        shrunk.unmapped += PageCount((verdicts.evict & mapped).count_ones().into());
        shrunk.kept += PageCount(looked - evicted);
        shrunk.locked += PageCount(locked.count_ones().into());
        shrunk.activated += PageCount(verdicts.activate.count_ones().into());
        looked
    }

    fn evict(&mut self, number: u64, mask: u64, run: &mut EvictionRun, log: &mut impl Log) {
        let word = &mut self.words[number as usize];
        for of in [
            &mut word.present,
            &mut word.mapped,
            &mut word.young,
            &mut word.marked,
            &mut word.referenced,
            &mut word.active,
        ] {
            *of &= !mask;
        }
        self.nodes -= u64::from(word.present == 0);
        let (file, of_file) = self.locate(number);
        for (offset, pages) in runs(mask) {
            let first = number * WORD_PAGES + offset;
            for (clock, page) in (self.clock + 1..).zip(first..first + pages) {
                self.evicted[page as usize] = clock;
            }
            self.clock += pages;
            run.push(file, PageIndex(of_file * WORD_PAGES + offset), PageCount(pages), log);
        }
    }

    /// Puts pages of a word that were added on the lists where their last evictions say.
    fn enter(&mut self, number: u64, mask: u64) {
        let active = self.known.statistics.active;
        if active == PageCount(0) {
            self.words[number as usize].workingset &= !mask;
            self.inactive.push_mask(number * WORD_PAGES, mask);
            return;
        }
        let first = number * WORD_PAGES;
        let (mut rest, mut returning) = (mask, 0);
        while rest != 0 {
            let bit = rest & rest.wrapping_neg();
            rest ^= bit;
            let left = self.evicted[(first + u64::from(bit.trailing_zeros())) as usize];
            let returns = left.checked_sub(1).is_some_and(|clock| {
                workingset::is_kept(self.clock, clock, self.capacity)
                    && workingset::is_recent(self.clock, clock, active)
            });
            if returns {
                self.clock += 1;
                returning |= bit;
            }
        }
        let word = &mut self.words[number as usize];
        word.active |= returning;
        word.workingset &= !mask | returning;
        self.inactive.push_mask(first, mask & !returning);
        let pages = self.active.push_mask(first, returning);
        self.known.refaults.count(PageCount(pages));
    }

    /// Pages of a word go from the inactive list, wherever they stand there, to the active one.
    fn leave_inactive(&mut self, number: u64, mask: u64) {
        let mut again = self.stale[number as usize] & mask;
        while again != 0 {
            let page = number * WORD_PAGES + u64::from(again.trailing_zeros());
            *self.stale_again.entry(page).or_default() += 1;
            again &= again - 1;
        }
        self.stale[number as usize] |= mask;
        let pages = self.active.push_mask(number * WORD_PAGES, mask);
        self.stale_entries += pages;
        self.inactive.pages -= pages;
        self.clock += pages;
    }

    fn take_stale(&mut self, number: u64, mask: u64) {
        let mut rest = mask;
        while rest != 0 {
            let bit = rest & rest.wrapping_neg();
            rest ^= bit;
            let page = number * WORD_PAGES + u64::from(bit.trailing_zeros());
            self.stale_entries -= 1;
            match self.stale_again.get_mut(&page) {
                Some(1) => drop(self.stale_again.remove(&page)),
                Some(more) => *more -= 1,
                None => self.stale[number as usize] &= !bit,
            }
        }
    }
}

impl Lists for WordCache {
    fn inactive(&self) -> PageCount {
        PageCount(self.inactive.pages)
    }

    fn active(&self) -> PageCount {
        PageCount(self.active.pages)
    }

    fn known(&self) -> Known {
        self.known
    }

    fn known_mut(&mut self) -> &mut Known {
        &mut self.known
    }

    fn age(&mut self, pages: PageCount, mappings: &ReverseMap) {
        let mut left = pages.0.min(self.active.pages);
        while left > 0 {
            let (number, mask) = tail_word(&self.active, left).expect("pages are left on the list");
            let believed = self.believed(number, mappings);
            let word = &mut self.words[number as usize];
            word.young &= !(mask & believed);
            word.active &= !mask;
            word.workingset |= mask;
            let moved = mask.count_ones().into();
            self.active.take(moved, moved);
            self.inactive.push_mask(number * WORD_PAGES, mask);
            left -= moved;
        }
    }

    fn shrink(&mut self, scan: Scan, mappings: &ReverseMap, log: &mut impl Log) -> Shrunk {
        let mut shrunk = Shrunk::default();
        let mut run = EvictionRun::default();
        let mut left = self.inactive.pages.min(scan.look.0);
        while shrunk.evicted < scan.goal && left > 0 {
            let goal = (scan.goal - shrunk.evicted).0;
            left -= self.shrink_word((goal, left), mappings, &mut shrunk, &mut run, log);
        }
        run.flush(log);
        self.clock += shrunk.activated.0;
        shrunk
    }

    fn pass_locked(&mut self, most: u64) -> u64 {
        let (most, mut found) = (most * BATCH.0, 0);
        for Extent { start, pages, .. } in self.inactive.tail_first() {
            let pages = pages.min(most - found);
            let locked = self.locked_from(start, pages);
            found += locked;
            if locked < pages || found == most {
                break;
            }
        }
        let batches = found / BATCH.0;
        self.inactive.rotate(batches * BATCH.0);
        batches
    }
}

impl PageCache for WordCache {
    fn held_bytes(&self) -> u64 {
        let words = self.words.len() as u64 * (64 + 8 + 8 * WORD_PAGES);
        words + self.inactive.held_bytes() + self.active.held_bytes()
    }

    fn file(&mut self, file: FileId) -> impl FileCache {
        WordFile { first: self.first_page(file), cache: self }
    }

    fn mapped(&mut self, file: FileId, layer: Layer) -> impl MappedFile {
        assert_eq!(layer, Layer::FIRST, "a file is mapped once");
        WordFile { first: self.first_page(file), cache: self }
    }

    fn add(&mut self, file: FileId, run: FolioRun) {
        assert_eq!(run.order, Order(0), "files are cached in base pages");
        let first = self.first_page(file) + run.start.0;
        for (number, mask) in by_word(PageIndex(first), PageIndex(first + run.folios)) {
            let word = &mut self.words[number as usize];
            self.nodes += u64::from(word.present == 0);
            word.present |= mask;
            word.locked |= mask;
            self.enter(number, mask);
        }
        if let Some(marked) = run.marked {
            self.each_word(file, marked, PageCount(1), |word, mask| word.marked |= mask);
        }
    }

    fn unlock(&mut self, file: FileId, start: PageIndex, pages: PageCount) {
        self.each_word(file, start, pages, |word, mask| word.locked &= !mask);
    }

    fn invalidate(&mut self, _: FileId, _: PageIndex, _: PageIndex, _: &mut impl Log) -> PageCount {
        unreachable!("nobody drops pages of these files")
    }

    fn lock(&mut self, file: FileId, start: PageIndex, pages: PageCount) {
        self.each_word(file, start, pages, |word, mask| word.locked |= mask);
    }

    fn nodes(&self) -> u64 {
        self.nodes
    }
}

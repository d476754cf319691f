//! The state of each page of a file.

use std::collections::BTreeMap;

use filemap_core::units::{PageCount, PageIndex};

use super::origin::{Origin, PageTotal, PerOrigin, SourceTotal};
use super::ranges::{FileRanges, PageRegion};
use super::recorder::{HistoryRecorder, Mark};

/// The pages of a file that were ever cached, with their origins.
#[derive(Debug)]
pub(super) struct PageHistory {
    chunks: BTreeMap<u64, Box<[CachedPage; CHUNK_PAGES as usize]>>,
    pub(super) mapped: FileRanges,
    /// Pages by cause, counted when they leave the cache or in [`PageHistory::settle_rest`].
    pub(super) totals: PerOrigin<PageTotal>,
    pub(super) sources: PerOrigin<SourceTotal>,
    pub(super) evicted: u64,
    /// Accesses to pages that are not cached according to the log.
    pub(super) absent_touches: u64,
    /// The history of the file, if one is recorded.
    pub(super) recorder: Option<HistoryRecorder>,
}

const CHUNK_PAGES: u64 = 4096;

#[derive(Clone, Copy, Debug)]
struct CachedPage {
    /// Origin of its last read.
    by: Origin,
    flags: u8,
    /// Time of its last read.
    mark: Mark,
}

const PRESENT: u8 = 1;
/// Accessed since it was read.
const TOUCHED: u8 = 2;
/// Accessed during an earlier stay in the cache.
const USED_BEFORE: u8 = 4;
/// Was cached before.
const IN_BEFORE: u8 = 8;
/// Lies in a mapped or read range.
const MAPPED: u8 = 16;
/// Lies between two segments.
const BETWEEN: u8 = 32;
/// An access in progress reads it.
const REQUESTED: u8 = 64;

impl PageHistory {
    pub(super) fn new(mapped: FileRanges, recorder: Option<HistoryRecorder>) -> Self {
        PageHistory {
            recorder,
            chunks: BTreeMap::new(),
            mapped,
            totals: PerOrigin::default(),
            sources: PerOrigin::default(),
            evicted: 0,
            absent_touches: 0,
        }
    }

    /// Records that pages `start..end` entered the cache. A page that was cached according to the
    /// log has left in between.
    pub(super) fn add(&mut self, start: PageIndex, end: PageIndex, by: Origin) {
        self.sources.get_mut(by).pages += (end - start).0;
        let mark = self.recorder.as_mut().map(|recorder| recorder.add((end - start).0));
        self.each(start, end, |pages, index, page| {
            if page.flags & PRESENT != 0 {
                pages.settle(index, *page);
                page.leave();
            }
            page.by = by;
            page.mark = mark.unwrap_or_default();
            page.flags |= PRESENT;
            if page.flags & REQUESTED != 0 {
                page.flags = page.flags & !REQUESTED | TOUCHED;
                pages.recorder.iter_mut().for_each(HistoryRecorder::touch);
            }
        });
    }

    /// Records the start of an access to a page, which reads it unless it is cached.
    pub(super) fn request(&mut self, index: PageIndex) {
        self.each(index, index + PageCount(1), |pages, _, page| {
            if page.flags & PRESENT == 0 {
                page.flags |= REQUESTED;
            } else if page.flags & TOUCHED == 0 {
                pages.recorder.iter_mut().for_each(HistoryRecorder::touch);
                page.flags |= TOUCHED;
            }
        });
    }

    /// The origin of a page's last read.
    pub(super) fn origin(&self, index: PageIndex) -> Origin {
        let chunk = self.chunks.get(&(index.0 / CHUNK_PAGES));
        chunk.map_or(Origin::Single, |chunk| chunk[(index.0 % CHUNK_PAGES) as usize].by)
    }

    /// Records that pages `start..end` left the cache.
    pub(super) fn evict(&mut self, start: PageIndex, end: PageIndex) {
        self.each(start, end, |pages, index, page| {
            if page.flags & PRESENT != 0 {
                pages.evicted += 1;
                pages.settle(index, *page);
                page.leave();
            }
        });
    }

    /// Records an access to a page.
    pub(super) fn touch(&mut self, index: PageIndex) {
        self.each(index, index + PageCount(1), |pages, _, page| {
            if page.flags & PRESENT == 0 {
                pages.absent_touches += 1;
                return;
            }
            if page.flags & TOUCHED == 0 {
                pages.recorder.iter_mut().for_each(HistoryRecorder::touch);
            }
            page.flags |= TOUCHED;
        });
    }

    /// Counts the pages that are still cached.
    pub(super) fn settle_rest(&mut self) {
        let chunks = std::mem::take(&mut self.chunks);
        for (number, chunk) in &chunks {
            let indexes = (number * CHUNK_PAGES..).map(PageIndex);
            for (index, page) in indexes.zip(chunk.iter()) {
                if page.flags & PRESENT != 0 {
                    self.settle(index, *page);
                }
            }
        }
        self.chunks = chunks;
    }

    /// Each page that was ever cached, in order: whether it was ever accessed, and whether it is
    /// cached now.
    pub(super) fn ever_cached(&self) -> impl DoubleEndedIterator<Item = (PageIndex, bool, bool)> {
        self.chunks.iter().flat_map(|(number, chunk)| {
            let first = number * CHUNK_PAGES;
            chunk.iter().enumerate().filter_map(move |(offset, page)| {
                let was_in = page.flags & (PRESENT | IN_BEFORE) != 0;
                let touched = page.flags & (TOUCHED | USED_BEFORE) != 0;
                was_in.then_some((
                    PageIndex(first + offset as u64),
                    touched,
                    page.flags & PRESENT != 0,
                ))
            })
        })
    }

    fn settle(&mut self, index: PageIndex, page: CachedPage) {
        let touched = page.flags & TOUCHED != 0;
        if let Some(recorder) = &mut self.recorder {
            recorder.settle(index, page.mark, touched);
        }
        let origin = match touched {
            true if page.flags & USED_BEFORE != 0 => Origin::Refetched,
            true => Origin::Used,
            false if page.flags & MAPPED != 0 => page.by,
            false if page.flags & BETWEEN != 0 => Origin::BetweenSegments,
            false => Origin::BeyondMapping,
        };
        let total = self.totals.get_mut(origin);
        total.pages += 1;
        total.again += u64::from(page.flags & IN_BEFORE != 0);
        self.sources.get_mut(page.by).used += u64::from(touched);
    }

    /// Calls `change` for each page of `start..end`.
    fn each(
        &mut self,
        start: PageIndex,
        end: PageIndex,
        mut change: impl FnMut(&mut PageHistory, PageIndex, &mut CachedPage),
    ) {
        let mut next = start.0;
        while next < end.0 {
            let number = next / CHUNK_PAGES;
            let stop = end.0.min((number + 1) * CHUNK_PAGES);
            // Removed from the map meanwhile, so that `change` can borrow the rest.
            let mut chunk = self.chunks.remove(&number).unwrap_or_else(|| self.chunk(number));
            let range = (next % CHUNK_PAGES) as usize..(stop - number * CHUNK_PAGES) as usize;
            for (index, page) in (next..).zip(&mut chunk[range]) {
                change(self, PageIndex(index), page);
            }
            self.chunks.insert(number, chunk);
            next = stop;
        }
    }

    fn chunk(&self, number: u64) -> Box<[CachedPage; CHUNK_PAGES as usize]> {
        let mut chunk =
            Box::new([CachedPage { by: Origin::Single, flags: 0, mark: 0 }; CHUNK_PAGES as usize]);
        for (index, page) in (number * CHUNK_PAGES..).zip(chunk.iter_mut()) {
            page.flags = match self.mapped.region(PageIndex(index)) {
                PageRegion::Inside => MAPPED,
                PageRegion::BetweenSegments => BETWEEN,
                PageRegion::Outside => 0,
            };
        }
        chunk
    }
}

impl CachedPage {
    fn leave(&mut self) {
        if self.flags & TOUCHED != 0 {
            self.flags |= USED_BEFORE;
        }
        self.flags = self.flags & !(PRESENT | TOUCHED) | IN_BEFORE;
    }
}

//! Which pages of a file readahead was already requested for, so that they are not requested again.

use std::collections::HashMap;

use filemap_policy::PageRange;

/// Pages per bitmap block.
const BLOCK_PAGES: u64 = 512;

/// Maximum number of blocks per file. Beyond it the whole set is cleared.
const MAX_BLOCKS: usize = 16 << 10;

/// A major fault on a page this long after its request means that the page was reclaimed, or never
/// read; before that, its read may still be under way.
const LIKELY_READ_NS: u64 = 1_000_000_000;

/// Pages of a file that were requested and are probably cached. A bitmap by block.
#[derive(Debug, Default)]
pub struct RequestedPages(HashMap<u64, PageBlock>);

#[derive(Debug)]
struct PageBlock {
    pages: [u64; BLOCK_PAGES as usize / 64],
    /// When a page of the block was last requested.
    at_ns: u64,
}

impl RequestedPages {
    /// Marks `pages` as requested at `now_ns`. Returns the runs of pages that were not marked
    /// before.
    pub fn request(&mut self, pages: PageRange, now_ns: u64) -> Vec<PageRange> {
        let mut fresh: Vec<PageRange> = Vec::new();
        if self.0.len() > MAX_BLOCKS {
            self.0.clear();
        }
        for page in pages.first..pages.end {
            let block =
                self.0.entry(page / BLOCK_PAGES).or_insert_with(|| PageBlock::empty(now_ns));
            let (word, bit) = ((page % BLOCK_PAGES / 64) as usize, 1 << (page % 64));
            block.at_ns = now_ns;
            if block.pages[word] & bit != 0 {
                continue;
            }
            block.pages[word] |= bit;
            match fresh.last_mut() {
                Some(last) if last.end == page => last.end += 1,
                _ => fresh.push(PageRange { first: page, end: page + 1 }),
            }
        }
        fresh
    }

    /// Records a major fault on `page`. If the page should have been cached by now, its whole block
    /// is forgotten: pages that were read together are usually reclaimed together.
    pub fn on_major_fault(&mut self, page: u64, now_ns: u64) {
        let Some(block) = self.0.get(&(page / BLOCK_PAGES)) else { return };
        let was_asked = block.pages[(page % BLOCK_PAGES / 64) as usize] & 1 << (page % 64) != 0;
        if was_asked && now_ns.saturating_sub(block.at_ns) > LIKELY_READ_NS {
            self.0.remove(&(page / BLOCK_PAGES));
        }
    }

    /// Unmarks `pages`, whose request was dropped.
    pub fn forget(&mut self, pages: PageRange) {
        for page in pages.first..pages.end {
            if let Some(block) = self.0.get_mut(&(page / BLOCK_PAGES)) {
                block.pages[(page % BLOCK_PAGES / 64) as usize] &= !(1 << (page % 64));
            }
        }
    }
}

impl PageBlock {
    fn empty(at_ns: u64) -> PageBlock {
        PageBlock { pages: [0; BLOCK_PAGES as usize / 64], at_ns }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn pages(first: u64, end: u64) -> PageRange {
        PageRange { first, end }
    }

    #[test]
    fn requests_no_likely_cached_page_twice() {
        let mut asked = RequestedPages::default();
        assert_eq!(asked.request(pages(500, 530), 0), [pages(500, 530)]);
        assert_eq!(asked.request(pages(500, 530), 0), []);
        assert_eq!(asked.request(pages(490, 540), 0), [pages(490, 500), pages(530, 540)]);
        asked.on_major_fault(505, LIKELY_READ_NS);
        assert_eq!(asked.request(pages(505, 506), LIKELY_READ_NS), [], "it may be on its way");
        asked.on_major_fault(505, 3 * LIKELY_READ_NS);
        assert_eq!(asked.request(pages(500, 530), 3 * LIKELY_READ_NS), [pages(500, 512)]);
        asked.forget(pages(529, 531));
        assert_eq!(asked.request(pages(520, 540), 3 * LIKELY_READ_NS), [pages(529, 531)]);
    }
}

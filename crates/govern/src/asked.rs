//! Which pages of a file were asked for, so that they are not asked for again.

use std::collections::HashMap;

use filemap_policy::Pages;

/// Pages of a block.
const BLOCK_PAGES: u64 = 512;

/// Blocks of one file of which is known what was asked for. Of more, all is forgotten.
const MAX_BLOCKS: usize = 16 << 10;

/// A page that is missing so long after it was asked for has left the page cache again, or was
/// never read.
const LIKELY_READ_NS: u64 = 1_000_000_000;

/// Pages of a file that were asked for and are likely cached.
#[derive(Debug, Default)]
pub struct RequestedPages(HashMap<u64, PageBlock>);

#[derive(Debug)]
struct PageBlock {
    pages: [u64; BLOCK_PAGES as usize / 64],
    /// When a page of it was asked for last.
    at_ns: u64,
}

impl RequestedPages {
    /// Takes `pages` for asked at `now_ns`, and returns those that were not, as ranges.
    pub fn request(&mut self, pages: Pages, now_ns: u64) -> Vec<Pages> {
        let mut fresh: Vec<Pages> = Vec::new();
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
                _ => fresh.push(Pages { first: page, end: page + 1 }),
            }
        }
        fresh
    }

    /// Hears that `page` was missing at `now_ns`. If it should have been there, what was read with
    /// it is likely gone too.
    pub fn on_major_fault(&mut self, page: u64, now_ns: u64) {
        let Some(block) = self.0.get(&(page / BLOCK_PAGES)) else { return };
        let was_asked = block.pages[(page % BLOCK_PAGES / 64) as usize] & 1 << (page % 64) != 0;
        if was_asked && now_ns.saturating_sub(block.at_ns) > LIKELY_READ_NS {
            self.0.remove(&(page / BLOCK_PAGES));
        }
    }

    /// Forgets `pages`, which were not read after all.
    pub fn forget(&mut self, pages: Pages) {
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

    fn pages(first: u64, end: u64) -> Pages {
        Pages { first, end }
    }

    #[test]
    fn no_page_is_asked_for_twice_while_it_is_likely_cached() {
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

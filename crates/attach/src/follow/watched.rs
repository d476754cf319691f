//! A range of addresses of which the page table is looked at.

use roaring::RoaringBitmap;

use super::scan::PageTable;
use crate::MappedRange;

/// A range whose touches are told, and its pages that have an entry, by their number in it.
#[derive(Debug)]
pub struct Watched {
    range: MappedRange,
    present: RoaringBitmap,
    is_new: bool,
    tells_first: bool,
}

impl Watched {
    /// Of a range of which nothing was looked at. Whether the pages that have an entry at the first
    /// look are told is said by `tells_first`.
    pub fn new(range: MappedRange, tells_first: bool) -> Watched {
        Watched { range, present: RoaringBitmap::new(), is_new: true, tells_first }
    }

    pub fn is(&self, range: &MappedRange) -> bool {
        self.range.address == range.address
    }

    /// Tells the addresses of pages that have an entry, and had none at the last look.
    pub fn scan(&mut self, page_table: &PageTable, mut tell: impl FnMut(u64)) {
        let page_bytes = rustix::param::page_size() as u64;
        let begin = self.range.address;
        let number = |address: u64| ((address - begin) / page_bytes) as u32;
        let tells = !self.is_new || self.tells_first;
        let mut until = 0;
        page_table.scan(begin, self.range.end(), |region| {
            let pages = number(region.start)..number(region.end);
            // What had an entry and has none is told again when it has.
            self.present.remove_range(until..pages.start);
            until = pages.end;
            let mut new = RoaringBitmap::new();
            new.insert_range(pages);
            new -= &self.present;
            if tells {
                new.iter().for_each(|page| tell(begin + u64::from(page) * page_bytes));
            }
            self.present |= new;
        });
        self.present.remove_range(until..=u32::MAX);
        self.is_new = false;
    }
}

//! What an address space uses of memory, as `smaps` tells it.

use super::space::AddressSpace;
use crate::mapcount::Mapcount;
use crate::order::Order;

/// Memory of an address space, in pages.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub struct Resident {
    /// Pages that are mapped.
    pub rss: usize,
    /// Each page divided by the number of its mappings.
    pub pss: f64,
    /// Pages that nobody else maps.
    pub uss: usize,
}

impl<C: Mapcount> AddressSpace<C> {
    /// What the counters say of this address space.
    ///
    /// Where pages have no counts, a page is mapped as often as its folio's pages are on average,
    /// and is nobody else's if the folio is exclusive. So USS may be too low, never too high.
    pub fn resident(&self) -> Resident {
        let mut resident = Resident { rss: self.resident, ..Resident::default() };
        for entry in self.tables.iter().flat_map(|table| table.iter()) {
            let Some(mapped) = entry.load() else { continue };
            let mappings = self.memory.page_mappings(mapped.pfn);
            resident.pss += 1.0 / f64::from(mappings.max(1));
            let frame = self.memory.frame(mapped.pfn);
            let alone = match frame.order() {
                Order::SINGLE => mappings == 1,
                order => self.memory.counts(frame.head()).counts_as_private(order, &frame.page),
            };
            resident.uss += usize::from(alone);
        }
        resident
    }
}

//! What counters tell of given mappings, and so how wrong they are without counts of pages.
//!
//! [`MmOwner`](crate::MmOwner) is exact. With [`NoPageMapcount`](crate::NoPageMapcount) and
//! [`PreciseOwners`](crate::PreciseOwners) a folio counts as mapped whole, each of its pages as
//! mapped as often as they are on average, and all of them as private or none. The difference
//! between the two answers is the error.

use std::ops::Range;

use crate::error::Error;
use crate::folio::Folio;
use crate::mapcount::Mapcount;
use crate::mm::Resident;
use crate::mm_id::MmId;
use crate::order::Order;

/// What is told of a folio.
#[derive(Clone, Debug, PartialEq)]
pub struct Told {
    /// Pages that count as mapped.
    pub mapped_pages: i64,
    /// What each mm uses of it.
    pub mms: Vec<Resident>,
}

/// What a folio's counters tell when each mm maps its ranges of pages, one mm after the other.
///
/// # Errors
/// When the order has no counters, an mm maps pages beyond the folio's end or a page twice, there
/// are more mms than ids, or there are more mappings than `C` can count.
pub fn told<C: Mapcount>(order: Order, mms: &[Vec<Range<usize>>]) -> Result<Told, Error> {
    let folio = Folio::<C>::new(order)?;
    let mappings = mms.iter().flatten().fold(0_usize, |sum, range| sum.saturating_add(range.len()));
    if mappings > C::MAX_MAPPINGS as usize {
        return Err(Error::Mappings { mappings, most: C::MAX_MAPPINGS });
    }
    let mut mapped_pages = 0;
    let mut mapped = Vec::new();
    for (id, ranges) in (1..).zip(mms) {
        let mm = MmId::new(id)?;
        let pages = pages_of(order, ranges)?;
        for range in ranges.iter().filter(|range| !range.is_empty()) {
            mapped_pages += folio.map(mm, range.clone()).pages;
        }
        mapped.push(pages);
    }
    let used = |pages: &Vec<usize>| {
        let mut resident = Resident { rss: pages.len(), ..Resident::default() };
        for &page in pages {
            resident.pss += 1.0 / f64::from(folio.page_mappings(page));
            resident.uss += usize::from(folio.counts_as_private(page));
        }
        resident
    };
    Ok(Told { mapped_pages, mms: mapped.iter().map(used).collect() })
}

/// How often two slots end in a false *shared*: the share of the orders in which `mms` mms that map
/// a folio can leave it, after which the last one is not known to be alone.
///
/// The first two have the slots. The last one is any of them with the same probability, and is
/// known to be alone if it is one of these two.
pub fn falsely_shared(mms: u32) -> f64 {
    1.0 - 2.0 / f64::from(mms.max(2))
}

fn pages_of(order: Order, ranges: &[Range<usize>]) -> Result<Vec<usize>, Error> {
    let pages = order.pages();
    if let Some(outside) = ranges.iter().find(|range| range.end > pages) {
        return Err(Error::PagesOutside { end: outside.end, pages });
    }
    let mut all: Vec<usize> = ranges.iter().cloned().flatten().collect();
    all.sort_unstable();
    match all.windows(2).find(|two| two[0] == two[1]) {
        Some(twice) => Err(Error::MappedTwice { page: twice[0] }),
        None => Ok(all),
    }
}

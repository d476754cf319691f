//! What can be counted of mapcounts without a clock.

use std::ops::Range;

use filemap_job::folio_ops::{MM_OWNER, NO_PAGE_MAPCOUNT, PAGE_MAPCOUNT, PRECISE_OWNERS};
use filemap_mapcount::atomics::{Counted, read_modify_writes};
use filemap_mapcount::calculator::falsely_shared;
use filemap_mapcount::{
    Folio, Mapcount, MmId, MmOwner, NoPageMapcount, Order, PageMapcount, PreciseOwners,
};
use filemap_study::published::{Atomics, Counting, FalselyShared};

use crate::error::Error;
use crate::folio_maps;

/// Orders of the folios whose read-modify-writes are counted: 64 KiB and 2 MiB.
const ORDERS: [u32; 2] = [4, 9];

/// How many mms share a folio.
const MMS: [u32; 6] = [2, 3, 4, 8, 16, 64];

/// The folio of the examples, in bytes.
const FOLIO_BYTES: u64 = 64 << 10;

/// Mappings that are told differently without counts of pages: a part of a folio, two processes of
/// which one maps a page, halves of two processes, and a folio that is shared whole. For each
/// process the first page, and the one behind the last.
const EXAMPLES: [&[(usize, usize)]; 4] =
    [&[(0, 3)], &[(0, 16), (5, 6)], &[(0, 8), (8, 16)], &[(0, 16), (0, 16)]];

/// Everything.
///
/// # Errors
/// When there are no counters of such folios, which there are.
pub fn counted() -> Result<Counting, Error> {
    let mut atomics = Vec::new();
    for order in ORDERS {
        let order = Order::new(order)?;
        atomics.push(of_batch::<PageMapcount<Counted>>(PAGE_MAPCOUNT, order)?);
        atomics.push(of_batch::<MmOwner<Counted>>(MM_OWNER, order)?);
        atomics.push(of_batch::<NoPageMapcount<Counted>>(NO_PAGE_MAPCOUNT, order)?);
        atomics.push(of_batch::<PreciseOwners<Counted>>(PRECISE_OWNERS, order)?);
    }
    let examples = EXAMPLES.into_iter().map(|mms| {
        let range = |&(first, end): &(usize, usize)| Vec::from([Range { start: first, end }]);
        let mms: Vec<Vec<Range<usize>>> = mms.iter().map(range).collect();
        folio_maps::of(FOLIO_BYTES, &mms)
    });
    Ok(Counting {
        atomics,
        falsely_shared: MMS.map(|mms| FalselyShared { mms, share: falsely_shared(mms) }).to_vec(),
        examples: examples.collect::<Result<_, _>>()?,
    })
}

/// The read-modify-writes of a fork and of the last unmap, of all pages.
fn of_batch<C: Mapcount>(counters: &str, order: Order) -> Result<Atomics, Error> {
    let folio = Folio::<C>::new(order)?;
    let (parent, child) = (MmId::new(1)?, MmId::new(2)?);
    let pages = 0..order.pages();
    folio.map(parent, pages.clone());
    let count = |act: &dyn Fn()| read_modify_writes(act);
    let fork = count(&|| {
        folio.map(child, pages.clone());
    });
    folio.unmap(child, pages.clone());
    let last_unmap = count(&|| {
        folio.unmap(parent, pages.clone());
    });
    Ok(Atomics { counters: counters.to_string(), pages: order.pages() as u64, fork, last_unmap })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_batch_takes_one_for_each_page_or_one_for_all() {
        for of in counted().unwrap().atomics {
            let expected = match of.counters.as_str() {
                PAGE_MAPCOUNT | MM_OWNER => (of.pages + 1, of.pages + 2),
                _ => (1, 1),
            };
            assert_eq!((of.fork, of.last_unmap), expected, "{of:?}");
        }
    }
}

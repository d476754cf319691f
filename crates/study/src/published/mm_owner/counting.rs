//! What does not depend on time: read-modify-writes, and owners that two slots forget.

use filemap_job::folio_ops::{MM_OWNER, NO_PAGE_MAPCOUNT, PAGE_MAPCOUNT, PRECISE_OWNERS};
use filemap_mapcount::atomics::Counted;
use filemap_mapcount::calculator::falsely_shared;
use filemap_mapcount::{
    Error, Mapcount, MmOwner, NoPageMapcount, Order, PageMapcount, PreciseOwners,
};
use serde_json::json;

use super::cells::without;
use crate::folio_ops::batches::{Made, of_batch};
use crate::published::cell::Cell;

/// Orders of the folios whose read-modify-writes are counted: 64 KiB and 2 MiB.
const ORDERS: [u32; 2] = [4, 9];

/// How many mms share a folio.
const MMS: [u32; 6] = [2, 3, 4, 8, 16, 64];

/// Everything that is counted or computed.
///
/// # Errors
/// When there are no counters of such folios, which there are.
pub fn cells() -> Result<Vec<Cell>, Error> {
    let mut cells = Vec::new();
    for order in ORDERS {
        let order = Order::new(order)?;
        cells.push(batch::<PageMapcount<Counted>>(PAGE_MAPCOUNT, order)?);
        cells.push(batch::<MmOwner<Counted>>(MM_OWNER, order)?);
        cells.push(batch::<NoPageMapcount<Counted>>(NO_PAGE_MAPCOUNT, order)?);
        cells.push(batch::<PreciseOwners<Counted>>(PRECISE_OWNERS, order)?);
    }
    cells.extend(MMS.map(|mms| {
        let figures = json!({ "mms": mms, "share": falsely_shared(mms) });
        without("falsely shared", format!("{mms} mms"), MM_OWNER, figures)
    }));
    Ok(cells)
}

/// The read-modify-writes of a fork and of the last unmap, of all pages.
fn batch<C: Mapcount>(counters: &str, order: Order) -> Result<Cell, Error> {
    let Made { fork, last_unmap, .. } = of_batch::<C>(order)?;
    let pages = order.pages();
    let figures = json!({ "pages": pages, "fork": fork, "last_unmap": last_unmap });
    Ok(without("read-modify-writes", format!("{pages} pages"), counters, figures))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_batch_takes_one_for_each_page_or_one_for_all() {
        let cells = cells().unwrap();
        let atomics = || cells.iter().filter(|cell| cell.is_of("read-modify-writes"));
        assert_eq!(atomics().count(), 8);
        for of in atomics() {
            let pages = of.count("pages");
            let expected = match of.variant() {
                PAGE_MAPCOUNT | MM_OWNER => (pages + 1, pages + 2),
                _ => (1, 1),
            };
            assert_eq!((of.count("fork"), of.count("last_unmap")), expected, "{of:?}");
        }
    }
}

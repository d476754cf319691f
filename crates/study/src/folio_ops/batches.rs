//! Read-modify-writes of a batch of all pages of a folio.

use filemap_mapcount::atomics::read_modify_writes;
use filemap_mapcount::{Error, Folio, Mapcount, MmId, Order};

/// What was made.
pub(crate) struct Made {
    /// Of a fork.
    pub fork: u64,
    /// Of the last unmap.
    pub last_unmap: u64,
    /// Of the question whether one mm owns the folio, which one does.
    pub owner: u64,
}

/// What counters of such integers as are counted make.
pub(crate) fn of_batch<C: Mapcount>(order: Order) -> Result<Made, Error> {
    let folio = Folio::<C>::new(order)?;
    let (parent, child) = (MmId::new(1)?, MmId::new(2)?);
    let pages = 0..order.pages();
    folio.map(parent, pages.clone());
    let fork = read_modify_writes(|| {
        folio.map(child, pages.clone());
    });
    folio.unmap(child, pages.clone());
    let owner = read_modify_writes(|| {
        folio.counts().owned_by(parent);
    });
    let last_unmap = read_modify_writes(|| {
        folio.unmap(parent, pages);
    });
    Ok(Made { fork, last_unmap, owner })
}

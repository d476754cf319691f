//! What each way to count tells of a folio that several processes map.

use std::ops::Range;

use filemap_job::folio_ops::{MM_OWNER, NO_PAGE_MAPCOUNT, PRECISE_OWNERS};
use filemap_mapcount::calculator::{self, told};
use filemap_mapcount::{Folio, Mapcount, MmId, MmOwner, NoPageMapcount, PreciseOwners};
use filemap_study::folio_maps::{FolioMaps, Owner, Told, Used};

use crate::error::Error;
use crate::folio_ops::order_of;

/// What is told of a folio of this size when each of `mms` maps its ranges of pages.
///
/// # Errors
/// When an mm maps pages that the folio does not have, or a page twice.
pub fn of(folio_bytes: u64, mms: &[Vec<Range<usize>>]) -> Result<FolioMaps, Error> {
    let order = order_of(folio_bytes)?;
    let told = vec![
        told_by(MM_OWNER, told::<MmOwner>(order, mms)?),
        told_by(NO_PAGE_MAPCOUNT, told::<NoPageMapcount>(order, mms)?),
        told_by(PRECISE_OWNERS, told::<PreciseOwners>(order, mms)?),
    ];
    let owners = (0..mms.len()).map(|last| {
        let two_slots = is_known_alone(Folio::<MmOwner>::new(order)?, mms, last)?;
        let precise = is_known_alone(Folio::<PreciseOwners>::new(order)?, mms, last)?;
        Ok(Owner { two_slots, precise })
    });
    Ok(FolioMaps {
        folio_bytes,
        mapped: mms.iter().map(|ranges| text(ranges)).collect(),
        told,
        owners: owners.collect::<Result<_, Error>>()?,
    })
}

/// Whether the mm at `last` is known to be alone once the others have left, one after the other.
fn is_known_alone<C: Mapcount>(
    folio: Folio<C>,
    mms: &[Vec<Range<usize>>],
    last: usize,
) -> Result<bool, Error> {
    let ids = (1..).zip(mms).map(|(id, ranges)| Ok((MmId::new(id)?, ranges)));
    let ids = ids.collect::<Result<Vec<_>, Error>>()?;
    for (mm, ranges) in &ids {
        ranges.iter().for_each(|range| {
            folio.map(*mm, range.clone());
        });
    }
    for (_, (mm, ranges)) in ids.iter().enumerate().filter(|(at, _)| *at != last) {
        ranges.iter().for_each(|range| {
            folio.unmap(*mm, range.clone());
        });
    }
    Ok(folio.counts().owned_by(ids[last].0).is_some())
}

fn told_by(counters: &str, told: calculator::Told) -> Told {
    let used = |mm: &filemap_mapcount::mm::Resident| Used {
        rss: mm.rss as u64,
        pss: mm.pss,
        uss: mm.uss as u64,
    };
    Told {
        counters: counters.to_string(),
        mapped_pages: told.mapped_pages,
        mms: told.mms.iter().map(used).collect(),
    }
}

/// Ranges of pages as they are written: `0-15,20`.
fn text(ranges: &[Range<usize>]) -> String {
    let one = |range: &Range<usize>| match range.len() {
        1 => range.start.to_string(),
        _ => format!("{}-{}", range.start, range.end - 1),
    };
    ranges.iter().map(one).collect::<Vec<_>>().join(",")
}

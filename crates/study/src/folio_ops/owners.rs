//! Counts about the owners of a folio, none of which depend on time.

use filemap_job::folio_ops::{
    MM_OWNER, NO_PAGE_MAPCOUNT, OwnerCount, OwnerQuantity, PAGE_BYTES, PAGE_MAPCOUNT,
    PRECISE_OWNERS,
};
use filemap_job::{EngineKind, FolioOps, FolioOpsRecord};
use filemap_mapcount::atomics::{CountingAtomics, count_read_modify_writes};
use filemap_mapcount::exit_orders::{ExitOrders, count_exit_orders};
use filemap_mapcount::prefork::{Scenario, count_copies};
use filemap_mapcount::sums::{ExactSums, exact_mappings};
use filemap_mapcount::{
    Error as MapcountError, Folio, Mapcount, MmId, MmOwner, NoPageMapcount, Order, PageMapcount,
    PreciseOwners,
};
use filemap_report::units::{bytes, number};
use filemap_report::{Head, Part, Table};
use serde_json::Map;

use crate::error::Error;
use crate::provenance;

/// Numbers of mms that share a folio. Up to eight unmap it in every order.
const MMS: [u32; 7] = [2, 3, 4, 6, 8, 16, 64];

/// All orders of 8 mms.
const ALL_ORDERS: u64 = 40_320;
/// Pseudorandom orders of more mms.
const ORDERS: u64 = 10_000;

/// Workers of the prefork server.
const WORKERS: usize = 8;

/// Counts of pages and exact owners.
const PRECISE_WITH_PAGES: &str = "mm-owner, exact";

/// Bits of ids: of the series as posted, of the maximum of 2^22 tasks, and of 6.18.
const ID_BITS: [u32; 3] = [20, 22, 31];

/// Counts owners for `job`.
///
/// # Errors
/// When there is not enough memory for the server.
pub fn count_owners(job: &FolioOps) -> Result<FolioOpsRecord, Error> {
    let mut environment = Map::new();
    let scope = "counters of folios and a small mm for anonymous memory; nothing is timed";
    environment.insert("scope".to_string(), scope.into());
    provenance::stamp(&mut environment, EngineKind::Model.name());
    let mut record = FolioOpsRecord::new(job, environment, Vec::new());
    record.counted = lost_owners()?;
    record.counted.extend(exact_limit_counts());
    record.counted.extend(read_modify_writes()?);
    for &folio_bytes in &job.folio_bytes {
        record.counted.extend(prefork_counts(job.pages() as usize, folio_bytes)?);
    }
    Ok(record)
}

/// How often the last owner is unknown, and how often several mms count as one.
fn lost_owners() -> Result<Vec<OwnerCount>, Error> {
    type Count = fn(u32, u64) -> Result<ExitOrders, MapcountError>;
    let slots: (&str, Count) = (MM_OWNER, count_exit_orders::<MmOwner>);
    let schemes = [slots, (PRECISE_OWNERS, count_exit_orders::<PreciseOwners>)];
    let mut counted = Vec::new();
    let mut wrong = [0, 0];
    for mms in MMS {
        for ((name, count), wrong) in schemes.iter().zip(&mut wrong) {
            let orders = count(mms, if mms <= 8 { ALL_ORDERS } else { ORDERS })?;
            let case = format!("{mms} mms");
            let quantity = OwnerQuantity::LastOwnerLost;
            counted.push(count_sharing(quantity, case, name, orders.lost, Some(orders.orders)));
            *wrong += orders.wrong;
        }
    }
    let case = || "several taken for one".to_string();
    for ((name, _), wrong) in schemes.iter().zip(wrong) {
        counted.push(count_sharing(OwnerQuantity::LastOwnerLost, case(), name, wrong, None));
    }
    Ok(counted)
}

/// Maximum numbers of mappings for which sums are exact.
fn exact_limit_counts() -> impl Iterator<Item = OwnerCount> {
    ID_BITS.into_iter().flat_map(|bits| {
        let count = |encoding, halves| {
            let case = format!("ids of {bits} bits");
            let mappings = exact_mappings(bits, halves);
            count_sharing(OwnerQuantity::ExactMappings, case, encoding, mappings, None)
        };
        [count("id and its square", false), count("halves as a point", true)]
    })
}

/// Read-modify-writes of a batch of 512 pages, and of the owner query.
fn read_modify_writes() -> Result<Vec<OwnerCount>, Error> {
    type Atomics = CountingAtomics;
    let schemes = [
        (PAGE_MAPCOUNT, BatchCost::measure::<PageMapcount<Atomics>>(Order::PMD)?),
        (MM_OWNER, BatchCost::measure::<MmOwner<Atomics>>(Order::PMD)?),
        (PRECISE_WITH_PAGES, BatchCost::measure::<MmOwner<Atomics, ExactSums>>(Order::PMD)?),
        (NO_PAGE_MAPCOUNT, BatchCost::measure::<NoPageMapcount<Atomics>>(Order::PMD)?),
        (PRECISE_OWNERS, BatchCost::measure::<PreciseOwners<Atomics>>(Order::PMD)?),
    ];
    let counted = schemes.into_iter().flat_map(|(name, cost)| {
        let cases = [("fork", cost.fork), ("last unmap", cost.last_unmap), ("owner?", cost.owner)];
        cases.map(|(case, count)| {
            count_sharing(OwnerQuantity::ReadModifyWrites, case.to_string(), name, count, None)
        })
    });
    Ok(counted.collect())
}

/// Copied pages of a server with a heap of `pages` pages.
fn prefork_counts(pages: usize, folio_bytes: u64) -> Result<Vec<OwnerCount>, Error> {
    type Count = fn(Scenario, usize, usize, Order) -> Result<usize, MapcountError>;
    let schemes: [(&str, Count); 4] = [
        (PAGE_MAPCOUNT, count_copies::<PageMapcount>),
        (MM_OWNER, count_copies::<MmOwner>),
        (NO_PAGE_MAPCOUNT, count_copies::<NoPageMapcount>),
        (PRECISE_OWNERS, count_copies::<PreciseOwners>),
    ];
    let order = Order::new((folio_bytes / PAGE_BYTES).ilog2())?;
    let mut counted = Vec::new();
    for scenario in Scenario::ALL {
        for (name, count_copies) in schemes {
            let case = format!("{}, {}", scenario.name(), bytes(folio_bytes as f64));
            let copied = count_copies(scenario, WORKERS, pages, order)? as u64;
            counted.push(count_sharing(OwnerQuantity::PreforkCopies, case, name, copied, None));
        }
    }
    Ok(counted)
}

fn count_sharing(
    about: OwnerQuantity,
    case: String,
    counters: &str,
    count: u64,
    of: Option<u64>,
) -> OwnerCount {
    OwnerCount { about, case, counters: counters.to_string(), count, of }
}

/// Read-modify-writes of batches of all pages of a folio.
pub(crate) struct BatchCost {
    /// A fork.
    pub fork: u64,
    /// The last unmap.
    pub last_unmap: u64,
    /// The owner query, of a folio that one mm owns.
    pub owner: u64,
}

impl BatchCost {
    /// Counts them for a scheme with [`CountingAtomics`].
    pub(crate) fn measure<C: Mapcount>(order: Order) -> Result<BatchCost, MapcountError> {
        let folio = Folio::<C>::new(order)?;
        let (parent, child) = (MmId::new(1)?, MmId::new(2)?);
        let pages = 0..order.pages();
        folio.map(parent, pages.clone());
        let fork = count_read_modify_writes(|| {
            folio.map(child, pages.clone());
        });
        folio.unmap(child, pages.clone());
        let owner = count_read_modify_writes(|| {
            folio.counts().owned_by(parent);
        });
        let last_unmap = count_read_modify_writes(|| {
            folio.unmap(parent, pages);
        });
        Ok(BatchCost { fork, last_unmap, owner })
    }
}

/// A table of each quantity, with a note.
pub(super) fn parts(counted: &[OwnerCount]) -> Vec<Part> {
    let tables = counted.chunk_by(|a, b| a.about == b.about).flat_map(|counts| {
        let (title, note) = title_and_note(counts[0].about);
        [Part::Table(table(title, counts)), Part::Paragraph(note)]
    });
    tables.collect()
}

fn title_and_note(quantity: OwnerQuantity) -> (&'static str, String) {
    match quantity {
        OwnerQuantity::LastOwnerLost => (
            "Exit orders after which the last owner is unknown",
            format!(
                "All mms map a folio, and all but one unmap it: in every order up to 8 mms, above \
                 that in {} pseudorandom ones. A plain count of each mm gives the real owner.",
                number(ORDERS as f64)
            ),
        ),
        OwnerQuantity::ExactMappings => (
            "Maximum mappings for which sums in 126 bits are exact",
            "A folio with more mappings counts as shared. Ids have 20 bits in the posted series and \
             31 in 6.18; 22 are enough for the maximum number of tasks. All schemes count at most \
             2^31 - 1 mappings of a folio."
                .to_string(),
        ),
        OwnerQuantity::ReadModifyWrites => (
            "Read-modify-writes of a batch of 512 pages",
            "Without counts of pages, a batch only takes the lock of the owners.".into(),
        ),
        OwnerQuantity::PreforkCopies => (
            "Pages of a prefork server's heap that write faults copied",
            format!(
                "A master forks {WORKERS} workers. Serving: each of them writes to each page of \
                 the heap. Reloaded: they exit, and the master writes. Drained: the master exits, \
                 and the workers write and exit one by one. Reforked: the last worker becomes the \
                 master, the others exit, and it writes. Pages that are not copied are reused."
            ),
        ),
    }
}

/// A row for each case, and a column for each scheme.
fn table(title: &str, counted: &[OwnerCount]) -> Table {
    let mut schemes: Vec<&str> = Vec::new();
    let mut cases: Vec<&str> = Vec::new();
    for count in counted {
        if !schemes.contains(&&*count.counters) {
            schemes.push(&count.counters);
        }
        if !cases.contains(&&*count.case) {
            cases.push(&count.case);
        }
    }
    let row = |case: &&str| {
        let cells = schemes.iter().map(|scheme| {
            let mut counts = counted.iter();
            let count = counts.find(|count| count.case == **case && count.counters == **scheme);
            count.map_or("-".to_string(), cell)
        });
        [case.to_string()].into_iter().chain(cells).collect()
    };
    let heads = schemes.iter();
    let heads =
        heads.map(|scheme| Head::number(scheme.replace("page-mapcount", "page-\nmapcount")));
    Table {
        title: title.to_string(),
        columns: [Head::text("case")].into_iter().chain(heads).collect(),
        rows: cases.iter().map(row).collect(),
    }
}

fn cell(count: &OwnerCount) -> String {
    let number_text = number(count.count as f64);
    match (count.about, count.of) {
        (OwnerQuantity::LastOwnerLost, Some(total)) => {
            let percent = count.count as f64 / total as f64 * 100.0;
            format!("{number_text} of {} ({percent:.1} %)", number(total as f64))
        }
        _ => number_text,
    }
}

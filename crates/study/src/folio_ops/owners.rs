//! What is known of the owners of a folio, counted: nothing of it depends on time.

use filemap_job::folio_ops::{
    About, Counted, MM_OWNER, NO_PAGE_MAPCOUNT, PAGE_BYTES, PAGE_MAPCOUNT, PRECISE_OWNERS,
};
use filemap_job::{FolioOps, FolioOpsRecord};
use filemap_mapcount::atomics::Counted as CountedAtomics;
use filemap_mapcount::leaving::{Leaving, leaving};
use filemap_mapcount::prefork::{self, copied};
use filemap_mapcount::sums::{ExactSums, exact_mappings};
use filemap_mapcount::{
    Error as OfMapcount, MmOwner, NoPageMapcount, Order, PageMapcount, PreciseOwners,
};
use filemap_report::units::{bytes, number};
use filemap_report::{Head, Part, Table};
use serde_json::Map;

use super::batches::of_batch;
use crate::error::Error;
use crate::provenance;

/// How many mms share a folio. Up to eight leave it in every order.
const MMS: [u32; 7] = [2, 3, 4, 6, 8, 16, 64];

/// All orders of 8 mms, and so many of more.
const ALL_ORDERS: u64 = 40_320;
const ORDERS: u64 = 10_000;

/// Workers of a prefork server.
const WORKERS: usize = 8;

/// Counts of pages, and exact owners in place of the two slots.
const PRECISE_WITH_PAGES: &str = "mm-owner, exact";

/// Bits of ids: those of the series as posted, those that 2^22 tasks take, which is the most that a
/// kernel has, and those of 6.18.
const ID_BITS: [u32; 3] = [20, 22, 31];

/// The record of what is counted for `job`.
///
/// # Errors
/// When the server's memory is too much.
pub fn owners(job: &FolioOps) -> Result<FolioOpsRecord, Error> {
    let mut environment = Map::new();
    let scope = "counters of folios and a small mm for anonymous memory; nothing is timed";
    environment.insert("scope".to_string(), scope.into());
    provenance::stamp(&mut environment, job.engine.name());
    let mut record = FolioOpsRecord::new(job, environment, Vec::new());
    record.counted = lost_owners()?;
    record.counted.extend(exact());
    record.counted.extend(read_modify_writes()?);
    for &folio_bytes in &job.folio_bytes {
        record.counted.extend(prefork(job.pages() as usize, folio_bytes)?);
    }
    Ok(record)
}

/// How often the last owner of a folio is not known, and whether several are taken for one.
fn lost_owners() -> Result<Vec<Counted>, Error> {
    type Leave = fn(u32, u64) -> Result<Leaving, OfMapcount>;
    let slots: (&str, Leave) = (MM_OWNER, leaving::<MmOwner>);
    let counters = [slots, (PRECISE_OWNERS, leaving::<PreciseOwners>)];
    let mut counted = Vec::new();
    let mut wrong = [0, 0];
    for mms in MMS {
        for ((name, leaving), wrong) in counters.iter().zip(&mut wrong) {
            let found = leaving(mms, if mms <= 8 { ALL_ORDERS } else { ORDERS })?;
            let case = format!("{mms} mms");
            counted.push(of(About::LastOwnerLost, case, name, found.lost, Some(found.orders)));
            *wrong += found.wrong;
        }
    }
    let case = || "several taken for one".to_string();
    let wrong = counters.iter().zip(wrong);
    let wrong = wrong.map(|((name, _), wrong)| of(About::LastOwnerLost, case(), name, wrong, None));
    counted.extend(wrong);
    Ok(counted)
}

/// Up to how many mappings sums are exact.
fn exact() -> impl Iterator<Item = Counted> {
    ID_BITS.into_iter().flat_map(|bits| {
        let with = |way, halves| {
            let case = format!("ids of {bits} bits");
            of(About::ExactMappings, case, way, exact_mappings(bits, halves), None)
        };
        [with("id and its square", false), with("halves as a point", true)]
    })
}

/// What a batch of 512 pages takes, and the question who owns the folio.
fn read_modify_writes() -> Result<Vec<Counted>, Error> {
    type Atomics = CountedAtomics;
    let ways = [
        (PAGE_MAPCOUNT, of_batch::<PageMapcount<Atomics>>(Order::PMD)?),
        (MM_OWNER, of_batch::<MmOwner<Atomics>>(Order::PMD)?),
        (PRECISE_WITH_PAGES, of_batch::<MmOwner<Atomics, ExactSums>>(Order::PMD)?),
        (NO_PAGE_MAPCOUNT, of_batch::<NoPageMapcount<Atomics>>(Order::PMD)?),
        (PRECISE_OWNERS, of_batch::<PreciseOwners<Atomics>>(Order::PMD)?),
    ];
    let counted = ways.into_iter().flat_map(|(name, made)| {
        let cases = [("fork", made.fork), ("last unmap", made.last_unmap), ("owner?", made.owner)];
        cases.map(|(case, count)| of(About::ReadModifyWrites, case.to_string(), name, count, None))
    });
    Ok(counted.collect())
}

/// What a server with a heap of `pages` pages copies.
fn prefork(pages: usize, folio_bytes: u64) -> Result<Vec<Counted>, Error> {
    let order = Order::new((folio_bytes / PAGE_BYTES).ilog2())?;
    let mut counted = Vec::new();
    for own in prefork::Case::ALL {
        let case = format!("{}, {}", own.name(), bytes(folio_bytes as f64));
        let mut add = |name, copied: Result<usize, OfMapcount>| -> Result<(), Error> {
            let (copied, case) = (copied? as u64, case.clone());
            counted.push(of(About::PreforkCopies, case, name, copied, None));
            Ok(())
        };
        add(PAGE_MAPCOUNT, copied::<PageMapcount>(own, WORKERS, pages, order))?;
        add(MM_OWNER, copied::<MmOwner>(own, WORKERS, pages, order))?;
        add(NO_PAGE_MAPCOUNT, copied::<NoPageMapcount>(own, WORKERS, pages, order))?;
        add(PRECISE_OWNERS, copied::<PreciseOwners>(own, WORKERS, pages, order))?;
    }
    Ok(counted)
}

fn of(about: About, case: String, counters: &str, count: u64, of: Option<u64>) -> Counted {
    Counted { about, case, counters: counters.to_string(), count, of }
}

/// A table of each kind of count, with what it says.
pub(super) fn parts(counted: &[Counted]) -> Vec<Part> {
    let tables = counted.chunk_by(|one, other| one.about == other.about).flat_map(|own| {
        let (title, note) = words(own[0].about);
        [Part::Table(table(title, own)), Part::Paragraph(note)]
    });
    tables.collect()
}

fn words(about: About) -> (&'static str, String) {
    match about {
        About::LastOwnerLost => (
            "Orders of leaving after which the last owner is not known",
            format!(
                "All mms map a folio, and all but one unmap it: in every order up to 8 mms, else \
                 in {} orders that look random. A plain count of each mm says who is left.",
                number(ORDERS as f64)
            ),
        ),
        About::ExactMappings => (
            "Mappings of a folio up to which sums of 126 bits are exact",
            "Above it a folio counts as shared, and is judged exactly again below. 20 bits were \
             posted, 2^22 tasks are the most that a kernel has, and 31 bits are in 6.18. A folio \
             has at most 2^31 - 1 mappings, whoever counts."
                .to_string(),
        ),
        About::ReadModifyWrites => (
            "Read-modify-writes of a batch of 512 pages",
            "The lock of the owners is the only one of a batch where pages have no counts.".into(),
        ),
        About::PreforkCopies => (
            "Pages of a prefork server's heap that write faults copied",
            format!(
                "A master forks {WORKERS} workers. Serving: each of them writes to each page of \
                 the heap. Reloaded: they leave, and the master writes. Drained: the master \
                 leaves, and the workers write and leave one by one. Reforked: the last worker is \
                 the new master, the others leave, and it writes. What is not copied is reused."
            ),
        ),
    }
}

/// A row for each case, and a column for each way to count.
fn table(title: &str, counted: &[Counted]) -> Table {
    let mut ways: Vec<&str> = Vec::new();
    for own in counted {
        if !ways.contains(&&*own.counters) {
            ways.push(&own.counters);
        }
    }
    let row = |own: &[Counted]| {
        let cell =
            |way: &&str| own.iter().find(|own| own.counters == *way).map_or("-".into(), cell);
        [own[0].case.clone()].into_iter().chain(ways.iter().map(cell)).collect()
    };
    let mut cases: Vec<&str> = Vec::new();
    for own in counted {
        if !cases.contains(&&*own.case) {
            cases.push(&own.case);
        }
    }
    let of_case = |case: &&str| -> Vec<Counted> {
        counted.iter().filter(|own| own.case == *case).cloned().collect()
    };
    let heads = ways.iter().map(|way| Head::right(way.replace("page-mapcount", "page-\nmapcount")));
    Table {
        title: title.to_string(),
        columns: [Head::left("case")].into_iter().chain(heads).collect(),
        rows: cases.iter().map(of_case).map(|own| row(&own)).collect(),
    }
}

fn cell(counted: &Counted) -> String {
    let count = number(counted.count as f64);
    match (counted.about, counted.of) {
        (About::LastOwnerLost, Some(of)) => {
            let percent = counted.count as f64 / of as f64 * 100.0;
            format!("{count} of {} ({percent:.1} %)", number(of as f64))
        }
        _ => count,
    }
}

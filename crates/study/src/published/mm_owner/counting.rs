//! What does not depend on time: read-modify-writes, owners that two slots forget, and what is
//! reported wrong without counts of pages.

use std::ops::Range;

use filemap_job::folio_ops::{MM_OWNER, NO_PAGE_MAPCOUNT, PAGE_MAPCOUNT, PRECISE_OWNERS};
use filemap_mapcount::atomics::{Counted, read_modify_writes};
use filemap_mapcount::calculator::{self, falsely_shared};
use filemap_mapcount::{
    Error, Folio, Mapcount, MmId, MmOwner, NoPageMapcount, Order, PageMapcount, PreciseOwners,
};
use filemap_report::{Column, Head, Part, Table, figures, table, words};
use serde::{Deserialize, Serialize};
use serde_json::json;

use super::cells::without;
use crate::published::cell::Cell;
use crate::published::data::PUBLISHED;

/// The experiments.
const ATOMICS: &str = "read-modify-writes";
const SLOTS: &str = "falsely shared";
const REPORTED: &str = "reported";

/// Orders of the folios whose read-modify-writes are counted: 64 KiB and 2 MiB.
const ORDERS: [u32; 2] = [4, 9];

/// How many mms share a folio.
const MMS: [u32; 6] = [2, 3, 4, 8, 16, 64];

/// The order of the folio of the examples.
const ORDER: u32 = 4;

/// Mappings that are told differently without counts of pages: a part of a folio, two processes of
/// which one maps a page, halves of two processes, and a folio that is shared whole. For each
/// process the first page, and the one behind the last.
const EXAMPLES: [&[(usize, usize)]; 4] =
    [&[(0, 3)], &[(0, 16), (5, 6)], &[(0, 8), (8, 16)], &[(0, 16), (0, 16)]];

/// What one way to count tells of a folio that several mms map.
#[derive(Clone, Debug, Serialize, Deserialize)]
struct Told {
    counters: String,
    /// Pages that count as mapped.
    mapped_pages: i64,
    /// What each mm uses of the folio, in their order.
    mms: Vec<Used>,
}

/// What an mm uses of a folio, in pages.
#[derive(Clone, Copy, Debug, Serialize, Deserialize)]
struct Used {
    rss: u64,
    pss: f64,
    uss: u64,
}

/// Everything that is counted or computed.
///
/// # Errors
/// When there are no counters of such folios, which there are.
pub fn cells() -> Result<Vec<Cell>, Error> {
    let mut cells = Vec::new();
    for order in ORDERS {
        let order = Order::new(order)?;
        cells.push(of_batch::<PageMapcount<Counted>>(PAGE_MAPCOUNT, order)?);
        cells.push(of_batch::<MmOwner<Counted>>(MM_OWNER, order)?);
        cells.push(of_batch::<NoPageMapcount<Counted>>(NO_PAGE_MAPCOUNT, order)?);
        cells.push(of_batch::<PreciseOwners<Counted>>(PRECISE_OWNERS, order)?);
    }
    cells.extend(MMS.map(|mms| {
        let figures = json!({ "mms": mms, "share": falsely_shared(mms) });
        without(SLOTS, format!("{mms} mms"), MM_OWNER, figures)
    }));
    for example in EXAMPLES {
        cells.extend(reported(example)?);
    }
    Ok(cells)
}

/// The read-modify-writes of a fork and of the last unmap, of all pages.
fn of_batch<C: Mapcount>(counters: &str, order: Order) -> Result<Cell, Error> {
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
    let pages = order.pages();
    let figures = json!({ "pages": pages, "fork": fork, "last_unmap": last_unmap });
    Ok(without(ATOMICS, format!("{pages} pages"), counters, figures))
}

/// What is told of a folio when each mm maps a range of its pages.
fn reported(mms: &[(usize, usize)]) -> Result<Vec<Cell>, Error> {
    let order = Order::new(ORDER)?;
    let range = |&(first, end): &(usize, usize)| vec![Range { start: first, end }];
    let ranges: Vec<Vec<Range<usize>>> = mms.iter().map(range).collect();
    let told = [
        (MM_OWNER, calculator::told::<MmOwner>(order, &ranges)?),
        (NO_PAGE_MAPCOUNT, calculator::told::<NoPageMapcount>(order, &ranges)?),
        (PRECISE_OWNERS, calculator::told::<PreciseOwners>(order, &ranges)?),
    ];
    let text = |&(first, end): &(usize, usize)| match end - first {
        1 => first.to_string(),
        _ => format!("{first}-{}", end - 1),
    };
    let mapped: Vec<String> = mms.iter().map(text).collect();
    let name = format!("64 KiB, of which mms map the pages {}", mapped.join("; "));
    let cell = |(counters, told): (&str, calculator::Told)| {
        let used = |mm: &filemap_mapcount::mm::Resident| Used {
            rss: mm.rss as u64,
            pss: mm.pss,
            uss: mm.uss as u64,
        };
        let told = Told {
            counters: counters.to_string(),
            mapped_pages: told.mapped_pages,
            mms: told.mms.iter().map(used).collect(),
        };
        without(REPORTED, name.clone(), counters, json!({ "mapped": mapped, "told": told }))
    };
    Ok(told.into_iter().map(cell).collect())
}

fn count(cell: &Cell, path: &str) -> filemap_report::Value {
    cell.count(path).to_string().into()
}

const ATOMICS_COLUMNS: [Column<Cell>; 4] = [
    words("counters", |cell| cell.variant().into()),
    figures("pages of\nthe folio", |cell| count(cell, "pages")),
    figures("fork", |cell| count(cell, "fork")),
    figures("last\nunmap", |cell| count(cell, "last_unmap")),
];

const SLOTS_COLUMNS: [Column<Cell>; 3] = [
    figures("mms", |cell| count(cell, "mms")),
    figures("two slots", |cell| {
        cell.number("share").map(|share| format!("{:.1} %", share * 100.0)).into()
    }),
    figures("precise-owners", |_| "0.0 %".into()),
];

pub fn parts(cells: &[Cell]) -> Vec<Part> {
    let of = |experiment: &str| -> Vec<Cell> {
        cells.iter().filter(|cell| cell.is_of(experiment)).cloned().collect()
    };
    let note = |name: &str| Part::Paragraph(PUBLISHED.mm_owner.about.note(name, &[]));
    let title = "Read-modify-writes on counters, for a batch of all pages";
    let mut parts =
        vec![Part::Table(table(title, &ATOMICS_COLUMNS, &of(ATOMICS))), note("atomics")];
    let title = "How often the last mm is not known to be alone";
    parts.extend([Part::Table(table(title, &SLOTS_COLUMNS, &of(SLOTS))), note("slots")]);
    parts.push(note("examples"));
    let reported = of(REPORTED);
    let examples = reported.chunk_by(|one, other| one.name == other.name);
    parts.extend(examples.map(|cells| Part::Table(told(cells))));
    parts
}

/// What is told of one folio, a row for each figure.
fn told(cells: &[Cell]) -> Table {
    let all: Vec<Told> = cells.iter().filter_map(|cell| cell.read("told")).collect();
    let row = |name: String, figure: &dyn Fn(&Told) -> Option<f64>| {
        let exact = all.first().and_then(figure).unwrap_or(0.0);
        let mut row = vec![name];
        for (at, told) in all.iter().enumerate() {
            let own = figure(told).unwrap_or(0.0);
            row.push(pages(own));
            if at > 0 {
                row.push(match own - exact {
                    off if off.abs() < 0.005 => "0".to_string(),
                    off => format!("{}{}", if off > 0.0 { "+" } else { "-" }, pages(off.abs())),
                });
            }
        }
        row
    };
    let mut rows = vec![row("mapped pages".to_string(), &|told| Some(told.mapped_pages as f64))];
    for mm in 0..all.first().map_or(0, |told| told.mms.len()) {
        let name = |figure: &str| format!("mm {}: {figure}", mm + 1);
        rows.push(row(name("PSS"), &|told| Some(told.mms.get(mm)?.pss)));
        rows.push(row(name("USS"), &|told| Some(told.mms.get(mm)?.uss as f64)));
    }
    let heads = all.iter().enumerate().flat_map(|(at, told)| {
        let name = told.counters.replacen("page-", "page-\n", 1).replace("e-o", "e-\no");
        [Some(Head::right(name)), (at > 0).then(|| Head::right("off by"))].into_iter().flatten()
    });
    Table {
        title: format!("A folio of {}, in pages", cells[0].name()),
        columns: [Head::left("figure")].into_iter().chain(heads).collect(),
        rows,
    }
}

/// A number of pages, of which there may be parts.
fn pages(value: f64) -> String {
    match value.fract() == 0.0 {
        true => format!("{value:.0}"),
        false => format!("{value:.2}"),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_batch_takes_one_for_each_page_or_one_for_all() {
        let cells = cells().unwrap();
        let atomics: Vec<&Cell> = cells.iter().filter(|cell| cell.is_of(ATOMICS)).collect();
        assert_eq!(atomics.len(), 8);
        for of in atomics {
            let pages = of.count("pages");
            let expected = match of.variant() {
                PAGE_MAPCOUNT | MM_OWNER => (pages + 1, pages + 2),
                _ => (1, 1),
            };
            assert_eq!((of.count("fork"), of.count("last_unmap")), expected, "{of:?}");
        }
    }
}

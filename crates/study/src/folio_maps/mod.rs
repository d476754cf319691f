//! What counters tell of a folio that several processes map, and by how much that is off without
//! counts of pages.

mod report;

use serde::Serialize;

use filemap_report::units::bytes;
use filemap_report::{Head, Table};

pub(crate) use report::Json;
pub use report::report;

/// A folio, who maps what of it, and what each way to count tells of that.
#[derive(Clone, Debug, PartialEq, Serialize, schemars::JsonSchema)]
pub struct FolioMaps {
    /// Size of the folio in bytes.
    pub folio_bytes: u64,
    /// The pages that each mm maps, as they were asked for.
    pub mapped: Vec<String>,
    /// What is told, with counts of pages first.
    pub told: Vec<Told>,
    /// What is known of the last mm when the others have left, one after the other, for each mm.
    pub owners: Vec<Owner>,
}

/// What one way to count tells.
#[derive(Clone, Debug, PartialEq, Serialize, schemars::JsonSchema)]
pub struct Told {
    /// How it is counted.
    pub counters: String,
    /// Pages that count as mapped.
    pub mapped_pages: i64,
    /// What each mm uses of the folio, in their order.
    pub mms: Vec<Used>,
}

/// What an mm uses of a folio, in pages.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, schemars::JsonSchema)]
pub struct Used {
    /// Pages that it maps.
    pub rss: u64,
    /// Each of these divided by the number of its mappings.
    pub pss: f64,
    /// Those that nobody else maps.
    pub uss: u64,
}

/// What is known of one mm that is the last to map the folio.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, schemars::JsonSchema)]
pub struct Owner {
    /// Two slots know that it is alone.
    pub two_slots: bool,
    /// Sums know that it is alone.
    pub precise: bool,
}

impl FolioMaps {
    /// What it is of: `16 pages, of which the mms map 0-15, 3`.
    pub fn name(&self) -> String {
        let size = bytes(self.folio_bytes as f64);
        format!("{size}, of which mms map the pages {}", self.mapped.join("; "))
    }

    /// What is told of it, a row for each figure.
    pub fn table(&self) -> Table {
        let mut rows = vec![self.row("mapped pages", |told| told.mapped_pages as f64)];
        for mm in 0..self.mapped.len() {
            let name = |figure: &str| format!("mm {}: {figure}", mm + 1);
            rows.push(self.row(&name("PSS"), |told| told.mms[mm].pss));
            rows.push(self.row(&name("USS"), |told| told.mms[mm].uss as f64));
        }
        let heads = self.told.iter().enumerate().flat_map(|(at, told)| {
            let name =
                Head::right(told.counters.replacen("page-", "page-\n", 1).replace("e-o", "e-\no"));
            [Some(name), (at > 0).then(|| Head::right("off by"))].into_iter().flatten()
        });
        Table {
            title: format!("A folio of {}, in pages", self.name()),
            columns: [Head::left("figure")].into_iter().chain(heads).collect(),
            rows,
        }
    }

    fn row(&self, name: &str, figure: impl Fn(&Told) -> f64) -> Vec<String> {
        let mut row = vec![name.to_string()];
        let exact = self.told.first().map_or(0.0, &figure);
        for (at, told) in self.told.iter().enumerate() {
            let own = figure(told);
            row.push(pages(own));
            if at > 0 {
                row.push(match own - exact {
                    off if off.abs() < 0.005 => "0".to_string(),
                    off => format!("{}{}", if off > 0.0 { "+" } else { "-" }, pages(off.abs())),
                });
            }
        }
        row
    }
}

/// A number of pages, of which there may be parts.
fn pages(value: f64) -> String {
    match value.fract() == 0.0 {
        true => format!("{value:.0}"),
        false => format!("{value:.2}"),
    }
}

//! Published tables beside the model's.
//!
//! A study is one published patch series: what it runs, and what came of that as cells beside the
//! published figures. The report is made of the cells alone. Adding a series is adding a module
//! with a `Study` and what is said of its cells, and its name to [`NAMES`] and `SERIES`.

mod cell;
mod data;
mod exec_order;
mod mm_owner;
mod mmap_miss;
mod page;
mod plan;
mod source;
mod tolerance;
mod vma_bound;
mod vma_retry;

use filemap_job::Record;
use filemap_job::record::SCHEMA;
use filemap_report::{Part, Report, Table};
use serde::{Deserialize, Serialize};

use self::cell::{Cell, FAILS};
use self::data::PUBLISHED;
use self::plan::{Begin, Found, Study};
pub use self::plan::{Options, Plan};
use self::source::Source;
use crate::footer::{Footer, Origin};
use crate::json::to_json;
use crate::spread::ENOUGH_SEEDS;

/// Seeds of a random cell of mmap-miss where none are given.
const DEFAULT_SEEDS: u64 = ENOUGH_SEEDS;

/// Every published series.
pub const NAMES: [&str; 5] =
    [mmap_miss::NAME, vma_bound::NAME, exec_order::NAME, vma_retry::NAME, mm_owner::NAME];

/// The series of which cells depend on a seed.
pub const RANDOM: [&str; 2] = [mmap_miss::NAME, vma_retry::NAME];

/// The series to which this machine has something to add.
pub const OF_PROGRAMS: &str = vma_bound::NAME;

/// The title of a report on several series.
const TITLE: &str = "Published figures beside the model's";

/// What a report has of the cells of a series: the parts below its source, and the rows of CSV.
type Shown = (fn(&[Cell]) -> Vec<Part>, fn(&[Cell]) -> Table);

/// That of each of [`NAMES`].
const SERIES: [Shown; 5] = [
    (mmap_miss::parts, mmap_miss::rows),
    (vma_bound::parts, vma_bound::rows),
    (exec_order::parts, exec_order::rows),
    (vma_retry::parts, vma_retry::rows),
    (mm_owner::parts, mm_owner::rows),
];

/// Where the series of that name comes from.
fn source(series: &str) -> Option<&'static Source> {
    let about = match series {
        mmap_miss::NAME => &PUBLISHED.mmap_miss.about,
        vma_bound::NAME => &PUBLISHED.vma_bound.about,
        exec_order::NAME => &PUBLISHED.exec_order.about,
        vma_retry::NAME => &PUBLISHED.vma_retry.about,
        mm_owner::NAME => &PUBLISHED.mm_owner.about,
        _ => return None,
    };
    Some(&about.source)
}

/// The record of published tables.
#[derive(Clone, Debug, Serialize, Deserialize, schemars::JsonSchema)]
pub struct Published {
    schema: u32,
    #[serde(flatten)]
    footer: Footer,
    /// Of each series.
    sources: Vec<Source>,
    /// Those of a series together, in the order of `sources`.
    cells: Vec<Cell>,
}

impl Published {
    /// What was found of series; `records` are those of all, and `command` repeats it.
    pub fn new(found: Vec<Found>, records: &[Record], command: String) -> Self {
        let own = found.iter().filter_map(|found| found.origin.clone());
        let origins: Vec<Origin> = records.iter().map(Origin::of).chain(own).collect();
        Published {
            schema: SCHEMA,
            footer: Footer::of(&origins, command),
            sources: found.iter().filter_map(|found| source(found.series)).cloned().collect(),
            cells: found.into_iter().flat_map(|found| found.cells).collect(),
        }
    }

    /// How many published cells the model misses, of those that decide whether the command fails.
    pub fn failed(&self) -> usize {
        self.cells.iter().filter(|cell| cell.verdict == FAILS).count()
    }

    /// The whole report on it.
    pub fn report(&self) -> Report {
        let all: Vec<&[Cell]> =
            self.cells.chunk_by(|one, other| one.series == other.series).collect();
        // Sources have no name of their series; they come in the same order.
        let is_whole = self.sources.len() == all.len();
        let (mut parts, mut rows) = (Vec::new(), Table::default());
        if all.len() != 1 {
            parts.push(Part::Heading(TITLE.to_string()));
        }
        for (at, cells) in all.iter().enumerate() {
            let series = cells[0].series.as_str();
            match self.sources.get(at).filter(|_| is_whole) {
                Some(source) => parts.extend(source.parts()),
                None => parts.push(Part::Heading(series.to_string())),
            }
            parts.extend(page::pictures(cells));
            if let Some(known) = NAMES.iter().position(|name| *name == series) {
                let (own_parts, own_rows) = SERIES[known];
                parts.extend(own_parts(cells));
                rows.join(own_rows(cells));
            }
        }
        if !is_whole {
            parts.extend(self.sources.iter().flat_map(Source::parts));
        }
        let report = Report { parts, rows, footer: self.footer.footer(), json: to_json(self) };
        report.of(page::cards(&self.cells))
    }
}

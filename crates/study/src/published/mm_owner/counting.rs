//! What does not depend on time: read-modify-writes, owners that two slots forget, and what is
//! reported wrong without counts of pages.

use serde::Serialize;

use crate::folio_maps::FolioMaps;
use filemap_report::Part;
use filemap_report::{Head, Table};

/// What was counted and computed, by who runs the counters.
#[derive(Clone, Debug, Default)]
pub struct Counting {
    /// Read-modify-writes of batches.
    pub atomics: Vec<Atomics>,
    /// How often two slots forget who is alone.
    pub falsely_shared: Vec<FalselyShared>,
    /// What is told of mappings, with counts of pages and without.
    pub examples: Vec<FolioMaps>,
}

/// Read-modify-writes on the counters of one folio for a batch of all its pages.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct Atomics {
    /// How it is counted.
    pub counters: String,
    /// Pages of the folio.
    pub pages: u64,
    /// Those of a fork.
    pub fork: u64,
    /// Those of the unmap that leaves the folio without mappings.
    pub last_unmap: u64,
}

/// How often the last of several mms is not known to be alone; computed, not counted.
#[derive(Clone, Copy, Debug, PartialEq, Serialize)]
pub struct FalselyShared {
    /// How many mms map the folio, and leave it in random order.
    pub mms: u32,
    /// The share of the orders after which two slots do not know it.
    pub share: f64,
}

impl Counting {
    pub(super) fn parts(&self) -> Vec<Part> {
        let mut parts = vec![
            Part::Table(self.atomics_table()),
            Part::Paragraph(
                "They were counted here, by integers that count. A fork takes one for each page \
                 and one more, the last unmap two more. Without counts of pages each takes one."
                    .to_string(),
            ),
            Part::Table(self.slots_table()),
            Part::Paragraph(
                "This is computed, not counted. Two slots know the first two mms that map a folio. \
                 With k mms that leave in random order the last one is another with probability \
                 1 - 2/k, and its pages are copied then though nobody shares them. precise-owners \
                 always knows the last one: its 0 is proven, not measured. No kernel has it."
                    .to_string(),
            ),
        ];
        parts.push(Part::Paragraph(
            "Without counts of pages a folio counts as mapped whole, its pages as mapped as often \
             as they are on average, and as private only if one mm maps the folio. What is \
             reported wrong then, for example:"
                .to_string(),
        ));
        parts.extend(self.examples.iter().map(|maps| Part::Table(maps.table())));
        parts.push(Part::Paragraph(
            "For other mappings: filemap folio-ops --folio-sizes SIZE --mapped PAGES, with one \
             --mapped for each process."
                .to_string(),
        ));
        parts
    }

    fn atomics_table(&self) -> Table {
        let row = |of: &Atomics| {
            let counts = [of.pages, of.fork, of.last_unmap].map(|count| count.to_string());
            [of.counters.clone()].into_iter().chain(counts).collect()
        };
        let heads = ["pages of\nthe folio", "fork", "last\nunmap"].map(Head::right);
        Table {
            title: "Read-modify-writes on counters, for a batch of all pages".to_string(),
            columns: [Head::left("counters")].into_iter().chain(heads).collect(),
            rows: self.atomics.iter().map(row).collect(),
        }
    }

    fn slots_table(&self) -> Table {
        let row = |of: &FalselyShared| {
            vec![of.mms.to_string(), format!("{:.1} %", of.share * 100.0), "0.0 %".to_string()]
        };
        let heads = ["mms", "two slots", "precise-owners"].map(Head::right);
        Table {
            title: "How often the last mm is not known to be alone".to_string(),
            columns: heads.to_vec(),
            rows: self.falsely_shared.iter().map(row).collect(),
        }
    }
}

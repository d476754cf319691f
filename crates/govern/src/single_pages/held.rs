//! What the page table of a process had when a thread of it was held.

use std::fs::File;
use std::ops::Range;
use std::sync::OnceLock;

use filemap_attach::trace_points::Event as Seen;
use filemap_attach::{MappedRange, Source, mapped_pages, now_ns};
use filemap_kernel::page_size;

use super::page_cache::drop_arriving;

pub struct Held {
    at_ns: u64,
    /// The addresses of pages that had an entry, where that can be told.
    mapped: Option<Vec<Range<u64>>>,
    arrives: OnceLock<bool>,
}

impl Held {
    /// Looks at the pages of a mapping.
    pub fn look(pid: u32, range: &MappedRange) -> Held {
        let mapped = mapped_pages(pid, range);
        Held { at_ns: now_ns(), mapped, arrives: OnceLock::new() }
    }

    /// Drops the file of the mapping from the page cache while its pages arrive.
    pub fn drop_arriving(&self, file: &File) {
        self.arrives.get_or_init(|| drop_arriving(file));
    }

    /// Whether pages of the file may arrive later.
    pub fn arrives(&self) -> bool {
        self.arrives.get().copied().unwrap_or_default()
    }

    /// How many pages were there that came with others, which were touched: nobody tells of touches
    /// of them. `None` where the page table could not be read.
    pub fn came_with_others(
        &self,
        source: &Source,
        seen: &Seen,
        range: &MappedRange,
    ) -> Option<u64> {
        let faulted = source.faults(seen.pid, range, seen.at_ns, self.at_ns);
        let page_bytes = page_size();
        let runs = self.mapped.as_ref()?.iter();
        let pages = runs.flat_map(|run| run.start / page_bytes..run.end / page_bytes);
        Some(pages.filter(|page| !faulted.contains(page)).count() as u64)
    }
}

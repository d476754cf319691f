//! How far a `read(2)` looks up pages at a time, against a real kernel:
//! `data/measured-6.18-reads.json`.

use std::cell::Cell;

use crate::support::measurements::measurements;
use filemap_core::cache::{FileCache, Folio, FolioRun};
use filemap_core::fault::read::{ReadCall, ReadView};
use filemap_core::page_cache::PageCache;
use filemap_core::plain::PlainCache;
use filemap_core::readahead::{Limits, ReadaheadState};
use filemap_core::rules::{Arch, Family, Kernel, Rules};
use filemap_core::series::Series;
use filemap_core::units::{FileId, Order, PageCount, PageIndex};
use serde::Deserialize;

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct File {
    runs: Vec<Measured>,
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct Measured {
    pages: u64,
    /// The first page of each batch.
    batches: Vec<u64>,
}

/// Runs in the file, and batches of all.
const RUNS: usize = 5;
const BATCHES: usize = 15;

/// A file that records how far pages were looked up before the first of them was used.
struct Watched<F> {
    file: F,
    looked_to: Cell<u64>,
    /// The page after the current batch.
    end: u64,
    batches: Vec<u64>,
}

impl<F: FileCache> FileCache for Watched<F> {
    fn folio(&self, index: PageIndex) -> Option<Folio> {
        self.looked_to.set(self.looked_to.get().max(index.0 + 1));
        self.file.folio(index)
    }
    fn set_referenced(&mut self, index: PageIndex) {
        self.file.set_referenced(index);
    }

    fn mark_accessed(&mut self, index: PageIndex) {
        if self.batches.is_empty() || index.0 >= self.end {
            self.batches.push(index.0);
            self.end = self.looked_to.get();
        }
        self.file.mark_accessed(index);
    }
    fn next_absent(&self, from: PageIndex, end: PageIndex) -> PageIndex {
        self.file.next_absent(from, end)
    }
    fn next_present(&self, from: PageIndex, end: PageIndex) -> PageIndex {
        self.file.next_present(from, end)
    }
    fn previous_absent(&self, last: PageIndex, floor: PageIndex) -> Option<PageIndex> {
        self.file.previous_absent(last, floor)
    }
    fn cached(&self, from: PageIndex, end: PageIndex) -> PageCount {
        self.file.cached(from, end)
    }
    fn clear_mark(&mut self, index: PageIndex) {
        self.file.clear_mark(index);
    }
}

/// The batches of one read of a file of `pages` pages, each cached in a folio of its own.
fn batches(pages: u64) -> Vec<u64> {
    let arch = Arch::new(Family::X86_64, 4096).unwrap();
    let limits = Limits {
        rules: Rules::new(Kernel::V6_18, Series::BASELINE),
        arch,
        ra_pages: PageCount(32),
        io_pages: PageCount(256),
        fault_around: PageCount(16),
        max_folio: None,
        min_folio: Order(0),
        file_pages: PageCount(pages),
    };
    let mut cache = PlainCache::new(None);
    let run = FolioRun { start: PageIndex(0), order: Order(0), folios: pages, marked: None };
    cache.add(FileId::FIRST, run);
    cache.unlock(FileId::FIRST, run.start, run.pages());
    let file = cache.file(FileId::FIRST);
    let mut watched = Watched { file, looked_to: Cell::new(0), end: 0, batches: Vec::new() };
    let mut ra = ReadaheadState::NEW;
    let mut read = ReadCall::new(0, pages * 4096, pages * 4096, &limits);
    let mut log = ();
    let mut view = ReadView { limits: &limits, ra: &mut ra, cache: &mut watched, log: &mut log };
    assert_eq!(read.step(&mut view), None, "nothing has to be read or waited for");
    watched.batches
}

#[test]
fn reads_look_as_far_at_a_time_as_linux_6_18() {
    let text = include_str!("../../../data/measured-6.18-reads.json");
    let file: File = measurements(text);
    let mut compared = 0;
    for run in &file.runs {
        assert_eq!(batches(run.pages), run.batches, "a read of {} pages", run.pages);
        compared += run.batches.len();
    }
    assert_eq!((file.runs.len(), compared), (RUNS, BATCHES), "what there is to compare");
}

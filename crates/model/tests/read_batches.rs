//! How far a `read(2)` looks at a time, beside a real kernel: `data/measured-6.18-reads.json`.

use std::cell::Cell;

use filemap_core::cache::{Folio, FolioRun, PageCache, PageWord, Shrunk};
use filemap_core::decision::Log;
use filemap_core::plain::PlainCache;
use filemap_core::read::{Read, ReadView};
use filemap_core::readahead::{Limits, ReadaheadState};
use filemap_core::rules::{Arch, Family, Kernel, Rules};
use filemap_core::segments::Layer;
use filemap_core::series::Series;
use filemap_core::statistics::Statistics;
use filemap_core::units::{Order, PageCount, PageIndex};
use filemap_core::vma::Mapping;
use serde::Deserialize;

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct File {
    #[serde(rename = "what")]
    _what: String,
    #[serde(rename = "kernel")]
    _kernel: String,
    #[serde(rename = "date")]
    _date: String,
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

/// A cache that notes how far somebody looked before using the first of what was looked at.
struct Watched {
    cache: PlainCache,
    looked_to: Cell<u64>,
    /// The page behind the batch at hand.
    end: u64,
    batches: Vec<u64>,
}

impl PageCache for Watched {
    fn folio(&self, index: PageIndex) -> Option<Folio> {
        self.looked_to.set(self.looked_to.get().max(index.0 + 1));
        self.cache.folio(index)
    }
    fn mark_accessed(&mut self, index: PageIndex) {
        if self.batches.is_empty() || index.0 >= self.end {
            self.batches.push(index.0);
            self.end = self.looked_to.get();
        }
        self.cache.mark_accessed(index);
    }
    fn select(&mut self, layer: Layer) {
        self.cache.select(layer);
    }
    fn word(&self, word: u64) -> PageWord {
        self.cache.word(word)
    }
    fn next_absent(&self, from: PageIndex, end: PageIndex) -> PageIndex {
        self.cache.next_absent(from, end)
    }
    fn next_present(&self, from: PageIndex, end: PageIndex) -> PageIndex {
        self.cache.next_present(from, end)
    }
    fn previous_absent(&self, last: PageIndex, floor: PageIndex) -> Option<PageIndex> {
        self.cache.previous_absent(last, floor)
    }
    fn cached(&self, from: PageIndex, end: PageIndex) -> PageCount {
        self.cache.cached(from, end)
    }
    fn add(&mut self, run: FolioRun) {
        self.cache.add(run);
    }
    fn unlock(&mut self, start: PageIndex, pages: PageCount) {
        self.cache.unlock(start, pages);
    }
    fn clear_mark(&mut self, index: PageIndex) {
        self.cache.clear_mark(index);
    }
    fn map(&mut self, word: u64, mask: u64, young: u64) {
        self.cache.map(word, mask, young);
    }
    fn touch(&mut self, index: PageIndex) -> bool {
        self.cache.touch(index)
    }
    fn copy(&mut self, index: PageIndex) {
        self.cache.copy(index);
    }
    fn inactive(&self) -> PageCount {
        self.cache.inactive()
    }
    fn active(&self) -> PageCount {
        self.cache.active()
    }
    fn statistics(&self) -> Statistics {
        self.cache.statistics()
    }
    fn flush_statistics(&mut self) {
        self.cache.flush_statistics();
    }
    fn nodes(&self) -> u64 {
        self.cache.nodes()
    }
    fn age(&mut self, pages: PageCount, mapping: &Mapping) {
        self.cache.age(pages, mapping);
    }
    fn shrink(&mut self, goal: PageCount, mapping: &Mapping, log: &mut impl Log) -> Shrunk {
        self.cache.shrink(goal, mapping, log)
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
        file_pages: PageCount(pages),
    };
    let mut cache = PlainCache::new(None);
    let run = FolioRun { start: PageIndex(0), order: Order(0), folios: pages, marked: None };
    cache.add(run);
    cache.unlock(run.start, run.pages());
    let mut cache = Watched { cache, looked_to: Cell::new(0), end: 0, batches: Vec::new() };
    let mut ra = ReadaheadState::NEW;
    let mut read = Read::new(0, pages * 4096, pages * 4096, &limits);
    let mut log = ();
    let mut view = ReadView { limits: &limits, ra: &mut ra, cache: &mut cache, log: &mut log };
    assert_eq!(read.step(&mut view), None, "nothing has to be read or waited for");
    cache.batches
}

#[test]
fn reads_look_as_far_at_a_time_as_linux_6_18() {
    let text = include_str!("../../../data/measured-6.18-reads.json");
    let file: File = serde_json::from_str(text).expect("each run has these keys and no others");
    let mut compared = 0;
    for run in &file.runs {
        assert_eq!(batches(run.pages), run.batches, "a read of {} pages", run.pages);
        compared += run.batches.len();
    }
    assert_eq!((file.runs.len(), compared), (RUNS, BATCHES), "what there is to compare");
}

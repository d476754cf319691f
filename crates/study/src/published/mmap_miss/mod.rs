//! The mmap-miss series: two file sizes, five workloads, four variants.

mod cell;
mod layout;
mod notes;
mod published_vs_model;

use filemap_job::{DEFAULT_SEED, Job, seeds};

use self::cell::{CAPACITY_STEP_GIB, Cell, Measured};
use super::data::PUBLISHED;
use super::{Findings, Ran, Study};

const WORKLOADS: [&str; 5] = ["random", "stride1021", "stride2053", "stride4099", "sequential"];

const VARIANTS: [&str; 4] = ["baseline", "p1", "p2", "p1+p2"];

/// The study of the series.
pub struct MmapMiss {
    cells: Vec<Cell>,
    seeds: Vec<u64>,
}

impl MmapMiss {
    /// The study with `count` seeds, 1 or more, for each random cell.
    pub fn new(count: u64) -> Self {
        let mut cells = Vec::new();
        for case in &PUBLISHED.mmap_miss.case {
            for workload in WORKLOADS {
                cells.extend(VARIANTS.map(|variant| Cell { case, workload, variant }));
            }
        }
        MmapMiss { cells, seeds: seeds(DEFAULT_SEED, count).collect() }
    }

    /// The seeds that `cell` is run with.
    fn seeds_of(&self, cell: &Cell) -> &[u64] {
        if cell.is_random() { &self.seeds } else { &self.seeds[..1] }
    }

    /// The random baseline of the largest file with a step less and a step more page cache.
    fn capacity_jobs(&self) -> [Job; 2] {
        let job = self.cells[0].job();
        [-CAPACITY_STEP_GIB, CAPACITY_STEP_GIB].map(|step| cell::with_more_cache(&job, step))
    }
}

impl Study for MmapMiss {
    fn jobs(&self) -> Vec<Job> {
        let of_cell = |cell: &Cell| {
            let job = cell.job();
            self.seeds_of(cell).iter().map(|&seed| job.with_seed(seed)).collect::<Vec<_>>()
        };
        self.cells.iter().flat_map(of_cell).chain(self.capacity_jobs()).collect()
    }

    fn findings(&self, ran: &Ran<'_>) -> Findings {
        let records = ran.records;
        let mut left = records;
        let mut measured = Vec::new();
        for cell in &self.cells {
            let (own, rest) = left.split_at(self.seeds_of(cell).len());
            measured.push(Measured::new(*cell, own));
            left = rest;
        }
        let [less, more] = [&left[0], &left[1]].map(cell::gib_read);
        let slope = (more - less) / 2.0;
        Findings {
            parts: layout::parts(&measured, slope),
            rows: layout::rows(&measured),
            cells: measured.iter().map(Measured::json).collect(),
            source: &PUBLISHED.mmap_miss.source,
            failed: measured.iter().filter(|cell| cell.ok == Some(false)).count(),
            origin: None,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::super::DEFAULT_SEEDS;
    use super::*;

    #[test]
    fn forty_cells_of_which_26_are_published() {
        let study = MmapMiss::new(DEFAULT_SEEDS);
        assert_eq!(study.cells.len(), 40);
        assert_eq!(study.cells.iter().filter(|cell| cell.published().is_some()).count(), 26);
        assert_eq!(study.jobs().len(), 8 * 25 + 32 + 2);
    }

    #[test]
    fn jobs_are_those_that_were_published() {
        let study = MmapMiss::new(1);
        let jobs = study.jobs();
        assert_eq!(jobs.len(), 42);
        let accesses = |at: usize| jobs[at].accesses().next().unwrap().accesses;
        assert_eq!(accesses(0), 52428, "1 % of 20 GiB");
        assert_eq!(accesses(20), 10485, "1 % of 4 GiB");
        assert_eq!(jobs[0].machine.cache_limit.unwrap().0, 1997537, "7.62 GiB");
        assert_eq!(jobs[41].machine.cache_limit.unwrap().0, 1997537 + 26214, "0.1 GiB more");
        assert_eq!(jobs[40].machine.cache_limit.unwrap().0, 1997537 - 26214, "0.1 GiB less");
    }
}

//! Threads that wait, against what a patched 6.12 counted: `data/measured-6.12-thrash.json`.
//!
//! The machine of the measurement is modelled: its CPUs run in turn, and its costs were measured
//! there with one thread ([`Costs::EMULATED`]). No cost was fitted to the grid.

use std::fs;
use std::sync::Mutex;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::thread;

use filemap_core::rules::{Arch, Family, Kernel, Rules};
use filemap_core::series::{Series, Switch};
use filemap_core::units::PageCount;
use filemap_model::Profile;
use filemap_model::profile::Device;
use filemap_model::thrash::costs::Costs;
use filemap_model::thrash::mechanisms::Mechanisms;
use filemap_model::thrash::{Counts, Thrash, Until, run};
use serde::Deserialize;

#[derive(Deserialize)]
struct Measured {
    rows: Vec<Row>,
}

#[derive(Deserialize)]
struct Row {
    threads: usize,
    vcpus: usize,
    readahead_pages: u64,
    high_pages: u64,
    max_pages: u64,
    writers: usize,
    sparse: bool,
    variant: String,
    /// Runs whose counts are added here.
    #[serde(default)]
    runs: u64,
    planned_seconds: u64,
    rounds: u64,
    retry_mmap_drop: u64,
    retry_io_miss: u64,
}

impl Row {
    fn job(&self) -> Thrash {
        let series = match self.variant.as_str() {
            "none" => Series::BASELINE,
            _ => Series::BASELINE.with(Switch::VmaRetry),
        };
        let limit = |pages| Some(PageCount(pages)).filter(|pages| pages.0 > 0);
        // A file of the host that is in its cache.
        let device = Device {
            latency_ns: 100_000,
            bandwidth_bytes: 4_000_000_000,
            queue_depth: 64,
            ..Profile::DEFAULT.device
        };
        Thrash {
            one_vma: false,
            rules: Rules::new(Kernel::V6_12, series),
            arch: Arch::new(Family::X86_64, 4096).expect("x86-64 has it"),
            threads: self.threads,
            cpus: self.vcpus,
            file_pages: PageCount(4096),
            sparse: self.sparse,
            read_ahead: PageCount(self.readahead_pages),
            fault_around: PageCount(16),
            max_folio: None,
            high: limit(self.high_pages),
            max: limit(self.max_pages),
            writers: self.writers,
            noise_threads: 0,
            until: Until::Elapsed(self.planned_seconds * 1_000_000_000),
            warm_up_ns: 0,
            stagger_ns: 0,
            seed: 1,
            mechanisms: Mechanisms::ALL,
            costs: Costs::EMULATED,
            device,
        }
    }

    /// Misses of a hundred faults that gave up their lock.
    fn miss_percent(&self) -> f64 {
        percent(self.retry_io_miss, self.retry_mmap_drop)
    }
}

fn percent(part: u64, whole: u64) -> f64 {
    100.0 * part as f64 / whole.max(1) as f64
}

/// A row, and what the model counts.
struct Pair {
    row: Row,
    counts: Counts,
}

impl Pair {
    fn miss_percent(&self) -> f64 {
        percent(self.counts.retry_misses, self.counts.faults_dropped)
    }

    fn misses_agree(&self) -> bool {
        let (ours, its) = (self.miss_percent(), self.row.miss_percent());
        (ours - its).abs() <= 1.0 || ours <= 2.0 * its && its <= 2.0 * ours
    }

    fn drops_agree(&self) -> bool {
        let a_round = |drops: u64, rounds: u64| drops as f64 / rounds.max(1) as f64;
        let ours = a_round(self.counts.faults_dropped, self.counts.rounds);
        let its = a_round(self.row.retry_mmap_drop, self.row.rounds);
        (ours / its - 1.0).abs() <= 0.3
    }

    fn show(&self) -> String {
        let Row { threads, vcpus, readahead_pages, high_pages, max_pages, writers, .. } = self.row;
        let files = if self.row.sparse { "sparse" } else { "written" };
        format!(
            "{threads:3} {vcpus:2} {readahead_pages:4} {high_pages:6} {max_pages:6} {writers} \
             {files:7} {:9} | rounds {:3} {:3} | drops {:5} {:5} | misses {:4.1} {:4.1} %",
            self.row.variant,
            self.counts.rounds,
            self.row.rounds / self.row.runs,
            self.counts.faults_dropped,
            self.row.retry_mmap_drop / self.row.runs,
            self.miss_percent(),
            self.row.miss_percent(),
        )
    }
}

/// The rows, those that repeat a cell added to its first.
fn cells(rows: Vec<Row>) -> Vec<Row> {
    let mut cells: Vec<Row> = Vec::new();
    for row in rows {
        match cells.iter_mut().find(|cell| cell.key() == row.key()) {
            Some(cell) => {
                cell.runs += 1;
                cell.rounds += row.rounds;
                cell.retry_mmap_drop += row.retry_mmap_drop;
                cell.retry_io_miss += row.retry_io_miss;
            }
            None => cells.push(Row { runs: 1, ..row }),
        }
    }
    cells
}

fn pairs() -> Vec<Pair> {
    let path = concat!(env!("CARGO_MANIFEST_DIR"), "/../../data/measured-6.12-thrash.json");
    let text = fs::read_to_string(path).expect("the measurement is in the repository");
    let measured: Measured = serde_json::from_str(&text).expect("rows");
    let rows = cells(measured.rows);
    let (next, counted) = (AtomicUsize::new(0), Mutex::new(Vec::new()));
    thread::scope(|scope| {
        for _ in 0..thread::available_parallelism().map_or(1, usize::from) {
            scope.spawn(|| {
                while let Some(row) = rows.get(next.fetch_add(1, Ordering::Relaxed)) {
                    let counts = run(&row.job(), &mut ()).expect("it runs").counts;
                    counted.lock().expect("nobody panics").push((row.key(), counts));
                }
            });
        }
    });
    let counted = counted.into_inner().expect("nobody panics");
    let of = |row: Row| {
        let (_, counts) = counted.iter().find(|(key, _)| *key == row.key()).expect("it was run");
        Pair { counts: *counts, row }
    };
    rows.into_iter().map(of).collect()
}

impl Row {
    fn key(&self) -> (usize, usize, u64, u64, u64, usize, bool, String, u64) {
        (
            self.threads,
            self.vcpus,
            self.readahead_pages,
            self.high_pages,
            self.max_pages,
            self.writers,
            self.sparse,
            self.variant.clone(),
            self.planned_seconds,
        )
    }
}

/// Spearman's coefficient, of values that hardly repeat.
fn rank_correlation(pairs: &[&Pair]) -> f64 {
    let ranks = |value: &dyn Fn(&Pair) -> f64| {
        let below = |pair: &&Pair| {
            let less = pairs.iter().filter(|other| value(other) < value(pair)).count();
            let same = pairs.iter().filter(|other| value(other) == value(pair)).count();
            less as f64 + (same - 1) as f64 / 2.0
        };
        pairs.iter().map(below).collect::<Vec<f64>>()
    };
    let (ours, its) = (ranks(&|pair| pair.miss_percent()), ranks(&|pair| pair.row.miss_percent()));
    let mean = (pairs.len() - 1) as f64 / 2.0;
    let product = |a: &[f64], b: &[f64]| -> f64 {
        a.iter().zip(b).map(|(a, b)| (a - mean) * (b - mean)).sum()
    };
    product(&ours, &its) / (product(&ours, &ours) * product(&its, &its)).sqrt()
}

fn share(pairs: &[&Pair], holds: impl Fn(&Pair) -> bool) -> f64 {
    percent(pairs.iter().filter(|pair| holds(pair)).count() as u64, pairs.len() as u64)
}

/// 100 jobs of 25 to 150 virtual seconds: `cargo test -p filemap-model --release --test
/// thrash_grid -- --ignored --nocapture` shows the rows.
#[test]
#[ignore = "half a minute of a processor in a release build"]
fn the_model_agrees_with_the_measured_grid() {
    let pairs = pairs();
    pairs.iter().for_each(|pair| println!("{}", pair.show()));
    let of = |variant: &str| -> Vec<&Pair> {
        pairs.iter().filter(|pair| pair.row.variant == variant).collect()
    };
    let base = of("none");
    let a_run = |count: u64, pair: &Pair| count / pair.row.runs;
    let has_drops = |pair: &&Pair| a_run(pair.row.retry_mmap_drop, pair) >= 200;
    let has_rounds = |pair: &&Pair| a_run(pair.row.rounds, pair) >= 10;
    // Every second cell in the order of the file, and the others.
    for half in 0..2 {
        let cells: Vec<&Pair> = base.iter().copied().skip(half).step_by(2).collect();
        let counted: Vec<&Pair> = cells.iter().copied().filter(has_drops).collect();
        let with_rounds: Vec<&Pair> = cells.iter().copied().filter(has_rounds).collect();
        let misses = share(&counted, Pair::misses_agree);
        let drops = share(&with_rounds, Pair::drops_agree);
        println!(
            "half {half}: misses agree in {misses:.0} % of {}, drops in {drops:.0} % of {}",
            counted.len(),
            with_rounds.len()
        );
        assert!(misses >= MISSES_AGREE, "{misses}");
        assert!(drops >= DROPS_AGREE, "{drops}");
    }
    let rank = rank_correlation(&base);
    println!("ranks {rank:.3}");
    for pair in of("vma-retry") {
        assert!(pair.miss_percent() < 0.5, "{}", pair.show());
    }
    assert!(rank >= 0.8, "{rank}");
}

/// In so many of a hundred cells.
const MISSES_AGREE: f64 = 80.0;
const DROPS_AGREE: f64 = 80.0;

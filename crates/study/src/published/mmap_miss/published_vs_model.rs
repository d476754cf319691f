//! What the published figure counts beside the file.
//!
//! It is the difference of `pgpgin`, which counts what the whole machine reads: also the probe's
//! own pages and its libraries, and metadata. `data/whole-machine-6.12.toml` has how much that was
//! in runs of the published jobs in guests, where each page that entered the cache was counted
//! under its file. None of these figures comes from a cell that is judged by them.

use std::sync::LazyLock;

use serde::{Deserialize, Serialize};

const KIB_IN_A_GIB: f64 = (1u64 << 20) as f64;

/// The allowance that the measured runs give.
pub static BESIDE: LazyLock<Beside> = LazyLock::new(|| {
    let text = include_str!("../../../../../data/whole-machine-6.12.toml");
    let data: Data = toml::from_str(text).expect("data/whole-machine-6.12.toml is of this form");
    Beside::of(&data.run)
});

/// How much of a published figure may be no page of the file.
#[derive(Clone, Copy, Debug, PartialEq, Serialize)]
pub struct Beside {
    /// KiB of every run: the largest that was measured where memory was not short.
    pub fixed_kib: f64,
    /// KiB for each GiB read: the largest growth that was measured where memory was short.
    pub kib_for_a_gib: f64,
}

#[derive(Debug, Deserialize)]
struct Data {
    run: Vec<GuestRun>,
}

/// One run in a guest.
#[derive(Clone, Debug, Deserialize)]
struct GuestRun {
    guest: String,
    ram_gib: f64,
    /// The difference of `pgpgin`.
    pgpgin_kib: u64,
    /// Pages of the file that entered the cache.
    file_kib: u64,
}

impl GuestRun {
    fn beside_kib(&self) -> f64 {
        self.pgpgin_kib as f64 - self.file_kib as f64
    }

    fn file_gib(&self) -> f64 {
        self.file_kib as f64 / KIB_IN_A_GIB
    }

    fn fits(&self) -> bool {
        self.file_gib() < self.ram_gib
    }

    /// KiB for each GiB beyond what the same guest counts in any case.
    fn growth(&self, runs: &[GuestRun]) -> f64 {
        let same = runs.iter().filter(|run| run.fits() && run.guest == self.guest);
        let least = same.map(GuestRun::beside_kib).fold(f64::INFINITY, f64::min);
        (self.beside_kib() - least).max(0.0) / self.file_gib()
    }
}

impl Beside {
    fn of(runs: &[GuestRun]) -> Beside {
        let (fit, short): (Vec<&GuestRun>, Vec<&GuestRun>) =
            runs.iter().partition(|run| run.fits());
        let largest = |figures: &mut dyn Iterator<Item = f64>| figures.fold(0.0, f64::max);
        Beside {
            fixed_kib: largest(&mut fit.into_iter().map(GuestRun::beside_kib)),
            kib_for_a_gib: largest(&mut short.into_iter().map(|run| run.growth(runs))),
        }
    }

    /// How far below a published figure the file's own `gib` GiB may lie, in GiB.
    pub fn bound_gib(&self, gib: f64) -> f64 {
        (self.fixed_kib + self.kib_for_a_gib * gib) / KIB_IN_A_GIB
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn run(guest: &str, file_gib: u64, beside_kib: u64) -> GuestRun {
        let file_kib = file_gib << 20;
        GuestRun { guest: guest.into(), ram_gib: 8.0, pgpgin_kib: file_kib + beside_kib, file_kib }
    }

    #[test]
    fn the_allowance_is_a_fixed_part_and_one_that_grows_where_memory_is_short() {
        let runs = [run("a", 1, 300), run("a", 4, 500), run("b", 4, 900), run("a", 40, 700)];
        assert_eq!(Beside::of(&runs), Beside { fixed_kib: 900.0, kib_for_a_gib: 10.0 });
        assert_eq!(Beside::of(&runs).bound_gib(2.0), 920.0 / 1048576.0);
    }

    #[test]
    fn the_data_has_runs_of_both_kinds() {
        let text = include_str!("../../../../../data/whole-machine-6.12.toml");
        let data: Data = toml::from_str(text).unwrap();
        assert!(data.run.iter().any(GuestRun::fits) && data.run.iter().any(|run| !run.fits()));
        assert!(data.run.iter().all(|run| run.pgpgin_kib > run.file_kib));
    }
}

//! Tolerances: when a figure of the model holds against a published one.

use std::fmt;
use std::sync::LazyLock;

use serde::Deserialize;

use crate::stats::{SampleStats, percent};

/// Minimum number of seeds that shows the spread of a cell.
const MIN_SPREAD_SEEDS: usize = 20;

/// Maximum rounding error of a figure with three decimals.
pub const MAX_ROUNDING: f64 = 0.0005;

const KIB_IN_A_GIB: f64 = (1u64 << 20) as f64;

#[derive(Clone, Copy, Debug, PartialEq)]
pub enum Tolerance {
    /// Not above the published figure, and below it by at most what a counter of the whole machine
    /// counts besides the file; both up to rounding.
    Below(MachineReads),
    /// Off by at most this many percent.
    Percent(f64),
    /// The seeds overlap the range of the published runs.
    Runs(f64, f64),
    /// The published figure lies within the range of the seeds, or of one mode if there are
    /// several.
    Spread,
    /// Either of the two.
    SpreadOrPercent(f64),
}

impl Tolerance {
    /// Whether the median of `figures` holds; `None` if more seeds are needed.
    pub fn holds(self, figures: &SampleStats, published: f64) -> Option<bool> {
        let figure = figures.median;
        let near = |most: f64| percent(figure, published).is_some_and(|off| off.abs() <= most);
        let inside = || {
            let spans = is_inside(figures, published);
            (spans || figures.samples.len() >= MIN_SPREAD_SEEDS).then_some(spans)
        };
        match self {
            Tolerance::Below(beside) => {
                let below = published - figure;
                Some((-MAX_ROUNDING..=beside.bound_gib(figure) + MAX_ROUNDING).contains(&below))
            }
            Tolerance::Percent(most) => Some(near(most)),
            Tolerance::Runs(low, high) => Some(figures.min <= high && figures.max >= low),
            Tolerance::Spread => inside(),
            Tolerance::SpreadOrPercent(most) if near(most) => Some(true),
            Tolerance::SpreadOrPercent(_) => inside(),
        }
    }
}

/// Whether `published` lies within one mode of `figures`, up to rounding.
pub fn is_inside(figures: &SampleStats, published: f64) -> bool {
    figures.modes.iter().any(|mode| {
        let bound = published.clamp(mode.min, mode.max);
        (bound - published).abs() <= MAX_ROUNDING
    })
}

impl fmt::Display for Tolerance {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Tolerance::Below(MachineReads { fixed_kib, kib_for_a_gib }) => {
                write!(f, "0 to {fixed_kib:.0} KiB + {kib_for_a_gib:.0} KiB/GiB below")
            }
            Tolerance::Percent(most) => write!(f, "{most} %"),
            Tolerance::Runs(low, high) => write!(f, "{low:.2} to {high:.2}"),
            Tolerance::Spread => f.write_str("inside the seeds' spread"),
            Tolerance::SpreadOrPercent(most) => write!(f, "inside the seeds' spread, or {most} %"),
        }
    }
}

/// How much of a published `pgpgin` difference may not be pages of the file.
///
/// `pgpgin` counts reads of the whole machine, including the probe's own pages, libraries and
/// metadata. `data/whole-machine-6.12.toml` has that share for runs of the published jobs in
/// guests, where each page that entered the cache was counted by file. None of these figures comes
/// from a cell that they judge.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct MachineReads {
    /// KiB in every run: the largest measured without memory pressure.
    pub fixed_kib: f64,
    /// KiB for each GiB read: the largest growth measured under memory pressure.
    pub kib_for_a_gib: f64,
}

/// The allowance from the measured runs.
pub static MACHINE_READS: LazyLock<MachineReads> = LazyLock::new(|| {
    let text = include_str!("../../../../data/whole-machine-6.12.toml");
    let data: Data = toml::from_str(text).expect("data/whole-machine-6.12.toml is of this form");
    MachineReads::from_runs(&data.run)
});

#[derive(Debug, Deserialize)]
struct Data {
    run: Vec<GuestRun>,
}

/// One run in a guest.
#[derive(Clone, Debug, Deserialize)]
struct GuestRun {
    guest: String,
    ram_gib: f64,
    /// Difference of `pgpgin` in KiB.
    pgpgin_kib: u64,
    /// Pages of the file that entered the cache, in KiB.
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
}

impl MachineReads {
    fn from_runs(runs: &[GuestRun]) -> MachineReads {
        let (fit, short): (Vec<&GuestRun>, Vec<&GuestRun>) =
            runs.iter().partition(|run| run.fits());
        // In excess of the guest's constant share.
        let growth = |run: &GuestRun| {
            let same = fit.iter().filter(|own| own.guest == run.guest);
            let least = same.map(|own| own.beside_kib()).fold(f64::INFINITY, f64::min);
            (run.beside_kib() - least) / run.file_gib()
        };
        MachineReads {
            fixed_kib: fit.iter().map(|run| run.beside_kib()).fold(0.0, f64::max),
            kib_for_a_gib: short.into_iter().map(growth).fold(0.0, f64::max),
        }
    }

    /// Allowance in GiB below a published figure of a file that read `gib` GiB.
    fn bound_gib(self, gib: f64) -> f64 {
        (self.fixed_kib + self.kib_for_a_gib * gib) / KIB_IN_A_GIB
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::published::mmap_miss::PUBLISHED;

    const BESIDE_4_MIB: MachineReads = MachineReads { fixed_kib: 2048.0, kib_for_a_gib: 100.0 };

    fn holds(figure: f64, published: f64) -> Option<bool> {
        let gib = SampleStats::from_sorted(vec![figure]).unwrap();
        Tolerance::Below(BESIDE_4_MIB).holds(&gib, published)
    }

    #[test]
    fn a_figure_above_the_published_one_fails() {
        assert_eq!(holds(4.0, 4.0), Some(true));
        assert_eq!(holds(4.0004, 4.0), Some(true), "within the rounding");
        assert_eq!(holds(4.0006, 4.0), Some(false));
        assert_eq!(holds(409.585, 409.584), Some(false), "by 0.0002 %");
    }

    #[test]
    fn a_figure_below_by_more_than_the_rest_of_the_machine_reads_fails() {
        // 2 MiB and 0.4 MiB of 4 GiB are 0.0023 GiB; half a digit more is rounding.
        assert_eq!(holds(4.0, 4.0028), Some(true));
        assert_eq!(holds(4.0, 4.003), Some(false));
        assert_eq!(holds(0.056, 0.0583), Some(true));
        assert_eq!(holds(0.056, 0.059), Some(false));
    }

    #[test]
    fn published_runs_hold_a_figure_on_both_sides() {
        let holds = |figures: &[f64]| {
            let figures = SampleStats::from_sorted(figures.to_vec()).unwrap();
            Tolerance::Runs(0.03, 1.69).holds(&figures, 1.69)
        };
        assert_eq!(holds(&[0.5, 0.7]), Some(true));
        assert_eq!(holds(&[0.0, 0.02]), Some(false), "what is too low fails as well");
        assert_eq!(holds(&[1.7, 9.0]), Some(false));
        assert_eq!(holds(&[0.0, 9.0]), Some(true), "runs differ as the published ones do");
    }

    #[test]
    fn bistable_cell_is_undecided() {
        let figures = SampleStats::from_sorted(vec![1.0, 1.1, 223.0, 223.4]).unwrap();
        let inside = [1.05, 50.0, 223.2].map(|published| is_inside(&figures, published));
        assert_eq!(inside, [true, false, true]);
    }

    /// The allowance detects a model that is wrong by one page for each access (0.2 GiB of the 20
    /// GiB file).
    #[test]
    fn the_measured_allowance_is_small_beside_a_wrong_rule() {
        let published = PUBLISHED.case[0].rows.iter();
        for row in published.filter(|row| row.workload != "random") {
            let bound = MACHINE_READS.bound_gib(row.gib) + MAX_ROUNDING;
            assert!(bound < 0.1, "{}: {bound}", row.workload);
        }
    }

    fn run(guest: &str, file_gib: u64, beside_kib: u64) -> GuestRun {
        let file_kib = file_gib << 20;
        GuestRun { guest: guest.into(), ram_gib: 8.0, pgpgin_kib: file_kib + beside_kib, file_kib }
    }

    #[test]
    fn the_allowance_is_a_fixed_part_and_one_that_grows_where_memory_is_short() {
        let runs = [run("a", 1, 300), run("a", 4, 500), run("b", 4, 900), run("a", 40, 700)];
        assert_eq!(
            MachineReads::from_runs(&runs),
            MachineReads { fixed_kib: 900.0, kib_for_a_gib: 10.0 }
        );
        assert_eq!(MachineReads::from_runs(&runs).bound_gib(2.0), 920.0 / 1048576.0);
    }

    #[test]
    fn the_data_has_runs_of_both_kinds() {
        let text = include_str!("../../../../data/whole-machine-6.12.toml");
        let data: Data = toml::from_str(text).unwrap();
        assert!(data.run.iter().any(GuestRun::fits) && data.run.iter().any(|run| !run.fits()));
        assert!(data.run.iter().all(|run| run.pgpgin_kib > run.file_kib));
    }
}

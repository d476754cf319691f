//! Spread of the figures of random jobs over seeds.

use filemap_job::Record;

use crate::figures::{FigureInput, figure_inputs};
use crate::stats::{Mode, SampleStats};
use filemap_report::units::{bytes, bytes_range};

/// Ratio of maximum to minimum bytes read over seeds above which the spread is wide.
pub const WIDE_FACTOR: f64 = 1.5;

/// Number of seeds that shows the frequency of each outcome, as in the published tables.
pub const ENOUGH_SEEDS: u64 = 25;

/// `with one seed`, `over 25 seeds`.
pub(crate) fn seeds_phrase(seeds: usize) -> String {
    match seeds {
        1 => "with one seed".to_string(),
        seeds => format!("over {seeds} seeds"),
    }
}

/// Frequency of each mode, the largest value first: `19 end near 223 GiB (220 to 224)`. `figure`
/// formats one figure, `range` a pair.
pub fn outcomes(
    modes: &[Mode],
    figure: impl Fn(f64) -> String,
    range: impl Fn(f64, f64) -> String,
) -> String {
    let text = |mode: &Mode| match mode.count {
        1 => format!("1 ends at {}", figure(mode.mean)),
        count => {
            format!("{count} end near {} ({})", figure(mode.mean), range(mode.min, mode.max))
        }
    };
    modes.iter().rev().map(text).collect::<Vec<_>>().join(", ")
}

/// Bytes read in each run of `record` that has the figure.
pub fn bytes_read(record: &Record) -> Vec<f64> {
    figure_inputs(record, None).iter().filter_map(FigureInput::read_bytes).collect()
}

/// Whether bytes read vary so much over seeds that one seed is no basis for a conclusion.
pub fn is_wide(read: &SampleStats) -> bool {
    read.max > WIDE_FACTOR * read.min
}

/// Warning for a `variant` that ran with one seed, if `read` (bytes with other seeds) is wide.
pub fn warning(variant: &str, read: &SampleStats) -> Option<String> {
    is_wide(read).then(|| {
        format!(
            "with other seeds {variant} reads from {}; give --seeds {ENOUGH_SEEDS}",
            bytes_range(read.min, read.max)
        )
    })
}

/// Note on a `variant` that ran with several seeds, if it has several outcomes.
pub(crate) fn note(variant: &str, read: &SampleStats) -> Option<String> {
    (read.modes.len() > 1).then(|| {
        format!(
            "{variant} has several outcomes, so that its median says little: of {} runs {}.",
            read.samples.len(),
            outcomes(&read.modes, bytes, bytes_range)
        )
    })
}

/// Number of distinct seeds of the runs of `record`.
pub(crate) fn seeds(record: &Record) -> usize {
    let mut seeds: Vec<u64> = record.runs.iter().map(|run| run.seed).collect();
    seeds.sort_unstable();
    seeds.dedup();
    seeds.len()
}

#[cfg(test)]
mod tests {
    use super::*;

    const GIB: f64 = (1u64 << 30) as f64;

    fn sample(gib: &[f64]) -> SampleStats {
        SampleStats::from_sorted(gib.iter().map(|gib| gib * GIB).collect()).unwrap()
    }

    #[test]
    fn warns_of_wide_spread() {
        let warning = warning("p2", &sample(&[223.6, 0.976, 222.0])).unwrap();
        assert_eq!(warning, "with other seeds p2 reads from 0.98 to 223.6 GiB; give --seeds 25");
    }

    #[test]
    fn no_warning_for_narrow_spread() {
        for narrow in [&[4.0, 4.0, 4.0][..], &[1.0], &[1.0, 1.5], &[0.0, 0.0]] {
            assert_eq!(warning("p2", &sample(narrow)), None, "{narrow:?}");
        }
        assert!(warning("p2", &sample(&[1.0, 1.51])).is_some());
        assert!(warning("p2", &sample(&[0.0, 1.0])).is_some());
    }

    #[test]
    fn outcomes_are_counted() {
        let note = note("p2", &sample(&[220.0, 1.0, 224.0])).unwrap();
        let counts = "of 3 runs 2 end near 222 GiB (220 to 224 GiB), 1 ends at 1 GiB.";
        assert!(note.ends_with(counts), "{note}");
        assert_eq!(super::note("p2", &sample(&[1.0, 1.9])), None);
    }
}

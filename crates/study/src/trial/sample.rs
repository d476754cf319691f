//! Samples of runs, and differences in behaviour between the runs of a variant and plain runs.

use filemap_job::Spread;
use filemap_kernel::metered::MeteredRun;
use filemap_kernel::page_size;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::verdict::samples;

/// A run of a program, including all processes that it started and waited for.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct RunSample {
    /// Exit code; null if a signal ended the program.
    pub exit_code: Option<i32>,
    /// Signal that ended it.
    pub signal: Option<i32>,
    /// Bytes read from disks.
    #[serde(default)]
    pub bytes_read: u64,
    /// Pages read from disks.
    #[serde(default)]
    pub pages_read: u64,
    /// Faults that waited for a disk.
    pub major_faults: u64,
    /// Elapsed time.
    pub elapsed_ns: u64,
    /// User and system time.
    pub cpu_ns: u64,
    /// Bytes of the trial's files in the page cache before the run.
    pub cached_bytes: u64,
    /// Digest of its stdout.
    pub stdout: String,
    /// Digest of its stderr, without the lines that filemap itself writes.
    pub stderr: String,
}

impl RunSample {
    /// A run; `dropped_bytes` were read before its advice took effect and are not counted.
    /// `cached_bytes` of its files were in the page cache before.
    pub fn new(metered: &MeteredRun, dropped_bytes: u64, cached_bytes: u64) -> RunSample {
        let (exit_code, signal) = metered.end();
        let [stdout, stderr] = metered.digests();
        let MeteredRun { major_faults, elapsed_ns, cpu_ns, .. } = *metered;
        let bytes_read = metered.bytes_read.saturating_sub(dropped_bytes);
        let pages_read = bytes_read / page_size();
        RunSample {
            exit_code,
            signal,
            bytes_read,
            pages_read,
            major_faults,
            elapsed_ns,
            cpu_ns,
            cached_bytes,
            stdout,
            stderr,
        }
    }
}

/// One figure of each run.
pub fn values<'a>(
    runs: impl IntoIterator<Item = &'a RunSample>,
    value: fn(&RunSample) -> u64,
) -> Vec<f64> {
    samples(runs.into_iter().map(value))
}

/// Spread of a figure over at least one run.
pub fn spread<'a>(
    runs: impl IntoIterator<Item = &'a RunSample>,
    value: fn(&RunSample) -> u64,
) -> Spread {
    Spread::from_samples(runs.into_iter().map(value)).expect("each variant has a run")
}

/// An aspect of behaviour that advice must not change: its name, and a text that is equal for equal
/// behaviour.
pub type Observable = (&'static str, fn(&RunSample) -> String);

/// How the program ended.
pub const EXIT: Observable = ("the end", |run| exit_text(run.exit_code, run.signal));

/// What the program printed.
pub const OUTPUTS: [Observable; 2] =
    [("what stdout has", |run| run.stdout.clone()), ("what stderr has", |run| run.stderr.clone())];

/// How a run ended, as the end of a sentence.
pub fn exit_text(exit_code: Option<i32>, signal: Option<i32>) -> String {
    match signal {
        Some(signal) => format!("by signal {signal}"),
        None => format!("with exit code {}", exit_code.unwrap_or_default()),
    }
}

/// Whether all runs behave alike.
pub fn all_agree<'a>(mut runs: impl Iterator<Item = &'a RunSample>, (_, text): Observable) -> bool {
    let first = runs.next().map(text);
    runs.all(|run| Some(text(run)) == first)
}

/// Whether some of `runs` behave differently from all plain runs. Always false if the plain runs
/// already differ among themselves.
pub fn differs_from_plain<'a>(
    runs: impl Iterator<Item = &'a RunSample>,
    plain: impl Iterator<Item = &'a RunSample> + Clone,
    observable: Observable,
) -> bool {
    let all = plain.clone().take(1).chain(runs);
    all_agree(plain, observable) && !all_agree(all, observable)
}

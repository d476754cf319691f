//! What a run of a program came to, and what runs did otherwise than others.

use filemap_kernel::metered::MeteredRun;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

/// One run of a program, and of all that it started; how much it read is told beside it.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct Ran {
    /// Its exit code; null where a signal ended it.
    pub exit_code: Option<i32>,
    /// The signal that ended it.
    pub signal: Option<i32>,
    /// Faults that waited for a disk.
    pub major_faults: u64,
    /// From its start to its end.
    pub elapsed_ns: u64,
    /// User and system time.
    pub cpu_ns: u64,
    /// Bytes of the files of the trial that were in the page cache before.
    pub cached_bytes: u64,
    /// What tells one output on stdout from another: a digest of it.
    pub stdout: String,
    /// The same of stderr, without the lines that filemap itself writes there.
    pub stderr: String,
}

/// What is compared between runs, as text that is the same where that is.
pub type Outcome = (&'static str, fn(&Ran) -> String);

/// All of it.
pub const OUTCOMES: [Outcome; 3] = [
    ("the end", |ran| ended(ran.exit_code, ran.signal)),
    ("what stdout has", |ran| ran.stdout.clone()),
    ("what stderr has", |ran| ran.stderr.clone()),
];

impl Ran {
    /// What was `metered`, with so much of its files in the page cache before.
    pub fn of(metered: &MeteredRun, cached_bytes: u64) -> Ran {
        let (exit_code, signal) = metered.end();
        let [stdout, stderr] = metered.digests();
        let MeteredRun { major_faults, elapsed_ns, cpu_ns, .. } = *metered;
        Ran { exit_code, signal, major_faults, elapsed_ns, cpu_ns, cached_bytes, stdout, stderr }
    }
}

/// How a run ended, as the end of a sentence.
pub fn ended(exit_code: Option<i32>, signal: Option<i32>) -> String {
    match signal {
        Some(signal) => format!("by signal {signal}"),
        None => format!("with exit code {}", exit_code.unwrap_or_default()),
    }
}

/// Whether runs have one `outcome`.
pub fn agree<'a>(mut runs: impl Iterator<Item = &'a Ran>, (_, value): Outcome) -> bool {
    let first = runs.next().map(value);
    runs.all(|ran| Some(value(ran)) == first)
}

/// Whether some of `runs` have another `outcome` than all of `plain`; nothing is told by one in
/// which these differ among themselves.
pub fn differ<'a>(
    runs: impl Iterator<Item = &'a Ran>,
    plain: impl Iterator<Item = &'a Ran> + Clone,
    outcome: Outcome,
) -> bool {
    let all = plain.clone().take(1).chain(runs);
    agree(plain, outcome) && !agree(all, outcome)
}

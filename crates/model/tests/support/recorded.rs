//! Runs of a real kernel under memory limits: `data/measured-6.12-limits.json`.

use filemap_job::{Error, Job, JobFlags, xorshift64};
use serde::{Deserialize, Serialize};

/// The text of the file.
pub const TEXT: &str = include_str!("../../../../data/measured-6.12-limits.json");

/// The recorded runs, and their setup.
#[derive(Debug, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Recorded<R> {
    /// For readers of the file.
    pub what: String,
    /// The kernel's release.
    pub kernel: String,
    /// Day of the runs.
    pub date: String,
    /// The command that made them.
    pub command: String,
    /// The machine of the kernel.
    pub machine: String,
    /// The runs.
    pub runs: Vec<R>,
}

/// One job, and the result of each of its runs.
#[derive(Debug, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Recording {
    pub name: String,
    pub job: JobFlags,
    /// Pages to touch, if the job names no workload.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub pages: Option<Pages>,
    pub repeats: Vec<Counts>,
    /// Allowed difference of the model's pages, read or cached, if larger than elsewhere.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub pages_error: Option<PagesError>,
    /// The known reason why the model differs.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub deviation: Option<Deviation>,
}

/// Counts of one run.
#[derive(Clone, Copy, Debug, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Counts {
    pub data_pages_read: u64,
    pub major_faults: u64,
    pub cached_inside: u64,
    /// By the clock of the machine.
    pub elapsed_ns: u64,
}

/// How exact one job's pages are.
#[derive(Debug, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct PagesError {
    pub reason: String,
    /// As a fraction of the kernel's count.
    pub part: f64,
}

/// A known difference.
#[derive(Debug, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Deviation {
    pub reason: String,
    /// What the model counts instead, for each repeat.
    pub model: Vec<Counts>,
}

/// A generated list of pages.
#[derive(Debug, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case", deny_unknown_fields)]
pub enum Pages {
    /// `accesses` pages: each `every`-th is the next of a scan of the pages after the first `hot`
    /// of `pages`, the others are random ones of these.
    HotAndScan { pages: u64, hot: u64, every: u64, accesses: u64, seed: u64 },
    /// `accesses` pages of `pages`, a few of which are used often: the numbers are log-uniform.
    LogUniform { pages: u64, accesses: u64, seed: u64 },
    /// Each `[first, step, count]` in turn.
    Steps(Vec<[u64; 3]>),
}

impl Recorded<Recording> {
    /// The contents of the file.
    pub fn load() -> Self {
        serde_json::from_str(TEXT)
            .expect("data/measured-6.12-limits.json has these keys and no more")
    }
}

impl Recording {
    /// The job that was run, with its list of pages.
    pub fn spec(&self) -> JobFlags {
        let mut spec = self.job.clone();
        if let Some(pages) = &self.pages {
            let lines = pages.list().into_iter().map(|page| format!("{page}\n"));
            spec.accesses_file = Some(format!("{}.txt", self.name));
            spec.accesses_text = Some(lines.collect());
        }
        spec
    }

    /// The same for the rules of `kernel`; `host` stands for `release`.
    pub fn job(&self, kernel: &str, release: Option<&str>) -> Result<Job, Error> {
        let mut spec = self.spec();
        spec.kernel = Some(kernel.into());
        spec.validate(release)
    }
}

impl Pages {
    /// The pages, in order.
    pub fn list(&self) -> Vec<u64> {
        match *self {
            Pages::HotAndScan { pages, hot, every, accesses, seed } => {
                let mut state = seed;
                let page = |number: u64| match number % every {
                    0 => hot + number / every % (pages - hot),
                    _ => next(&mut state) % hot,
                };
                (0..accesses).map(page).collect()
            }
            Pages::LogUniform { pages, accesses, seed } => {
                let mut state = seed;
                let mut page = || {
                    let share = next(&mut state) as f64 / 2f64.powi(64);
                    // Neighbours in rank are far apart: 40503 is prime.
                    ((pages as f64).powf(share) as u64 - 1) * 40503 % pages
                };
                (0..accesses).map(|_| page()).collect()
            }
            Pages::Steps(ref steps) => steps
                .iter()
                .flat_map(|&[first, step, count]| (0..count).map(move |n| first + n * step))
                .collect(),
        }
    }
}

/// The next number of xorshift64.
fn next(state: &mut u64) -> u64 {
    *state = xorshift64(*state);
    *state
}

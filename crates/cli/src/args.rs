//! The command line.

use clap::{Args, Parser, Subcommand};
use filemap_job::SizeText;
use filemap_report::{Format, published};

use crate::job_flags::{JobFlags, count, size};

/// Most seeds of a random cell.
const MAX_SEEDS: u64 = 1000;

/// Most random patterns of one command.
const MAX_FUZZ_JOBS: u64 = 1_000_000;

/// Linux's file-mapped memory path as a model: page cache, readahead, fault-around and reclaim.
#[derive(Debug, Parser)]
#[command(name = "filemap", version, subcommand_required = true)]
pub struct Cli {
    #[command(subcommand)]
    pub command: Command,
}

#[derive(Debug, Subcommand)]
pub enum Command {
    /// Published tables of patch series beside the model's, cell by cell.
    Published(PublishedArgs),
    /// One job on one engine.
    Run(RunArgs),
    /// One job in several variants: before and after.
    Compare(CompareArgs),
    /// Decisions of the running kernel beside the model's, line by line.
    Conform(ConformArgs),
    /// Where a job's bytes came from, by cause; why readahead stopped, or did not.
    Explain(ExplainArgs),
    /// This machine's device and fault costs: a machine profile, and how well it predicts.
    Calibrate(CalibrateArgs),
    /// What this machine allows, what is missing, and the remedy.
    Doctor(DoctorArgs),
}

#[derive(Debug, Args)]
pub struct PublishedArgs {
    /// Series: mmap-miss, vma-bound, exec-order. All of them if none is given.
    pub series: Vec<String>,
    /// Also what takes minutes and differs from machine to machine: for vma-bound, fio itself at
    /// the published sizes, and programs of this machine.
    #[arg(long)]
    pub full: bool,
    /// Seeds of each random cell.
    #[arg(long, value_name = "N", default_value_t = published::DEFAULT_SEEDS, value_parser = seeds)]
    #[arg(allow_hyphen_values = true)]
    pub seeds: u64,
    #[command(flatten)]
    pub output: OutputFlags,
}

#[derive(Debug, Args)]
pub struct RunArgs {
    /// Job file: the flags as keys, with underscores. Flags go before its keys.
    #[arg(value_name = "JOB.toml")]
    pub job_file: Option<String>,
    #[command(flatten)]
    pub job: JobFlags,
    #[command(flatten)]
    pub output: OutputFlags,
    /// May change settings of the whole machine for the runs, such as its fault-around size.
    #[arg(long, help_heading = "Output")]
    pub apply: bool,
    /// Decision log as JSON Lines, one decision a line; - for stdout, without the report.
    #[arg(long, value_name = "FILE|-", help_heading = "Output", allow_hyphen_values = true)]
    pub log: Option<String>,
    /// Also every counter under the name that it has in JSON.
    #[arg(long, help_heading = "Output")]
    pub verbose: bool,
    /// Runs with that many seeds: --seed, then the generator's output after 1000, 2000 and so on
    /// steps. Without it there is one, and a random job is tried with 12 others in the model where
    /// that takes a few seconds at most.
    #[arg(long, value_name = "N", help_heading = "Workload", value_parser = seeds)]
    #[arg(allow_hyphen_values = true)]
    pub seeds: Option<u64>,
}

#[derive(Debug, Args)]
pub struct CompareArgs {
    /// Job file: the flags as keys, with underscores. Flags go before its keys.
    #[arg(value_name = "JOB.toml")]
    pub job_file: Option<String>,
    /// Variants, the first one to be compared with: baseline, or series and settings joined by +.
    ///
    /// A setting is a key of a job file with its value, such as advice=random, read_ahead_kb=128,
    /// fault_around=4k, kernel=6.12 or ram=2g. A word that is no series goes on with the list of
    /// the setting before it: baseline,read_ahead_kb=128,512+p1 is baseline, read_ahead_kb=128 and
    /// read_ahead_kb=512+p1. A list with blanks needs quotes.
    #[arg(long, value_name = "VARIANT,...", allow_hyphen_values = true)]
    pub variants: Vec<String>,
    #[command(flatten)]
    pub job: JobFlags,
    #[command(flatten)]
    pub output: OutputFlags,
    /// May change settings of the whole machine for the runs, such as its fault-around size.
    #[arg(long, help_heading = "Output")]
    pub apply: bool,
    /// Also every counter under the name that it has in JSON.
    #[arg(long, help_heading = "Output")]
    pub verbose: bool,
    /// Runs with that many seeds: --seed, then the generator's output after 1000, 2000 and so on
    /// steps. Without it there is one, and a random job is tried with 12 others in the model where
    /// that takes a few seconds at most.
    #[arg(long, value_name = "N", help_heading = "Workload", value_parser = seeds)]
    #[arg(allow_hyphen_values = true)]
    pub seeds: Option<u64>,
}

#[derive(Debug, Args)]
pub struct ConformArgs {
    /// Job file: the flags as keys, with underscores. Flags go before its keys. Without a job,
    /// the built-in patterns.
    #[arg(value_name = "JOB.toml")]
    pub job_file: Option<String>,
    /// That many random patterns, from --seed [default: 1]; one that differs is made smaller.
    #[arg(long, value_name = "N", value_parser = random_jobs, allow_hyphen_values = true)]
    pub fuzz: Option<u64>,
    #[command(flatten)]
    pub job: JobFlags,
    #[command(flatten)]
    pub output: OutputFlags,
}

#[derive(Debug, Args)]
pub struct ExplainArgs {
    /// Job file: the flags as keys, with underscores. Flags go before its keys.
    #[arg(value_name = "JOB.toml")]
    pub job_file: Option<String>,
    #[command(flatten)]
    pub job: JobFlags,
    #[command(flatten)]
    pub output: OutputFlags,
    /// A picture of it as SVG; - for stdout.
    #[arg(long, value_name = "FILE|-", help_heading = "Output", allow_hyphen_values = true)]
    pub svg: Option<String>,
    /// Runs with that many seeds: --seed, then the generator's output after 1000, 2000 and so on
    /// steps. Without it there is one, and a random job is tried with 12 others in the model where
    /// that takes a few seconds at most.
    #[arg(long, value_name = "N", help_heading = "Workload", value_parser = seeds)]
    #[arg(allow_hyphen_values = true)]
    pub seeds: Option<u64>,
}

#[derive(Debug, Args)]
pub struct DoctorArgs {
    #[command(flatten)]
    pub output: OutputFlags,
}

#[derive(Debug, Args)]
pub struct CalibrateArgs {
    /// Where the machine profile goes, for --machine.
    #[arg(value_name = "PROFILE.toml")]
    pub profile: Option<String>,
    /// Size of the temporary file that is read [default: 1g].
    #[arg(long, value_name = "SIZE", value_parser = size, allow_hyphen_values = true)]
    pub file_size: Option<SizeText>,
    /// Times each figure is measured; medians count [default: 5].
    #[arg(long, value_name = "N", value_parser = count, allow_hyphen_values = true)]
    pub runs: Option<u64>,
    #[command(flatten)]
    pub output: OutputFlags,
}

/// Where the report goes.
#[derive(Debug, Args)]
#[command(next_help_heading = "Output")]
pub struct OutputFlags {
    /// table, markdown, csv or json. CSV has rows only: scope, command and environment are in the
    /// other formats.
    #[arg(long, value_name = "FORMAT", default_value = "table")]
    pub format: Format,
    /// The report as JSON too; - for stdout, in place of the report.
    #[arg(long, value_name = "FILE|-", allow_hyphen_values = true)]
    pub json: Option<String>,
}

fn random_jobs(text: &str) -> Result<u64, String> {
    match count(text)? {
        jobs @ 1..=MAX_FUZZ_JOBS => Ok(jobs),
        jobs => Err(format!("{jobs} is out of range; give 1 to {MAX_FUZZ_JOBS}")),
    }
}

fn seeds(text: &str) -> Result<u64, String> {
    match count(text)? {
        seeds @ 1..=MAX_SEEDS => Ok(seeds),
        seeds => Err(format!("{seeds} is out of range; give 1 to {MAX_SEEDS}")),
    }
}

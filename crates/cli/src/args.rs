//! The command line.

use clap::{Args, Parser, Subcommand};
use filemap_job::SizeText;
use filemap_report::{Format, published};

use crate::examples;
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
    #[command(after_long_help = examples::help("published"))]
    Published(PublishedArgs),
    /// One job on one engine.
    #[command(after_long_help = examples::help("run"))]
    Run(RunArgs),
    /// One job in several variants: before and after.
    #[command(after_long_help = examples::help("compare"))]
    Compare(CompareArgs),
    /// Decisions of the running kernel beside the model's, line by line.
    #[command(after_long_help = examples::help("conform"))]
    Conform(ConformArgs),
    /// Where a job's bytes came from, by cause; why readahead stopped, or did not.
    #[command(after_long_help = examples::help("explain"))]
    Explain(ExplainArgs),
    /// This machine's device and fault costs: a machine profile, and how well it predicts.
    #[command(after_long_help = examples::help("calibrate"))]
    Calibrate(CalibrateArgs),
    /// What this machine allows, what is missing, and the remedy.
    #[command(after_long_help = examples::help("doctor"))]
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
}

#[derive(Debug, Args)]
pub struct CompareArgs {
    /// Job file: the flags as keys, with underscores. Flags go before its keys.
    #[arg(value_name = "JOB.toml")]
    pub job_file: Option<String>,
    /// Variants, the first one to be compared with: series joined by +, or baseline.
    #[arg(long, value_name = "VARIANT,...", value_delimiter = ',')]
    pub variants: Vec<String>,
    #[command(flatten)]
    pub job: JobFlags,
    #[command(flatten)]
    pub output: OutputFlags,
    /// May change settings of the whole machine for the runs, such as its fault-around size.
    #[arg(long, help_heading = "Output")]
    pub apply: bool,
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
    /// table, markdown, csv or json.
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

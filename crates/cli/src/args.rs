//! The command line.

use std::ffi::OsString;
use std::path::PathBuf;
use std::time::Duration;

use clap::builder::{OsStringValueParser, TypedValueParser};
use clap::{ArgGroup, Args, Parser, Subcommand};
use clap_complete::Shell;
use filemap_job::bounds::MAX_RUNS;
use filemap_job::{SizeText, parse_count, parse_duration_ns};
use filemap_report::Format;
use filemap_study::search::Metric;

use crate::examples;
use crate::job_flags::{self, JobArgs, count, size};
use crate::output::{ComparisonFlags, OutputFlags, ReportFiles};

/// Maximum number of rounds of a calibration.
pub const MAX_ROUNDS: u64 = 100;

/// Maximum number of seeds of a random cell.
const MAX_SEEDS: u64 = 1000;

/// Maximum number of runs per variant of a program.
const MAX_COMPARED_RUNS: u64 = 1000;

/// Maximum number of random patterns per command.
const MAX_FUZZ_JOBS: u64 = 1_000_000;

/// Model of Linux's file-mapped memory path: page cache, readahead, fault-around and reclaim.
#[derive(Debug, Parser)]
#[command(name = "filemap", version, subcommand_required = true)]
pub struct Cli {
    #[command(subcommand)]
    pub command: Command,
}

#[derive(Debug, Subcommand)]
pub enum Command {
    /// Compare published tables of patch series with the model, cell by cell.
    #[command(after_long_help = examples::help_section("published"))]
    Published(PublishedArgs),
    /// Run one job, in the model or on a kernel.
    #[command(after_long_help = examples::help_section("run"))]
    Run(RunArgs),
    /// Run one or more jobs in several variants and compare the results.
    #[command(after_long_help = examples::help_section("compare"))]
    Compare(CompareArgs),
    /// Compare the decisions of a kernel, running or booted, with the model's.
    #[command(after_long_help = examples::help_section("conform"))]
    Conform(ConformArgs),
    /// Explain which bytes a job read and why readahead stopped or continued.
    #[command(after_long_help = examples::help_section("explain"))]
    Explain(ExplainArgs),
    /// Render an HTML page from a record written by --json, or export the events of a recording.
    #[command(after_long_help = examples::help_section("report"))]
    Report(ReportArgs),
    /// Find settings and advice that help a program that reads too much.
    #[command(after_long_help = examples::help_section("advise"))]
    Advise(AdviseArgs),
    /// Measure the device and fault costs of this machine and write a machine profile.
    #[command(after_long_help = examples::help_section("calibrate"))]
    Calibrate(CalibrateArgs),
    /// Record the file accesses of a program, import a trace, or print a recording.
    #[command(after_long_help = examples::help_section("record"))]
    #[command(override_usage = "filemap record [--change-settings] [--changes] [--include GLOB] \
                                [-o RECORDING] -- PROGRAM ARGS...\n       \
                                filemap record --pid PID [--cold] [--changes] \
                                [--duration TIME] [-o RECORDING]\n       \
                                filemap record --cgroup PATH [--cold] [--changes] \
                                [--duration TIME] [-o RECORDING]\n       \
                                filemap record --show RECORDING\n       \
                                filemap record --import KIND FILE [-o RECORDING]")]
    Record(RecordArgs),
    /// Benchmark munmap, fork and write faults over anonymous memory in folios, with several
    /// mapcount schemes.
    #[command(after_long_help = examples::help_section("folio-ops"))]
    FolioOps(FolioOpsArgs),
    /// Search for jobs in which two variants differ, or the second is worse, and minimize each.
    #[command(after_long_help = examples::help_section("search"))]
    Search(SearchArgs),
    /// Run a program with filemap controlling the readahead of its file mappings.
    #[command(after_long_help = examples::help_section("govern"))]
    #[command(override_usage = "filemap govern [OPTIONS] -- PROGRAM [ARGS]...\n       \
                                filemap govern [OPTIONS] --pid PID")]
    Govern(GovernArgs),
    /// Show what filemap can do on this machine, what is missing, and how to get it.
    #[command(after_long_help = examples::help_section("doctor"))]
    Doctor(DoctorArgs),
    /// Print a man page, or write all man pages to a directory.
    #[command(after_long_help = examples::help_section("man"))]
    Man(ManArgs),
    /// Print a shell completion script.
    #[command(after_long_help = examples::help_section("completions"))]
    Completions(CompletionsArgs),
    /// Print the JSON schema of job files, logs or the JSON output of a command, or write all
    /// schemas to a directory.
    #[command(after_long_help = examples::help_section("schema"))]
    Schema(SchemaArgs),
}

#[derive(Debug, Args)]
pub struct PublishedArgs {
    /// Series to show: mmap-miss, vma-bound, exec-order, vma-retry or mm-owner [default: all;
    /// vma-retry with the published job only, mm-owner abridged].
    pub series: Vec<String>,
    /// List the series and exit: what each does, its published figures, and the status of the
    /// series and of each of its versions.
    #[arg(long, conflicts_with_all = ["series", "full", "seeds"])]
    pub list: bool,
    /// Also run the slow parts. vma-bound: more programs of this machine (takes no time).
    /// vma-retry: the published 600 s, more conditions, and the sensitivity to each assumed cost
    /// (tens of minutes). mm-owner: the published 1 GiB of memory (about ten minutes).
    #[arg(long)]
    pub full: bool,
    /// Number of seeds per cell, for the series with random accesses: mmap-miss [default: 25] and
    /// vma-retry [default: 5].
    #[arg(long, value_name = "N", value_parser = parse_up_to::<MAX_SEEDS>, allow_hyphen_values = true)]
    pub seeds: Option<u64>,
    #[command(flatten)]
    pub output: OutputFlags,
}

/// Flags for running jobs and showing the results.
#[derive(Debug, Args)]
pub struct RunsFlags {
    /// Allow jobs to change system-wide settings, such as the fault-around size. They are restored
    /// after the runs.
    #[arg(long, help_heading = "Output")]
    pub change_settings: bool,
    /// Also show every counter by its JSON name.
    #[arg(long, help_heading = "Output")]
    pub verbose: bool,
    #[command(flatten)]
    pub repeated: SeedsFlag,
}

#[derive(Debug, Args)]
pub struct SeedsFlag {
    /// Number of seeds to run the job with: --seed, then the outputs of the generator after 1000
    /// steps, 2000 steps and so on [default: 1]. A random job is also tried with 12 more seeds in
    /// the model if that takes at most a few seconds.
    #[arg(long, value_name = "N", value_parser = parse_up_to::<MAX_SEEDS>, allow_hyphen_values = true)]
    #[arg(help_heading = "Runs and seeds")]
    pub seeds: Option<u64>,
}

#[derive(Debug, Args)]
pub struct RunArgs {
    /// Job file or recording. The keys of a job file are the flag names with underscores; flags
    /// override them.
    #[arg(value_name = "JOB.toml")]
    pub job_file: Option<String>,
    #[command(flatten)]
    pub job: JobArgs<job_flags::Run>,
    #[command(flatten)]
    pub output: OutputFlags,
    #[command(flatten)]
    pub asked: RunsFlags,
    /// Write every decision to this file, one JSON object per line; - is stdout and suppresses the
    /// report. On a kernel the log is from a separate, traced run and has the decisions that
    /// tracepoints show.
    #[arg(long, value_name = "FILE|-", help_heading = "Output", allow_hyphen_values = true)]
    pub log: Option<String>,
    /// Write a timeline of the model's run to this file, Chrome trace JSON that ui.perfetto.dev
    /// opens: phases, faults, reads and waits of each thread, windows, and requests in flight. Its
    /// name ends in .json; - is stdout and suppresses the report.
    #[arg(long, value_name = "FILE|-", help_heading = "Output", allow_hyphen_values = true)]
    pub export: Option<String>,
    /// Print the job as a job file with tables and exit. A job given by flags has one file, opened
    /// and mapped once, and one thread. The printed job file is equivalent.
    #[arg(long, conflicts_with_all = ["json", "html", "log", "export", "verbose", "seeds"])]
    #[arg(conflicts_with = "change_settings")]
    pub show_job: bool,
}

#[derive(Debug, Args)]
pub struct CompareArgs {
    /// Job file or recording. The keys of a job file are the flag names with underscores; flags
    /// override them. Each of several job files is run in all variants; each kernel image is booted
    /// once for all of them.
    #[arg(value_name = "JOB.toml")]
    pub job_files: Vec<String>,
    /// Variants to compare, the first being the reference: baseline, or series, governor and
    /// settings joined by +.
    ///
    /// governor replaces the kernel's readahead in the model by the governor's policy. A setting is
    /// a key of a job file with a value, such as advice=random, read_ahead_kb=128, fault_around=4k,
    /// kernel=6.12 or ram=2g. In a job with tables, advice@NAME=random applies to the mappings with
    /// that name or of the file with that name. A word that is not a series is another value of the
    /// preceding setting: baseline,read_ahead_kb=128,512+p1 is baseline, read_ahead_kb=128 and
    /// read_ahead_kb=512+p1. Quote a list that contains blanks.
    #[arg(long, value_name = "VARIANT,...", allow_hyphen_values = true)]
    pub variants: Vec<String>,
    #[command(flatten)]
    pub job: JobArgs<job_flags::Compare>,
    #[command(flatten)]
    pub output: ComparisonFlags,
    #[command(flatten)]
    pub asked: RunsFlags,
}

#[derive(Debug, Args)]
pub struct ConformArgs {
    /// Job file or recording. The keys of a job file are the flag names with underscores; flags
    /// override them. Without a job, the built-in patterns are compared.
    #[arg(value_name = "JOB.toml")]
    pub job_file: Option<String>,
    /// Compare this many random patterns, generated from --seed [default: 1].
    #[arg(long, value_name = "N", value_parser = parse_up_to::<MAX_FUZZ_JOBS>)]
    #[arg(allow_hyphen_values = true)]
    pub fuzz: Option<u64>,
    /// Compare only this built-in pattern. Repeat the flag, or join several by commas.
    #[arg(long, value_name = "NAME", conflicts_with_all = ["fuzz", "job_file"])]
    pub pattern: Vec<String>,
    /// Stop at the first pattern that differs.
    #[arg(long)]
    pub first: bool,
    #[command(flatten)]
    pub job: JobArgs<job_flags::Conform>,
    #[command(flatten)]
    pub output: OutputFlags,
}

#[derive(Debug, Args)]
pub struct ExplainArgs {
    /// Job file or recording. The keys of a job file are the flag names with underscores; flags
    /// override them.
    #[arg(value_name = "JOB.toml")]
    pub job_file: Option<String>,
    #[command(flatten)]
    pub job: JobArgs<job_flags::Explain>,
    #[command(flatten)]
    pub output: OutputFlags,
    #[command(flatten)]
    pub repeated: SeedsFlag,
}

#[derive(Debug, Args)]
#[command(group(ArgGroup::new("to").required(true).args(["html", "export"])))]
pub struct ReportArgs {
    /// Record written by --json of run, compare, explain, advise, published, conform, search,
    /// folio-ops, govern, calibrate or doctor, - for stdin; or with --export a recording.
    #[arg(value_name = "RECORD.json", allow_hyphen_values = true)]
    pub record: String,
    /// Output file: a self-contained HTML page with charts; - is stdout.
    #[arg(long, value_name = "FILE|-", help_heading = "Output", allow_hyphen_values = true)]
    pub html: Option<String>,
    /// Write the events of a recording to this file as a table: touches, reads, advice and
    /// mappings, in order. The format follows the extension, .csv or .parquet; - is CSV on stdout.
    #[arg(long, value_name = "FILE|-", help_heading = "Output", allow_hyphen_values = true)]
    pub export: Option<String>,
}

#[derive(Debug, Args)]
pub struct AdviseArgs {
    /// Recording, or job file; without it, the flags describe the job. The model tries advice for
    /// each file and mapping, readahead and fault-around sizes, and the governor: each alone, then
    /// pairs of the best.
    #[arg(value_name = "RECORDING", required_unless_present_any = ["workload", "file", "file_size"])]
    pub recording: Option<String>,
    /// Also verify the best settings with real runs. The recorded program is rerun unchanged and
    /// with each of them in turn, --runs times each after one warm-up, in this directory, with this
    /// environment and no input. Its recorded files are dropped from the page cache before each
    /// run, and its output is discarded. WARNING: anything that the program writes, sends or
    /// deletes happens on each run. A program that may write to its files through a mapping is
    /// refused; a recording does not show writes with write(2). The exit code is 1 if with
    /// the best setting the program is slower, or reads more in the same time; if with any setting
    /// it behaves differently; or if unchanged it reads other pages than predicted.
    #[arg(long, requires = "recording")]
    pub check: bool,
    /// Number of runs of --check per setting [default: 5].
    #[arg(long, value_name = "N", value_parser = parse_up_to::<MAX_RUNS>, allow_hyphen_values = true)]
    #[arg(requires = "check")]
    pub runs: Option<u64>,
    /// Allow --check to change the system-wide fault-around size for settings that need it. It is
    /// restored after each run.
    #[arg(long, requires = "check")]
    pub change_settings: bool,
    /// Answer for the files whose path matches, such as '*.db'; '*' means all. It may be repeated
    /// [default: all files of a recording except programs, libraries, locales, caches of the system
    /// and the files of a Java runtime].
    #[arg(long, value_name = "GLOB", value_parser = glob(), allow_hyphen_values = true)]
    pub files: Vec<OsString>,
    #[command(flatten)]
    pub job: JobArgs<job_flags::Advise>,
    #[command(flatten)]
    pub output: OutputFlags,
}

#[derive(Debug, Args)]
pub struct ManArgs {
    /// Command whose man page is printed [default: filemap itself].
    #[arg(value_name = "COMMAND")]
    pub command: Option<String>,
    /// Write all man pages to this directory, which is created if missing.
    #[arg(short, long, value_name = "DIR", conflicts_with = "command")]
    pub output: Option<String>,
}

#[derive(Debug, Args)]
pub struct CompletionsArgs {
    /// Shell to generate the script for.
    #[arg(value_name = "SHELL")]
    pub shell: Shell,
}

#[derive(Debug, Args)]
#[command(group(ArgGroup::new("what").required(true).args(["name", "output"])))]
pub struct SchemaArgs {
    /// Schema to print: job for job files, log for the lines of run --log, log-kernel for its lines
    /// on a kernel, or a command for its --json.
    #[arg(value_name = "NAME")]
    pub name: Option<String>,
    /// Write all schemas to this directory, which is created if missing.
    #[arg(short, long, value_name = "DIR")]
    pub output: Option<String>,
}

#[derive(Debug, Args)]
pub struct DoctorArgs {
    #[command(flatten)]
    pub output: OutputFlags,
}

#[derive(Debug, Args)]
pub struct GovernArgs {
    /// Program to run, with its arguments. It inherits stdin, stdout, stderr and the terminal, and
    /// its exit status is passed on.
    #[arg(value_name = "PROGRAM", trailing_var_arg = true)]
    #[arg(conflicts_with_all = ["pid", "cgroup", "duration", "release"])]
    pub program: Vec<OsString>,
    /// Govern this running process and the processes that it starts, until they exit or this
    /// command is interrupted. May be repeated.
    #[arg(long, value_name = "PID", value_parser = pid, allow_hyphen_values = true)]
    pub pid: Vec<u32>,
    /// Govern the current and future processes of this cgroup: its path below /sys/fs/cgroup, or
    /// the name of a systemd unit.
    #[arg(long, value_name = "PATH", allow_hyphen_values = true)]
    pub cgroup: Vec<String>,
    /// Stop after this time, such as 60s.
    #[arg(long, value_name = "TIME", value_parser = some_time, allow_hyphen_values = true)]
    pub duration: Option<Duration>,
    /// Dry run: neither advise nor read, and report what would have been done.
    #[arg(long, conflicts_with = "compare")]
    pub observe: bool,
    /// Restore the advice of mappings of --pid or --cgroup left behind by a killed governor.
    #[arg(long)]
    #[arg(conflicts_with_all = ["observe", "duration", "min_size", "largest_window", "include"])]
    #[arg(conflicts_with_all = ["exclude", "compare", "format", "json", "html"])]
    pub release: bool,
    /// Forget the touch histories of the files that follow, or of all files.
    #[arg(long, conflicts_with_all = ["pid", "cgroup", "duration", "observe", "release", "watch"])]
    #[arg(conflicts_with_all = ["min_size", "largest_window", "include", "exclude", "compare"])]
    #[arg(conflicts_with_all = ["no_memory", "format", "json", "html"])]
    pub forget: bool,
    /// Remember nothing, and act from the first touch by what the program has done so far: a page
    /// is read alone until reading more would have paid.
    #[arg(long, conflicts_with_all = ["release", "watch", "memory"])]
    pub no_memory: bool,
    /// Directory of what is remembered of files [default: filemap/touches in $XDG_STATE_HOME or
    /// ~/.local/state].
    #[arg(long, value_name = "DIR", conflicts_with = "release")]
    pub memory: Option<PathBuf>,
    /// Recording, or answer of advise --json, that governs the files in it instead of their
    /// touch histories.
    #[arg(long, value_name = "FILE", conflicts_with_all = ["release", "forget"])]
    pub plan: Option<String>,
    /// Read what this recording has of each file, in file order, while PROGRAM starts, or at once
    /// without one. At most half of the free memory is filled. Nothing else is done for PROGRAM.
    #[arg(long, value_name = "RECORDING")]
    #[arg(conflicts_with_all = ["pid", "cgroup", "duration", "observe", "release", "forget"])]
    #[arg(conflicts_with_all = ["no_memory", "memory", "plan", "watch", "min_size", "compare"])]
    #[arg(conflicts_with_all = ["largest_window", "include", "exclude", "format", "json", "html"])]
    pub prefetch: Option<String>,
    /// How long a file that nothing is remembered of is only watched, such as 60s, if it stays
    /// mapped. It is then governed by what was touched until then [default: 60s].
    #[arg(long, value_name = "TIME", value_parser = some_time, allow_hyphen_values = true)]
    #[arg(conflicts_with = "release")]
    pub watch: Option<Duration>,
    /// Write metrics to this file as OpenMetrics text, and replace it every 5 s. In the directory
    /// of node_exporter's textfile collector its name ends in .prom.
    #[arg(long, value_name = "FILE", conflicts_with_all = ["release", "forget", "prefetch"])]
    #[arg(conflicts_with = "compare")]
    pub metrics: Option<PathBuf>,
    /// Minimum size of the mappings to govern [default: 16m].
    #[arg(long, value_name = "SIZE", value_parser = bytes, allow_hyphen_values = true)]
    pub min_size: Option<u64>,
    /// Maximum readahead window per fault [default: 16m]; 0 disables readahead.
    #[arg(long, value_name = "SIZE", value_parser = bytes, allow_hyphen_values = true)]
    pub largest_window: Option<u64>,
    /// Govern only mappings of files whose path matches this pattern; * matches any characters. May
    /// be repeated.
    #[arg(long, value_name = "GLOB", value_parser = glob(), allow_hyphen_values = true)]
    pub include: Vec<OsString>,
    /// Do not govern mappings of files whose path matches this pattern. May be repeated.
    #[arg(long, value_name = "GLOB", value_parser = glob(), allow_hyphen_values = true)]
    pub exclude: Vec<OsString>,
    /// Compare the cost of plain and governed runs of the program, in turn, with a cold page cache
    /// and without input or terminal. Its output is not shown but must be the same in all runs.
    /// Processes that it leaves behind are killed.
    #[arg(long, conflicts_with_all = ["pid", "cgroup"])]
    pub compare: bool,
    /// Number of runs of --compare per variant [default: 5].
    #[arg(long, value_name = "N", value_parser = parse_up_to::<MAX_COMPARED_RUNS>)]
    #[arg(allow_hyphen_values = true)]
    #[arg(requires = "compare")]
    pub runs: Option<u64>,
    /// Report format for --pid, --cgroup and --compare: table, markdown, csv or json [default:
    /// table].
    #[arg(long, value_name = "FORMAT", help_heading = "Output")]
    pub format: Option<Format>,
    #[command(flatten)]
    pub files: ReportFiles,
}

#[derive(Debug, Args)]
#[command(group(ArgGroup::new("goal").required(true).args(["worse", "over", "differ"])))]
pub struct SearchArgs {
    /// Job file or recording that the search begins with: its jobs are variations of it, with the
    /// given flags in common. Default: random jobs with a single mapping.
    #[arg(value_name = "JOB.toml")]
    pub job_file: Option<String>,
    /// The two variants to compare, such as baseline,vma-bound. A variant is series and settings
    /// joined by +.
    #[arg(long, value_name = "A,B", allow_hyphen_values = true)]
    pub variants: String,
    /// Search for jobs that are worse in the second variant, by bytes, majors (major faults) or
    /// elapsed.
    #[arg(long, value_name = "FIGURE", allow_hyphen_values = true)]
    pub worse: Option<Metric>,
    /// Search for the jobs that gain most from the second variant, by bytes, majors or elapsed.
    #[arg(long, value_name = "FIGURE", allow_hyphen_values = true)]
    pub over: Option<Metric>,
    /// Search for jobs in which any decision differs.
    #[arg(long)]
    pub differ: bool,
    /// Number of jobs to try [default: 20000, or no limit with --duration].
    #[arg(long, value_name = "N", value_parser = parse_up_to::<MAX_FUZZ_JOBS>)]
    #[arg(allow_hyphen_values = true)]
    pub jobs: Option<u64>,
    /// End after about this time, such as 60s: jobs are drawn for 60 % of it, and findings are
    /// shrunk in the rest. The number of jobs then depends on the machine; the report has the
    /// command that repeats the search.
    #[arg(long, value_name = "TIME", value_parser = some_time, allow_hyphen_values = true)]
    pub duration: Option<Duration>,
    /// State file, saved every 256 jobs. If it belongs to the same search, the search resumes from
    /// it; raise --jobs or --duration to extend it.
    #[arg(long, value_name = "FILE", allow_hyphen_values = true)]
    pub state: Option<String>,
    /// Write a job file for each case to this directory, which must be empty or not exist. The
    /// commands in the report refer to these files.
    #[arg(short, long, value_name = "DIR", help_heading = "Output", allow_hyphen_values = true)]
    pub output: Option<String>,
    /// What all jobs have in common. --seed is the seed of the search [default: 1].
    #[command(flatten)]
    pub job: JobArgs<job_flags::Search>,
    #[command(flatten)]
    pub report: OutputFlags,
}

#[derive(Debug, Args)]
pub struct RecordArgs {
    /// Program to run and record, with its arguments. It inherits stdin, stdout, stderr and the
    /// terminal, and its exit status is passed on. Its files are dropped from the page cache when
    /// it maps them.
    ///
    /// If this command is killed by SIGKILL, the partial recording is left in the file with .part
    /// appended to its name; run filemap govern --release --pid to restore the advice of the
    /// program's mappings.
    #[arg(value_name = "PROGRAM", trailing_var_arg = true)]
    #[arg(conflicts_with_all = ["show", "import", "pid", "cgroup"])]
    pub program: Vec<OsString>,
    /// Record this running process and the processes that it starts. May be repeated.
    #[arg(long, value_name = "PID", conflicts_with_all = ["show", "import", "cgroup"])]
    pub pid: Vec<u32>,
    /// Record the processes of this cgroup, for example of a container or a systemd unit.
    #[arg(long, value_name = "PATH", conflicts_with_all = ["show", "import"])]
    pub cgroup: Option<String>,
    /// Record for this time, then detach from the processes [default: until they exit, or Ctrl-C].
    #[arg(long, value_name = "TIME", value_parser = duration, allow_hyphen_values = true)]
    #[arg(conflicts_with_all = ["show", "import"])]
    pub duration: Option<Duration>,
    /// First drop the pages that running processes have mapped from the page cache, except those in
    /// use by others, so that the next touch of each is recorded.
    #[arg(long, conflicts_with_all = ["show", "import", "program"])]
    pub cold: bool,
    /// Record only files whose path matches this pattern; * matches any characters. May be
    /// repeated.
    #[arg(long, value_name = "GLOB", value_parser = glob(), allow_hyphen_values = true)]
    #[arg(conflicts_with_all = ["show", "import"])]
    pub include: Vec<OsString>,
    /// Minimum size of the files to record [default: 16k].
    #[arg(long, value_name = "SIZE", value_parser = bytes, allow_hyphen_values = true)]
    #[arg(conflicts_with_all = ["show", "import"])]
    pub min_size: Option<u64>,
    /// Set the system-wide fault-around size to one page while recording, so that each process's
    /// first touch of a page is recorded even if the page is cached. Needs root. The setting is
    /// restored on exit, however the command ends.
    #[arg(long, conflicts_with_all = ["show", "import", "pid", "cgroup"])]
    pub change_settings: bool,
    /// Record repeated accesses too, for files larger than memory: a page is taken from its process
    /// soon after each touch, so that the next touch reads it from disk again. Needs root.
    #[arg(long, conflicts_with_all = ["show", "import"])]
    pub changes: bool,
    /// Print this recording as a job file. Other commands accept it in place of the recording.
    /// Comments at the top list the differences from the recording.
    #[arg(long, value_name = "RECORDING", allow_hyphen_values = true, conflicts_with = "import")]
    pub show: Option<String>,
    /// Import a trace of faults: perf-script for the output of perf script, or lines for the format
    /// described in docs/RECORDING.md.
    #[arg(long, num_args = 2, value_names = ["KIND", "FILE"])]
    pub import: Option<Vec<String>>,
    /// Output file [default: the name of the program or trace with .recording appended, which must
    /// not exist]; - is stdout, but not when a program is run, as stdout is the program's.
    #[arg(short, long, value_name = "RECORDING", allow_hyphen_values = true)]
    #[arg(conflicts_with = "show")]
    pub output: Option<String>,
}

#[derive(Debug, Args)]
pub struct FolioOpsArgs {
    /// Number of repeats per operation [default: 9].
    #[arg(long, value_name = "N", allow_hyphen_values = true, value_parser = number)]
    pub runs: Option<u64>,
    /// Seed for the order of random writes [default: 88172645463325252].
    #[arg(long, value_name = "N", allow_hyphen_values = true, value_parser = number)]
    pub seed: Option<u64>,
    /// Size of the anonymous memory [default: 256m]. The defaults take about three minutes; run
    /// time grows with the size, the number of folio sizes and the repeats.
    #[arg(long, value_name = "SIZE", value_parser = size, allow_hyphen_values = true)]
    pub size: Option<SizeText>,
    /// Folio sizes, powers of two from 4k to 2m [default: 4k,16k,32k,64k,128k,256k,512k,1m,2m].
    #[arg(long, value_name = "SIZE,...", allow_hyphen_values = true)]
    pub folio_sizes: Option<String>,
    /// Count how well each scheme knows the owners of a folio and what a prefork server copies,
    /// without timing. The heap of the server is --size [default: 4m] in folios of --folio-sizes
    /// [default: 64k,2m].
    #[arg(long, conflicts_with_all = ["runs", "seed", "verbose"])]
    pub owners: bool,
    #[command(flatten)]
    pub output: OutputFlags,
    /// Also show the spread of the figures.
    #[arg(long, help_heading = "Output")]
    pub verbose: bool,
}

#[derive(Debug, Args)]
pub struct CalibrateArgs {
    /// Output file for use with --machine [default: the user's profile, which the model uses
    /// automatically: filemap/machine-profile.toml in $XDG_STATE_HOME or ~/.local/state].
    #[arg(short, long, value_name = "PROFILE.toml", allow_hyphen_values = true)]
    pub output: Option<String>,
    /// Size of the temporary file to read [default: 1g].
    #[arg(long, value_name = "SIZE", value_parser = size, allow_hyphen_values = true)]
    pub file_size: Option<SizeText>,
    /// Number of measurements per figure, whose median is used [default: 5].
    #[arg(long, value_name = "N", value_parser = rounds, allow_hyphen_values = true)]
    pub runs: Option<u64>,
    #[command(flatten)]
    pub report: OutputFlags,
}

fn number(text: &str) -> Result<u64, String> {
    parse_count(text).map_err(|error| error.to_string())
}

/// A number from 1 to `MAX`.
fn parse_up_to<const MAX: u64>(text: &str) -> Result<u64, String> {
    match count(text, 1, MAX)? {
        number if (1..=MAX).contains(&number) => Ok(number),
        number => Err(format!("{number} is out of range; give 1 to {MAX}")),
    }
}

fn duration(text: &str) -> Result<Duration, String> {
    parse_duration_ns(text).map(Duration::from_nanos).map_err(|error| error.to_string())
}

fn some_time(text: &str) -> Result<Duration, String> {
    match duration(text)? {
        Duration::ZERO => Err("a time of 0 is too short; give one such as 60s".to_string()),
        time => Ok(time),
    }
}

fn pid(text: &str) -> Result<u32, String> {
    let pid = text.parse().ok().filter(|&pid| pid > 0 && pid <= i32::MAX as u32);
    pid.ok_or("give the number of a process".to_string())
}

/// A size in bytes.
fn bytes(text: &str) -> Result<u64, String> {
    SizeText(text.to_string()).bytes().map_err(|error| error.to_string())
}

/// A non-empty pattern for paths.
fn glob() -> impl TypedValueParser<Value = OsString> {
    OsStringValueParser::new().try_map(|pattern| {
        if pattern.is_empty() {
            Err("an empty pattern matches no file; give one such as '*.db'")
        } else {
            Ok(pattern)
        }
    })
}

fn rounds(text: &str) -> Result<u64, String> {
    count(text, 1, MAX_ROUNDS)
}

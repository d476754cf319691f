//! The command line.

use std::ffi::OsString;
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

/// Most rounds of a calibration.
pub const MAX_ROUNDS: u64 = 100;

/// Most seeds of a random cell.
const MAX_SEEDS: u64 = 1000;

/// Most runs of a program in each way.
const MAX_COMPARED_RUNS: u64 = 1000;

/// Most random patterns of one command.
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
    /// Compare the published tables of patch series with the model, cell by cell.
    #[command(after_long_help = examples::help("published"))]
    Published(PublishedArgs),
    /// Run one job, in the model or on a kernel.
    #[command(after_long_help = examples::help("run"))]
    Run(RunArgs),
    /// Run one job in several variants, and show how they differ.
    #[command(after_long_help = examples::help("compare"))]
    Compare(CompareArgs),
    /// Compare the decisions of a kernel, the running one or one that is booted, with the model's.
    #[command(after_long_help = examples::help("conform"))]
    Conform(ConformArgs),
    /// Show why the bytes of a job were read, and why readahead stopped or went on.
    #[command(after_long_help = examples::help("explain"))]
    Explain(ExplainArgs),
    /// Make an HTML page of a record that --json wrote.
    #[command(after_long_help = examples::help("report"))]
    Report(ReportArgs),
    /// Try what would help a program that reads too much, and say what does.
    #[command(after_long_help = examples::help("advise"))]
    Advise(AdviseArgs),
    /// Measure the device and the fault costs of this machine, as a machine profile.
    #[command(after_long_help = examples::help("calibrate"))]
    Calibrate(CalibrateArgs),
    /// Record what a program does with its files, make a recording of a trace, or print a
    /// recording.
    #[command(after_long_help = examples::help("record"))]
    #[command(override_usage = "filemap record [--change-settings] [--changes] [--include GLOB] \
                                [-o RECORDING] -- PROGRAM ARGS...\n       \
                                filemap record --pid PID [--cold] [--changes] \
                                [--duration TIME] [-o RECORDING]\n       \
                                filemap record --cgroup PATH [--cold] [--changes] \
                                [--duration TIME] [-o RECORDING]\n       \
                                filemap record --show RECORDING\n       \
                                filemap record --import KIND FILE [-o RECORDING]")]
    Record(RecordArgs),
    /// Time munmap, fork and write faults over anonymous memory in folios, with several ways to
    /// count who maps a folio.
    #[command(after_long_help = examples::help("folio-ops"))]
    FolioOps(FolioOpsArgs),
    /// Look for jobs that tell two variants apart, or that the second makes worse, and make each as
    /// small as possible.
    #[command(after_long_help = examples::help("search"))]
    Search(SearchArgs),
    /// Run a program with its file mappings governed: filemap decides what of them is read ahead.
    #[command(after_long_help = examples::help("govern"))]
    #[command(override_usage = "filemap govern [OPTIONS] -- PROGRAM [ARGS]...\n       \
                                filemap govern [OPTIONS] --pid PID")]
    Govern(GovernArgs),
    /// Show what filemap can do on this machine, what is missing, and the remedy.
    #[command(after_long_help = examples::help("doctor"))]
    Doctor(DoctorArgs),
    /// Print a man page, or write all of them to a directory.
    #[command(after_long_help = examples::help("man"))]
    Man(ManArgs),
    /// Print the completions of the command line for a shell.
    #[command(after_long_help = examples::help("completions"))]
    Completions(CompletionsArgs),
    /// Print the JSON schema of job files, of the JSON of a command or of the lines of a log, or
    /// write all of them to a directory.
    #[command(after_long_help = examples::help("schema"))]
    Schema(SchemaArgs),
}

#[derive(Debug, Args)]
pub struct PublishedArgs {
    /// Series to show: mmap-miss, vma-bound, exec-order, vma-retry or mm-owner [default: all, but
    /// of vma-retry the published job alone, and of mm-owner a brief form].
    pub series: Vec<String>,
    /// List the series without running anything: what each does, which figures of it there are, and
    /// what became of it and of each of its versions.
    #[arg(long, conflicts_with_all = ["series", "full", "seeds"])]
    pub list: bool,
    /// Also show what takes minutes. For vma-bound these are more programs of this machine, which
    /// take no time. For vma-retry these are the published 600 s, more
    /// conditions, and the sensitivity to each assumed cost, which together take tens of minutes.
    /// For mm-owner this is the published 1 GiB of memory, which takes some ten minutes.
    #[arg(long)]
    pub full: bool,
    /// How many seeds to run each cell with that depends on a seed. Such cells are in mmap-miss
    /// [default: 25] and vma-retry [default: 5].
    #[arg(long, value_name = "N", value_parser = up_to::<MAX_SEEDS>, allow_hyphen_values = true)]
    pub seeds: Option<u64>,
    #[command(flatten)]
    pub output: OutputFlags,
}

/// How jobs are run and shown.
#[derive(Debug, Args)]
pub struct RunsFlags {
    /// Change settings of the whole machine where the job needs it, such as the fault-around size.
    /// They are restored after the runs.
    #[arg(long, help_heading = "Output")]
    pub change_settings: bool,
    /// Also show every counter under the name that it has in JSON.
    #[arg(long, help_heading = "Output")]
    pub verbose: bool,
    #[command(flatten)]
    pub repeated: SeedsFlag,
}

#[derive(Debug, Args)]
pub struct SeedsFlag {
    /// How many seeds the job is run with: --seed, then the generator's output after 1000 steps,
    /// 2000 steps and so on. The default is one. A random job is then also tried with 12 other
    /// seeds in the model, if that takes a few seconds at most.
    #[arg(long, value_name = "N", value_parser = up_to::<MAX_SEEDS>, allow_hyphen_values = true)]
    #[arg(help_heading = "Runs and seeds")]
    pub seeds: Option<u64>,
}

#[derive(Debug, Args)]
pub struct RunArgs {
    /// Job file, or a recording. Its keys are the names of the flags, with underscores. A flag
    /// overrides the key.
    #[arg(value_name = "JOB.toml")]
    pub job_file: Option<String>,
    #[command(flatten)]
    pub job: JobArgs<job_flags::Run>,
    #[command(flatten)]
    pub output: OutputFlags,
    #[command(flatten)]
    pub asked: RunsFlags,
    /// Write every decision as a line of JSON to this file. - means stdout, without the report. On
    /// a kernel a separate run is traced, and the decisions are those that the tracepoints show.
    #[arg(long, value_name = "FILE|-", help_heading = "Output", allow_hyphen_values = true)]
    pub log: Option<String>,
    /// Print the job as a job file with tables, and run nothing. A job of flags has one file,
    /// opened and mapped once, and one thread. The job file does the same.
    #[arg(long, conflicts_with_all = ["json", "html", "log", "verbose", "seeds"])]
    #[arg(conflicts_with = "change_settings")]
    pub show_job: bool,
}

#[derive(Debug, Args)]
pub struct CompareArgs {
    /// Job file, or a recording. Its keys are the names of the flags, with underscores. A flag
    /// overrides the key. Several job files are compared one by one, each in all variants; each
    /// kernel image is booted once for all of them.
    #[arg(value_name = "JOB.toml")]
    pub job_files: Vec<String>,
    /// Variants to compare with the first one: baseline, or series, governor and settings joined
    /// by +.
    ///
    /// With governor, the governor's policy reads ahead instead of the kernel, in the model. A
    /// setting is a key of a job file with its value, such as advice=random, read_ahead_kb=128,
    /// fault_around=4k, kernel=6.12 or ram=2g. In a program advice@NAME=random is for the mappings
    /// of that name, or of the file of that name. A word that is no series continues the list of
    /// the setting before it: baseline,read_ahead_kb=128,512+p1 is baseline, read_ahead_kb=128 and
    /// read_ahead_kb=512+p1. A list with blanks needs quotes.
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
    /// Job file, or a recording. Its keys are the names of the flags, with underscores. A flag
    /// overrides the key. Without a job, the built-in patterns are compared.
    #[arg(value_name = "JOB.toml")]
    pub job_file: Option<String>,
    /// Compare this many random patterns, from --seed [default: 1].
    #[arg(long, value_name = "N", value_parser = up_to::<MAX_FUZZ_JOBS>)]
    #[arg(allow_hyphen_values = true)]
    pub fuzz: Option<u64>,
    /// Compare only this built-in pattern. Give it once for each, or several joined by commas.
    #[arg(long, value_name = "NAME", conflicts_with_all = ["fuzz", "job_file"])]
    pub pattern: Vec<String>,
    /// Compare no further pattern after the first that differs.
    #[arg(long)]
    pub first: bool,
    #[command(flatten)]
    pub job: JobArgs<job_flags::Conform>,
    #[command(flatten)]
    pub output: OutputFlags,
}

#[derive(Debug, Args)]
pub struct ExplainArgs {
    /// Job file, or a recording. Its keys are the names of the flags, with underscores. A flag
    /// overrides the key.
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
pub struct ReportArgs {
    /// Record that --json of run, compare, explain, advise, published, conform, search, folio-ops,
    /// govern, calibrate or doctor wrote. - means stdin.
    #[arg(value_name = "RECORD.json", allow_hyphen_values = true)]
    pub record: String,
    /// Where the page goes: one HTML file with pictures, which needs no network. - means stdout.
    #[arg(long, value_name = "FILE|-", help_heading = "Output", allow_hyphen_values = true)]
    pub html: String,
}

#[derive(Debug, Args)]
pub struct AdviseArgs {
    /// Recording, or a job file of a program. The model tries advice for each file and mapping,
    /// readahead and fault-around sizes, and the governor: each alone, and then the best in pairs.
    #[arg(value_name = "RECORDING")]
    pub recording: String,
    /// Also run the best answers for real. The recorded program runs again, as it is and with each
    /// of them in turn, --runs times each and once before. It runs in this directory,
    /// with this environment and without input. Its recorded files are dropped from the page cache
    /// before each run, and what it prints is thrown away. WARNING: if the program writes, sends or
    /// removes something, it does so each time. A program that may write to its files through a
    /// mapping is refused; whether it writes with write(2) is not in a recording. The exit code is
    /// 1 if the program reads more or is slower with the answer, or does something else.
    #[arg(long)]
    pub check: bool,
    /// How often --check runs the program in each way [default: 5].
    #[arg(long, value_name = "N", value_parser = up_to::<MAX_RUNS>, allow_hyphen_values = true)]
    #[arg(requires = "check")]
    pub runs: Option<u64>,
    /// Allow --check to change the fault-around size of the whole machine, for answers that are
    /// such a size. It is restored after each run.
    #[arg(long, requires = "check")]
    pub change_settings: bool,
    #[command(flatten)]
    pub job: JobArgs<job_flags::Advise>,
    #[command(flatten)]
    pub output: OutputFlags,
}

#[derive(Debug, Args)]
pub struct ManArgs {
    /// Command whose page is printed [default: the page of filemap itself].
    #[arg(value_name = "COMMAND")]
    pub command: Option<String>,
    /// Write every page to this directory, which is made where it is missing.
    #[arg(short, long, value_name = "DIR", conflicts_with = "command")]
    pub output: Option<String>,
}

#[derive(Debug, Args)]
pub struct CompletionsArgs {
    /// Shell to complete for.
    #[arg(value_name = "SHELL")]
    pub shell: Shell,
}

#[derive(Debug, Args)]
#[command(group(ArgGroup::new("what").required(true).args(["name", "output"])))]
pub struct SchemaArgs {
    /// Schema to print: job for job files, log for lines of run --log, log-kernel for those of a
    /// kernel's own decisions, or a command for its --json.
    #[arg(value_name = "NAME")]
    pub name: Option<String>,
    /// Write every schema to this directory, which is made where it is missing.
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
    /// Program to run, and its arguments. It has the input, the terminal and the outputs of this
    /// command, and this command ends as the program does.
    #[arg(value_name = "PROGRAM", trailing_var_arg = true)]
    #[arg(conflicts_with_all = ["pid", "cgroup", "duration", "release"])]
    pub program: Vec<OsString>,
    /// Govern this running process, and what it starts, until they have ended or this command is
    /// interrupted. Give it once for each process.
    #[arg(long, value_name = "PID", value_parser = pid, allow_hyphen_values = true)]
    pub pid: Vec<u32>,
    /// Govern the processes of this cgroup, also later ones: its path below /sys/fs/cgroup, or the
    /// name of a systemd unit.
    #[arg(long, value_name = "PATH", allow_hyphen_values = true)]
    pub cgroup: Vec<String>,
    /// End after this time, such as 60s.
    #[arg(long, value_name = "TIME", value_parser = some_time, allow_hyphen_values = true)]
    pub duration: Option<Duration>,
    /// Advise nothing and read nothing. At the end the report says what would have been done.
    #[arg(long, conflicts_with = "compare")]
    pub observe: bool,
    /// Restore the advice of mappings of --pid or --cgroup that a killed governor has left.
    #[arg(long)]
    #[arg(conflicts_with_all = ["observe", "duration", "min_size", "largest_window", "include"])]
    #[arg(conflicts_with_all = ["exclude", "compare", "format", "json", "html"])]
    pub release: bool,
    /// Smallest mapping that is governed [default: 16m].
    #[arg(long, value_name = "SIZE", value_parser = bytes, allow_hyphen_values = true)]
    pub min_size: Option<u64>,
    /// Largest window that one fault asks for [default: 16m]. With 0 nothing is read ahead.
    #[arg(long, value_name = "SIZE", value_parser = bytes, allow_hyphen_values = true)]
    pub largest_window: Option<u64>,
    /// Govern only mappings of files whose path matches this pattern, in which * stands for any
    /// characters. Give it once for each pattern.
    #[arg(long, value_name = "GLOB", value_parser = glob(), allow_hyphen_values = true)]
    pub include: Vec<OsString>,
    /// Leave alone mappings of files whose path matches this pattern. Give it once for each
    /// pattern.
    #[arg(long, value_name = "GLOB", value_parser = glob(), allow_hyphen_values = true)]
    pub exclude: Vec<OsString>,
    /// Run the program plain and governed in turn, with a cold page cache and without input or
    /// terminal, and compare what both cost. Its outputs are not shown, but have to be the same.
    /// Processes that it leaves running are ended.
    #[arg(long, conflicts_with_all = ["pid", "cgroup"])]
    pub compare: bool,
    /// How often --compare runs the program in each way [default: 5].
    #[arg(long, value_name = "N", value_parser = up_to::<MAX_COMPARED_RUNS>)]
    #[arg(allow_hyphen_values = true)]
    #[arg(requires = "compare")]
    pub runs: Option<u64>,
    /// Format of the report of --pid, --cgroup and --compare: table, markdown, csv or json
    /// [default: table].
    #[arg(long, value_name = "FORMAT", help_heading = "Output")]
    pub format: Option<Format>,
    #[command(flatten)]
    pub files: ReportFiles,
}

#[derive(Debug, Args)]
#[command(group(ArgGroup::new("goal").required(true).args(["worse", "over", "differ"])))]
pub struct SearchArgs {
    /// The two variants, such as baseline,vma-bound. A variant is series and settings joined by +.
    #[arg(long, value_name = "A,B", allow_hyphen_values = true)]
    pub variants: String,
    /// Look for jobs that the second variant makes worse: bytes, majors (major faults) or elapsed.
    #[arg(long, value_name = "FIGURE", allow_hyphen_values = true)]
    pub worse: Option<Metric>,
    /// Look for jobs where the second variant gains most: bytes, majors or elapsed.
    #[arg(long, value_name = "FIGURE", allow_hyphen_values = true)]
    pub over: Option<Metric>,
    /// Look for jobs in which any decision differs.
    #[arg(long)]
    pub differ: bool,
    /// Try this many jobs [default: 20000, or as many as --duration allows].
    #[arg(long, value_name = "N", value_parser = up_to::<MAX_FUZZ_JOBS>)]
    #[arg(allow_hyphen_values = true)]
    pub jobs: Option<u64>,
    /// Begin no more jobs after this time, such as 60s. How many jobs these are depends on the
    /// machine; the report has the command that tries the same jobs again.
    #[arg(long, value_name = "TIME", value_parser = some_time, allow_hyphen_values = true)]
    pub duration: Option<Duration>,
    /// Keep what was found in this file, after each 256 jobs. If the file is that of the same
    /// search, go on from there. Give more --jobs or --duration for a longer search.
    #[arg(long, value_name = "FILE", allow_hyphen_values = true)]
    pub state: Option<String>,
    /// Write a job file of each case to this directory, which is made, or has to be empty. The
    /// commands of the report then name these files.
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
    /// Program to run and record, and its arguments. It has the input, the terminal and the outputs
    /// of this command, and this command ends as the program does. Its files are read anew: they
    /// are dropped from the page cache when it maps them.
    ///
    /// If this command is killed by SIGKILL, what was recorded is in the recording's name followed
    /// by .part, and filemap govern --release --pid restores the advice of the program's mappings.
    #[arg(value_name = "PROGRAM", trailing_var_arg = true)]
    #[arg(conflicts_with_all = ["show", "import", "pid", "cgroup"])]
    pub program: Vec<OsString>,
    /// Record this running process, and what it starts from now on. Give it once for each process.
    #[arg(long, value_name = "PID", conflicts_with_all = ["show", "import", "cgroup"])]
    pub pid: Vec<u32>,
    /// Record the processes of this control group, such as those of a container or a unit.
    #[arg(long, value_name = "PATH", conflicts_with_all = ["show", "import"])]
    pub cgroup: Option<String>,
    /// Record for this time [default: until the processes end, or Ctrl-C]. The processes go on as
    /// before.
    #[arg(long, value_name = "TIME", value_parser = duration, allow_hyphen_values = true)]
    #[arg(conflicts_with_all = ["show", "import"])]
    pub duration: Option<Duration>,
    /// First drop what running processes have mapped from the page cache, as far as nobody else has
    /// it in use. Pages that they touch again are then recorded.
    #[arg(long, conflicts_with_all = ["show", "import", "program"])]
    pub cold: bool,
    /// Record only files whose path matches this pattern, in which * stands for any characters.
    /// Give it once for each pattern.
    #[arg(long, value_name = "GLOB", value_parser = glob(), allow_hyphen_values = true)]
    #[arg(conflicts_with_all = ["show", "import"])]
    pub include: Vec<OsString>,
    /// Smallest file that is recorded [default: 16k].
    #[arg(long, value_name = "SIZE", value_parser = bytes, allow_hyphen_values = true)]
    #[arg(conflicts_with_all = ["show", "import"])]
    pub min_size: Option<u64>,
    /// Set fault-around of the whole machine to one page while the program runs, as root. Each
    /// first touch of a page by a process is then recorded, also where another one has it cached.
    /// The setting is restored in whatever way this ends.
    #[arg(long, conflicts_with_all = ["show", "import", "pid", "cgroup"])]
    pub change_settings: bool,
    /// Record each change of page, for files larger than memory, as root. A page is taken from its
    /// process soon after each touch, so that the next touch of it reads it from the disk again.
    #[arg(long, conflicts_with_all = ["show", "import"])]
    pub changes: bool,
    /// Print this recording as a job file, which the other commands take as they take the recording
    /// itself. Comments at its top say where the job differs from the recording.
    #[arg(long, value_name = "RECORDING", allow_hyphen_values = true, conflicts_with = "import")]
    pub show: Option<String>,
    /// Make a recording of a trace of faults: perf-script for what perf script printed, or lines
    /// for lines of the format that docs/RECORDING.md states.
    #[arg(long, num_args = 2, value_names = ["KIND", "FILE"])]
    pub import: Option<Vec<String>>,
    /// Where the recording goes [default: the name of the program or the trace followed by
    /// .recording, which must not exist yet]. - means stdout, but not for a program, which has
    /// stdout for itself.
    #[arg(short, long, value_name = "RECORDING", allow_hyphen_values = true)]
    #[arg(conflicts_with = "show")]
    pub output: Option<String>,
}

#[derive(Debug, Args)]
pub struct FolioOpsArgs {
    /// model, which is a small mm of this program in real time, or kernel, the running one
    /// [default: model].
    #[arg(long, value_name = "ENGINE", allow_hyphen_values = true)]
    pub on: Option<String>,
    /// How often each operation is timed [default: 9].
    #[arg(long, value_name = "N", allow_hyphen_values = true, value_parser = number)]
    pub runs: Option<u64>,
    /// Seed of the order of random writes [default: 88172645463325252].
    #[arg(long, value_name = "N", allow_hyphen_values = true, value_parser = number)]
    pub seed: Option<u64>,
    /// Size of the anonymous memory [default: 256m]. With all defaults this takes some three
    /// minutes; that grows with the size, the folio sizes and the runs.
    #[arg(long, value_name = "SIZE", value_parser = size, allow_hyphen_values = true)]
    pub size: Option<SizeText>,
    /// Sizes of the folios, powers of two from 4k to 2m
    /// [default: 4k,16k,32k,64k,128k,256k,512k,1m,2m].
    #[arg(long, value_name = "SIZE,...", allow_hyphen_values = true)]
    pub folio_sizes: Option<String>,
    /// Count what is known of the owners of a folio, and what a prefork server copies, and time
    /// nothing. The server's heap is of --size [default: 4m] in folios of --folio-sizes [default:
    /// 64k,2m].
    #[arg(long, conflicts_with_all = ["on", "runs", "seed", "change_settings", "verbose"])]
    pub owners: bool,
    #[command(flatten)]
    pub output: OutputFlags,
    /// Change the folio sizes that the whole machine allows, as root. They are restored after the
    /// runs.
    #[arg(long, help_heading = "Output")]
    pub change_settings: bool,
    /// Also show how far the figures spread.
    #[arg(long, help_heading = "Output")]
    pub verbose: bool,
}

#[derive(Debug, Args)]
pub struct CalibrateArgs {
    /// Where the machine profile goes, for --machine. The default is this user's own profile, which
    /// the model then uses: filemap/machine-profile.toml in $XDG_STATE_HOME or ~/.local/state.
    #[arg(short, long, value_name = "PROFILE.toml", allow_hyphen_values = true)]
    pub output: Option<String>,
    /// Size of the temporary file that is read [default: 1g].
    #[arg(long, value_name = "SIZE", value_parser = size, allow_hyphen_values = true)]
    pub file_size: Option<SizeText>,
    /// How often each figure is measured. The median is used [default: 5].
    #[arg(long, value_name = "N", value_parser = rounds, allow_hyphen_values = true)]
    pub runs: Option<u64>,
    #[command(flatten)]
    pub report: OutputFlags,
}

fn number(text: &str) -> Result<u64, String> {
    parse_count(text).map_err(|error| error.to_string())
}

/// A number from 1 on.
fn up_to<const MOST: u64>(text: &str) -> Result<u64, String> {
    match count(text, 1, MOST)? {
        number if (1..=MOST).contains(&number) => Ok(number),
        number => Err(format!("{number} is out of range; give 1 to {MOST}")),
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

/// A pattern of paths.
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

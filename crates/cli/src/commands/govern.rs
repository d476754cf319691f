//! `filemap govern`.

mod compare;
mod memory;
mod prefetch;
mod running;

use std::ffi::OsString;
use std::io::{self, Write};
use std::path::Path;
use std::sync::Arc;

use filemap_attach::FollowMethod;
use filemap_govern::{
    Costs, GivenPlans, GovernSettings, GovernTarget, GovernorSession, MetricsFile,
    UnrestoredMapping, run_directory,
};
use filemap_job::size::format_duration;
use filemap_job::{EngineKind, format_size, shell_word};
use filemap_kernel::engine::host_environment;
use filemap_kernel::page_size;
use filemap_report::Format;
use filemap_study::Footer;
use filemap_study::govern::{self as study, GovernRecord, ProcessRecord};
use rustix::process::geteuid;

use crate::args::GovernArgs;
use crate::error::{Error, reason};
use crate::exit_status;
use crate::govern::parent::{self, BlockedSignals};
use crate::govern::{self, Program};
use crate::output::{Inputs, Output, check};
use crate::{Outcome, print_message};
use filemap_study::{device_profile, machine_profile, provenance};

/// Governs a program that it runs, or running processes.
pub fn run(args: &GovernArgs) -> Result<Outcome, Error> {
    let is_running = !args.pid.is_empty() || !args.cgroup.is_empty();
    match () {
        () if args.forget => memory::forget(args),
        () if args.prefetch.is_some() => {
            prefetch::run(args, args.prefetch.as_deref().unwrap_or_default())
        }
        () if args.release && !is_running => Err(Error::Usage(
            "--release needs the process whose mappings it restores; give --pid or --cgroup"
                .to_string(),
        )),
        () if args.release => running::release(args),
        () if is_running => running::run(args),
        () if args.program.is_empty() => Err(Error::Usage(
            "a program is missing; give it after --, as in filemap govern -- PROGRAM, or give a \
             running process with --pid"
                .to_string(),
        )),
        () if args.compare => compare::run(args),
        () => run_program(args),
    }
}

/// Runs a program as a child, governs it, and passes on its exit status.
fn run_program(args: &GovernArgs) -> Result<Outcome, Error> {
    if let Some(format) = args.format {
        let name = Format::ALL.into_iter().find(|(_, known)| *known == format);
        return Err(Error::Usage(format!(
            "--format {} is for --pid, --cgroup and --compare; give --json FILE or --html FILE for \
             what was done for this program",
            name.map_or("", |(name, _)| name)
        )));
    }
    let program = govern::find(&args.program)?;
    let inputs = inputs(&program);
    let given = read_plans(args)?;
    let metrics = metrics_file(args, &inputs)?;
    let output = Output::open_files(&args.files, &inputs)?;
    // From here on, no signal ends this process without cleanup.
    let waited = BlockedSignals::block();
    let begun = begin_for(args, &program, given, metrics);
    let ungoverned = begun.as_ref().err().cloned();
    if let Some(reason) = &ungoverned {
        print_message(format!("'{}' runs ungoverned: {reason}", program.path.display()));
    }
    let session = begun.ok();
    if session.is_none() && output.is_none() && !args.observe {
        drop(waited);
        return Err(govern::exec(&program).into());
    }
    let ended = parent::run(&program, &waited, || ());
    let way = session.as_ref().map_or(FollowMethod::PerfEvents, GovernorSession::method);
    let outcome = session.map(GovernorSession::finish);
    let ended = ended?;
    let (mut statistics, left) =
        outcome.map_or_else(Default::default, |outcome| (outcome.statistics, outcome.unrestored));
    tell_left(&left);
    drop(waited);
    let processes = study::process_records(&statistics, way);
    let files = std::mem::take(&mut statistics.files);
    let has_none = processes.iter().all(|process| process.mappings.is_empty());
    if !args.observe && output.is_none() {
        return Ok(exit_status::outcome(ended, Ok(())));
    }
    let ungoverned = ungoverned.or_else(|| has_none.then(|| why_nothing(args, &processes)));
    let mut run =
        GovernRecord::new(processes, statistics.lost_records, footer(SCOPE, command(args)));
    (run.ungoverned, run.only_observed) = (ungoverned, args.observe);
    run.files = files;
    let run = run.with_end(arguments_text(&args.program), ended);
    let report = run.report();
    if args.observe {
        // A closed stderr is ignored.
        let _ = io::stderr().write_all(report.render(Format::Table).as_bytes());
    }
    let checked = check_read(args, &mapped(&run.processes));
    let written = checked.and_then(|()| output.write(&report));
    Ok(exit_status::outcome(ended, written))
}

/// The plans of --plan.
fn read_plans(args: &GovernArgs) -> Result<Option<Arc<GivenPlans>>, Error> {
    let given = args.plan.as_deref().map(prefetch::given_plans).transpose()?;
    Ok(given.map(Arc::new))
}

/// The file of --metrics, which must be no input and no other output.
fn metrics_file(args: &GovernArgs, inputs: &Inputs) -> Result<Option<MetricsFile>, Error> {
    let Some(path) = &args.metrics else { return Ok(None) };
    let shown = path.display().to_string();
    let outputs = args.files.named().chain([("--metrics", shown.as_str())]);
    check(&outputs.collect::<Vec<_>>(), inputs)?;
    let failed = |reason: String| {
        Error::Usage(format!(
            "--metrics '{shown}' cannot be written: {reason}; give a file in a directory that you \
             may write to"
        ))
    };
    if shown == "-" {
        return Err(failed("metrics replace a file, and stdout is none".to_string()));
    }
    MetricsFile::create(path).map(Some).map_err(|error| failed(reason(&error)))
}

/// Starts governing the children of this thread, or returns the reason why it cannot.
fn begin_for(
    args: &GovernArgs,
    program: &Program,
    given: Option<Arc<GivenPlans>>,
    metrics: Option<MetricsFile>,
) -> Result<GovernorSession, String> {
    if let Some(gain) = govern::privilege_gain(&program.path).filter(|_| !geteuid().is_root()) {
        return Err(format!("it {gain}"));
    }
    begin(&GovernTarget::Children, args, given, metrics).map_err(|error| error.to_string())
}

/// Starts governing `target`.
fn begin(
    target: &GovernTarget,
    args: &GovernArgs,
    given: Option<Arc<GivenPlans>>,
    metrics: Option<MetricsFile>,
) -> Result<GovernorSession, filemap_govern::Error> {
    let directory = run_directory::run_directory();
    directory.iter().for_each(|directory| filemap_govern::remove_stale_directories(directory));
    if directory.is_none() && !args.observe {
        print_message(
            "there is no private directory for the list of advised mappings: if filemap is killed, \
             --release cannot restore it; set XDG_RUNTIME_DIR to one",
        );
    }
    let settings = settings(args, given, metrics);
    let session = GovernorSession::start(target, settings, directory, |line| print_message(line))?;
    if session.method() == FollowMethod::PageTables {
        print_message(
            "perf events are refused, so page tables are scanned instead, and streams are read \
             ahead later; set kernel.perf_event_paranoid to 2, or run filemap as root",
        );
    }
    Ok(session)
}

fn settings(
    args: &GovernArgs,
    given: Option<Arc<GivenPlans>>,
    metrics: Option<MetricsFile>,
) -> GovernSettings {
    let usual = GovernSettings::default();
    GovernSettings {
        min_bytes: args.min_size.unwrap_or(usual.min_bytes),
        max_window_bytes: args.largest_window.unwrap_or(usual.max_window_bytes),
        include: args.include.clone(),
        exclude: args.exclude.clone(),
        observe_only: args.observe,
        memory: memory::store(args),
        given,
        metrics,
        watch_time: args.watch.unwrap_or(usual.watch_time),
        costs: costs().unwrap_or(usual.costs),
    }
}

/// Read costs from the user's machine profile, or else from the kept one of the device of the
/// working directory.
fn costs() -> Option<Costs> {
    let (name, profile) = machine_profile::user_profile().ok()?;
    let profile = match name.as_str() {
        machine_profile::DEFAULT => {
            let kept = device_profile::find_for_file(Path::new("."))?;
            machine_profile::load_profile(Some(&kept)).ok()?
        }
        _ => profile,
    };
    let (device, cost) = (&profile.device, &profile.cost);
    let transfer_ns = page_size() * 1_000_000_000 / device.bandwidth_bytes.max(1);
    let fault_ns =
        device.latency_ns + device.request_ns + transfer_ns + cost.fault_ns + cost.add_page_ns;
    Some(Costs { fault_ns, page_ns: transfer_ns + cost.add_page_ns + cost.map_page_ns })
}

/// Reports mappings whose advice could not be restored.
fn tell_left(left: &[UnrestoredMapping]) {
    let Some(first) = left.first() else { return };
    let mut pids: Vec<u32> = left.iter().map(|own| own.pid).collect();
    pids.sort_unstable();
    pids.dedup();
    let flags = pids.iter().map(|pid| format!(" --pid {pid}")).collect::<String>();
    print_message(format!(
        "{} stay advised MADV_RANDOM: {}; run filemap govern --release{flags}",
        count_mappings_text(left.len()),
        first.reason
    ));
}

fn count_mappings_text(mappings: usize) -> String {
    if mappings == 1 { "1 mapping".to_string() } else { format!("{mappings} mappings") }
}

/// The inputs of a run of `program`.
fn inputs(program: &Program) -> Inputs {
    let mut inputs = Inputs::default();
    inputs.add_program(program);
    inputs
}

/// Files that `processes` have read through mappings.
fn mapped(processes: &[ProcessRecord]) -> Inputs {
    let mappings = processes.iter().flat_map(|process| &process.mappings);
    mapped_files(mappings.filter_map(|mapping| mapping.own.path.as_deref()))
}

/// Files that a program has read through mappings.
fn mapped_files<'a>(paths: impl Iterator<Item = &'a Path>) -> Inputs {
    let mut inputs = Inputs::default();
    paths.for_each(|path| inputs.add("a file that the program read,", path));
    inputs
}

/// Why nothing was governed, given all candidate `processes`.
fn why_nothing(args: &GovernArgs, processes: &[ProcessRecord]) -> String {
    if let Some(reason) = processes.iter().find_map(|process| process.reason.clone()) {
        return reason;
    }
    let size = format_size(args.min_size.unwrap_or(GovernSettings::default().min_bytes));
    let all = args.include.is_empty() && args.exclude.is_empty();
    let left_out = if all { "" } else { " that --include and --exclude leave" };
    format!(
        "no process touches a page of a mapping of a regular file{left_out} that is read-only and \
         of {size} or more (--min-size)"
    )
}

/// Scope of the statistics.
const SCOPE: &str = "read-only mappings of regular files on local disks, from --min-size on";

/// Rejects outputs that are among `files`, which the processes have read.
fn check_read(args: &GovernArgs, files: &Inputs) -> Result<(), Error> {
    check(&args.files.named().collect::<Vec<_>>(), files)
}

/// Opens the outputs of the report.
fn output(args: &GovernArgs, inputs: &Inputs) -> Result<Output, Error> {
    Output::open(args.format.unwrap_or_default(), &args.files, inputs, &[])
}

/// The footer of a report that `command` repeats.
fn footer(scope: &str, command: String) -> Footer {
    let mut environment = host_environment();
    provenance::stamp(&mut environment, EngineKind::Kernel.name());
    Footer { scope: scope.to_string(), command, environment }
}

/// The command that repeats this one.
fn command(args: &GovernArgs) -> String {
    let mut words = vec!["filemap govern".to_string()];
    words.extend(settings_flags(args).iter().map(|word| shell_word(word)));
    let mut flag = |name: &str, value: String| {
        words.push(format!("{name} {}", shell_word(&value)));
    };
    args.memory.iter().for_each(|path| flag("--memory", path.display().to_string()));
    args.pid.iter().for_each(|pid| flag("--pid", pid.to_string()));
    args.cgroup.iter().for_each(|name| flag("--cgroup", name.clone()));
    args.duration
        .iter()
        .for_each(|time| flag("--duration", format_duration(time.as_nanos() as u64)));
    args.runs.iter().for_each(|runs| flag("--runs", runs.to_string()));
    words.extend(args.observe.then(|| "--observe".to_string()));
    words.extend(args.compare.then(|| "--compare".to_string()));
    let is_run_once = !args.program.is_empty() && !args.compare;
    let files = args.files.named().filter(|_| is_run_once);
    words.extend(files.map(|(flag, path)| format!("{flag} {}", shell_word(path))));
    if !args.program.is_empty() {
        words.push("--".to_string());
        words.extend(arguments_text(&args.program).iter().map(|word| shell_word(word)));
    }
    words.join(" ")
}

/// The flags that select what to govern, as arguments.
fn settings_flags(args: &GovernArgs) -> Vec<String> {
    let mut words = Vec::new();
    let mut flag = |name: &str, value: String| words.extend([name.to_string(), value]);
    args.min_size.iter().for_each(|bytes| flag("--min-size", bytes.to_string()));
    args.largest_window.iter().for_each(|bytes| flag("--largest-window", bytes.to_string()));
    args.watch.iter().for_each(|time| flag("--watch", format_duration(time.as_nanos() as u64)));
    arguments_text(&args.include).into_iter().for_each(|glob| flag("--include", glob));
    arguments_text(&args.exclude).into_iter().for_each(|glob| flag("--exclude", glob));
    args.metrics.iter().for_each(|path| {
        words.extend(["--metrics".to_string(), path.display().to_string()]);
    });
    args.plan.iter().for_each(|path| words.extend(["--plan".to_string(), path.clone()]));
    words.extend(args.no_memory.then(|| "--no-memory".to_string()));
    words
}

/// Arguments as text.
fn arguments_text(words: &[OsString]) -> Vec<String> {
    words.iter().map(|word| word.to_string_lossy().into_owned()).collect()
}

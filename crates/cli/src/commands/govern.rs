//! `filemap govern`.

mod compare;

use std::ffi::OsString;
use std::io::{self, Write};

use filemap_control::{Settings, variable};
use filemap_job::{EngineKind, format_size, shell_word};
use filemap_kernel::engine::host_environment;
use filemap_kernel::governor;
use filemap_report::govern::{self as report, Process};
use filemap_report::{Footer, Format};

use crate::args::GovernArgs;
use crate::error::Error;
use crate::govern::environment::{self, Variables};
use crate::govern::parent::{self, Waited};
use crate::govern::{self, Collecting, Program, Wanted, run_directory, status};
use crate::output::{Form, Inputs, Output, OutputFlags, check_only, open_one};
use crate::{Outcome, interrupt, provenance};

/// Runs a program governed, or tells of one.
pub fn run(args: &GovernArgs) -> Result<Outcome, Error> {
    if let Some(pid) = args.status {
        return tell(pid, args);
    }
    if args.program.is_empty() {
        return Err(Error::Usage(
            "a program is missing; give it behind --, as in filemap govern -- PROGRAM".to_string(),
        ));
    }
    if args.compare {
        return compare::run(args);
    }
    if let Some(format) = args.format {
        let name = Format::ALL.into_iter().find(|(_, known)| *known == format);
        return Err(Error::Usage(format!(
            "--format {} is for --status and --compare; give --json FILE for what was done for \
             this program",
            name.map_or("", |(name, _)| name)
        )));
    }
    let program = govern::find(&args.program)?;
    if let Some(path) = &args.json {
        return run_and_tell(args, &program, path);
    }
    let (variables, _) = variables(args, &program, true)?;
    environment::set(&variables);
    Err(govern::exec(&program))
}

/// What `program` is to be told, and why it cannot be governed, if it cannot. With `has_directory`
/// its statistics go to this user's directory, if the user names no other.
fn variables(
    args: &GovernArgs,
    program: &Program,
    has_directory: bool,
) -> Result<(Variables, Option<String>), Error> {
    if args.off {
        return Ok((environment::off(), Some("--off".to_string())));
    }
    let (variables, ungoverned) = governed(args, program, has_directory)?;
    if let Some(reason) = &ungoverned {
        let name = program.path.display();
        // Nobody is left to be told if stderr is closed.
        let _ = writeln!(io::stderr(), "filemap: '{name}' runs ungoverned: {reason}");
    }
    Ok((variables, ungoverned))
}

/// What `program` is to be told so that it is governed, or why it cannot be.
fn governed(
    args: &GovernArgs,
    program: &Program,
    has_directory: bool,
) -> Result<(Variables, Option<String>), Error> {
    if let Some(reason) = govern::obstacle(&program.path) {
        return Ok((Vec::new(), Some(reason)));
    }
    let library = governor::library()?;
    let directory = run_directory::run_directory();
    directory.iter().for_each(|directory| run_directory::sweep(directory));
    let directory = directory.filter(|_| has_directory);
    Ok((wanted(args).variables(&library, directory.as_deref())?, None))
}

fn wanted(args: &GovernArgs) -> Wanted {
    Wanted {
        min_bytes: args.min_size,
        largest_window_bytes: args.largest_window,
        include: args.include.clone(),
        exclude: args.exclude.clone(),
    }
}

/// Runs `program` as a child, and writes what was done for it to `path`.
fn run_and_tell(args: &GovernArgs, program: &Program, path: &str) -> Result<Outcome, Error> {
    let target = open_one("--json", path, &inputs(args, program))?;
    let (mut variables, ungoverned) = variables(args, program, false)?;
    // From here on no signal ends this process and leaves what it has made.
    let waited = Waited::block();
    let collecting = Collecting::begin()?;
    variables.extend(collecting.variables());
    environment::set(&variables);
    let ended = parent::run(program, &waited, || ())?;
    let told = collecting.told();
    drop((collecting, waited));
    let footer = footer(SCOPE, command(args));
    let words = in_words(&args.program);
    let is_nothing = |process: &Process| process.mappings.is_empty();
    let nothing = told.processes.iter().all(is_nothing) && told.unknown.is_empty();
    let ungoverned = ungoverned.or_else(|| nothing.then(|| why_nothing(args, &told.processes)));
    let json = report::run(&words, ungoverned.as_deref(), ended, &told, &footer);
    let written = check_only("--json", path, &mapped(&told.processes))
        .and_then(|()| target.write(format!("{json}\n").as_bytes()));
    Ok(parent::outcome(ended, written))
}

/// What `program` may read.
fn inputs(args: &GovernArgs, program: &Program) -> Inputs {
    let mut inputs = Inputs::default();
    inputs.add_program(&program.path, &args.program[1..]);
    inputs
}

/// The files that `processes` have read by mappings.
fn mapped(processes: &[Process]) -> Inputs {
    let mut inputs = Inputs::default();
    let mappings = processes.iter().flat_map(|process| &process.mappings);
    let paths = mappings.filter_map(|mapping| mapping.path.as_ref());
    paths.for_each(|path| inputs.add_regular("a file that the program read,", path.as_ref()));
    inputs
}

/// Why nothing of a program was governed, of which `processes` told what was done for them.
fn why_nothing(args: &GovernArgs, processes: &[Process]) -> String {
    if let Some(reason) = processes.iter().find_map(|process| process.reason) {
        return reason.to_string();
    }
    let value = |name: &'static str| std::env::var_os(name);
    let settings = Settings::from_environment(value);
    if let Ok(None) = settings {
        return format!("{} is off in the environment", variable::SWITCH);
    }
    let usual = settings.ok().flatten().unwrap_or_default();
    let size = format_size(args.min_size.unwrap_or(usual.min_bytes));
    let patterns = |given: &[OsString], usual: &[OsString]| given.is_empty() && usual.is_empty();
    let all = patterns(&args.include, &usual.include) && patterns(&args.exclude, &usual.exclude);
    let left_out = if all { "" } else { " that --include and --exclude leave" };
    format!(
        "no process that loads the library maps a regular file{left_out} read-only, of {size} or \
         more (--min-size)"
    )
}

/// Shows what is done for the process `pid`.
fn tell(pid: u32, args: &GovernArgs) -> Result<Outcome, Error> {
    interrupt::exit_on_signals();
    let output = output(args, &Inputs::default())?;
    let status = status::of(pid)?;
    output.write(&report::status(&status, footer(SCOPE, command(args))))?;
    Ok(Outcome::Done)
}

/// What statistics say nothing of.
const SCOPE: &str = "read-only mappings of regular files, from --min-size on, in programs that \
                     load the library; faults inside of system calls are not counted";

/// Where the report of `args` goes.
fn output(args: &GovernArgs, inputs: &Inputs) -> Result<Output, Error> {
    let format = args.format.unwrap_or_default();
    Output::open(
        &OutputFlags { format: Form::Report(format), json: args.json.clone() },
        inputs,
        &[],
    )
}

/// The end of a report that `command` repeats.
fn footer(scope: &str, command: String) -> Footer {
    let mut environment = host_environment();
    provenance::stamp(&mut environment, EngineKind::Kernel.name());
    Footer { scope: scope.to_string(), command, environment }
}

/// The command that does the same again.
fn command(args: &GovernArgs) -> String {
    let mut words = vec!["filemap govern".to_string()];
    let mut flag = |name: &str, value: Option<String>| {
        words.extend(value.map(|value| format!("{name} {}", shell_word(&value))));
    };
    flag("--status", args.status.map(|pid| pid.to_string()));
    flag("--min-size", args.min_size.map(|bytes| bytes.to_string()));
    flag("--largest-window", args.largest_window.map(|bytes| bytes.to_string()));
    in_words(&args.include).into_iter().for_each(|glob| flag("--include", Some(glob)));
    in_words(&args.exclude).into_iter().for_each(|glob| flag("--exclude", Some(glob)));
    flag("--runs", args.runs.map(|runs| runs.to_string()));
    words.extend(args.off.then(|| "--off".to_string()));
    words.extend(args.compare.then(|| "--compare".to_string()));
    let is_run_once = args.status.is_none() && !args.compare;
    let json = args.json.as_deref().filter(|_| is_run_once);
    words.extend(json.map(|path| format!("--json {}", shell_word(path))));
    if !args.program.is_empty() {
        words.push("--".to_string());
        words.extend(in_words(&args.program).iter().map(|word| shell_word(word)));
    }
    words.join(" ")
}

/// Words as text.
fn in_words(words: &[OsString]) -> Vec<String> {
    words.iter().map(|word| word.to_string_lossy().into_owned()).collect()
}

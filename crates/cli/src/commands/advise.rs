//! `filemap advise`: finds settings that help a program that reads too much.

use std::ffi::OsString;

use filemap_attach::program::{self, Program, parent};
use filemap_govern::AdviceEnforcer;
use filemap_job::program::Job;
use filemap_job::{Flag, Group, JobFlags, Record, shell_word};
use filemap_model::ModelEngine;
use filemap_recording::may_write;
use filemap_study::Footer;
use filemap_study::advise::check::{Check, DEFAULT_RUNS, keep_retained_pages, shell_line};
use filemap_study::advise::{AdviseBench, FileFacts, FileSelection, ProgramFacts};

use crate::Outcome;
use crate::args::AdviseArgs;
use crate::engines::RealEngines;
use crate::error::Error;
use crate::interrupt;
use crate::job_input::{self, JobInput};
use crate::output::Inputs;
use crate::recording;
use filemap_study::device_profile;
use filemap_study::input;
use filemap_study::job_input::PlannedJob;
use filemap_study::kernel_match;
use filemap_study::provenance;
use rustix::process::geteuid;

/// Tries settings on the program of a recording, or on a job, and prints the best.
pub fn run(args: AdviseArgs) -> Result<Outcome, Error> {
    if let Some(path) = &args.recording {
        input::regular("recording", path)?;
    }
    let (mut input, inputs) = job_input::read(args.recording.as_deref(), &args.job)?;
    advised(&mut input, inputs, args).map_err(|error| input.in_file(error))
}

fn advised(input: &mut JobInput, mut inputs: Inputs, args: AdviseArgs) -> Result<Outcome, Error> {
    let path = args.recording.as_deref().unwrap_or_default();
    let is_recording = input.approximations().is_some();
    if args.check && !is_recording {
        return Err(Error::Usage(format!(
            "--check runs the program again, and '{path}' is a job file; give a recording of \
             filemap record"
        )));
    }
    let mut words = Vec::new();
    if is_recording {
        refuse_other_accesses(&args.job.spec)?;
        words.clone_from(&recording::open(path)?.header().command);
    }
    let again = args.check.then(|| again(path, &words)).transpose()?;
    let found = (!words.is_empty()).then(|| program::find(&words).ok()).flatten();
    found.iter().for_each(|program| inputs.add_program(program));
    let output = args.output.open(&inputs, &[])?;
    let spec = &mut input.spec;
    // The engine, image and number of runs in the job file do not matter here.
    (spec.on, spec.image, spec.modules, spec.runs) = (None, None, None, None);
    device_profile::keep_measured(spec, &RealEngines);
    let PlannedJob { job: mut program, profile, mut warnings, .. } = input.plan()?;
    let start = program.start_text();
    if args.check {
        warnings.extend(keep_retained_pages(&mut program)?);
    }
    check_ends(&program)?;
    let files = FileFacts::of_job(&program, &selection(&args.files, is_recording));
    let shown = Some(shell_line(&words)).filter(|shown| !shown.is_empty());
    let file = found.as_ref().map(|program| program.path.as_path());
    let recorded = is_recording.then(|| ProgramFacts::of_recording(&program, file));
    let bench =
        AdviseBench { program: &program, profile, files: &files, recorded, engines: &RealEngines };
    let (mut advice, run) = bench.advice(path, shown.as_deref())?;
    let unknown_pages = input.unknown_pages();
    if unknown_pages > 0 {
        advice = advice.with_unknown(unknown_pages);
    } else if let Some((most, pages)) = input.with_unseen_touches()? {
        let mut program = most.plan()?.job;
        if args.check {
            keep_retained_pages(&mut program)?;
        }
        let files = FileFacts::of_job(&program, &selection(&args.files, is_recording));
        let recorded = bench.recorded.clone();
        let bench = AdviseBench { program: &program, files: &files, recorded, ..bench };
        let (most, _) = bench.advice(path, shown.as_deref())?;
        advice = advice.with_unseen(&most, pages);
    }
    (advice.warnings, advice.start) = (warnings, start);
    let kernel = input.spec.kernel.clone();
    advice.warnings.extend(kernel_match::warnings(kernel.as_deref(), &[&program])?);
    let words = [
        args.check.then(|| "--check".to_string()),
        args.runs.map(|runs| format!("--runs {runs}")),
        args.change_settings.then(|| "--change-settings".to_string()),
    ];
    let patterns =
        args.files.iter().map(|glob| format!("--files {}", shell_word(&glob.to_string_lossy())));
    let words: Vec<String> = words.into_iter().flatten().chain(patterns).collect();
    let command = input.command("advise", &program, &words);
    if let Some(again) = &again {
        advice.warnings.extend(other_machine(&input.flags));
        let how = (args.runs.unwrap_or(DEFAULT_RUNS), args.change_settings);
        let check = Check::run(&advice, &program, again, how, &RealEngines)?;
        advice.check = Some(check);
    }
    let ran = ModelEngine { profile }.job_runs(&program, vec![run]);
    let record = Record::from_job_runs(&program, provenance::stamped(ran));
    advice.footer = Footer::new(std::slice::from_ref(&record), command);
    output.write(&advice.report())?;
    let fails = advice.check.as_ref().is_some_and(|check| check.fails(&advice));
    Ok(if fails { Outcome::CheckFailed } else { Outcome::Done })
}

/// The files that get an answer. A job names its files, so all of them do.
fn selection(patterns: &[OsString], is_recording: bool) -> FileSelection {
    match patterns {
        [] if is_recording => FileSelection::Own,
        [] => FileSelection::All,
        patterns => FileSelection::Matching(patterns.to_vec()),
    }
}

/// Rejects flags that would replace what a recording has: its accesses, files and mappings.
fn refuse_other_accesses(flags: &JobFlags) -> Result<(), Error> {
    let is_recorded =
        |flag: &&Flag| [Group::Accesses, Group::File, Group::Mapping].contains(&flag.group);
    match flags.present().find(is_recorded) {
        Some(flag) => Err(Error::Usage(format!(
            "--{} describes a job, and a recording has its own; leave out the flag or the recording",
            flag.name
        ))),
        None => Ok(()),
    }
}

/// Prepares the program `words` of the recording at `path` for another run. From here on, signals
/// end this command in order.
///
/// # Errors
/// A recording without a command line; a program that may write to its files or cannot be advised.
fn again(path: &str, words: &[OsString]) -> Result<Program, Error> {
    parent::reset_sigchld();
    interrupt::exit_on_signals();
    crate::undo_what_was_left();
    if words.is_empty() {
        return Err(Error::Usage(format!(
            "--check runs the program again, and '{path}' does not say which program that is; \
             record it with filemap record -- PROGRAM"
        )));
    }
    let program = program::find(words)?;
    if let Some(gain) = program::privilege_gain(&program.path).filter(|_| !geteuid().is_root()) {
        return Err(Error::CannotRun(format!(
            "'{}' cannot be advised: it {gain}; leave out --check, or run it as root",
            program.path.display()
        )));
    }
    if let Some(does) = may_write(recording::open(path)?, |file| !file.exists())? {
        return Err(Error::CannotRun(format!(
            "the program of '{path}' {does}: --check would have it write again and again; leave \
             out --check, or record a run that only reads"
        )));
    }
    AdviceEnforcer::check()?;
    Ok(program)
}

/// Rejects threads limited by time, which take the same time with any setting.
fn check_ends(program: &Job) -> Result<(), Error> {
    match program.threads.iter().find(|thread| thread.rounds.is_timed()) {
        Some(thread) => Err(Error::CannotRun(format!(
            "thread '{}' runs 'for' a time, and advise compares how long a program takes; give \
             'repeat' instead, or try settings with filemap compare",
            thread.name
        ))),
        None => Ok(()),
    }
}

/// A warning if `flags` give the model another machine than the measured one.
fn other_machine(flags: &JobFlags) -> Option<String> {
    let flags_given: Vec<String> =
        JobFlags { machine: None, ..flags.clone() }.flags().into_iter().collect();
    (!flags_given.is_empty()).then(|| {
        format!(
            "the model has {}, and what was measured is this machine as it is",
            flags_given.join(" ")
        )
    })
}

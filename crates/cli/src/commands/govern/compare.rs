//! `filemap govern --compare`.

use std::fs;
use std::path::{Path, PathBuf};

use filemap_study::govern::{Comparison, Measured, Variant};

use crate::args::GovernArgs;
use crate::error::Error;
use crate::govern::trial::{self, Governed};
use crate::govern::{self, Collecting, Program, parent};
use crate::output::check_only;
use crate::progress::Bar;
use crate::{Outcome, interrupt};
use filemap_study::engine::Progress;

/// How often a program is run in each way.
const RUNS: u64 = 5;

/// What the comparison says nothing of.
const SCOPE: &str = "one program without input, run alone, with what it starts; read-only \
                     mappings of regular files; only files of which a mapping was governed are \
                     dropped from the page cache before a run";

/// Runs a program plain and governed in turn, and shows what both cost.
pub fn run(args: &GovernArgs) -> Result<Outcome, Error> {
    parent::wait_for_children();
    interrupt::exit_on_all_signals();
    crate::undo_what_was_left();
    let program = govern::find(&args.program)?;
    let output = super::output(args, &super::inputs(args, &program))?;
    let collecting = Collecting::begin()?;
    let governed = Governed::of(&program, &super::settings_flags(args), collecting.directory())?;
    let runs = args.runs.unwrap_or(RUNS);
    let progress = Bar::new(usize::try_from(2 * runs + 1).unwrap_or(usize::MAX));
    let trial = Trial { program: &program, governed };
    let mut comparison = Comparison {
        program: super::in_words(&args.program),
        files: Vec::new(),
        ungoverned: None,
        notes: Vec::new(),
        // Which files it maps is known when it has mapped them.
        first: Some(trial.run(Variant::Governed, 0)?),
        runs: Vec::new(),
    };
    let told = trial.governed.told();
    comparison.ungoverned = told.ungoverned;
    if let Some(path) = &args.json {
        check_only("--json", path, &super::mapped_files(told.paths.iter().map(String::as_str)))?;
    }
    let files;
    (files, comparison.notes) = governed_files(&told.paths);
    comparison.files =
        files.iter().map(|(path, bytes)| (path.display().to_string(), *bytes)).collect();
    progress.advance();
    for pair in 0..runs {
        for variant in in_turn(pair) {
            let paths = files.iter().map(|(path, _)| path.as_path());
            let cached_bytes = trial::drop_all(paths, &mut comparison.notes)?;
            comparison.runs.push(trial.run(variant, cached_bytes)?);
            progress.advance();
        }
    }
    drop((progress, trial, collecting));
    let differs = !comparison.differences().is_empty();
    output.write(&comparison.report(super::footer(SCOPE, super::command(args))))?;
    Ok(if differs { Outcome::CheckFailed } else { Outcome::Done })
}

/// The two ways of a pair of runs, in order. They take turns in going first, so that what the run
/// before leaves behind favours neither.
fn in_turn(pair: u64) -> [Variant; 2] {
    match pair % 2 {
        0 => [Variant::Plain, Variant::Governed],
        _ => [Variant::Governed, Variant::Plain],
    }
}

/// A program that is run again and again.
struct Trial<'a> {
    program: &'a Program,
    governed: Governed,
}

impl Trial<'_> {
    /// Runs the program once, with so much of its files in the page cache.
    fn run(&self, variant: Variant, cached_bytes: u64) -> Result<Measured, Error> {
        let metered = match variant {
            Variant::Governed => self.governed.run()?,
            Variant::Plain => trial::run(self.program)?,
        };
        let (exit_code, signal) = metered.end();
        let [stdout, stderr] = metered.digests();
        Ok(Measured {
            variant,
            exit_code,
            signal,
            bytes_read: metered.bytes_read,
            major_faults: metered.major_faults,
            elapsed_ns: metered.elapsed_ns,
            cpu_ns: metered.cpu_ns,
            cached_bytes,
            stdout,
            stderr,
        })
    }
}

/// The files at `paths`, of which mappings were governed, with their bytes, and what is to be said
/// of those that cannot be found again.
fn governed_files(paths: &[String]) -> (Vec<(PathBuf, u64)>, Vec<String>) {
    let (mut files, mut notes) = (Vec::new(), Vec::new());
    for path in paths {
        match fs::metadata(path) {
            Ok(data) if data.is_file() && Path::new(path).is_absolute() => {
                files.push((PathBuf::from(path), data.len()));
            }
            _ => notes.push(format!(
                "'{path}' was governed and is not there any more, so that it is not dropped from \
                 the page cache."
            )),
        }
    }
    (files, notes)
}

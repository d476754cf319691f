//! The best answers, run for real: the recorded program again and again, cold, as it is and with
//! each of them in turn.

use std::ffi::OsString;
use std::fs;
use std::os::unix::fs::MetadataExt;
use std::path::{Path, PathBuf};

use filemap_attach::program::Program;
use filemap_govern::{Advising, Given};
use filemap_job::program::Job;
use filemap_job::shell_word;
use filemap_kernel::engine::FaultAround;
use filemap_kernel::page_size;

use super::selected::{How, Selected};
use super::{Check, CheckRun, LeftOut};
use crate::advise::rules::OF_FILES;
use crate::advise::{Advice, Change};
use crate::engine::Engines;
use crate::error::Error;
use crate::govern::Governed;
use crate::trial::{self, Ran};
use filemap_report::units::{number, time};

/// How often each is run, if nobody says.
pub const RUNS: u64 = 5;

/// A program with its arguments, as a line for a shell.
pub fn shown(words: &[OsString]) -> String {
    let words: Vec<String> = words.iter().map(|word| shell_word(&word.to_string_lossy())).collect();
    words.join(" ").replace(char::is_control, "?")
}

impl Check {
    /// Runs the best answers of `advice` for `program`, which `again` starts, each `runs` times.
    /// Settings of the machine are changed for that where it `applies` them.
    ///
    /// # Errors
    /// When the program cannot be run, is not as it was recorded, or changes its files.
    pub fn run(
        advice: &Advice,
        program: &Job,
        again: &Program,
        (runs, applies): (u64, bool),
        engines: &impl Engines,
    ) -> Result<Check, Error> {
        let files = files(advice, program)?;
        let Selected { answer, trials, mut left_out } = Selected::of(advice, program, applies);
        let mut notes = Vec::new();
        let mut all = advice.tried.iter().flat_map(|tried| &tried.does);
        if all.any(|change| matches!(change, Change::Fadvise(..))) {
            notes.push(format!("posix_fadvise(2) is not checked: {OF_FILES}."));
        }
        // Before anything runs it is said what is going to run, and what that may do.
        engines.tell()(&format!(
            "{} is run {} times now; if it writes, sends or removes something, it does so each time, \
             and what it prints is thrown away",
            shown(&again.words),
            runs * (trials.len() as u64 + 1) + 1
        ));
        let mut running = Running { engines, again, files, notes };
        let variant =
            |(trial, how)| Variant { trial: Some(trial), how: Some(how), ..Variant::default() };
        let mut variants = vec![Variant::default()];
        variants.extend(trials.into_iter().map(variant));
        let progress = engines.progress(Some(runs * variants.len() as u64 + 1));
        // What a first run brings into memory beside the files favours nobody then.
        running.run(&mut Variant::default())?;
        progress.advance();
        for round in 0..usize::try_from(runs).unwrap_or(usize::MAX) {
            for place in 0..variants.len() {
                let number = (round + place) % variants.len();
                running.run(&mut variants[number])?;
                progress.advance();
            }
        }
        let mut notes = running.notes;
        notes.extend(dropped(&variants));
        let mut measured = Vec::new();
        for variant in variants {
            match (variant.trial, variant.not_given()) {
                (Some(trial), Some(reason)) => left_out.push((trial, reason)),
                (trial, _) => measured.push((trial, variant.runs)),
            }
        }
        let left_out = left_out.into_iter().map(|of| LeftOut::of(advice, of)).collect();
        let check = Check { runs, answer, left_out, notes, ..Check::default() };
        Ok(check.concluded(advice, measured))
    }
}

/// A variant, its runs, and what became of its advice in each.
#[derive(Default)]
struct Variant {
    trial: Option<usize>,
    how: Option<How>,
    runs: Vec<CheckRun>,
    given: Vec<Given>,
}

impl Variant {
    /// Why not all of its advice was given to something in each run, as the end of a sentence.
    fn not_given(&self) -> Option<String> {
        let is_given = |given: &Given| given.rules.iter().all(|is_given| *is_given);
        if self.given.iter().all(is_given) {
            return None;
        }
        let refused = self.given.iter().find_map(|given| given.refused.as_ref());
        Some(match (&self.how, refused) {
            (Some(How::Governed), _) => {
                "no mapping of the program was governed; filemap govern --json says why".to_string()
            }
            (_, Some(refused)) => format!("it could not be given: {refused}"),
            (_, None) => "in some run the program made no such mapping, or it could not be held \
                          to be advised"
                .to_string(),
        })
    }
}

/// What tells whether a file was changed.
type Stamp = (u64, i64, i64, u64);

/// The program between two runs.
struct Running<'a, E> {
    engines: &'a E,
    again: &'a Program,
    files: Vec<(PathBuf, Stamp)>,
    notes: Vec<String>,
}

impl<E: Engines> Running<'_, E> {
    fn run(&mut self, variant: &mut Variant) -> Result<(), Error> {
        let _size = match variant.how {
            Some(How::Advised(_, Some(bytes))) => {
                let (journal, undoing) = self.engines.journal()?;
                Some((FaultAround::set(bytes, &journal)?, undoing))
            }
            _ => None,
        };
        let paths = self.files.iter().map(|(path, _)| path.as_path());
        let cached_bytes = trial::drop_all(paths, &mut self.notes)?;
        let (metered, given) = match &variant.how {
            Some(How::Governed) => {
                let governed = Governed::of(self.again, &[])?;
                let metered = governed.run()?;
                let is_given = !governed.told().paths.is_empty();
                (metered, Given { rules: vec![is_given], ..Given::default() })
            }
            Some(How::Advised(rules, _)) if !rules.is_empty() => {
                let advising = Advising::begin(rules)?;
                let metered = trial::run(self.again);
                let given = advising.end();
                (metered?, given)
            }
            Some(How::Advised(..)) | None => (trial::run(self.again)?, Given::default()),
        };
        variant.runs.push(CheckRun {
            pages_read: (metered.bytes_read / page_size()).saturating_sub(given.dropped_pages),
            ran: Ran::of(&metered, cached_bytes),
        });
        variant.given.push(given);
        self.unchanged()
    }

    /// Refuses to go on where the program has changed a file.
    fn unchanged(&self) -> Result<(), Error> {
        for (path, before) in &self.files {
            if stamp(path) != Some(*before) {
                return Err(Error::CannotRun(format!(
                    "'{}' was changed while the program ran, so that its runs are not the same and \
                     no more are made; check on a copy that nobody writes to, or leave out --check",
                    path.display()
                )));
            }
        }
        Ok(())
    }
}

/// What is to be said of what was read before advice held, in sentences.
fn dropped(variants: &[Variant]) -> Vec<String> {
    let all = || variants.iter().flat_map(|of| &of.given);
    let dropped = all().map(|given| given.dropped_pages).max().unwrap_or(0);
    let held_ns = all().map(|given| given.held_ns).max().unwrap_or(0);
    let mut notes = Vec::new();
    if dropped > 0 {
        notes.push(format!(
            "A mapping is advised once it is seen: what was read of its file before that, at most \
             {} pages, was dropped and is not counted. For that the program was held for {} at \
             most.",
            number(dropped as f64),
            time(held_ns as f64)
        ));
    }
    if all().any(|given| given.is_kept) {
        notes.push(
            "A mapping is advised once it is seen: what was read of its file before that is \
             counted too, as this user is not told what is cached of a file of others."
                .to_string(),
        );
    }
    notes
}

fn stamp(path: &Path) -> Option<Stamp> {
    let data = fs::metadata(path).ok()?;
    Some((data.len(), data.mtime(), data.mtime_nsec(), data.ino()))
}

/// The recorded files: those that count are there as they were.
fn files(advice: &Advice, program: &Job) -> Result<Vec<(PathBuf, Stamp)>, Error> {
    let counting = advice.now.files_that_count();
    let mut files = Vec::new();
    for (number, file) in program.files.iter().enumerate() {
        let path = file.file.path.as_ref().map(PathBuf::from);
        match path.and_then(|path| stamp(&path).map(|stamp| (path, stamp))) {
            Some(found) => files.push(found),
            None if !counting.contains(&number) => {}
            None => {
                return Err(Error::CannotRun(format!(
                    "'{}' is not there as it was recorded, so that --check would run something \
                     else; record the program again",
                    file.name
                )));
            }
        }
    }
    Ok(files)
}

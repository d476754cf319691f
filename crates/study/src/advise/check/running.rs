//! Runs the recorded program unchanged and with the best changes, in turn, with the page cache as
//! the job begins.

use std::ffi::OsString;
use std::fs;
use std::os::unix::fs::MetadataExt;
use std::path::{Path, PathBuf};

use filemap_attach::program::Program;
use filemap_govern::EnforcementReport;
use filemap_job::program::Job;
use filemap_job::shell_word;

use super::selection::Selection;
use super::verdict::MIN_PAGES;
use super::{Check, PAGES_READ, SkippedChange};
use crate::advise::rules::OF_FILES;
use crate::advise::{AdviceChange, AdviceTrial, AdviseRecord};
use crate::engine::Engines;
use crate::error::Error;
use crate::trial::{RunSample, Treatment, Trial, spread};
use filemap_report::units::{number, time};

/// Pages read beyond the predicted ones by this share were read before advice arrived.
const MAX_EXCESS: f64 = 0.05;

/// A program with its arguments, as a line for a shell.
pub fn shell_line(words: &[OsString]) -> String {
    let words: Vec<String> = words.iter().map(|word| shell_word(&word.to_string_lossy())).collect();
    words.join(" ").replace(char::is_control, "?")
}

impl Check {
    /// Measures the best changes of `advice` for `job`, which `program` runs, with `runs` runs of
    /// each variant. With `may_apply`, machine settings are changed for that.
    ///
    /// # Errors
    /// The program cannot be run, its files differ from the recorded ones, or it changes them.
    pub fn run(
        advice: &AdviseRecord,
        job: &Job,
        program: &Program,
        (runs, may_apply): (u64, bool),
        engines: &impl Engines,
    ) -> Result<Check, Error> {
        let files = recorded_files(advice, job)?;
        let Selection { answer, trials, mut left_out } = Selection::new(advice, job, may_apply);
        let mut notes = Vec::new();
        let mut changes = advice.tried.iter().flat_map(|tried| &tried.does);
        if changes.any(|change| matches!(change, AdviceChange::Fadvise(..))) {
            notes.push(format!("posix_fadvise(2) is not checked: {OF_FILES}."));
        }
        let (mut indexes, mut treatments) = (vec![None], vec![Treatment::Plain]);
        for (index, treatment) in trials {
            indexes.push(Some(index));
            treatments.push(treatment);
        }
        // The governor watches a program first.
        let governed = treatments.iter().find(|own| matches!(own, Treatment::Governed { .. }));
        let preparations = 1 + u64::from(governed.is_some());
        // Announces the command and its side effects before anything runs.
        engines.message_sink()(&format!(
            "{} is run {} times now; if it writes, sends or removes something, it does so each \
             time, and its output is discarded",
            shell_line(&program.words),
            runs * treatments.len() as u64 + preparations
        ));
        let mut variants: Vec<MeasuredVariant> =
            treatments.iter().map(|_| MeasuredVariant::default()).collect();
        let progress = engines.progress(Some(runs * variants.len() as u64 + 1));
        let paths = files.iter().map(|(path, _)| path.clone()).collect();
        let named = job.files.iter().map(|named| &named.file);
        let cached = named.filter(|file| !file.cached.is_empty());
        let cached =
            cached.filter_map(|file| Some((file.path.clone()?.into(), file.cached.clone())));
        let cached = cached.collect();
        let mut trial = Trial { engines, program, files: paths, cached, notes, governed: None };
        // A first run loads what the program needs besides its files.
        trial.run(&Treatment::Plain)?;
        check_unchanged(&files)?;
        if let Some(treatment) = governed {
            trial.run(treatment)?;
            check_unchanged(&files)?;
        }
        progress.advance();
        trial.run_in_turn(&treatments, runs, &*progress, |index, run| {
            let mut enforcement = run.enforcement;
            if matches!(treatments[index], Treatment::Governed { .. }) {
                enforcement.applied_rules = vec![!run.governed.paths.is_empty()];
            }
            variants[index].runs.push(run.sample);
            variants[index].enforcements.push(enforcement);
            check_unchanged(&files)
        })?;
        let mut notes = trial.notes;
        notes.extend(dropped_notes(&variants));
        let mut measured = Vec::new();
        for ((index, treatment), variant) in indexes.into_iter().zip(&treatments).zip(variants) {
            let Some(index) = index else {
                measured.push((None, variant.runs));
                continue;
            };
            let trial = &advice.tried[index];
            let reason = variant.unapplied_reason(treatment);
            // Each page that may have been touched unseen may be read.
            let unseen = advice.unseen.as_ref().map_or(0, |unseen| unseen.pages);
            let predicted = trial.outcome.data_pages_read.saturating_add(unseen);
            match reason.or_else(|| variant.late_reason(predicted)) {
                Some(reason) => left_out.push((index, reason)),
                None => {
                    if matches!(treatment, Treatment::Governed { .. }) {
                        notes.extend(variant.governor_note(trial, predicted));
                    }
                    measured.push((Some(index), variant.runs));
                }
            }
        }
        let left_out =
            left_out.into_iter().map(|skipped| SkippedChange::new(advice, skipped)).collect();
        let check = Check { runs, answer, left_out, notes, ..Check::default() };
        Ok(check.with_results(advice, measured))
    }
}

/// The runs of a variant, and the result of enforcing its advice in each.
#[derive(Default)]
struct MeasuredVariant {
    runs: Vec<RunSample>,
    enforcements: Vec<EnforcementReport>,
}

impl MeasuredVariant {
    /// Why its advice was not applied in each run, as the end of a sentence; `None` if it was.
    fn unapplied_reason(&self, treatment: &Treatment) -> Option<String> {
        let is_applied =
            |report: &EnforcementReport| report.applied_rules.iter().all(|is_applied| *is_applied);
        if self.enforcements.iter().all(is_applied) {
            return None;
        }
        let refusal = self.enforcements.iter().find_map(|report| report.refusal.as_ref());
        Some(match (treatment, refusal) {
            (Treatment::Governed { .. }, _) => {
                "no mapping of the program was governed; filemap govern --json says why".to_string()
            }
            (_, Some(refusal)) => format!("it could not be given: {refusal}"),
            (_, None) => "in some run the program made no such mapping, or it could not be held \
                          to be advised"
                .to_string(),
        })
    }

    /// Why its runs do not show what the change does if the program makes it itself: advice from
    /// outside comes too late for short-lived mappings, so that more than the `predicted` pages are
    /// read.
    fn late_reason(&self, predicted: u64) -> Option<String> {
        let late = self.enforcements.iter().map(|report| report.late_mappings).max()?;
        let all = self.enforcements.iter().map(|report| report.mappings).max()?;
        let read = spread(&self.runs, PAGES_READ).median;
        (late > 0 && exceeds(read, predicted)).then(|| {
            format!(
                "filemap advised {} of {} mappings only after the program may have touched them, \
                 so that {} pages were read, and not the {} that the program's own madvise would \
                 read",
                number(late as f64),
                number(all as f64),
                number(read),
                number(predicted as f64)
            )
        })
    }

    /// A sentence if the governor reads more than the model has, which acts at once.
    fn governor_note(&self, trial: &AdviceTrial, predicted: u64) -> Option<String> {
        let read = spread(&self.runs, PAGES_READ).median;
        exceeds(read, predicted).then(|| {
            format!(
                "{} reads {} pages, where the model has {}: the model's governor acts at once, the \
                 real one some milliseconds after a mapping is made.",
                trial.label(),
                number(read),
                number(predicted as f64)
            )
        })
    }
}

/// Whether `read` pages are more than was `predicted`, beyond noise.
fn exceeds(read: f64, predicted: u64) -> bool {
    let predicted = predicted as f64;
    read > predicted * (1.0 + MAX_EXCESS) + MIN_PAGES
}

/// Identifies the contents of a file: size, modification time and inode.
type FileStamp = (u64, i64, i64, u64);

/// Refuses to continue after the program has changed one of `files`.
fn check_unchanged(files: &[(PathBuf, FileStamp)]) -> Result<(), Error> {
    for (path, before) in files {
        if file_stamp(path) != Some(*before) {
            return Err(Error::CannotRun(format!(
                "'{}' was changed while the program ran, so its runs are not comparable, and no \
                 more are made; check on a copy that nobody writes to, or leave out --check",
                path.display()
            )));
        }
    }
    Ok(())
}

/// Notes on pages that were read before the advice took effect.
fn dropped_notes(variants: &[MeasuredVariant]) -> Vec<String> {
    let reports = || variants.iter().flat_map(|variant| &variant.enforcements);
    let dropped = reports().map(|report| report.dropped_pages).max().unwrap_or(0);
    let held_ns = reports().map(|report| report.held_ns).max().unwrap_or(0);
    let mut notes = Vec::new();
    if dropped > 0 {
        notes.push(format!(
            "A mapping is advised once it is seen: pages of its file read before that, at most {}, \
             were dropped and are not counted. For that the program was stopped for {} at most.",
            number(dropped as f64),
            time(held_ns as f64)
        ));
    }
    if reports().any(|report| report.has_uncounted_reads) {
        notes.push(
            "A mapping is advised once it is seen: pages of its file read before that are counted \
             too, as this user cannot see which pages of other users' files are cached."
                .to_string(),
        );
    }
    notes
}

fn file_stamp(path: &Path) -> Option<FileStamp> {
    let data = fs::metadata(path).ok()?;
    Some((data.len(), data.mtime(), data.mtime_nsec(), data.ino()))
}

/// The recorded files that exist. It is an error if one that matters for the advice does not.
fn recorded_files(advice: &AdviseRecord, job: &Job) -> Result<Vec<(PathBuf, FileStamp)>, Error> {
    let answered: Vec<usize> = advice.files.iter().map(|file| file.number).collect();
    let mut files = Vec::new();
    for (number, file) in job.files.iter().enumerate() {
        let path = file.file.path.as_ref().map(PathBuf::from);
        match path.and_then(|path| file_stamp(&path).map(|stamp| (path, stamp))) {
            Some(found) => files.push(found),
            None if !answered.contains(&number) => {}
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

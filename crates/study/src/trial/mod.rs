//! A/B trials: variants of a program run in turn on this machine and are compared with the
//! unchanged program.
//!
//! A program's costs are what the kernel accounts to waited-for children.

mod governed;
mod mapped_files;
mod measure;
mod retained;
mod sample;

use std::fs::File;
use std::io;
use std::ops::Range;
use std::path::{Path, PathBuf};

use filemap_attach::program::{Program, launch_error};
use filemap_core::units::PageIndex;
use filemap_govern::{AdviceEnforcer, AdviceRule, EnforcementReport};
use filemap_kernel::engine::FaultAround;
use filemap_kernel::metered::MeteredRun;
use filemap_kernel::{Error as KernelError, cold_cache, metered, page_size, shutdown};

use crate::engine::{Engines, Progress};
use crate::error::Error;
pub use governed::GovernedFiles;
use governed::GovernedProgram;
pub use mapped_files::{named_files, watch_mapped_files};
pub use measure::{Measure, MeasureComparison, compare_samples};
pub use retained::keep_retained_pages;
pub use sample::{
    EXIT, OUTPUTS, Observable, RunSample, all_agree, differs_from_plain, exit_text, spread, values,
};

/// The default number of runs of each variant.
pub const DEFAULT_RUNS: u64 = 5;

/// Prefix of the lines that filemap writes to the stderr of a program.
const OWN_LINE_PREFIX: &[u8] = b"filemap: ";

/// How a variant of a program is run.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub enum Treatment {
    /// Unchanged.
    #[default]
    Plain,
    /// With enforced advice in place of its own, and with this fault-around size.
    Advised { rules: Vec<AdviceRule>, fault_around_bytes: Option<u64> },
    /// Under `filemap govern` with these flags.
    Governed { flags: Vec<String> },
}

/// One run of a variant.
pub struct TrialRun {
    pub sample: RunSample,
    /// Result of enforcing the advice.
    pub enforcement: EnforcementReport,
    /// The files that were governed; empty for other treatments.
    pub governed: GovernedFiles,
}

/// A program whose variants are run in turn.
pub struct Trial<'a, E> {
    pub engines: &'a E,
    pub program: &'a Program,
    /// Files that are dropped from the page cache before each run.
    pub files: Vec<PathBuf>,
    /// Pages of files that are read into the page cache after that.
    pub cached: Vec<(PathBuf, Vec<Range<PageIndex>>)>,
    /// Sentences for the report.
    pub notes: Vec<String>,
    /// The program under the governor, which remembers the files from run to run; made for the
    /// first such run.
    pub governed: Option<GovernedProgram>,
}

impl<E: Engines> Trial<'_, E> {
    /// Runs each of `treatments` `runs` times in rotation, so that side effects of a run favour
    /// none of them. Passes each run to `on_run` with the index of its treatment.
    ///
    /// # Errors
    /// The program cannot be run; errors of `on_run`.
    pub fn run_in_turn(
        &mut self,
        treatments: &[Treatment],
        runs: u64,
        progress: &dyn Progress,
        mut on_run: impl FnMut(usize, TrialRun) -> Result<(), Error>,
    ) -> Result<(), Error> {
        for index in rotation(treatments.len(), runs) {
            let run = self.run(&treatments[index])?;
            on_run(index, run)?;
            progress.advance();
        }
        Ok(())
    }

    /// Drops the files from the page cache, and runs the program once.
    ///
    /// # Errors
    /// It cannot be run, or a machine setting cannot be changed for it.
    pub fn run(&mut self, treatment: &Treatment) -> Result<TrialRun, Error> {
        let _fault_around = match treatment {
            Treatment::Advised { fault_around_bytes: Some(bytes), .. } => {
                let (journal, undoing) = self.engines.journal()?;
                Some((FaultAround::set(*bytes, &journal)?, undoing))
            }
            _ => None,
        };
        let files = self.files.iter().map(PathBuf::as_path);
        let cached_bytes = drop_all(files, &mut self.notes)?;
        for (path, ranges) in &self.cached {
            let read = File::open(path).and_then(|file| cold_cache::read_pages(&file, ranges));
            read.map_err(|error| {
                Error::CannotRun(format!("'{}' cannot be read: {error}", path.display()))
            })?;
        }
        let mut enforcement = EnforcementReport::default();
        let mut governed = GovernedFiles::default();
        let metered = match treatment {
            Treatment::Governed { flags } => {
                let program = match self.governed.take() {
                    Some(program) => program,
                    None => GovernedProgram::new(self.program, flags)?,
                };
                let program = self.governed.insert(program);
                let metered = program.run()?;
                governed = program.governed_files();
                metered
            }
            Treatment::Advised { rules, .. } if !rules.is_empty() => {
                let enforcer = AdviceEnforcer::start(rules)?;
                let metered = run_metered(self.program);
                enforcement = enforcer.finish();
                metered?
            }
            Treatment::Advised { .. } | Treatment::Plain => run_metered(self.program)?,
        };
        let dropped_bytes = enforcement.dropped_pages * page_size();
        let sample = RunSample::new(&metered, dropped_bytes, cached_bytes);
        Ok(TrialRun { sample, enforcement, governed })
    }
}

/// The order in which `variants` run: 0 1 2, 1 2 0, 2 0 1 and so on.
fn rotation(variants: usize, rounds: u64) -> impl Iterator<Item = usize> {
    (0..rounds).flat_map(move |round| {
        let first = (round % variants as u64) as usize;
        (0..variants).map(move |place| (first + place) % variants)
    })
}

/// Runs `program` once, without input, to its end.
///
/// # Errors
/// It cannot be run, or stops itself and nobody continues it.
fn run_metered(program: &Program) -> Result<MeteredRun, Error> {
    let metered = metered::run(&mut program.command(), OWN_LINE_PREFIX);
    let metered = metered.map_err(|error| match error.kind() {
        io::ErrorKind::TimedOut => Error::CannotRun(format!(
            "'{}' stopped itself and was killed; give a program that nobody has to continue",
            program.path.display()
        )),
        _ => launch_error(program, &error).into(),
    });
    // If the shutdown of this command killed the program, its exit status is meaningless.
    shutdown::wait_if_begun();
    metered
}

/// Drops the files at `paths` from the page cache, and returns how many of their bytes remain
/// cached. Files that cannot be dropped at all are added to `notes`, once.
///
/// # Errors
/// A signal ends this command.
fn drop_all<'a>(
    paths: impl Iterator<Item = &'a Path>,
    notes: &mut Vec<String>,
) -> Result<u64, Error> {
    let mut cached_bytes = 0;
    for path in paths {
        let opened = File::open(path).map_err(|error| error.to_string());
        let dropped = opened.map(|file| cold_cache::drop_open_file(&file, path));
        let reason = match dropped {
            Ok(Ok(())) => continue,
            Ok(Err(KernelError::StillCached { pages, .. })) => {
                cached_bytes += pages * page_size();
                continue;
            }
            Ok(Err(error @ KernelError::ShuttingDown)) => return Err(error.into()),
            Ok(Err(error)) => error.to_string(),
            Err(error) => error,
        };
        let note =
            format!("'{}' could not be dropped from the page cache: {reason}.", path.display());
        if !notes.contains(&note) {
            notes.push(note);
        }
    }
    Ok(cached_bytes)
}

#[cfg(test)]
mod tests {
    use super::rotation;

    #[test]
    fn variants_rotate() {
        assert_eq!(rotation(2, 3).collect::<Vec<_>>(), [0, 1, 1, 0, 0, 1]);
        assert_eq!(rotation(3, 4).collect::<Vec<_>>(), [0, 1, 2, 1, 2, 0, 2, 0, 1, 0, 1, 2]);
        assert_eq!(rotation(1, 2).collect::<Vec<_>>(), [0, 0]);
    }
}

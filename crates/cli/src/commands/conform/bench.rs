//! One job of either form in the model and under a trace of the running kernel.

use filemap_core::decision::Log;
use filemap_job::program::Program;
use filemap_job::{Job, Shown, ShownByFile, ShownLog};
use filemap_kernel::engine::Runnable;
use filemap_kernel::journal::Journal;
use filemap_kernel::probe::Process;
use filemap_kernel::trace::{Observer, Subject};
use filemap_model::extents::ExtentCache;
use filemap_model::{Profile, Timing, trace_program_on, trace_settled};
use filemap_report::conform::{self, Comparison, Difference, Finding};

use crate::error::Error;

/// How often a job is run again where the kernel found no memory for a large folio.
const REPEATS_WITHOUT_FOLIO: u64 = 3;

/// A job whose decisions can be compared.
pub trait Decided: Runnable<Process = Process> {
    /// Runs it in the model, where everything arrives before the next access.
    ///
    /// # Errors
    /// Those of the model.
    fn decide(&self, profile: &Profile, log: &mut ShownByFile) -> Result<(), Error>;

    /// How many files it has.
    fn files(&self) -> usize;
}

impl Decided for Job {
    fn decide(&self, profile: &Profile, log: &mut ShownByFile) -> Result<(), Error> {
        trace_settled(self, profile, log)?;
        Ok(())
    }

    fn files(&self) -> usize {
        1
    }
}

impl Decided for Program {
    fn decide(&self, profile: &Profile, log: &mut ShownByFile) -> Result<(), Error> {
        let cache = ExtentCache::new(self.machine.cache_limit);
        trace_program_on(self, profile, Timing::Settled, cache, log)?;
        Ok(())
    }

    fn files(&self) -> usize {
        self.files.len()
    }
}

/// What observes, and how often it was disturbed.
pub struct Bench {
    observer: Observer,
    pub disturbed: u64,
    /// Runs that were repeated since the kernel found no memory for a large folio.
    pub without_folio: u64,
}

impl Bench {
    /// A bench that writes down in `journal` what it changes.
    pub fn open(journal: &Journal) -> Result<Self, Error> {
        Ok(Bench { observer: Observer::open(journal)?, disturbed: 0, without_folio: 0 })
    }

    /// Runs `job` in the model and on the kernel, if that leaves it alone. What was found of each
    /// of its files.
    pub fn compare<W: Decided>(&mut self, job: &W) -> Result<Vec<Finding>, Error> {
        let subject = self.observer.subject(job)?;
        let mut profile = Profile::DEFAULT;
        profile.device.io_bytes = subject.io_bytes();
        let mut log = ShownByFile::new(job.files());
        job.decide(&profile, &mut log)?;
        let logs = log.into_logs();
        let accesses: Vec<Vec<u64>> = logs.iter().map(|log| log.accesses().to_vec()).collect();
        let model: Vec<Vec<Shown>> = logs.into_iter().map(ShownLog::into_lines).collect();
        let mut first = None;
        for _ in 0..=REPEATS_WITHOUT_FOLIO {
            let kernel = match self.observe(job, &subject, &model)? {
                Ok(logs) => logs,
                Err(reason) => return Ok(vec![Finding::NotCompared { reason }; job.files()]),
            };
            let of_files = model.iter().zip(&kernel).zip(&accesses);
            let found: Vec<Comparison> = of_files
                .map(|((model, kernel), accesses)| {
                    conform::compare(model, kernel).with_accesses(accesses)
                })
                .collect();
            // What the rules decide is decided alike again. What memory there is, is not.
            let firsts = |found: &[Comparison]| -> Vec<Option<Difference>> {
                found.iter().map(|found| found.first.clone()).collect()
            };
            let mut differences = found.iter().filter_map(|found| found.first.as_ref());
            let is_decided = !differences.any(Difference::is_for_want_of_a_large_folio)
                || first.as_ref().is_some_and(|before: &Vec<_>| *before == firsts(&found));
            if is_decided {
                return Ok(found.into_iter().map(Finding::Compared).collect());
            }
            self.without_folio += 1;
            first.get_or_insert_with(|| firsts(&found));
        }
        let runs = REPEATS_WITHOUT_FOLIO + 1;
        let reason = format!(
            "the kernel found no memory for a large folio in {runs} runs, each time elsewhere; end \
             other programs, or write 1 to /proc/sys/vm/compact_memory"
        );
        Ok(vec![Finding::NotCompared { reason }; job.files()])
    }

    /// What the kernel decides about each file; or why that is not to be had.
    fn observe<W: Decided>(
        &mut self,
        job: &W,
        subject: &Subject,
        model: &[Vec<Shown>],
    ) -> Result<Result<Vec<Vec<Shown>>, String>, Error> {
        let expected = model.iter().flatten().map(Shown::events).sum();
        match self.observer.observe_settled(job, subject, expected) {
            Ok(observed) => {
                self.disturbed += u64::from(observed.repeated);
                let mut log = ShownByFile::new(job.files());
                observed.decisions.iter().for_each(|decision| log.record(*decision));
                Ok(Ok(log.into_logs().into_iter().map(ShownLog::into_lines).collect()))
            }
            Err(filemap_kernel::Error::Disturbed { runs, .. }) => {
                self.disturbed += u64::from(runs);
                Ok(Err(format!("somebody else added or took pages of its files in {runs} runs")))
            }
            Err(error) => Err(error.into()),
        }
    }
}

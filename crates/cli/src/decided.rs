//! Jobs whose decisions a kernel shows under a trace: the running one, or one that is booted.

use filemap_core::fault::lock;
use filemap_job::program::{Program, ProgramStep};
use filemap_job::{Job, Seen, Shown, ShownByFile, ShownLog};
use filemap_kernel::engine::{Asked, Boot, Bootable};
use filemap_kernel::image::IO_BYTES;
use filemap_kernel::probe::Process;
use filemap_kernel::trace::{Observed, Observer};
use filemap_model::extents::ExtentCache;
use filemap_model::{Profile, Timing, trace_program_on, trace_settled};

use crate::error::Error;
use crate::{interrupt, progress};

/// A job whose decisions can be compared.
pub trait Decided: Bootable<Process = Process> {
    /// Runs it in the model, where everything arrives before the next access.
    ///
    /// # Errors
    /// Those of the model.
    fn decide(&self, profile: &Profile, log: &mut ShownByFile) -> Result<(), Error>;

    /// How many files it has.
    fn files(&self) -> usize;

    /// How many base pages its reads are long together.
    fn read_pages(&self) -> u64;

    /// Logs of its files that keep what is `seen`.
    fn shown(&self, seen: Seen) -> ShownByFile {
        let log = ShownLog::seeing(seen).beginning_with(lock::of_access(self.rules()));
        ShownByFile::new(self.files(), log)
    }

    /// What the model decides of each of its files, as far as it is `seen`, where the largest
    /// request of the device is `io_bytes`.
    ///
    /// # Errors
    /// Those of the model.
    fn decided(&self, io_bytes: u64, seen: Seen) -> Result<Vec<ShownLog>, Error> {
        let mut profile = Profile::DEFAULT;
        profile.device.io_bytes = io_bytes;
        let mut log = self.shown(seen);
        self.decide(&profile, &mut log)?;
        Ok(log.into_logs())
    }

    /// About how many events a trace of it has.
    ///
    /// # Errors
    /// Those of the model.
    fn expected_events(&self, io_bytes: u64) -> Result<u64, Error> {
        let logs = self.decided(io_bytes, Seen::ALL)?;
        let events = |log: ShownLog| log.into_lines().iter().map(Shown::events).sum::<u64>();
        let shown: u64 = logs.into_iter().map(events).sum();
        // A read looks its pages up in batches, which a trace has and no log.
        Ok(shown.saturating_add(self.read_pages()))
    }

    /// Runs it as it comes on its kernel, under a trace: on the running one, or on the one that is
    /// booted for it.
    ///
    /// # Errors
    /// A kernel that cannot be watched, or that cannot run it.
    fn observe(&self) -> Result<Observed, Error> {
        if self.image().is_some() {
            let expected = self.expected_events(IO_BYTES)?;
            let asked = Asked { settled: false, expected, may_lack_switches: false };
            let mut observed = None;
            Boot::telling(progress::tell).observe_each(&[(self, asked)], |_, recording| {
                observed = Some(recording.and_then(|recording| recording.of_job(self)));
                Ok::<_, Error>(true)
            })?;
            return Ok(observed.expect("each job is told of")?);
        }
        let (journal, _undoing) = interrupt::journal()?;
        let mut observer = Observer::open(&journal)?;
        let subject = observer.subject(self)?;
        let expected = self.expected_events(subject.io_bytes())?;
        Ok(observer.observe(self, &subject, expected)?)
    }
}

impl Decided for Job {
    fn decide(&self, profile: &Profile, log: &mut ShownByFile) -> Result<(), Error> {
        trace_settled(self, profile, log)?;
        Ok(())
    }

    fn files(&self) -> usize {
        1
    }

    fn read_pages(&self) -> u64 {
        let reads = self.phases.iter().filter(|phase| phase.is_read());
        let pages = reads.map(|phase| {
            phase.accesses.saturating_mul(phase.bs_bytes.div_ceil(self.page_size()).max(1))
        });
        pages.fold(0, u64::saturating_add)
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

    fn read_pages(&self) -> u64 {
        let page_size = self.machine.arch.page_size;
        let pages = self.steps().map(|step| match step {
            ProgramStep::Read { accesses, .. } => {
                let pages = accesses.bs_bytes.div_ceil(page_size).max(1);
                accesses.accesses.saturating_mul(pages)
            }
            _ => 0,
        });
        pages.fold(0, u64::saturating_add)
    }
}

//! One run of a job of one file: the accesses in a child, and what the kernel says of them.

use std::ops::Range;
use std::path::PathBuf;

use filemap_core::units::PageIndex;
use filemap_job::{Cached, Counters, Job, Run};

use super::file_counts::{Dropped, FileCounts};
use super::needs::Needs;
use super::stage::{Measured, Ran, Stage};
use super::{Prepared, Runnable, phases, program};
use crate::Error;
use crate::probe::{Process, killed_by};
use crate::residency::{CacheStat, PageSet, resident_pages};

impl Runnable for Job {
    type Process = Process;

    fn needs(&self) -> Needs {
        Needs::from(self)
    }

    fn process(&self, paths: &[PathBuf]) -> Result<Process, Error> {
        Ok(program::process(&self.program(), paths))
    }

    fn named(&self, error: Error) -> Error {
        match error {
            // All that a job accesses was in its file.
            Error::Bus { .. } => killed_by(libc::SIGBUS),
            error => error,
        }
    }

    fn measure(&self, process: &Process, stage: &Stage) -> Result<Measured<Run>, Error> {
        let ran = stage.run(process).map_err(|error| self.named(error))?;
        let file = &stage.files.files[0];
        let cached = Cached::of(self, |pages: Range<PageIndex>| {
            CacheStat::of(&file.file, pages.start.0..pages.end.0).map(|stat| stat.cached)
        });
        // Last: where nothing had left by then, nothing had when its parts were counted.
        let stat = stage.stats()?[0];
        let cached = cached.unwrap_or_default();
        // `cachestat` can pass over pages that the kernel moves to another folio meanwhile.
        let is_miscounted =
            cached.pages().zip(stat).is_some_and(|(pages, stat)| pages != stat.cached);
        let Ran { ended, vmstat, major_events, flushes, traced: _ } = ran;
        let steps = &ended.threads[0].steps;
        let seen = FileCounts::new(ended.read_bytes, stat, file.whole, Dropped::Nothing);
        let own_major_faults = steps.iter().map(|step| step.major).sum();
        let major_faults = major_events.unwrap_or(own_major_faults).max(own_major_faults);
        let run = Run {
            seed: self.seed,
            elapsed_ns: Some(steps.iter().map(|step| step.elapsed_ns).sum()),
            counters: Counters {
                accesses: Some(self.phases.iter().map(|phase| phase.accesses).sum()),
                data_pages_read: seen.pages_added(),
                bytes_read: seen.read_bytes,
                major_faults: Some(major_faults),
                minor_faults: Some(steps.iter().map(|step| step.minor).sum()),
                evicted_pages: seen.pages_evicted(),
                ..Counters::default()
            },
            phases: phases::runs(self, steps, file.whole, major_faults),
            // Null before Linux 6.5.
            cached,
            waits: Vec::new(),
            vmstat: vmstat.map(crate::procstat::VmStat::into_map),
        };
        Ok(Measured {
            run,
            is_disturbed: stage.fits && (seen.is_disturbed() || is_miscounted),
            flushes,
        })
    }
}

impl Prepared<Job> {
    /// Pages of the file in the page cache now, as the last run left it.
    ///
    /// # Errors
    /// When the kernel does not tell.
    pub fn resident(&self) -> Result<PageSet, Error> {
        resident_pages(&self.stage.files.files[0].file, self.work.file_pages().0)
    }
}

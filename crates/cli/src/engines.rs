//! The real engines, and the terminal of the command.

use filemap_job::{Engine, Job};
use filemap_kernel::engine::{BootedKernels, HostKernel, PreparedJob};
use filemap_kernel::journal::Journal;
use filemap_model::{ModelEngine, Profile};
use filemap_study::engine::{Engines, Progress, Undoing};

use crate::error::Error;
use crate::{interrupt, progress};

/// The model, the running kernel, and kernels booted by QEMU.
#[derive(Clone, Copy, Debug)]
pub struct RealEngines;

impl Engines for RealEngines {
    type Model = ModelEngine;
    type Host = RestoringHost;
    type Boot = BootedKernels;

    fn model(&self, profile: Profile) -> ModelEngine {
        ModelEngine { profile }
    }

    fn host(&self, apply: bool) -> Result<RestoringHost, Error> {
        let (journal, undoing) = self.journal()?;
        Ok(RestoringHost {
            kernel: HostKernel::new(journal)?.with_setting_changes(apply),
            _undoing: undoing,
        })
    }

    fn boot(&self) -> BootedKernels {
        BootedKernels::with_notify(progress::print_line)
    }

    fn progress(&self, total: Option<u64>) -> Box<dyn Progress> {
        Box::new(progress::Bar::new(total))
    }

    fn message_sink(&self) -> fn(&str) {
        progress::print_line
    }

    fn journal(&self) -> Result<(Journal, Undoing), Error> {
        let (journal, undoing) = interrupt::journal()?;
        Ok((journal, Box::new(undoing)))
    }
}

/// The running kernel. While it lives, signals undo the changes of its jobs.
pub struct RestoringHost {
    kernel: HostKernel,
    _undoing: Undoing,
}

impl Engine for RestoringHost {
    type Error = filemap_kernel::Error;
    type Ready = PreparedJob;

    fn prepare_all(&self, jobs: &[&Job]) -> Result<Vec<PreparedJob>, filemap_kernel::Error> {
        self.kernel.prepare_all(jobs)
    }
}

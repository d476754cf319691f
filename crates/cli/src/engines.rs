//! The real engines, and the terminal of the command.

use filemap_job::{Engine, Job};
use filemap_kernel::engine::{Boot, HostKernel, PreparedJob};
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
    type Host = Host;
    type Boot = Boot;

    fn model(&self, profile: Profile) -> ModelEngine {
        ModelEngine { profile }
    }

    fn host(&self, apply: bool) -> Result<Host, Error> {
        let (journal, undoing) = self.journal()?;
        Ok(Host {
            kernel: HostKernel::new(journal)?.with_setting_changes(apply),
            _undoing: undoing,
        })
    }

    fn boot(&self) -> Boot {
        Boot::with_notify(progress::tell)
    }

    fn progress(&self, total: Option<u64>) -> Box<dyn Progress> {
        Box::new(progress::Bar::of(total))
    }

    fn message_sink(&self) -> fn(&str) {
        progress::tell
    }

    fn journal(&self) -> Result<(Journal, Undoing), Error> {
        let (journal, undoing) = interrupt::journal()?;
        Ok((journal, Box::new(undoing)))
    }
}

/// The running kernel. While it lives, signals undo the changes of its jobs.
pub struct Host {
    kernel: HostKernel,
    _undoing: Undoing,
}

impl Engine for Host {
    type Error = filemap_kernel::Error;
    type Ready = PreparedJob;

    fn prepare_all(&self, jobs: &[&Job]) -> Result<Vec<PreparedJob>, filemap_kernel::Error> {
        self.kernel.prepare_all(jobs)
    }
}

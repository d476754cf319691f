//! What calls cost that take `mmap_lock` to write.

use filemap_job::Run;
use filemap_job::program::Job;

use crate::Error;
use crate::engine::{HostKernel, PreparedJob};

/// A program of eight phases, ready to run: the second to the seventh make calls on a mapping
/// without entries and on one with all of them.
#[derive(Debug)]
pub struct CallBench {
    prepared: PreparedJob,
    rounds: f64,
    pages: f64,
}

/// Nanoseconds for one of each, the mean of the rounds of a run.
#[derive(Clone, Copy, Debug)]
#[allow(missing_docs, reason = "their names say it")]
pub struct CallSample {
    pub call: f64,
    /// An entry that munmap takes away.
    pub entry: f64,
    /// An entry that mprotect changes.
    pub protect: f64,
    /// A fork, and the end of the child.
    pub fork: f64,
}

impl CallBench {
    /// Of `program`, whose thread does its phases so often.
    ///
    /// # Errors
    /// A program that cannot be run here.
    pub fn prepare(kernel: &HostKernel, program: &Job, rounds: f64) -> Result<CallBench, Error> {
        let pages = program.mappings[0].mapping.pages.0 as f64;
        Ok(CallBench { prepared: kernel.prepare(program)?, rounds, pages })
    }

    /// Runs it once more.
    ///
    /// # Errors
    /// When it cannot be run.
    pub fn sample(&mut self) -> Result<CallSample, Error> {
        let run: Run = self.prepared.run()?;
        let ns = |phase: usize| run.phases[phase].elapsed_ns.unwrap_or(0) as f64 / self.rounds;
        let call = ns(2).midpoint(ns(3));
        let each = |ns: f64| ((ns - call) / self.pages).max(0.0);
        let (entry, protect) = (each(ns(7)), each(ns(4).midpoint(ns(5))));
        Ok(CallSample { call, entry, protect, fork: ns(6) })
    }
}

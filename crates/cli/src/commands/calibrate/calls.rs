//! What calls cost that take `mmap_lock` to write.

use filemap_job::Run;
use filemap_kernel::engine::{Kernel, Prepared};
use filemap_model::profile;
use filemap_study::calibrate::Cost;

use super::{cost, median};
use crate::error::Error;

/// What is measured.
const PROGRAM: &str = include_str!("calls.toml");

/// The program, ready to run.
pub(super) struct Calls {
    prepared: Prepared,
    rounds: f64,
    pages: f64,
    samples: Vec<Sample>,
}

/// Nanoseconds for one of each, the mean of the rounds of a run.
#[derive(Clone, Copy, Debug)]
struct Sample {
    call: f64,
    entry: f64,
    protect: f64,
    fork: f64,
}

impl Calls {
    pub(super) fn prepare(kernel: &Kernel) -> Result<Calls, Error> {
        let (program, rounds) = super::repeated(PROGRAM, None)?;
        let pages = program.mappings[0].mapping.pages.0 as f64;
        Ok(Calls { prepared: kernel.prepare(&program)?, rounds, pages, samples: Vec::new() })
    }

    /// Runs it once more.
    pub(super) fn run(&mut self) -> Result<(), Error> {
        let run = self.prepared.run()?;
        self.samples.push(self.of(&run));
        Ok(())
    }

    fn of(&self, run: &Run) -> Sample {
        let ns = |phase: usize| run.phases[phase].elapsed_ns.unwrap_or(0) as f64 / self.rounds;
        let call = ns(2).midpoint(ns(3));
        let each = |ns: f64| ((ns - call) / self.pages).max(0.0);
        Sample { call, entry: each(ns(7)), protect: each(ns(4).midpoint(ns(5))), fork: ns(6) }
    }

    /// `cost` with what the medians say. A fork takes the lock for half of the time that it and
    /// the end of its child take together.
    pub(super) fn cost(&self, cost: profile::Cost) -> profile::Cost {
        let whole = |of: fn(&Sample) -> f64| median(&self.samples, of).round() as u64;
        profile::Cost {
            call_ns: whole(|s| s.call),
            entry_ns: whole(|s| s.entry),
            protect_page_ns: Some(whole(|s| s.protect)),
            fork_ns: whole(|s| s.fork / 2.0),
            ..cost
        }
    }

    /// What the report shows of them.
    pub(super) fn costs(&self) -> Vec<Cost> {
        vec![
            cost(&self.samples, "mprotect of a mapping without entries", |s| s.call),
            cost(&self.samples, "each entry that munmap takes away", |s| s.entry),
            cost(&self.samples, "each entry that mprotect changes", |s| s.protect),
            cost(&self.samples, "fork, and the end of the child", |s| s.fork),
        ]
    }
}

//! What it costs to wake a thread, on the CPU of the one that wakes it and on another one.

use filemap_kernel::engine::{Kernel, Prepared};
use filemap_model::profile;
use filemap_study::calibrate::Cost;

use super::{cost, median};
use crate::error::Error;

/// What is measured.
const PROGRAM: &str = include_str!("wakes.toml");

/// The program on one CPU and on all of them, ready to run.
pub(super) struct Wakes {
    on_one: Prepared,
    on_all: Prepared,
    rounds: f64,
    samples: Vec<Sample>,
}

/// Nanoseconds from a wake-up to the next, the mean of a run.
#[derive(Clone, Copy, Debug)]
struct Sample {
    on_one: f64,
    on_all: f64,
}

impl Wakes {
    pub(super) fn prepare(kernel: &Kernel) -> Result<Wakes, Error> {
        let (on_one, rounds) = super::repeated(PROGRAM, Some(1))?;
        let (on_all, _) = super::repeated(PROGRAM, None)?;
        let (on_one, on_all) = (kernel.prepare(&on_one)?, kernel.prepare(&on_all)?);
        Ok(Wakes { on_one, on_all, rounds, samples: Vec::new() })
    }

    /// Runs both once more.
    pub(super) fn run(&mut self) -> Result<(), Error> {
        let rounds = self.rounds;
        let wake_ns = |prepared: &mut Prepared| -> Result<f64, Error> {
            Ok(prepared.run()?.elapsed_ns.unwrap_or(0) as f64 / rounds)
        };
        let (on_one, on_all) = (wake_ns(&mut self.on_one)?, wake_ns(&mut self.on_all)?);
        self.samples.push(Sample { on_one, on_all });
        Ok(())
    }

    /// `cost` with what the medians say: what the one that wakes does for it is part of both.
    pub(super) fn cost(&self, cost: profile::Cost) -> profile::Cost {
        let whole = |of: fn(&Sample) -> f64| median(&self.samples, of).round() as u64;
        profile::Cost {
            wake_ns: 0,
            switch_ns: whole(|s| s.on_one),
            wake_latency_ns: whole(|s| s.on_all),
            ..cost
        }
    }

    /// What the report shows of them.
    pub(super) fn costs(&self) -> Vec<Cost> {
        vec![
            cost(&self.samples, "thread woken on the same CPU", |s| s.on_one),
            cost(&self.samples, "thread woken on any CPU", |s| s.on_all),
        ]
    }
}

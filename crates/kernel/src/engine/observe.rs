//! Runs programs under a trace of a booted kernel.

use std::fs::File;
use std::io::Read;
use std::path::Path;

use filemap_job::program::Job;
use filemap_job::{Engine, ReadyJob};
use serde_json::{Value, json};

use super::boot::{BootedJob, BootedKernels};
use super::needs::JobNeeds;
use crate::Error;
use crate::journal::Journal;
use crate::trace::{Observer, Recording};

/// RAM per trace event in bytes: twice its size in the buffer, plus its packed form.
const RAM_PER_EVENT: u64 = 320;

/// Base RAM for tracing.
const TRACING_RAM_BYTES: u64 = 64 << 20;

/// Time per event on a slow machine, in microseconds, to record, print and read it.
const SLOW_EVENT_US: u64 = 500;

/// How a program is observed on a booted kernel.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct ObserveOptions {
    /// Whether each access waits until no page is being read.
    pub settled: bool,
    /// Approximate number of events.
    pub expected_events: u64,
    /// Whether to assume that a kernel without a switch for a series is built with the series.
    pub may_lack_switches: bool,
}

impl ObserveOptions {
    /// Encodes the options for the guest, with the memory and time that tracing takes there.
    fn to_json(self) -> Value {
        let ObserveOptions { settled, expected_events: expected, may_lack_switches } = self;
        json!({
            "settled": settled,
            "expected": expected,
            "may_lack_switches": may_lack_switches,
            "ram_bytes": expected.saturating_mul(RAM_PER_EVENT).saturating_add(TRACING_RAM_BYTES),
            "seconds": expected.saturating_mul(SLOW_EVENT_US) / 1_000_000,
        })
    }

    /// Parses what [`Self::to_json`] wrote.
    pub(super) fn from_json(sent: &Value) -> Option<Self> {
        Some(ObserveOptions {
            settled: sent["settled"].as_bool()?,
            expected_events: sent["expected"].as_u64()?,
            may_lack_switches: sent["may_lack_switches"].as_bool()?,
        })
    }
}

/// Runs a program under a trace of the running kernel, with its files in `directory`.
pub(super) fn record(
    program: &Job,
    journal: &Journal,
    directory: &Path,
    options: ObserveOptions,
) -> Result<Recording, Error> {
    let mut observer = Observer::in_directory(journal, directory)?;
    let subject = observer
        .create_files(program)
        .map_err(|error| JobNeeds::from(program).with_remedy(error))?;
    if options.settled {
        observer.record_settled_run(program, &subject, options.expected_events)
    } else {
        observer.record_run(program, &subject, options.expected_events)
    }
}

impl BootedKernels {
    /// Runs `programs`, each under a trace of its kernel. Calls `each` with the index of a program
    /// and its recording, until it returns false.
    ///
    /// # Errors
    /// Errors of `each`, which also receives those of the programs.
    pub fn observe_each<E: From<Error>>(
        &self,
        programs: &[(&Job, ObserveOptions)],
        mut each: impl FnMut(usize, Result<Recording, Error>) -> Result<bool, E>,
    ) -> Result<(), E> {
        let ready = |(program, options): &(&Job, ObserveOptions)| {
            let ready = self.clone().with_observation(options.to_json()).prepare_all(&[*program]);
            ready.map(|mut ready| ready.pop().expect("one program is made ready"))
        };
        // All are prepared first, so that the jobs of one machine share its boot.
        let ready: Vec<Result<BootedJob, Error>> = programs.iter().map(ready).collect();
        let mut ready: Vec<_> = ready.into_iter().enumerate().collect();
        // In order of machines, so that answers are taken soon after they arrive.
        ready.sort_by_key(|(_, booted)| booted.as_ref().map_or(0, ReadyJob::batch));
        for (number, booted) in ready {
            if !each(number, booted.and_then(take_recording))? {
                break;
            }
        }
        Ok(())
    }
}

/// Runs a prepared program, and returns its recording.
fn take_recording(mut booted: BootedJob) -> Result<Recording, Error> {
    let seed = booted.seed();
    booted.take_turn(seed)?;
    let mut bytes = Vec::new();
    if let Some(mut log) = booted.take_log() {
        let read: std::io::Result<usize> = File::read_to_end(&mut log, &mut bytes);
        read.map_err(|error| Error::call("read what a guest has observed", error))?;
    }
    let mut recording = Recording::decode(&bytes)?;
    recording.warnings = booted.take_incidents();
    Ok(recording)
}

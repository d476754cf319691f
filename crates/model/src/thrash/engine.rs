//! The workload `thrash` as a job of the model.

use filemap_core::decision::{Decision, Log};
use filemap_core::units::{FileId, PageCount};
use filemap_job::bounds::MAX_MODEL_BYTES;
use filemap_job::thrash::{Ended, Thrash as Job, ThrashRun, Tries, Until as JobUntil, Wait};
use filemap_job::{Counters, Run};

use super::costs::Costs;
use super::ending::Ending;
use super::job::{ROUNDS_WITHIN_NS, Thrash, Until};
use super::machine;
use super::mechanisms::Mechanisms;
use super::outcome::{Counts, Outcome};
use super::waits::Cause;
use crate::engine::Modelled;
use crate::flushes::Flushes;
use crate::profile::Profile;
use crate::{Error, setup};

/// About so many bytes does the model take for a page of the files.
const BYTES_OF_PAGE: u64 = 10;

impl Modelled for Job {
    fn check(&self) -> Result<(), Error> {
        let pages = u128::from(self.threads) * u128::from(self.file_pages.0);
        let bytes = pages * u128::from(BYTES_OF_PAGE);
        if bytes > MAX_MODEL_BYTES.into() {
            return Err(Error::LargeThrash {
                needed_gib: (bytes >> 30) as u64,
                most_gib: MAX_MODEL_BYTES >> 30,
            });
        }
        Ok(())
    }

    /// Its flushes are always those of its own time: no kernel notes them for a thrash.
    fn run_once(&self, profile: &Profile, _: Flushes) -> Result<Run, Error> {
        trace_thrash(self, profile, &mut ())
    }
}

/// Runs `job` once, sending its decisions to `log`.
///
/// # Errors
/// For a deadlock.
pub fn trace_thrash(job: &Job, profile: &Profile, log: &mut impl Log) -> Result<Run, Error> {
    let mut log = Counting { log, file: FileId::FIRST, tries: Tries::default() };
    let outcome = machine::run(&Thrash::of(job, profile), &mut log)?;
    Ok(run(job, &outcome, &log.tries))
}

impl Thrash {
    /// What the model runs for `job` on a machine with `profile`.
    pub fn of(job: &Job, profile: &Profile) -> Thrash {
        let machine = &job.machine;
        let pages =
            |bytes: Option<u64>| bytes.map(|bytes| PageCount(bytes / machine.arch.page_size));
        let limits = setup::limits(job.rules, machine, job.file_pages, profile);
        Thrash {
            rules: job.rules,
            arch: machine.arch,
            threads: job.threads as usize,
            cpus: job.model_cpus() as usize,
            file_pages: job.file_pages,
            sparse: job.sparse,
            read_ahead: machine.read_ahead,
            fault_around: machine.fault_around,
            max_folio: limits.max_folio,
            high: pages(machine.memory_high_bytes),
            max: pages(machine.memory_max_bytes),
            writers: job.writers as usize,
            one_vma: false,
            noise_threads: job.noise_threads as usize,
            until: match job.until {
                JobUntil::Elapsed(ns) => Until::Elapsed(job.warm_up_ns + ns),
                JobUntil::Rounds(rounds) => Until::Rounds(rounds),
            },
            warm_up_ns: job.warm_up_ns,
            stagger_ns: job.stagger_ns,
            seed: job.seed,
            mechanisms: Mechanisms::ALL,
            costs: Costs::SERVER,
            device: setup::device(job.sparse, profile),
        }
    }
}

/// Counts tries on the way to another log.
struct Counting<'a, L> {
    log: &'a mut L,
    file: FileId,
    tries: Tries,
}

impl<L: Log> Log for Counting<'_, L> {
    const IS_KEPT: bool = L::IS_KEPT;

    fn record(&mut self, decision: Decision) {
        if let Decision::Lookup { index, .. } = decision {
            self.tries.looks_up(self.file.number(), index);
        }
        self.log.record(decision);
    }

    fn about(&mut self, file: FileId) {
        self.file = file;
        self.log.about(file);
    }

    fn access(&mut self, number: u64) {
        self.log.access(number);
    }
}

fn run(job: &Job, outcome: &Outcome, tries: &Tries) -> Run {
    let (ended, reason) = ended(job, outcome);
    if !outcome.has_warmed_up {
        let thrash = Some(ThrashRun::unmeasured(ended, reason));
        return Run { seed: job.seed, thrash, ..Run::default() };
    }
    let counters = counters(job, &outcome.counts);
    let elapsed_ns = Some(outcome.elapsed_ns);
    let waits = Cause::ALL.into_iter();
    let waits = waits.filter_map(|cause| Wait::of(cause.name(), outcome.waits.of(cause)));
    let rates = ThrashRun::of(&counters, elapsed_ns).with_tries(tries);
    let thrash = ThrashRun {
        waits: waits.collect(),
        course: outcome.waits.course(outcome.ended_ns),
        ..rates.ended(ended, reason)
    };
    Run { seed: job.seed, elapsed_ns, counters, thrash: Some(thrash), ..Run::default() }
}

/// How a run ended, and why if that was before its time.
fn ended(job: &Job, outcome: &Outcome) -> (Ended, Option<String>) {
    let ended = match &outcome.ending {
        Ending::NoProgress { .. } => Ended::NoProgress,
        Ending::OutOfMemory { .. } => Ended::OutOfMemory,
        Ending::Complete => {
            return match job.until {
                // The count of rounds says how far it came.
                JobUntil::Rounds(_)
                    if outcome.elapsed_ns >= ROUNDS_WITHIN_NS.saturating_sub(job.warm_up_ns) =>
                {
                    let hours = ROUNDS_WITHIN_NS / 3_600_000_000_000;
                    let reason = format!(
                        "no progress: after {hours} h the rounds are not complete; give fewer \
                         --rounds, or a --duration"
                    );
                    (Ended::NoProgress, Some(reason))
                }
                _ => (Ended::Complete, None),
            };
        }
    };
    (ended, Some(outcome.ending.to_string()))
}

fn counters(job: &Job, counts: &Counts) -> Counters {
    // Holes are filled without the device.
    let bytes_read = if job.sparse { 0 } else { counts.pages_read * job.page_size() };
    Counters {
        data_pages_read: Some(counts.pages_read),
        bytes_read: Some(bytes_read),
        major_faults: Some(counts.major_faults),
        minor_faults: Some(counts.faults.saturating_sub(counts.major_faults)),
        readahead_calls: Some(counts.windows),
        evicted_pages: Some(counts.evicted_pages),
        retry_mmap_drop: Some(counts.faults_dropped),
        retry_io_miss: Some(counts.retry_misses),
        rounds: Some(counts.rounds),
        retry_arrival: Some(counts.lock_drops),
        retry_io_miss_tried: Some(counts.misses_under_lock),
        vma_lock_refused: Some(counts.refused),
        windows_cut: Some(counts.windows_cut),
        throttled: Some(counts.throttled),
        ..Counters::default()
    }
}

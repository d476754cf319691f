//! The workload `thrash` on the running kernel: its process for a time, and what the kernel says of
//! it meanwhile.

use std::fs;
use std::path::{Path, PathBuf};
use std::time::{Duration, Instant};

use filemap_core::units::PageCount;
use filemap_job::thrash::{Ended, Thrash, ThrashRun, Until, Wait};
use filemap_job::{Counters, File, Run, format_size};
use rustix::process::{Resource, getrlimit};

use super::Runnable;
use super::needs::{Needed, Needs};
use super::stage::{Measured, Stage};
use super::tracer::Tracer;
use crate::cgroup::{self, MemoryCgroup};
use crate::contents::Contents;
use crate::probe::{self, Progress, Thrashing};
use crate::procstat::{VmStat, process_faults, read_bytes};
use crate::trace::TracedWaits;
use crate::{Error, page_size};

/// Where a patched kernel counts unless the job says otherwise.
const COUNTERS: &str = "/proc/vmstat";

/// What a patched kernel counts, as far as records know it.
const RETRY_COUNTERS: [&str; 4] =
    ["retry_mmap_drop", "retry_io_miss", "retry_arrival", "retry_io_miss_tried"];

/// How often it is looked at what the threads have done: what is known of a run that the kernel
/// ends.
const LOOK_EVERY: Duration = Duration::from_millis(500);

/// A run in which no thread reads a page for so long makes no progress.
const STUCK_AFTER: Duration = Duration::from_secs(60);

/// Address space of a process: 128 TiB.
const ADDRESS_BYTES: u64 = 1 << 47;

impl Runnable for Thrash {
    type Process = probe::Thrash;

    fn check(&self) -> Result<(), Error> {
        let (high, max) = (self.machine.memory_high_bytes, self.machine.memory_max_bytes);
        if high.or(max).is_some() {
            cgroup::check(cgroup::CgroupLimits { high_bytes: high, max_bytes: max })?;
        }
        check_counters(self)?;
        check_threads(self)
    }

    fn needs(&self) -> Needs {
        let size_bytes = self.file_pages.bytes(self.page_size());
        let file = File { size_bytes, path: None, sparse: self.sparse, cold: false };
        let contents = Contents::of_file(&file);
        let needed = Needed { name: None, file, contents, called: Vec::new() };
        Needs {
            rules: self.rules,
            machine: self.machine.clone(),
            files: vec![needed; self.threads as usize],
            anonymous: PageCount(0),
            accesses: 0,
            longest_read_bytes: 0,
            cpus: self.cpus,
        }
    }

    fn process(&self, paths: &[PathBuf]) -> Result<probe::Thrash, Error> {
        Ok(probe::Thrash {
            files: paths.to_vec(),
            pages: self.file_pages,
            writers: self.writers,
            noise: self.noise_threads,
            cpus: self.cpus,
            stagger: Duration::from_nanos(self.stagger_ns),
        })
    }

    fn named(&self, error: Error) -> Error {
        error
    }

    fn measure(&self, process: &probe::Thrash, stage: &Stage) -> Result<Measured<Run>, Error> {
        let mut thrashing = Thrashing::start(process)?;
        let cgroup = stage.enter(&[thrashing.pid()])?;
        let tracer = Tracer::of(stage, &[thrashing.pid()])?;
        let trace = tracer.as_ref();
        let watched = Watched { job: self, cgroup: cgroup.as_ref(), trace };
        let vmstat = VmStat::now().ok();
        let seen = watched.run(&mut thrashing);
        // The threads are gone before it is read what they did, and before their cgroup goes.
        drop(thrashing);
        let seen = seen?;
        let vmstat = VmStat::now().ok().zip(vmstat).map(|(after, before)| after.since(&before));
        let traced = trace.map(Tracer::read).transpose()?;
        let run = run(self, &seen, traced.as_ref(), vmstat);
        Ok(Measured { run, is_disturbed: false, flushes: None })
    }
}

/// A job that runs, and who watches it.
struct Watched<'a> {
    job: &'a Thrash,
    cgroup: Option<&'a MemoryCgroup>,
    trace: Option<&'a Tracer>,
}

/// What was seen of a run behind its warm-up.
struct Seen {
    elapsed: Duration,
    before: Snapshot,
    after: Snapshot,
    ended: Ended,
    reason: Option<String>,
    /// It ended before its warm-up was over: nothing was seen.
    in_warm_up: bool,
}

impl Watched<'_> {
    /// Lets the threads run, and says what they did behind the warm-up.
    fn run(&self, thrashing: &mut Thrashing) -> Result<Seen, Error> {
        thrashing.begin();
        let nothing = self.snapshot(thrashing)?;
        let mut seen = Seen {
            elapsed: Duration::ZERO,
            before: nothing.clone(),
            after: nothing,
            ended: Ended::Complete,
            reason: None,
            in_warm_up: false,
        };
        let warm_up = Duration::from_nanos(self.job.warm_up_ns);
        if warm_up > Duration::ZERO {
            let came_about = self.until(thrashing, &mut seen, End::At(warm_up))?;
            let rounds = seen.after.progress.all_rounds();
            if !came_about || matches!(self.job.until, Until::Rounds(most) if rounds >= most) {
                seen.in_warm_up = true;
                return Ok(seen);
            }
        }
        seen.before = seen.after.clone();
        if let Some(trace) = self.trace {
            trace.start()?;
        }
        let end = match self.job.until {
            Until::Elapsed(ns) => End::At(Duration::from_nanos(ns)),
            Until::Rounds(rounds) => End::AfterRounds(rounds),
        };
        self.until(thrashing, &mut seen, end)?;
        if let Some(trace) = self.trace {
            trace.stop()?;
        }
        Ok(seen)
    }

    /// Waits until `end`. Returns whether that came about; `seen` says why if not.
    fn until(&self, thrashing: &mut Thrashing, seen: &mut Seen, end: End) -> Result<bool, Error> {
        let start = Instant::now();
        let mut moved = (seen.after.progress.pages, start);
        loop {
            let ran = thrashing.run_for(end.slice(start.elapsed()));
            seen.elapsed = start.elapsed();
            if let Err(error) = ran {
                seen.after.progress = thrashing.progress()?;
                return self.killed(seen, error).map(|()| false);
            }
            seen.after = self.snapshot(thrashing)?;
            if end.is_reached(&seen.after.progress, seen.elapsed) {
                return Ok(true);
            }
            if seen.after.progress.pages != moved.0 {
                moved = (seen.after.progress.pages, Instant::now());
            }
            if moved.1.elapsed() > STUCK_AFTER && matches!(self.job.until, Until::Rounds(_)) {
                seen.ended = Ended::NoProgress;
                seen.reason = Some(format!(
                    "no progress: no thread read a page for {} s; raise --memory-max, or lower \
                     --threads or --read-ahead-kb",
                    STUCK_AFTER.as_secs()
                ));
                return Ok(false);
            }
        }
    }

    /// What it means that the process has ended by `error`.
    fn killed(&self, seen: &mut Seen, error: Error) -> Result<(), Error> {
        let limit = self.job.machine.memory_max_bytes;
        match limit.filter(|_| self.cgroup.is_some_and(MemoryCgroup::has_killed)) {
            Some(limit_bytes) => {
                seen.ended = Ended::OutOfMemory;
                seen.reason = Some(format!(
                    "the kernel killed the threads as they were out of memory in {limit_bytes} \
                     bytes; raise --memory-max"
                ));
                Ok(())
            }
            None => Err(error),
        }
    }

    fn snapshot(&self, thrashing: &Thrashing) -> Result<Snapshot, Error> {
        let process = PathBuf::from(format!("/proc/{}", thrashing.pid()));
        let stat = fs::read_to_string(process.join("stat")).ok();
        let io = fs::read_to_string(process.join("io")).ok();
        let path = self.job.counters.as_deref().unwrap_or(COUNTERS);
        Ok(Snapshot {
            progress: thrashing.progress()?,
            faults: stat.as_deref().and_then(process_faults),
            read_bytes: io.as_deref().and_then(read_bytes),
            counters: VmStat::read(Path::new(path)).unwrap_or_default(),
            memory: self.cgroup.and_then(|cgroup| cgroup.stat().ok()).unwrap_or_default(),
        })
    }
}

/// When a part of a run ends.
#[derive(Clone, Copy)]
enum End {
    /// After this time of the part.
    At(Duration),
    /// When all threads together have made so many rounds since the run began.
    AfterRounds(u64),
}

impl End {
    /// Whether it is reached after the time `elapsed` with what the threads have done.
    fn is_reached(self, progress: &Progress, elapsed: Duration) -> bool {
        match self {
            End::At(time) => elapsed >= time,
            End::AfterRounds(rounds) => progress.all_rounds() >= rounds,
        }
    }

    /// For how long it is waited before the next look.
    fn slice(self, elapsed: Duration) -> Duration {
        match self {
            End::At(time) => LOOK_EVERY.min(time.saturating_sub(elapsed)),
            End::AfterRounds(_) => Duration::from_millis(10),
        }
    }
}

/// What is known at one moment.
#[derive(Clone)]
struct Snapshot {
    progress: Progress,
    /// Minor and major faults of the process.
    faults: Option<(u64, u64)>,
    read_bytes: Option<u64>,
    /// Where a patched kernel counts.
    counters: VmStat,
    /// The cgroup's own counters.
    memory: VmStat,
}

fn run(job: &Thrash, seen: &Seen, traced: Option<&TracedWaits>, vmstat: Option<VmStat>) -> Run {
    if seen.in_warm_up {
        let thrash = Some(ThrashRun::unmeasured(seen.ended, seen.reason.clone()));
        return Run { seed: job.seed, thrash, ..Run::default() };
    }
    let counters = counters(seen);
    let elapsed_ns = Some(seen.elapsed.as_nanos() as u64);
    let thrash = ThrashRun::of(&counters, elapsed_ns).ended(seen.ended, seen.reason.clone());
    let thrash = match traced {
        None => thrash,
        Some(traced) => {
            let waits =
                traced.causes().into_iter().filter_map(|(cause, spans)| Wait::of(cause, spans));
            ThrashRun {
                waits: waits.collect(),
                course: traced.course.clone(),
                traced_ns: traced.until_full.map(|time| time.as_nanos() as u64),
                ..thrash.with_tries(&traced.tries)
            }
        }
    };
    Run {
        seed: job.seed,
        elapsed_ns,
        counters,
        thrash: Some(thrash),
        vmstat: vmstat.map(VmStat::into_map),
        ..Run::default()
    }
}

fn counters(seen: &Seen) -> Counters {
    let Seen { before, after, .. } = seen;
    let both = |of: fn(&Snapshot) -> Option<u64>| of(after)?.checked_sub(of(before)?);
    let change = |of: fn(&Snapshot) -> &VmStat, name: &str| {
        let change = of(after).get(name)? - of(before).get(name)?;
        u64::try_from(change).ok()
    };
    let kernels = |name: &str| change(|snapshot| &snapshot.counters, name);
    let of_cgroup = |name: &str| change(|snapshot| &snapshot.memory, name);
    let rounds = after.progress.all_rounds() - before.progress.all_rounds();
    let refused = ["vma_lock_abort", "vma_lock_miss"].map(kernels);
    Counters {
        accesses: Some(after.progress.pages - before.progress.pages),
        bytes_read: both(|snapshot| snapshot.read_bytes),
        major_faults: of_cgroup("pgmajfault").or(both(|snapshot| Some(snapshot.faults?.1))),
        minor_faults: both(|snapshot| Some(snapshot.faults?.0)),
        evicted_pages: of_cgroup("pgsteal"),
        retry_mmap_drop: kernels("retry_mmap_drop"),
        retry_io_miss: kernels("retry_io_miss"),
        rounds: Some(rounds),
        retry_arrival: kernels("retry_arrival"),
        retry_io_miss_tried: kernels("retry_io_miss_tried"),
        vma_lock_refused: refused[0].zip(refused[1]).map(|(abort, miss)| abort + miss),
        ..Counters::default()
    }
}

/// Refuses a file of counters that is none.
fn check_counters(job: &Thrash) -> Result<(), Error> {
    let Some(path) = job.counters.as_deref() else { return Ok(()) };
    let counters = VmStat::read(Path::new(path));
    let has_any =
        |counters: &VmStat| RETRY_COUNTERS.iter().any(|name| counters.get(name).is_some());
    if counters.as_ref().is_ok_and(has_any) {
        return Ok(());
    }
    let reason = counters.err().map_or(String::new(), |error| format!(" ({error})"));
    Err(Error::unavailable(
        format!("a counter of retries in '{path}'{reason}"),
        format!(
            "leave out --counters, or name the file in which the kernel counts {}",
            RETRY_COUNTERS.join(", ")
        ),
    ))
}

/// Refuses more threads, and more mapped memory, than this machine lets a process have: the same
/// number of threads is started, which map nothing.
fn check_threads(job: &Thrash) -> Result<(), Error> {
    let mapped = job.threads.saturating_mul(job.file_pages.bytes(page_size()));
    let most = getrlimit(Resource::As).current.unwrap_or(ADDRESS_BYTES).min(ADDRESS_BYTES);
    if mapped > most {
        return Err(Error::unavailable(
            format!(
                "a process that maps {} files of {}",
                job.threads,
                format_size(mapped / job.threads)
            ),
            format!(
                "give fewer --threads or a smaller --file-size, or raise the limit of {} KiB of \
                 addresses (ulimit -v)",
                most >> 10
            ),
        ));
    }
    let trial = probe::Thrash {
        files: vec!["/proc/self/exe".into(); job.threads as usize],
        pages: PageCount(1),
        writers: job.writers,
        noise: job.noise_threads,
        cpus: job.cpus,
        stagger: Duration::ZERO,
    };
    Thrashing::start(&trial).map(drop).map_err(|error| match error {
        Error::Child { message } | Error::Starved { message } => Error::unavailable(
            format!("a process of {} threads", job.all_threads()),
            format!(
                "give fewer --threads, --writers or --noise-threads, or raise the limits of this \
                 shell (ulimit -u, ulimit -v) or of its cgroup (pids.max): {message}"
            ),
        ),
        error => error,
    })
}

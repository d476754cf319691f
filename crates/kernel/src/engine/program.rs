//! One run of a program: its process, and the counts of each part.

use std::ops::Range;
use std::os::unix::fs::MetadataExt;
use std::path::PathBuf;

use filemap_core::units::PageIndex;
use filemap_job::program::{Job, Madvise, NamedMapping, ProgramStep, Protection, Rounds};
use filemap_job::waits::Wait;
use filemap_job::{Cached, Counters, FileRun, MappingRun, PhaseRun, Run, ThreadRun};
use rustix::fs::{Access as FileAccess, access};

use super::counts::{DroppedPages, FileCounts, direct_counters, phase_counters};
use super::stage::{ProcessRun, RunAttempt, RunSetup};
use crate::Error;
use crate::probe::{CacheCounts, PhaseCost, ProbeProcess, kill_error};
use crate::procstat::VmStat;
use crate::residency::CacheStat;
use crate::trace::TracedWaits;

/// Refuses, before any file is created, what no probe can do.
pub(super) fn check(program: &Job) -> Result<(), Error> {
    if program.machine.governor && program.processes.len() > 1 {
        return Err(Error::unavailable(
            "a governor beside several processes",
            "leave out 'process', or the governor, or give --on model",
        ));
    }
    check_protections(program)?;
    check_paged_out(program)
}

/// Runs `program` once, as `process`.
pub(super) fn measure(
    program: &Job,
    process: &ProbeProcess,
    stage: &RunSetup,
) -> Result<RunAttempt, Error> {
    let ran = stage.run(process).map_err(|error| with_job_names(program, error))?;
    let files = &stage.files.files;
    let mapped = program.mapped_parts();
    let parts = files.iter().zip(&mapped).map(|(file, mapped)| {
        let cached = Cached::count_pages(mapped, |pages: Range<PageIndex>| {
            CacheStat::query(&file.file, pages.start.0..pages.end.0).map(|stat| stat.cached)
        });
        // Linux before 6.5 has no `cachestat`.
        cached.ok()
    });
    let parts: Vec<Option<Cached>> = parts.collect();
    // Read last: if no page was evicted by then, none was when the parts were counted.
    let stats = stage.stats()?;
    // `cachestat` can miss pages that are being moved to another folio.
    let is_miscounted = parts.iter().zip(&stats).any(|(parts, stat)| {
        let pages = parts.as_ref().and_then(Cached::pages);
        pages.zip(*stat).is_some_and(|(pages, stat)| pages != stat.cached)
    });
    let whole: Vec<bool> = files.iter().map(|file| file.has_all_blocks).collect();
    let counts = RunCounts::new(program, &ran, &whole);
    let dropped = counts.dropped();
    let seen = stats.iter().enumerate().map(|(file, stat)| {
        let (dropped, paged_out) = (dropped[file], counts.paged_out(file));
        let counts =
            FileCounts::new(counts.bytes_cached(file), *stat, whole[file], dropped, paged_out);
        counts.with_start(ran.start.get(file).copied().flatten())
    });
    let seen: Vec<FileCounts> = seen.collect();
    let is_disturbed = is_miscounted || seen.iter().any(FileCounts::is_disturbed);
    let run = counts.run(&seen, &parts);
    let run = Run { vmstat: ran.vmstat.map(VmStat::into_map), ..run };
    Ok(RunAttempt { run, is_disturbed: stage.fits && is_disturbed, flushes: ran.flushes })
}

/// Replaces indices in the `error` of a process by names of the job.
pub(crate) fn with_job_names(program: &Job, error: Error) -> Error {
    match error {
        Error::Bus { mapping, page } => beyond_file(program, mapping, page),
        error => error,
    }
}

/// The process that runs `program`, with its files at `paths`.
///
/// # Errors
/// The program needs something that no probe can do.
pub(crate) fn process(program: &Job, paths: &[PathBuf]) -> Result<ProbeProcess, Error> {
    check(program)?;
    Ok(ProbeProcess {
        files: paths.to_vec(),
        cached: program.files.iter().map(|named| named.file.cached.clone()).collect(),
        opens: program.opens.iter().map(|open| open.file).collect(),
        direct: (0..program.opens.len()).filter(|&open| program.opens[open].direct).collect(),
        mappings: program.mappings.clone(),
        anonymous: program.limited_anonymous(program.anonymous),
        max_anonymous: program.limited_anonymous(program.max_anonymous()),
        seed: program.seed,
        threads: program.threads.clone(),
        barriers: program.barriers.iter().map(|barrier| barrier.threads).collect(),
        cpus: program.cpus.map(u64::from).or(stays_on_one_cpu(program).then_some(1)),
        settle: false,
        report_mapped: false,
        is_governed: program.machine.governor,
    })
}

/// Whether a single-threaded process is pinned to one CPU. Recently added pages are in the per-CPU
/// LRU batch of the CPU that added them, and MADV_COLD and MADV_PAGEOUT skip pages in other CPUs'
/// batches.
fn stays_on_one_cpu(program: &Job) -> bool {
    let gives_up = |step: &ProgramStep| {
        matches!(step, ProgramStep::Madvise { advice: Madvise::Cold | Madvise::PageOut, .. })
    };
    program.threads.len() == 1 && program.steps().any(gives_up)
}

/// Refuses writable shared mappings of the user's own files.
fn check_protections(program: &Job) -> Result<(), Error> {
    for step in program.steps() {
        let ProgramStep::Mprotect { mapping, protection: Protection::Write, .. } = step else {
            continue;
        };
        let NamedMapping { open, mapping, .. } = &program.mappings[*mapping];
        let path = &program.files[program.opens[*open].file].file.path;
        if let Some(path) = path.as_ref().filter(|_| !mapping.private) {
            return Err(Error::unavailable(
                format!("a shared mapping of '{path}' that may be written to"),
                "map it private, or give the file a size instead of a path",
            ));
        }
    }
    Ok(())
}

/// Refuses MADV_PAGEOUT on files for which the kernel ignores it for this user.
fn check_paged_out(program: &Job) -> Result<(), Error> {
    for step in program.steps().filter(|step| step.pages_out()) {
        let path = program.step_file(step).and_then(|file| program.files[file].file.path.as_ref());
        let Some(path) = path else { continue };
        let is_own = std::fs::metadata(path)
            .is_ok_and(|metadata| metadata.uid() == rustix::process::geteuid().as_raw());
        if !is_own && access(path.as_str(), FileAccess::WRITE_OK).is_err() {
            return Err(Error::unavailable(
                format!("MADV_PAGEOUT of '{path}', which is another user's"),
                "run as its owner, or leave out madvise = \"pageout\"",
            ));
        }
    }
    Ok(())
}

/// The error for a touch beyond the end of a file, with the step of `program`, if found.
fn beyond_file(program: &Job, mapping: usize, page: u64) -> Error {
    let touches = |accessed: &ProgramStep| match accessed {
        ProgramStep::Touch { mapping: touched, accesses, .. } => {
            *touched == mapping && program.touches(mapping, accesses).any(|at| at == page)
        }
        _ => false,
    };
    let is_beyond = program.beyond_file(mapping).is_some_and(|beyond| page >= beyond.0);
    let mut found = program.threads.iter().enumerate().filter_map(|(number, thread)| {
        thread.steps.iter().position(touches).map(|step| program.step_name(number, step))
    });
    match found.next().filter(|_| is_beyond) {
        Some(step) => {
            let accessed = &program.mappings[mapping];
            let file = &program.files[program.opens[accessed.open].file];
            Error::BeyondFile {
                step,
                page,
                mapping: accessed.name.clone(),
                file: file.name.clone(),
            }
        }
        None => kill_error(libc::SIGBUS),
    }
}

/// The counts of the steps of a run.
struct RunCounts<'a> {
    program: &'a Job,
    ran: &'a ProcessRun,
    /// Each step with its counters, in order of threads.
    steps: Vec<(&'a ProgramStep, &'a PhaseCost, Counters)>,
    /// The sum over the steps, by file.
    by_file: Vec<Counters>,
    major_faults: Option<u64>,
}

impl<'a> RunCounts<'a> {
    fn new(program: &'a Job, ran: &'a ProcessRun, whole: &[bool]) -> Self {
        let costs = || ran.ended.threads.iter().flat_map(|thread| &thread.steps);
        let own: u64 = costs().map(|cost| cost.major).sum();
        let major_faults = ran.major_events.unwrap_or(own).max(own);
        // The process's own count misses retried faults, and their step is unknown.
        let counts_all = own == major_faults;
        let mut before = ran.start.iter().try_fold(CacheCounts::default(), |sum, stat| {
            let CacheStat { cached, evicted, .. } = (*stat)?;
            Some(CacheCounts { cached: sum.cached + cached, evicted: sum.evicted + evicted })
        });
        // Reclaim under a limit evicts too, which cannot be distinguished.
        let tells = program.machine.cache_limit.is_none() && program.threads.len() == 1;
        let mut paged_out = 0;
        let steps = program.steps().zip(costs()).map(|(step, cost)| {
            let dropped = cost.dropped.filter(|_| step.drops_pages()).unwrap_or(0);
            paged_out += if tells && step.pages_out() { dropped } else { 0 };
            // A step without a file reads none.
            let is_whole = program.step_file(step).is_none_or(|file| whole[file]);
            let counters = Counters {
                accesses: Some(cost.accesses),
                major_faults: Some(cost.major).filter(|_| counts_all && !cost.counts_waits),
                ..if program.is_direct(step) {
                    direct_counters(cost)
                } else {
                    phase_counters(cost, before, is_whole, (paged_out, dropped))
                }
            };
            before = cost.cache;
            (step, cost, counters)
        });
        let steps: Vec<_> = steps.collect();
        let mut by_file = vec![zero_counters(); program.files.len()];
        for (step, _, counted) in &steps {
            if let Some(file) = program.step_file(step) {
                by_file[file] = sum_counters(by_file[file], *counted);
            }
        }
        let major_faults = Some(major_faults).filter(|_| !costs().any(|cost| cost.counts_waits));
        RunCounts { program, ran, steps, by_file, major_faults }
    }

    /// Bytes read from storage, by file. With a governor they are known only if there is a single
    /// file.
    fn bytes_read(&self, file: usize) -> Option<u64> {
        match self.by_file.as_slice() {
            [_] => self.ran.ended.read_bytes,
            by_file => by_file[file].bytes_read,
        }
    }

    /// Bytes read into the page cache, by file.
    fn bytes_cached(&self, file: usize) -> Option<u64> {
        let steps = self.steps.iter().filter(|(step, ..)| self.program.is_direct(step));
        let mut of_file = steps.filter(|(step, ..)| self.program.step_file(step) == Some(file));
        of_file.try_fold(self.bytes_read(file)?, |left, (_, cost, _)| {
            cost.read_bytes.map(|direct| left.saturating_sub(direct))
        })
    }

    /// Pages that the run itself dropped, by file.
    fn dropped(&self) -> Vec<DroppedPages> {
        let mut dropped = vec![DroppedPages::Nothing; self.program.files.len()];
        for (step, cost, _) in self.steps.iter().filter(|(step, ..)| step.drops_pages()) {
            let Some(file) = self.program.step_file(step) else { continue };
            let of_file = &mut dropped[file];
            let before = match of_file {
                DroppedPages::Nothing => Some(0),
                DroppedPages::Pages(pages) => *pages,
            };
            // Other threads may add pages while one drops some.
            let is_alone = self.program.threads.len() == 1;
            let both = before.zip(cost.dropped).map(|(before, pages)| before + pages);
            *of_file = DroppedPages::Pages(both.filter(|_| is_alone));
        }
        dropped
    }

    /// Maximum number of pages of a file that the run itself paged out.
    fn paged_out(&self, file: usize) -> u64 {
        let of_file =
            self.steps.iter().filter(|(step, ..)| self.program.step_file(step) == Some(file));
        let mut paged_out = of_file.filter(|(step, ..)| step.pages_out()).peekable();
        // Other threads may add pages while one pages some out.
        if self.program.threads.len() > 1 && paged_out.peek().is_some() {
            return u64::MAX;
        }
        paged_out.map(|(_, cost, _)| cost.dropped.unwrap_or(u64::MAX)).fold(0, u64::saturating_add)
    }

    fn run(&self, seen: &[FileCounts], parts: &[Option<Cached>]) -> Run {
        let RunCounts { program, ran, .. } = self;
        let named = program.files.iter().zip(&self.by_file);
        let files = named.zip(seen).zip(parts).map(|(((file, counters), seen), parts)| FileRun {
            name: file.name.clone(),
            data_pages_read: seen.pages_added(),
            hole_pages: 0,
            major_faults: counters.major_faults,
            evicted_pages: seen.pages_evicted(),
            cached: seen.cached_pages,
            cached_parts: *parts,
        });
        let files: Vec<FileRun> = files.collect();
        let mut by_mapping = vec![zero_counters(); program.mappings.len()];
        for (step, _, counted) in &self.steps {
            if let Some(mapping) = step.touched_mapping() {
                by_mapping[mapping] = sum_counters(by_mapping[mapping], *counted);
            }
        }
        let mappings = program.mappings.iter().zip(by_mapping);
        let mappings =
            mappings.map(|(mapping, counters)| MappingRun { name: mapping.name.clone(), counters });
        let mut rest = self.steps.as_slice();
        let mut threads = Vec::with_capacity(program.threads.len());
        let mut phases = Vec::with_capacity(self.steps.len());
        for (thread, ended) in program.threads.iter().zip(&ran.ended.threads) {
            let (own, others) = rest.split_at(thread.steps.len());
            rest = others;
            let counters = Counters {
                rounds: Some(ended.rounds).filter(|_| thread.rounds != Rounds::Times(1)),
                ..own.iter().map(|(.., counted)| *counted).fold(zero_counters(), sum_counters)
            };
            let (name, elapsed_ns) = (thread.name.clone(), Some(ended.elapsed_ns));
            threads.push(ThreadRun { name, elapsed_ns, counters });
            phases.extend(own.iter().map(|(step, cost, counters)| PhaseRun {
                thread: thread.name.clone(),
                does: program.describe_step(step),
                elapsed_ns: Some(cost.elapsed_ns),
                counters: *counters,
            }));
        }
        let rounds = threads.iter().zip(&program.threads);
        let rounds = rounds.filter(|(_, accesses)| accesses.has_accesses());
        let rounds = rounds.filter_map(|(thread, _): (&ThreadRun, _)| thread.counters.rounds);
        let rounds = rounds.reduce(|one, other| one + other);
        let traced = ran.traced.as_ref();
        let causes = traced.into_iter().flat_map(TracedWaits::causes);
        // Counts for only a part of the run would be misleading.
        let whole = traced.filter(|traced| traced.until_full.is_none());
        let kernels = |name: &str| {
            let change = ran.vmstat.as_ref()?.get(name)?;
            u64::try_from(change).ok()
        };
        let refused = kernels("vma_lock_abort").zip(kernels("vma_lock_miss"));
        Run {
            seed: program.seed,
            elapsed_ns: ran.ended.threads.iter().map(|thread| thread.elapsed_ns).max(),
            counters: Counters {
                data_pages_read: files.iter().map(|file| file.data_pages_read).sum(),
                evicted_pages: files.iter().map(|file| file.evicted_pages).sum(),
                major_faults: self.major_faults,
                bytes_read: ran.ended.read_bytes,
                rounds,
                retry_mmap_drop: kernels("retry_mmap_drop"),
                retry_io_miss: kernels("retry_io_miss"),
                retry_io_miss_tried: kernels("retry_io_miss_tried"),
                retry_arrival: kernels("retry_arrival"),
                vma_lock_refused: refused.map(|(abort, miss)| abort + miss),
                mmap_lock_shared: whole.map(|traced| traced.shared),
                mmap_lock_waits: whole.map(|traced| traced.read.count + traced.write.count),
                ..self
                    .steps
                    .iter()
                    .map(|(.., counted)| *counted)
                    .fold(zero_counters(), sum_counters)
            },
            cached: FileRun::sum_cached(&files),
            files,
            mappings: mappings.collect(),
            threads,
            phases,
            waits: causes.filter_map(|(cause, spans)| Wait::from_histogram(cause, spans)).collect(),
            calls: ran.ended.calls.clone(),
            faults: None,
            reads: None,
            queries: None,
            traced_ns: traced.and_then(|traced| Some(traced.until_full?.as_nanos() as u64)),
            vmstat: None,
        }
    }
}

/// Counters of zero.
fn zero_counters() -> Counters {
    Counters {
        accesses: Some(0),
        data_pages_read: Some(0),
        bytes_read: Some(0),
        major_faults: Some(0),
        minor_faults: Some(0),
        evicted_pages: Some(0),
        ..Counters::default()
    }
}

/// The sum of both; unknown if either is.
fn sum_counters(sum: Counters, part: Counters) -> Counters {
    let both = |one: Option<u64>, other: Option<u64>| one.zip(other).map(|(one, two)| one + two);
    Counters {
        accesses: both(sum.accesses, part.accesses),
        data_pages_read: both(sum.data_pages_read, part.data_pages_read),
        bytes_read: both(sum.bytes_read, part.bytes_read),
        major_faults: both(sum.major_faults, part.major_faults),
        minor_faults: both(sum.minor_faults, part.minor_faults),
        evicted_pages: both(sum.evicted_pages, part.evicted_pages),
        ..Counters::default()
    }
}

//! Builds the tables of the job from the gathered recording.

use std::cmp::Reverse;
use std::collections::{HashMap, HashSet};
use std::path::Path;
use std::sync::Arc;

use filemap_job::bounds::MAX_THINK_NS;
use filemap_job::program::{
    AfterSpec, FileSpec, MappingSpec, OpenSpec, ThreadPhaseSpec, ThreadSpec,
};
use filemap_job::{JobSpec, SizeText};

use super::advice::{self, POPULATE};
use super::approximation::ApproximationCounts;
use super::drafts::{DraftStep, DraftSteps, DraftThread, StepRef};
use super::gather::{MAX_UNSEEN_PAGES, RecordedFile, RecordedProgram};
use super::{Conversion, ExistingFile};
use crate::event::MappingPages;

/// A process is not reported as one of several below one page in this many of those used.
const MIN_PROCESS_PART: u64 = 100;

/// Names of tables by recorded index; empty for those that the job does not use.
#[derive(Debug, Default)]
struct TableNames {
    opens: Vec<String>,
    mappings: Vec<String>,
}

impl RecordedProgram {
    /// Builds the job; `None` if no file is used.
    pub fn program(
        mut self,
        existing: &dyn Fn(&Path) -> Option<ExistingFile>,
    ) -> Option<Conversion> {
        let used = UsedTables::of_program(&self);
        let mut by_use: Vec<usize> =
            (0..self.files.len()).filter(|file| used.files[*file] > 0).collect();
        by_use.sort_by_key(|file| Reverse(used.files[*file]));
        if by_use.is_empty() {
            return None;
        }
        let mut spec = JobSpec::default();
        let (mut names, mut seen) = (UniqueNames::default(), HashSet::new());
        let mut file_names = vec![String::new(); self.files.len()];
        let device = self.files[by_use[0]].device;
        for file in by_use {
            let recorded = &self.files[file];
            let table =
                file_table(recorded, &mut names, existing, &mut seen, &mut self.approximations);
            file_names[file].clone_from(&table.name);
            spec.file.push(table);
        }
        let mut tables = TableNames::default();
        let mut names = UniqueNames::default();
        for (open, file) in self.opens.iter().enumerate() {
            let mut name = String::new();
            if used.opens[open] {
                name = names.assign(&file_names[*file]);
                spec.open.push(OpenSpec {
                    name: name.clone(),
                    file: file_names[*file].clone(),
                    direct: false,
                });
            }
            tables.opens.push(name);
        }
        self.add_mappings(&used, &mut spec, &mut tables);
        self.add_threads(&mut spec, &tables);
        let pages = (self.page_size != 4096).then(|| SizeText::from_bytes(self.page_size));
        (spec.page_size, spec.arch) = (pages, self.arch());
        spec.start = Some("cold".to_string());
        if self.memory.is_known() {
            let bytes = self.memory.first_pages.saturating_mul(self.page_size);
            spec.anonymous = Some(SizeText::from_bytes(bytes));
            self.approximations.set_memory(&self.memory, self.page_size);
        }
        let is_gone = spec.file.iter().all(|file| file.path.is_none());
        let (mut unseen_pages, mut unknown_pages) =
            (self.approximations.unseen_pages_that_matter(), self.approximations.unknown_pages());
        if unseen_pages > MAX_UNSEEN_PAGES {
            (unseen_pages, unknown_pages) = (0, unseen_pages.saturating_add(unknown_pages));
        }
        Some(Conversion {
            program: spec,
            approximations: self.approximations.approximations(),
            gone_device: is_gone.then_some(device),
            unseen_pages,
            unknown_pages,
        })
    }

    fn arch(&self) -> Option<String> {
        (self.machine == "aarch64").then(|| "arm64".to_string())
    }

    fn add_mappings(&mut self, used: &UsedTables, spec: &mut JobSpec, tables: &mut TableNames) {
        let mut names = UniqueNames::default();
        for (number, mapping) in self.mappings.iter().enumerate() {
            let mut name = String::new();
            if used.mappings[number] {
                let made = &self.recorded_mappings[mapping.recorded as usize];
                let open = tables.opens[made.open as usize].clone();
                name = names.assign(&open);
                let bytes = |pages: u64| SizeText::from_bytes(pages.saturating_mul(self.page_size));
                spec.mapping.push(MappingSpec {
                    name: name.clone(),
                    open,
                    offset: (made.first > 0).then(|| bytes(made.first)),
                    len: Some(bytes(made.pages)),
                    exec: made.is_executable,
                    private: made.is_private && made.is_writable,
                    ..MappingSpec::default()
                });
                self.approximations.inherited_mappings += u64::from(mapping.made_by.is_none());
                self.approximations.shared_mappings += u64::from(mapping.is_mapped_throughout());
            }
            tables.mappings.push(name);
        }
    }

    fn add_threads(&mut self, spec: &mut JobSpec, tables: &TableNames) {
        let mut names = UniqueNames::default();
        let threads = std::mem::take(&mut self.threads);
        let mut pages_of: HashMap<u32, u64> = HashMap::new();
        let kept: Vec<JobThread> =
            threads.into_iter().map(|thread| self.job_thread(thread, tables)).collect();
        let mut name_of = vec![String::new(); kept.len()];
        for (name, thread) in
            name_of.iter_mut().zip(&kept).filter(|(_, thread)| !thread.steps.is_empty())
        {
            let program = &self.processes[thread.process as usize];
            *name = names.assign(&format!("{program} {}", thread.tid));
        }
        let phases_of: Vec<Vec<usize>> = kept.iter().map(|thread| thread.phases.clone()).collect();
        for (number, thread) in kept.into_iter().enumerate() {
            if thread.steps.is_empty() {
                continue;
            }
            let pages = pages_of.entry(thread.process).or_default();
            *pages += thread.steps.iter().map(|(step, _)| self.step_pages(step)).sum::<u64>();
            let after = |step_ref: &StepRef| {
                let phase = *phases_of[step_ref.thread as usize].get(step_ref.step)? as u64;
                let thread = name_of[step_ref.thread as usize].clone();
                (phase > 0).then_some(AfterSpec { thread, phase })
            };
            let phases = thread.steps.into_iter().map(|(step, waits_for)| ThreadPhaseSpec {
                after: waits_for.iter().filter_map(after).collect(),
                ..self.phase(step, tables)
            });
            let phase: Vec<ThreadPhaseSpec> = phases.collect();
            self.approximations.has_think_times |=
                phase.iter().any(|phase| phase.think_ns.is_some());
            spec.thread.push(ThreadSpec {
                name: Some(name_of[number].clone()),
                phase,
                ..ThreadSpec::default()
            });
        }
        let all: u64 = pages_of.values().sum();
        let matters = |pages: &&u64| **pages > 0 && pages.saturating_mul(MIN_PROCESS_PART) >= all;
        self.approximations.processes = pages_of.values().filter(matters).count();
        self.approximations.threads = spec.thread.len();
    }

    /// Pages that `step` uses, with repetitions.
    fn step_pages(&self, step: &DraftStep) -> u64 {
        match step {
            DraftStep::Touch { pages, .. } => pages.len() as u64,
            DraftStep::Read { length_bytes, offsets, .. } => {
                offsets.len() as u64 * length_bytes.div_ceil(self.page_size)
            }
            _ => 0,
        }
    }

    /// The steps of `thread` that the job keeps, merged where dropped steps separated them.
    fn job_thread(&self, thread: DraftThread, tables: &TableNames) -> JobThread {
        let DraftThread { process, tid, drafts } = thread;
        let DraftSteps { steps, dependencies: mut after, awaited, .. } = drafts;
        let mut kept = DraftSteps::default();
        let mut phases = Vec::with_capacity(steps.len());
        for (at, step) in steps.into_iter().enumerate() {
            after.remove(&at).into_iter().flatten().for_each(|step| kept.wait_for(step));
            if let Some(step) = self.job_step(step, tables) {
                kept.push(step);
            }
            if awaited.contains(&at) {
                kept.seal();
            }
            phases.push(kept.steps.len());
        }
        let mut waits_for = kept.dependencies;
        let steps = kept.steps.into_iter().enumerate();
        let steps = steps.map(|(at, step)| (step, waits_for.remove(&at).unwrap_or_default()));
        JobThread { process, tid, steps: steps.collect(), phases }
    }

    /// Size in bytes of the file of `open` in the job: the largest recorded size, and no less than
    /// the accesses need.
    fn file_size(&self, open: u32) -> u64 {
        let file = &self.files[self.opens[open as usize]];
        file.size_bytes.max(file.first_size_bytes).max(file.needed_bytes)
    }

    /// `step` with its range clipped to mapping and file; `None` if the job does not need it.
    fn job_step(&self, step: DraftStep, tables: &TableNames) -> Option<DraftStep> {
        Some(match step {
            DraftStep::Map { mapping } | DraftStep::Unmap { mapping }
                if tables.mappings[mapping].is_empty()
                    || !self.mappings[mapping].is_mapped_by_steps() =>
            {
                return None;
            }
            DraftStep::Madvise { mapping, advice, pages } => {
                let made = &self.recorded_mappings[self.mappings[mapping].recorded as usize];
                let file_pages = self.file_size(made.open).div_ceil(self.page_size);
                let behind = match advice {
                    POPULATE => file_pages.saturating_sub(made.first).min(made.pages),
                    _ => made.pages,
                };
                let end = pages.first.saturating_add(pages.pages).min(behind);
                let count = end.checked_sub(pages.first).filter(|count| *count > 0)?;
                if tables.mappings[mapping].is_empty() {
                    return None;
                }
                let pages = MappingPages { first: pages.first, pages: count };
                DraftStep::Madvise { mapping, advice, pages }
            }
            DraftStep::Fadvise { open, advice, offset_bytes, length_bytes } => {
                let size = self.file_size(open);
                if tables.opens[open as usize].is_empty() || offset_bytes >= size {
                    return None;
                }
                let length_bytes = length_bytes.min(size - offset_bytes);
                DraftStep::Fadvise { open, advice, offset_bytes, length_bytes }
            }
            step => step,
        })
    }

    /// The phase of a kept step.
    fn phase(&self, step: DraftStep, tables: &TableNames) -> ThreadPhaseSpec {
        let bytes = |pages: u64| SizeText::from_bytes(pages.saturating_mul(self.page_size));
        let nothing = ThreadPhaseSpec::default();
        match step {
            DraftStep::Map { mapping } => {
                ThreadPhaseSpec { map: Some(tables.mappings[mapping].clone()), ..nothing }
            }
            DraftStep::Unmap { mapping } => {
                ThreadPhaseSpec { unmap: Some(tables.mappings[mapping].clone()), ..nothing }
            }
            DraftStep::Touch { mapping, is_write, pages, think_ns } => ThreadPhaseSpec {
                mapping: Some(tables.mappings[mapping].clone()),
                write: is_write,
                think_ns: mean_think_ns(think_ns, pages.len()),
                pages: Some(Arc::new(pages)),
                ..nothing
            },
            DraftStep::Read { open, length_bytes, offsets, think_ns } => {
                let think_ns = mean_think_ns(think_ns, offsets.len());
                let read = ThreadPhaseSpec {
                    open: Some(tables.opens[open as usize].clone()),
                    bs: Some(SizeText::from_bytes(length_bytes)),
                    think_ns,
                    ..nothing
                };
                match sequential_range(&offsets, length_bytes) {
                    Some((offset, length)) => ThreadPhaseSpec {
                        offset: (offset > 0).then(|| SizeText::from_bytes(offset)),
                        len: Some(SizeText::from_bytes(length)),
                        workload: Some("read-sequential".to_string()),
                        accesses: Some(length.div_ceil(length_bytes)),
                        ..read
                    },
                    None => ThreadPhaseSpec { offsets: Some(Arc::new(offsets)), ..read },
                }
            }
            DraftStep::Madvise { mapping, advice, pages: MappingPages { first, pages } } => {
                let made = &self.recorded_mappings[self.mappings[mapping].recorded as usize];
                let is_whole = first == 0 && pages == made.pages;
                ThreadPhaseSpec {
                    mapping: Some(tables.mappings[mapping].clone()),
                    madvise: Some(advice.to_string()),
                    offset: (first > 0).then(|| bytes(first)),
                    len: (!is_whole).then(|| bytes(pages)),
                    ..nothing
                }
            }
            DraftStep::Memory { pages } => {
                let size = Some(bytes(pages.unsigned_abs()));
                match pages {
                    ..0 => ThreadPhaseSpec { free: size, ..nothing },
                    0.. => ThreadPhaseSpec { allocate: size, ..nothing },
                }
            }
            DraftStep::Fadvise { open, advice, offset_bytes, length_bytes } => {
                let has_range = advice::has_range(advice);
                ThreadPhaseSpec {
                    open: Some(tables.opens[open as usize].clone()),
                    fadvise: Some(advice.to_string()),
                    offset: (has_range && offset_bytes > 0)
                        .then(|| SizeText::from_bytes(offset_bytes)),
                    len: (has_range && length_bytes > 0)
                        .then(|| SizeText::from_bytes(length_bytes)),
                    ..nothing
                }
            }
        }
    }
}

/// A thread of the job.
struct JobThread {
    process: u32,
    tid: u32,
    /// Steps with the steps that they wait for.
    steps: Vec<(DraftStep, Vec<StepRef>)>,
    /// For each recorded step: the number of its phase, from 1; for a dropped step, of the phase
    /// before it, or 0.
    phases: Vec<usize>,
}

/// The mean of `count` think times, capped at the maximum of a job; `None` if it rounds to 0.
fn mean_think_ns(sum_ns: u64, count: usize) -> Option<u64> {
    let mean = (sum_ns as f64 / count as f64).round() as u64;
    (mean > 0).then_some(mean.min(MAX_THINK_NS))
}

/// Offset and length of the file range that the blocks of `length_bytes` at `offsets` read in
/// sequence; `None` if they are not consecutive.
fn sequential_range(offsets: &[u64], length_bytes: u64) -> Option<(u64, u64)> {
    let first = *offsets.first()?;
    let is_next = |pair: &[u64]| pair[0].checked_add(length_bytes) == Some(pair[1]);
    let is_so = offsets.windows(2).all(is_next);
    is_so.then(|| (first, length_bytes.saturating_mul(offsets.len() as u64)))
}

/// The objects that the steps use.
#[derive(Debug)]
struct UsedTables {
    /// Number of accesses to each file, counting a step without accesses as one; 0 for unused
    /// files.
    files: Vec<u64>,
    opens: Vec<bool>,
    mappings: Vec<bool>,
}

impl UsedTables {
    fn of_program(gathered: &RecordedProgram) -> UsedTables {
        let mut used = UsedTables {
            files: vec![0; gathered.files.len()],
            opens: vec![false; gathered.opens.len()],
            mappings: vec![false; gathered.mappings.len()],
        };
        let steps = gathered.threads.iter().flat_map(|thread| &thread.drafts.steps);
        for step in steps {
            let (open, accesses) = match step {
                DraftStep::Map { .. } | DraftStep::Unmap { .. } | DraftStep::Memory { .. } => {
                    continue;
                }
                DraftStep::Touch { mapping, pages, .. } => {
                    used.mappings[*mapping] = true;
                    let made =
                        &gathered.recorded_mappings[gathered.mappings[*mapping].recorded as usize];
                    (made.open, pages.len() as u64)
                }
                DraftStep::Madvise { mapping, .. } => {
                    let made =
                        &gathered.recorded_mappings[gathered.mappings[*mapping].recorded as usize];
                    if gathered.file_size(made.open) == 0 {
                        continue;
                    }
                    used.mappings[*mapping] = true;
                    (made.open, 0)
                }
                DraftStep::Read { open, offsets, .. } => (*open, offsets.len() as u64),
                DraftStep::Fadvise { open, .. } if gathered.file_size(*open) == 0 => continue,
                DraftStep::Fadvise { open, .. } => (*open, 0),
            };
            used.opens[open as usize] = true;
            // A file that is only advised is a file of the job too.
            let file = &mut used.files[gathered.opens[open as usize]];
            *file = file.saturating_add(accesses.max(1));
        }
        used
    }
}

/// The table of `file`: with its path if it still exists with the same size, otherwise a file of
/// the recorded size to create.
fn file_table(
    file: &RecordedFile,
    used: &mut UniqueNames,
    existing: &dyn Fn(&Path) -> Option<ExistingFile>,
    seen: &mut HashSet<(u64, u64)>,
    counts: &mut ApproximationCounts,
) -> FileSpec {
    let name = used.assign(&file_name(&file.path));
    let recorded = file.size_bytes.max(file.first_size_bytes);
    let size_bytes = recorded.max(file.needed_bytes);
    let shown = || file.path.display().to_string().replace(char::is_control, "?");
    let path = file.path.to_str();
    let cached = file.cached.clone().map(Arc::new);
    match existing(&file.path).zip(path) {
        None if path.is_none() => counts.unnamed.push(shown()),
        None => counts.gone.push(shown()),
        Some((now, _)) if now.size_bytes != size_bytes => counts.changed.push(shown()),
        Some((now, _)) if !seen.insert(now.identity) => counts.twins.push(shown()),
        Some((now, path)) => {
            let layer = now.layer.as_ref().and_then(|layer| layer.to_str());
            let path = Some(layer.unwrap_or(path).to_string());
            return FileSpec { name, path, cached, ..FileSpec::default() };
        }
    }
    if size_bytes > file.first_size_bytes {
        counts.grown.push(shown());
    }
    let size = Some(SizeText::from_bytes(size_bytes));
    FileSpec { name, size, cached, ..FileSpec::default() }
}

/// Maximum length of a name in characters, not counting the number that makes it unique.
const MAX_LENGTH: usize = 60;

/// Assigns unique names.
#[derive(Debug, Default)]
pub struct UniqueNames {
    given: HashSet<String>,
    /// By requested name: the last number appended to make it unique.
    numbers: HashMap<String, u64>,
}

impl UniqueNames {
    /// A unique name without control characters: `wanted`, with a number appended if it is taken.
    pub fn assign(&mut self, wanted: &str) -> String {
        let clean = |c: char| if c.is_control() { '?' } else { c };
        let wanted: String = wanted.chars().map(clean).take(MAX_LENGTH).collect();
        let wanted = match wanted.trim() {
            "" => "unnamed",
            wanted => wanted,
        };
        if self.given.insert(wanted.to_string()) {
            return wanted.to_string();
        }
        let number = self.numbers.entry(wanted.to_string()).or_insert(1);
        loop {
            *number += 1;
            let name = format!("{wanted} {number}");
            if self.given.insert(name.clone()) {
                return name;
            }
        }
    }
}

/// The last component of `path`, with invalid UTF-8 replaced.
pub fn file_name(path: &Path) -> String {
    let name = path.file_name().unwrap_or(path.as_os_str());
    name.to_string_lossy().into_owned()
}

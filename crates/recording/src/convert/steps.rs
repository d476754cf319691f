//! The tables of the job.

use std::cmp::Reverse;
use std::collections::HashSet;
use std::path::Path;
use std::sync::Arc;

use filemap_job::bounds::MAX_THINK_NS;
use filemap_job::program::{AfterSpec, MappingSpec, OpenSpec, ThreadPhaseSpec, ThreadSpec};
use filemap_job::{ProgramSpec, SizeText};

use super::advice::{self, POPULATE};
use super::drafts::{Draft, Drafts, StepOf, Thread};
use super::gather::Gathered;
use super::names::Names;
use super::{Conversion, Existing, files};
use crate::event::Pages;

/// The names that tables have, by index; empty of what the job does not use.
#[derive(Debug, Default)]
struct Tables {
    opens: Vec<String>,
    mappings: Vec<String>,
}

impl Gathered {
    /// The job of what was gathered; nothing where it has no access.
    pub fn program(mut self, existing: &dyn Fn(&Path) -> Option<Existing>) -> Option<Conversion> {
        let used = Used::of(&self);
        let mut by_use: Vec<usize> =
            (0..self.files.len()).filter(|file| used.files[*file] > 0).collect();
        by_use.sort_by_key(|file| Reverse(used.files[*file]));
        if by_use.is_empty() {
            return None;
        }
        let mut spec = ProgramSpec::default();
        let (mut names, mut seen) = (Names::default(), HashSet::new());
        let mut file_names = vec![String::new(); self.files.len()];
        for file in by_use {
            let of = &self.files[file];
            let table = files::table(of, &mut names, existing, &mut seen, &mut self.said);
            file_names[file].clone_from(&table.name);
            spec.file.push(table);
        }
        let mut tables = Tables::default();
        let mut names = Names::default();
        for (open, file) in self.opens.iter().enumerate() {
            let mut name = String::new();
            if used.opens[open] {
                name = names.give(&file_names[*file]);
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
        let pages = (self.page_size != 4096).then(|| SizeText::of(self.page_size));
        (spec.page_size, spec.arch) = (pages, self.arch());
        Some(Conversion { program: spec, approximations: self.said.all() })
    }

    fn arch(&self) -> Option<String> {
        (self.machine == "aarch64").then(|| "arm64".to_string())
    }

    fn add_mappings(&mut self, used: &Used, spec: &mut ProgramSpec, tables: &mut Tables) {
        let mut names = Names::default();
        for (number, mapping) in self.mappings.iter().enumerate() {
            let mut name = String::new();
            if used.mappings[number] {
                let made = &self.made[mapping.of as usize];
                let open = tables.opens[made.open as usize].clone();
                name = names.give(&open);
                let bytes = |pages: u64| SizeText::of(pages.saturating_mul(self.page_size));
                spec.mapping.push(MappingSpec {
                    name: name.clone(),
                    open,
                    offset: (made.first > 0).then(|| bytes(made.first)),
                    len: Some(bytes(made.pages)),
                    exec: made.is_executable,
                    private: made.is_private && made.is_writable,
                    ..MappingSpec::default()
                });
                self.said.inherited_mappings += u64::from(mapping.made_by.is_none());
                self.said.shared_mappings += u64::from(mapping.stays_instead());
            }
            tables.mappings.push(name);
        }
    }

    fn add_threads(&mut self, spec: &mut ProgramSpec, tables: &Tables) {
        let mut names = Names::default();
        let threads = std::mem::take(&mut self.threads);
        let mut processes = HashSet::new();
        let kept: Vec<Kept> =
            threads.into_iter().map(|thread| self.kept_of(thread, tables)).collect();
        let mut name_of = vec![String::new(); kept.len()];
        for (name, thread) in name_of.iter_mut().zip(&kept).filter(|(_, of)| !of.steps.is_empty()) {
            let program = &self.processes[thread.process as usize];
            *name = names.give(&format!("{program} {}", thread.tid));
        }
        let phases_of: Vec<Vec<usize>> = kept.iter().map(|thread| thread.phases.clone()).collect();
        for (number, thread) in kept.into_iter().enumerate() {
            if thread.steps.is_empty() {
                continue;
            }
            let after = |of: &StepOf| {
                let phase = *phases_of[of.thread as usize].get(of.step)? as u64;
                let thread = name_of[of.thread as usize].clone();
                (phase > 0).then_some(AfterSpec { thread, phase })
            };
            let phases = thread.steps.into_iter().map(|(step, waits_for)| ThreadPhaseSpec {
                after: waits_for.iter().filter_map(after).collect(),
                ..self.phase(step, tables)
            });
            let phase: Vec<ThreadPhaseSpec> = phases.collect();
            processes.insert(thread.process);
            self.said.has_think_times |= phase.iter().any(|phase| phase.think_ns.is_some());
            spec.thread.push(ThreadSpec {
                name: Some(name_of[number].clone()),
                phase,
                ..ThreadSpec::default()
            });
        }
        (self.said.processes, self.said.threads) = (processes.len(), spec.thread.len());
    }

    /// The steps of `thread` for which the job has something to do.
    fn kept_of(&self, thread: Thread, tables: &Tables) -> Kept {
        let Thread { process, tid, drafts } = thread;
        let Drafts { steps, mut after, awaited, .. } = drafts;
        let mut kept = Drafts::default();
        let mut phases = Vec::with_capacity(steps.len());
        for (at, step) in steps.into_iter().enumerate() {
            after.remove(&at).into_iter().flatten().for_each(|of| kept.wait_for(of));
            if let Some(step) = self.kept(step, tables) {
                kept.push(step);
            }
            if awaited.contains(&at) {
                kept.seal();
            }
            phases.push(kept.steps.len());
        }
        let mut waits_for = kept.after;
        let steps = kept.steps.into_iter().enumerate();
        let steps = steps.map(|(at, step)| (step, waits_for.remove(&at).unwrap_or_default()));
        Kept { process, tid, steps: steps.collect(), phases }
    }

    /// The last byte that a file of the job has.
    fn size_of(&self, open: u32) -> u64 {
        let file = &self.files[self.opens[open as usize]];
        file.size_bytes.max(file.first_size_bytes).max(file.needed_bytes)
    }

    /// `step`, unless the job has nothing to do for it.
    fn kept(&self, step: Draft, tables: &Tables) -> Option<Draft> {
        Some(match step {
            Draft::Map { mapping } | Draft::Unmap { mapping }
                if tables.mappings[mapping].is_empty()
                    || !self.mappings[mapping].comes_and_goes() =>
            {
                return None;
            }
            Draft::Madvise { mapping, advice, pages } => {
                let made = &self.made[self.mappings[mapping].of as usize];
                let file_pages = self.size_of(made.open).div_ceil(self.page_size);
                let behind = match advice {
                    POPULATE => file_pages.saturating_sub(made.first).min(made.pages),
                    _ => made.pages,
                };
                let end = pages.first.saturating_add(pages.pages).min(behind);
                let count = end.checked_sub(pages.first).filter(|count| *count > 0)?;
                if tables.mappings[mapping].is_empty() {
                    return None;
                }
                let pages = Pages { first: pages.first, pages: count };
                Draft::Madvise { mapping, advice, pages }
            }
            Draft::Fadvise { open, advice, offset_bytes, length_bytes } => {
                let size = self.size_of(open);
                if tables.opens[open as usize].is_empty() || offset_bytes >= size {
                    return None;
                }
                let length_bytes = length_bytes.min(size - offset_bytes);
                Draft::Fadvise { open, advice, offset_bytes, length_bytes }
            }
            step => step,
        })
    }

    /// The phase of a step that was kept.
    fn phase(&self, step: Draft, tables: &Tables) -> ThreadPhaseSpec {
        let bytes = |pages: u64| SizeText::of(pages.saturating_mul(self.page_size));
        let nothing = ThreadPhaseSpec::default();
        match step {
            Draft::Map { mapping } => {
                ThreadPhaseSpec { map: Some(tables.mappings[mapping].clone()), ..nothing }
            }
            Draft::Unmap { mapping } => {
                ThreadPhaseSpec { unmap: Some(tables.mappings[mapping].clone()), ..nothing }
            }
            Draft::Touch { mapping, is_write, pages, think_ns } => ThreadPhaseSpec {
                mapping: Some(tables.mappings[mapping].clone()),
                write: is_write,
                think_ns: mean(think_ns, pages.len()),
                pages: Some(Arc::new(pages)),
                ..nothing
            },
            Draft::Read { open, length_bytes, offsets, think_ns } => {
                let think_ns = mean(think_ns, offsets.len());
                let read = ThreadPhaseSpec {
                    open: Some(tables.opens[open as usize].clone()),
                    bs: Some(SizeText::of(length_bytes)),
                    think_ns,
                    ..nothing
                };
                match in_sequence(&offsets, length_bytes) {
                    Some((offset, length)) => ThreadPhaseSpec {
                        offset: (offset > 0).then(|| SizeText::of(offset)),
                        len: Some(SizeText::of(length)),
                        workload: Some("read-sequential".to_string()),
                        accesses: Some(length.div_ceil(length_bytes)),
                        ..read
                    },
                    None => ThreadPhaseSpec { offsets: Some(Arc::new(offsets)), ..read },
                }
            }
            Draft::Madvise { mapping, advice, pages: Pages { first, pages } } => {
                let made = &self.made[self.mappings[mapping].of as usize];
                let is_whole = first == 0 && pages == made.pages;
                ThreadPhaseSpec {
                    mapping: Some(tables.mappings[mapping].clone()),
                    madvise: Some(advice.to_string()),
                    offset: (first > 0).then(|| bytes(first)),
                    len: (!is_whole).then(|| bytes(pages)),
                    ..nothing
                }
            }
            Draft::Fadvise { open, advice, offset_bytes, length_bytes } => {
                let has_range = advice::has_range(advice);
                ThreadPhaseSpec {
                    open: Some(tables.opens[open as usize].clone()),
                    fadvise: Some(advice.to_string()),
                    offset: (has_range && offset_bytes > 0).then(|| SizeText::of(offset_bytes)),
                    len: (has_range && length_bytes > 0).then(|| SizeText::of(length_bytes)),
                    ..nothing
                }
            }
        }
    }
}

/// A thread of the job.
struct Kept {
    process: u32,
    tid: u32,
    /// Each with what it waits for.
    steps: Vec<(Draft, Vec<StepOf>)>,
    /// The phase in which each step was that is recorded, counted from 1: of one that the job
    /// leaves out the phase before it.
    phases: Vec<usize>,
}

/// The mean of so many times to think, unless it is nothing.
fn mean(sum_ns: u64, count: usize) -> Option<u64> {
    let mean = (sum_ns as f64 / count as f64).round() as u64;
    (mean > 0).then_some(mean.min(MAX_THINK_NS))
}

/// The part of a file that blocks of `length_bytes` at `offsets` read from its beginning to its
/// end: where it begins and how long it is.
fn in_sequence(offsets: &[u64], length_bytes: u64) -> Option<(u64, u64)> {
    let first = *offsets.first()?;
    let is_next = |pair: &[u64]| pair[0].checked_add(length_bytes) == Some(pair[1]);
    let is_so = offsets.windows(2).all(is_next);
    is_so.then(|| (first, length_bytes.saturating_mul(offsets.len() as u64)))
}

/// What the steps use.
#[derive(Debug)]
struct Used {
    /// How often each file is accessed.
    files: Vec<u64>,
    opens: Vec<bool>,
    mappings: Vec<bool>,
}

impl Used {
    fn of(gathered: &Gathered) -> Used {
        let mut used = Used {
            files: vec![0; gathered.files.len()],
            opens: vec![false; gathered.opens.len()],
            mappings: vec![false; gathered.mappings.len()],
        };
        let steps = gathered.threads.iter().flat_map(|thread| &thread.drafts.steps);
        for step in steps {
            let (open, accesses) = match step {
                Draft::Map { .. } | Draft::Unmap { .. } => continue,
                Draft::Touch { mapping, pages, .. } => {
                    used.mappings[*mapping] = true;
                    let made = &gathered.made[gathered.mappings[*mapping].of as usize];
                    (made.open, pages.len() as u64)
                }
                Draft::Madvise { mapping, .. } => {
                    let made = &gathered.made[gathered.mappings[*mapping].of as usize];
                    if gathered.size_of(made.open) == 0 {
                        continue;
                    }
                    used.mappings[*mapping] = true;
                    (made.open, 0)
                }
                Draft::Read { open, offsets, .. } => (*open, offsets.len() as u64),
                Draft::Fadvise { open, .. } if gathered.size_of(*open) == 0 => continue,
                Draft::Fadvise { open, .. } => (*open, 0),
            };
            used.opens[open as usize] = true;
            // What is only advised is a file of the job too.
            let file = &mut used.files[gathered.opens[open as usize]];
            *file = file.saturating_add(accesses.max(1));
        }
        used
    }
}

//! A job that can run, with all values resolved.

use std::collections::BTreeMap;
use std::ops::Range;

use filemap_core::address::vma::AdviceFlag;
use filemap_core::rules::Rules;
use filemap_core::units::{PageCount, PageIndex};

use crate::accesses::{Accesses, Reads};
use crate::parts::{EngineKind, Image, Machine, Phase};
use crate::program::{
    Barrier, JobSpec, Madvise, NamedFile, NamedMapping, Open, ProgramStep, Thread,
};
use crate::size::shorten;

/// A job that can run: files, opens, mappings, processes, threads with their steps, limits and
/// machine. Created by [`JobSpec::validate`].
#[derive(Clone, Debug, PartialEq)]
pub struct Job {
    /// The job as written, with resolved values.
    pub spec: JobSpec,
    /// The engine to run it.
    pub engine: EngineKind,
    /// The kernel to boot; `None`: the running kernel.
    pub image: Option<Image>,
    /// Number of runs, at least 1.
    pub runs: u64,
    /// The kernel rules with the patch series applied.
    pub rules: Rules,
    /// Memory limits, readahead and architecture.
    pub machine: Machine,
    /// Seed of phases without their own, not 0.
    pub seed: u64,
    /// Pages of anonymous memory at the beginning.
    pub anonymous: PageCount,
    /// Files: at least one.
    pub files: Vec<NamedFile>,
    /// Open file descriptions.
    pub opens: Vec<Open>,
    /// Mappings, at consecutive addresses.
    pub mappings: Vec<NamedMapping>,
    /// Number of CPUs for its threads, if given.
    pub cpus: Option<u32>,
    /// Process names. The first process creates the mappings that exist at the start and forks the
    /// others before the first step. All share the open file descriptions.
    pub processes: Vec<String>,
    /// Barriers between threads.
    pub barriers: Vec<Barrier>,
    /// Threads: at least one.
    pub threads: Vec<Thread>,
    /// The tables that files, opens, mappings and threads were declared by.
    pub tables: SourceTables,
}

/// For each file, open, mapping and thread: the index of the table that declared it. A table with a
/// count declares several.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct SourceTables {
    /// Table of each file.
    pub files: Vec<usize>,
    /// Table of each open file.
    pub opens: Vec<usize>,
    /// Table of each mapping.
    pub mappings: Vec<usize>,
    /// Table of each thread.
    pub threads: Vec<usize>,
}

impl Job {
    /// Base page size in bytes.
    pub fn page_size(&self) -> u64 {
        self.machine.arch.page_size
    }

    /// Whether a table with a count declares several files or threads.
    pub fn is_counted(&self) -> bool {
        self.spec.is_counted()
    }

    /// The steps of all threads, thread by thread.
    pub fn steps(&self) -> impl Iterator<Item = &ProgramStep> {
        self.threads.iter().flat_map(|thread| &thread.steps)
    }

    /// The accesses of all steps that make any, in the same order.
    pub fn accesses(&self) -> impl Iterator<Item = &Phase> {
        self.steps().filter_map(ProgramStep::phase)
    }

    /// Name of a step in messages: `phase 2`, with its thread if there are several.
    pub fn step_name(&self, thread: usize, step: usize) -> String {
        let phase = format!("phase {}", step + 1);
        match self.threads.as_slice() {
            [_] => phase,
            threads => format!("thread '{}': {phase}", shorten(&threads[thread].name)),
        }
    }

    /// Whether `step` is a direct read.
    pub fn is_direct(&self, step: &ProgramStep) -> bool {
        matches!(step, ProgramStep::Read { open, .. } if self.opens[*open].direct)
    }

    /// Number of pages of a file, including a partial last page.
    pub fn file_pages(&self, file: usize) -> PageCount {
        PageCount(self.files[file].file.size_bytes.div_ceil(self.page_size()))
    }

    /// The touched pages of a mapping, in order.
    pub fn touches<'a>(&self, mapping: usize, accesses: &'a Phase) -> Accesses<'a> {
        self.mappings[mapping].touches(accesses, self.page_size())
    }

    /// The blocks read in a range of `len_bytes` bytes, relative to its start.
    pub fn reads(&self, len_bytes: u64, accesses: &Phase) -> Reads {
        accesses.reads(len_bytes, self.page_size())
    }

    /// The first page of a mapping beyond the end of its file, if any, relative to the mapping.
    pub fn beyond_file(&self, mapping: usize) -> Option<PageIndex> {
        let NamedMapping { open, mapping, segments, .. } = &self.mappings[mapping];
        if !segments.is_empty() {
            return None;
        }
        let left =
            self.file_pages(self.opens[*open].file).saturating_sub(PageCount(mapping.offset.0));
        (left < mapping.pages).then_some(PageIndex(left.0))
    }

    /// Warnings about options without effect: one sentence each, without the full stop.
    pub fn idle_settings(&self) -> Vec<String> {
        let [mapping] = self.mappings.as_slice() else { return Vec::new() };
        if !self.is_single_mapping() {
            return Vec::new();
        }
        let mut warnings: Vec<String> =
            mapping.mapping.split_without_effect().into_iter().collect();
        let why = mapping.ungoverned(self.page_size()).filter(|_| self.machine.governor);
        warnings.extend(why.map(|why| format!("the governor leaves the mapping alone: {why}")));
        warnings
    }

    /// Warnings about the seeds of its accesses when it runs with this number of `seeds`: one
    /// sentence each, without the full stop.
    pub fn seed_warnings(&self, seeds: u64) -> Vec<String> {
        let mut warnings = Vec::new();
        let drawn = || self.accesses().filter(|accesses| accesses.is_random());
        let begin_at_once = self.threads.iter().all(|thread| thread.stagger_ns == 0);
        if seeds > 1 && begin_at_once && drawn().all(|accesses| accesses.has_own_seed) {
            let why = match drawn().next() {
                Some(_) => "each phase that draws its accesses has a seed of its own",
                None => "no phase draws its accesses",
            };
            warnings.push(format!("--seeds changes nothing: {why}"));
        }
        warnings.extend(self.drawn_alike().map(|[one, other]| {
            format!(
                "threads '{one}' and '{other}' draw the same pages in the same order; give their \
                 phases different seeds, such as seed = 1 and seed = 2"
            )
        }));
        warnings
    }

    /// The names of two threads that draw the same pages of a file in the same order.
    fn drawn_alike(&self) -> Option<[&str; 2]> {
        let mut drawn: BTreeMap<(usize, u64, String, u64), usize> = BTreeMap::new();
        for (number, thread) in self.threads.iter().enumerate() {
            for step in &thread.steps {
                let Some(accesses) = step.phase().filter(|accesses| accesses.is_random()) else {
                    continue;
                };
                let len_bytes = match step {
                    ProgramStep::Read { len_bytes, .. } => *len_bytes,
                    step => step.touched_mapping().map_or(0, |mapping| {
                        self.mappings[mapping].mapping.pages.bytes(self.page_size())
                    }),
                };
                let file = self.step_file(step)?;
                let key = (file, len_bytes, accesses.pattern.to_string(), accesses.seed);
                let other = *drawn.entry(key).or_insert(number);
                if other != number {
                    return Some([&self.threads[other].name, &thread.name]);
                }
            }
        }
        None
    }

    /// Whether any mapping is advised HUGEPAGE.
    pub fn wants_huge_pages(&self) -> bool {
        let by_step = |step: &ProgramStep| {
            matches!(step, ProgramStep::Madvise { advice: Madvise::Flag(AdviceFlag::Huge), .. })
        };
        self.mappings.iter().any(|mapping| mapping.mapping.advice.is_huge())
            || self.steps().any(by_step)
    }

    /// Whether it uses an existing file.
    pub fn has_file(&self) -> bool {
        self.files.iter().any(|named| named.file.path.is_some())
    }

    /// Whether threads of the process can block each other on locks: it has several, and one of
    /// them takes `mmap_lock` for writing.
    pub fn waits_for_locks(&self, process: usize) -> bool {
        let of_process = |thread: &&Thread| thread.process == process;
        let mut steps = self.threads.iter().filter(of_process).flat_map(|thread| &thread.steps);
        let are_several = self.threads.iter().filter(of_process).nth(1).is_some();
        are_several && steps.any(ProgramStep::changes_mappings)
    }

    /// Maximum pages of anonymous memory that it holds, besides private copies of file pages: of
    /// several threads, the sum of what each holds at most.
    pub fn max_anonymous(&self) -> PageCount {
        let of_threads = self.threads.iter().map(|thread| held_pages(&thread.steps).1);
        PageCount(of_threads.fold(self.anonymous.0, u64::saturating_add))
    }

    /// `pages` of anonymous memory if a memory limit charges them. Without one they matter to
    /// nothing, and no engine holds them.
    pub fn limited_anonymous(&self, pages: PageCount) -> PageCount {
        if self.machine.cache_limit.is_some() { pages } else { PageCount(0) }
    }

    /// Whether anything of its files is cached at the beginning.
    pub fn starts_warm(&self) -> bool {
        self.files.iter().any(|named| !named.file.cached.is_empty())
    }

    /// The share of its files that is cached at the beginning, for reports: `cold`.
    pub fn start_text(&self) -> String {
        let pages = |ranges: &[Range<PageIndex>]| -> u64 {
            ranges.iter().map(|range| range.end.0 - range.start.0).sum()
        };
        let cached: u64 = self.files.iter().map(|named| pages(&named.file.cached)).sum();
        let all: u64 = (0..self.files.len()).map(|file| self.file_pages(file).0).sum();
        match cached {
            0 => "cold".to_string(),
            _ if cached == all => "warm".to_string(),
            _ => format!("{:.0} % cached", cached as f64 * 100.0 / all as f64),
        }
    }

    /// Whether any of its accesses depend on the seed.
    pub fn is_random(&self) -> bool {
        self.accesses().any(Phase::is_random)
    }

    /// The job with another seed, for itself and for phases without their own.
    pub fn with_seed(&self, seed: u64) -> Job {
        let mut job = self.clone();
        for step in job.threads.iter_mut().flat_map(|thread| &mut thread.steps) {
            if let Some(accesses) = step.phase_mut().filter(|accesses| !accesses.has_own_seed) {
                accesses.seed = seed;
            }
        }
        job.seed = seed;
        (job.spec.seed, job.spec.seed_text) = (Some(seed), Some(seed.to_string()));
        job
    }
}

/// Pages of anonymous memory that `steps` leave allocated, and hold at most.
pub(crate) fn held_pages(steps: &[ProgramStep]) -> (u64, u64) {
    steps.iter().fold((0u64, 0), |(held, most), step| {
        let held = match step {
            ProgramStep::Allocate { pages } => held.saturating_add(pages.0),
            ProgramStep::Free { pages } => held.saturating_sub(pages.0),
            _ => held,
        };
        (held, held.max(most))
    })
}

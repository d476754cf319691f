//! What is run: a job, every value resolved.

use std::collections::BTreeMap;

use filemap_core::address::vma::AdviceFlag;
use filemap_core::rules::Rules;
use filemap_core::units::{PageCount, PageIndex};

use crate::accesses::{Accesses, Reads};
use crate::parts::{EngineKind, Image, Machine, Phase};
use crate::program::{
    Barrier, Madvise, NamedFile, NamedMapping, Open, ProgramSpec, ProgramStep, ProgramThread,
};
use crate::size::shorten;

/// What is run, every value resolved: files, opens, mappings, processes, threads and their steps,
/// limits and machine, as [`ProgramSpec::validate`] makes it.
#[derive(Clone, Debug, PartialEq)]
pub struct Job {
    /// As it was written, with the kernel that was found for it.
    pub spec: ProgramSpec,
    /// The engine that is to run it.
    pub engine: EngineKind,
    /// The kernel to boot; `None` runs on the host's.
    pub image: Option<Image>,
    /// How many times it runs: 1 or more.
    pub runs: u64,
    /// The kernel's rules with the patch series on top.
    pub rules: Rules,
    /// Memory, readahead and architecture.
    pub machine: Machine,
    /// Seed of the phases that name none: not 0.
    pub seed: u64,
    /// Pages that it holds beside its files.
    pub anonymous: PageCount,
    /// The files: at least one.
    pub files: Vec<NamedFile>,
    /// Open file descriptions.
    pub opens: Vec<Open>,
    /// Mappings, at their addresses one after the other.
    pub mappings: Vec<NamedMapping>,
    /// CPUs that its threads run on, where the job file says it.
    pub cpus: Option<u32>,
    /// The names of its processes: the first makes the mappings that are there at the start, and
    /// forks the others before the first step. All share its open file descriptions.
    pub processes: Vec<String>,
    /// Where threads meet.
    pub barriers: Vec<Barrier>,
    /// Its threads: at least one.
    pub threads: Vec<ProgramThread>,
    /// Which table of the job file each of them comes of.
    pub tables: TableOf,
}

/// The tables of a job file that files, mappings and threads come of, as indexes: one table can
/// stand for several.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct TableOf {
    /// Of each file.
    pub files: Vec<usize>,
    /// Of each open file.
    pub opens: Vec<usize>,
    /// Of each mapping.
    pub mappings: Vec<usize>,
    /// Of each thread.
    pub threads: Vec<usize>,
}

impl Job {
    /// Base page size in bytes.
    pub fn page_size(&self) -> u64 {
        self.machine.arch.page_size
    }

    /// Whether a table of the job file stands for several files or threads.
    pub fn is_counted(&self) -> bool {
        self.spec.is_counted()
    }

    /// The steps of all threads, one thread after the other.
    pub fn steps(&self) -> impl Iterator<Item = &ProgramStep> {
        self.threads.iter().flat_map(|thread| &thread.steps)
    }

    /// The accesses of those steps that make any, in the same order.
    pub fn accesses(&self) -> impl Iterator<Item = &Phase> {
        self.steps().filter_map(ProgramStep::phase)
    }

    /// How messages name a step: `phase 2`, with its thread where there are several.
    pub fn step_name(&self, thread: usize, step: usize) -> String {
        let phase = format!("phase {}", step + 1);
        match self.threads.as_slice() {
            [_] => phase,
            threads => format!("thread '{}': {phase}", shorten(&threads[thread].name)),
        }
    }

    /// Whether `step` reads past the page cache.
    pub fn is_direct(&self, step: &ProgramStep) -> bool {
        matches!(step, ProgramStep::Read { open, .. } if self.opens[*open].direct)
    }

    /// Pages of a file; a partial last page counts.
    pub fn file_pages(&self, file: usize) -> PageCount {
        PageCount(self.files[file].file.size_bytes.div_ceil(self.page_size()))
    }

    /// The pages of a mapping that are touched, in order.
    pub fn touches<'a>(&self, mapping: usize, accesses: &'a Phase) -> Accesses<'a> {
        self.mappings[mapping].touches(accesses)
    }

    /// The blocks that are read of a part of `len_bytes` bytes, from its beginning.
    pub fn reads(&self, len_bytes: u64, accesses: &Phase) -> Reads {
        accesses.reads(len_bytes, self.page_size())
    }

    /// The first page of a mapping that lies beyond its file's end, if any of it does: counted from
    /// the mapping's first page.
    pub fn beyond_file(&self, mapping: usize) -> Option<PageIndex> {
        let NamedMapping { open, mapping, segments, .. } = &self.mappings[mapping];
        if !segments.is_empty() {
            return None;
        }
        let left =
            self.file_pages(self.opens[*open].file).saturating_sub(PageCount(mapping.offset.0));
        (left < mapping.pages).then_some(PageIndex(left.0))
    }

    /// What its flags say that changes nothing, as a sentence each, without its full stop.
    pub fn without_effect(&self) -> Vec<String> {
        let [of] = self.mappings.as_slice() else { return Vec::new() };
        if !self.is_single_mapping() {
            return Vec::new();
        }
        let mut told: Vec<String> = of.mapping.split_without_effect().into_iter().collect();
        let why = of.ungoverned(self.page_size()).filter(|_| self.machine.governor);
        told.extend(why.map(|why| format!("the governor leaves the mapping alone: {why}")));
        told
    }

    /// What is to be said of the seeds of its accesses, as a sentence each, without its full stop.
    /// It is run with so many `seeds`.
    pub fn told_of_seeds(&self, seeds: u64) -> Vec<String> {
        let mut told = Vec::new();
        let drawn = || self.accesses().filter(|accesses| accesses.is_random());
        let begin_at_once = self.threads.iter().all(|thread| thread.stagger_ns == 0);
        if seeds > 1 && begin_at_once && drawn().all(|accesses| accesses.has_own_seed) {
            let why = match drawn().next() {
                Some(_) => "each phase that draws its accesses has a seed of its own",
                None => "no phase draws its accesses",
            };
            told.push(format!("--seeds changes nothing: {why}"));
        }
        told.extend(self.drawn_alike().map(|[one, other]| {
            format!(
                "threads '{one}' and '{other}' draw the same pages in the same order; give their \
                 phases seeds, such as seed = 1 and seed = 2, for others"
            )
        }));
        told
    }

    /// Two threads that draw the same pages of a file in the same order.
    fn drawn_alike(&self) -> Option<[&str; 2]> {
        let mut drawn: BTreeMap<(usize, u64, String, u64), usize> = BTreeMap::new();
        for (number, thread) in self.threads.iter().enumerate() {
            for step in &thread.steps {
                let Some(accesses) = step.phase().filter(|accesses| accesses.is_random()) else {
                    continue;
                };
                let len_bytes = match step {
                    ProgramStep::Read { len_bytes, .. } => *len_bytes,
                    step => step
                        .touched()
                        .map_or(0, |of| self.mappings[of].mapping.pages.bytes(self.page_size())),
                };
                let file = self.file_of(step)?;
                let key = (file, len_bytes, accesses.pattern.to_string(), accesses.seed);
                let other = *drawn.entry(key).or_insert(number);
                if other != number {
                    return Some([&self.threads[other].name, &thread.name]);
                }
            }
        }
        None
    }

    /// Whether any of it is advised HUGEPAGE.
    pub fn wants_huge_pages(&self) -> bool {
        let by_step = |step: &ProgramStep| {
            matches!(step, ProgramStep::Madvise { advice: Madvise::Flag(AdviceFlag::Huge), .. })
        };
        self.mappings.iter().any(|of| of.mapping.advice.is_huge()) || self.steps().any(by_step)
    }

    /// Whether it reads a file of this machine.
    pub fn has_file(&self) -> bool {
        self.files.iter().any(|named| named.file.path.is_some())
    }

    /// Whether threads of a process wait for locks of each other: there are several, and one of
    /// them takes `mmap_lock` to write.
    pub fn waits_for_locks(&self, process: usize) -> bool {
        let of_process = |thread: &&ProgramThread| thread.process == process;
        let mut steps = self.threads.iter().filter(of_process).flat_map(|thread| &thread.steps);
        let are_several = self.threads.iter().filter(of_process).nth(1).is_some();
        are_several && steps.any(ProgramStep::changes_mappings)
    }

    /// Whether any of its accesses are drawn, so that another seed means other accesses.
    pub fn is_random(&self) -> bool {
        self.accesses().any(Phase::is_random)
    }

    /// The same job with another seed: its own, and that of the phases that have none of their
    /// own.
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

//! Draws the jobs of a search: random ones or variations of a job, and variations of findings.

use std::sync::Arc;

use filemap_job::program::{MappingSpec, ThreadPhaseSpec};
use filemap_job::random::Rng;
use filemap_job::workload::EXEC;
use filemap_job::{Error, JobFlags, JobSpec, PhaseSpec, SizeText, Workload};
use filemap_model::Profile;

use crate::error as study;
use crate::job_input::JobInput;
use crate::kernel_match;
use crate::machine_profile;
use crate::random_jobs::{self, READ_AHEAD_KB, pages, remove_phases, size};

/// Maximum file size in pages, unless the file was larger already.
const MAX_FILE_PAGES: u64 = 16_384;

/// Maximum number of accesses of a phase.
const MAX_PHASE_ACCESSES: u64 = 8192;

/// Maximum number of phases that a variation adds to.
const MAX_PHASES: usize = 6;

/// The space of jobs.
pub struct JobSpace {
    /// The job that all others are variations of; `None` for random jobs with a single mapping.
    start: Option<JobSpec>,
    /// Keys that all jobs have in common.
    fixed: JobFlags,
}

impl JobSpace {
    /// Random jobs with the keys in `fixed`, or variations of `start` with these keys.
    pub fn new(start: Option<JobSpec>, fixed: JobFlags) -> JobSpace {
        JobSpace { start, fixed }
    }

    /// The space of a search that begins with the job `input`, or whose random jobs have its flags
    /// in common; also the model's profile, and warnings for the reader of the report.
    ///
    /// # Errors
    /// When the job is invalid or cannot be resolved.
    pub fn from_input(input: &JobInput) -> Result<(JobSpace, Profile, Vec<String>), study::Error> {
        let mut fixed = JobFlags { seed: None, ..input.flags.clone() };
        if input.path.is_none() {
            let profile = machine_profile::resolve_name(&mut fixed.machine, None)?;
            return Ok((JobSpace { start: None, fixed }, profile, Vec::new()));
        }
        let mut spec = input.spec.clone();
        // The variants run once each in the model.
        (spec.on, spec.image, spec.modules, spec.runs, spec.with) = (None, None, None, None, None);
        let found = input.resolve(&mut spec)?;
        let profile = found.on_device(machine_profile::resolve(&mut spec)?);
        fixed.machine.clone_from(&spec.machine);
        let job = input.validate(&spec)?;
        kernel_match::check(&job)?;
        let start = random_jobs::with_accesses(&spec, &job);
        Ok((JobSpace { start: Some(start), fixed }, profile, found.warnings))
    }

    /// A job with the machine of all jobs, with the kernel of `fixed` or `kernel`.
    ///
    /// # Errors
    /// Invalid fixed keys.
    pub(super) fn machine_job(&self, kernel: Option<String>) -> Result<JobSpec, Error> {
        let mut spec = match &self.start {
            Some(start) => start.clone(),
            None => JobSpec::from_flags(&JobFlags {
                workload: Some("first".to_string()),
                accesses: Some(1),
                file_size: size(1),
                kernel: self.fixed.kernel.clone(),
                machine: self.fixed.machine.clone(),
                ..JobFlags::default()
            })?,
        };
        spec.kernel = kernel.or(spec.kernel);
        Ok(spec)
    }

    /// Job `number` of `seed`: a random one, or a variation of the first job.
    ///
    /// # Errors
    /// If the fixed keys do not go with it.
    pub fn job(&self, seed: u64, number: u64) -> Result<JobSpec, Error> {
        match &self.start {
            None => self.random_job(seed, number),
            Some(start) if number == 0 => Ok(start.clone()),
            Some(start) => self.vary_job(start, &mut Rng(Rng(seed).next() ^ number)),
        }
    }

    fn random_job(&self, seed: u64, number: u64) -> Result<JobSpec, Error> {
        let mut job = random_jobs::draw_job(seed, number);
        let mut rng = Rng(Rng(seed ^ number).next());
        let pages = pages(job.file_size.as_ref());
        if rng.chance(30) {
            job.cache_limit = size((pages / (2 + rng.below(8))).max(512));
        }
        if rng.chance(20) {
            job.fault_around = Some(SizeText(rng.pick(&["4k", "16k", "256k"]).to_string()));
        }
        if self.fixed.workload.as_deref() == Some(EXEC) {
            for phase in &mut job.phase {
                (phase.workload, phase.bs) = (self.fixed.workload.clone(), None);
            }
        }
        self.with_fixed_keys(JobSpec::from_flags(&job)?)
    }

    /// A variation of `job` in one or a few keys.
    ///
    /// # Errors
    /// If the fixed keys do not go with it.
    pub fn vary_job(&self, job: &JobSpec, rng: &mut Rng) -> Result<JobSpec, Error> {
        let mut changed = job.clone();
        for _ in 0..1 + rng.below(3) {
            changed = changed.changed(|job| redraw_key(job, rng));
        }
        self.with_fixed_keys(changed)
    }

    /// Whether `job` has the fixed keys.
    pub fn has(&self, job: &JobSpec) -> bool {
        self.with_fixed_keys(job.clone()).as_ref() == Ok(job)
    }

    /// Restores what `job` lost in JSON: sizes and contents of the files of the first job.
    pub(super) fn restore_files(&self, job: &mut JobSpec) {
        let Some(start) = &self.start else { return };
        for file in &mut job.file {
            let same = start.file.iter().find(|own| own.name == file.name && own.path == file.path);
            file.found = same.and_then(|own| own.found.clone());
        }
        let mut start = start.clone();
        for (path, text) in job.accesses_files() {
            let mut own = start.accesses_files();
            *text = own.find(|(own, _)| *own == path).and_then(|(_, text)| text.clone());
        }
    }

    /// `job` with the fixed keys. Those of a phase apply to each phase.
    fn with_fixed_keys(&self, job: JobSpec) -> Result<JobSpec, Error> {
        let JobFlags { workload, accesses, fraction, bs, .. } = self.fixed.clone();
        let phase = JobFlags { workload, accesses, fraction, bs, ..JobFlags::default() };
        let others = JobFlags {
            workload: None,
            accesses: None,
            fraction: None,
            bs: None,
            ..self.fixed.clone()
        };
        let job = job.changed(|job| {
            if self.start.is_none() && others.file_size.is_some() {
                job.mapping.iter_mut().for_each(|own| (own.offset, own.len) = (None, None));
            }
            fix_phases(job, &phase);
        });
        job.with_flags(&others)
    }
}

/// Gives each phase with accesses the keys of `fixed`.
fn fix_phases(job: &mut JobSpec, fixed: &JobFlags) {
    if *fixed == JobFlags::default() {
        return;
    }
    let JobSpec { thread, mapping, .. } = job;
    let phases = thread.iter_mut().flat_map(|thread| &mut thread.phase);
    for phase in phases.filter(|phase| phase.has_accesses()) {
        let mut accesses = phase.accesses();
        let is_exec = is_exec(accesses.workload.as_deref());
        match fixed.workload.as_deref() {
            // Lowered to these.
            Some(EXEC) if is_exec => {}
            Some(EXEC) => accesses.workload = Some(Workload::ExecRandom.to_string()),
            Some(workload) => accesses.workload = Some(workload.to_string()),
            None => {}
        }
        if fixed.workload.is_some() || fixed.bs.is_some() && accesses.bs.is_some() {
            accesses.bs.clone_from(&fixed.bs);
        }
        let is_cold = accesses.workload.as_deref() == Some(&*Workload::ExecCold.to_string());
        if (fixed.accesses.is_some() || fixed.fraction.is_some()) && !is_cold {
            (accesses.accesses, accesses.fraction) = (fixed.accesses, fixed.fraction);
        }
        set_accesses(phase, &accesses, mapping);
    }
}

fn is_exec(workload: Option<&str>) -> bool {
    workload.and_then(|name| name.parse().ok()).is_some_and(Workload::is_exec)
}

/// Replaces what `phase` accesses by `accesses`, of the same mapping or open file.
fn set_accesses(phase: &mut ThreadPhaseSpec, accesses: &PhaseSpec, mappings: &[MappingSpec]) {
    let mapping = mappings.iter().find(|mapping| is_of(phase, mapping));
    let lowered = mapping.and_then(|mapping| accesses.lowered(mapping).ok());
    let Some(mut lowered) = lowered.and_then(|mut phases| phases.pop()) else { return };
    if accesses.workload.is_none() {
        (lowered.pages, lowered.offsets) = (phase.pages.take(), phase.offsets.take());
    }
    if phase.mapping.is_some() && lowered.mapping.is_some() {
        lowered.write = phase.write;
    }
    if phase.open.is_some() && lowered.open.is_some() {
        (lowered.offset, lowered.len) = (phase.offset.take(), phase.len.take());
    }
    lowered.think_ns = phase.think_ns;
    lowered.after = std::mem::take(&mut phase.after);
    *phase = lowered;
}

/// Whether `phase` accesses `mapping` or reads its open file.
fn is_of(phase: &ThreadPhaseSpec, mapping: &MappingSpec) -> bool {
    phase.mapping.as_ref() == Some(&mapping.name) || phase.open.as_ref() == Some(&mapping.open)
}

/// Doubles, halves, increments or decrements `number`, within 1 and `most`.
fn vary_number(rng: &mut Rng, number: u64, most: u64) -> u64 {
    let other = match rng.below(4) {
        0 => number.saturating_mul(2),
        1 => number / 2,
        2 => number + 1,
        _ => number.saturating_sub(1),
    };
    other.clamp(1, most)
}

/// A random index of `all` items; 0 if there is one at most.
fn pick_index(rng: &mut Rng, all: usize) -> usize {
    if all > 1 { rng.below(all as u64) as usize } else { 0 }
}

/// Index of the file of `mapping`.
fn file_of(job: &JobSpec, mapping: &MappingSpec) -> Option<usize> {
    let open = job.open.iter().find(|open| open.name == mapping.open)?;
    job.file.iter().position(|file| file.name == open.file)
}

/// Number of pages of `mapping`, at least 1.
fn mapped_pages(job: &JobSpec, mapping: &MappingSpec) -> u64 {
    let file = || {
        let file = &job.file[file_of(job, mapping)?];
        let found = file.found.as_ref().map(|found| SizeText::from_bytes(found.size_bytes));
        let all = pages(file.size.as_ref().or(found.as_ref()));
        Some(all.saturating_sub(pages(mapping.offset.as_ref())))
    };
    let own = mapping.len.as_ref().map(|len| pages(Some(len)));
    own.or_else(file).unwrap_or(1).max(1)
}

/// Redraws one key of `job`.
fn redraw_key(job: &mut JobSpec, rng: &mut Rng) {
    let thread = pick_index(rng, job.thread.len());
    let at = pick_index(rng, job.mapping.len());
    let mapped = job.mapping.get(at).map_or(1, |mapping| mapped_pages(job, mapping));
    let phases = job.thread[thread].phase.len();
    match rng.below(11) {
        0 => vary_file(job, at, rng),
        2 => job.read_ahead_kb = Some(rng.pick(&READ_AHEAD_KB)),
        5 => {
            job.cache_limit =
                rng.chance(50).then(|| size((mapped / (2 + rng.below(8))).max(512))).flatten();
        }
        6 if phases > 1 => {
            let phase = rng.below(phases as u64) as usize;
            remove_phases(job, thread, phase..phase + 1);
        }
        7 if phases < MAX_PHASES && !job.mapping.is_empty() => {
            let phase = random_jobs::phase(rng, mapped);
            let lowered = phase.lowered(&job.mapping[at]).unwrap_or_default();
            job.thread[thread].phase.extend(lowered);
        }
        8 => {
            let around = rng.pick(&["4k", "16k", "64k", "256k"]);
            job.fault_around = Some(SizeText(around.to_string()));
        }
        9 => job.seed = Some(1 + rng.below(1 << 40)),
        key @ (1 | 3 | 4) if !job.mapping.is_empty() => {
            redraw_mapping_key(&mut job.mapping[at], key, mapped, rng);
        }
        _ => change_phase(job, thread, rng),
    }
}

/// Changes the size of the file of mapping `at`. The only mapping of a file covers it afterwards.
fn vary_file(job: &mut JobSpec, at: usize, rng: &mut Rng) {
    let file = job.mapping.get(at).map_or(Some(0), |mapping| file_of(job, mapping));
    let Some(number) = file.filter(|file| job.file[*file].path.is_none()) else { return };
    let pages = pages(job.file[number].size.as_ref());
    let pages = vary_number(rng, pages, pages.max(MAX_FILE_PAGES));
    job.file[number].size = size(pages);
    if job.is_single_mapping() {
        (job.mapping[0].offset, job.mapping[0].len) = (size(0), size(pages));
    }
}

/// Redraws the pieces, the advice or the place of a mapping of `mapped` pages.
fn redraw_mapping_key(mapping: &mut MappingSpec, key: u64, mapped: u64, rng: &mut Rng) {
    match key {
        1 => {
            let split = match mapping.split {
                Some(_) if rng.chance(20) => None,
                Some(split) => Some(vary_number(rng, split, mapped)),
                None => Some(1 + rng.below(mapped.min(64))),
            };
            let is_split = split.filter(|_| !mapping.private && !mapping.exec);
            let kind = is_split.map(|_| rng.pick(&["write", "exec"]));
            mapping.split_prot = kind.map(str::to_string);
            mapping.split = split.filter(|_| kind.is_some());
        }
        3 => {
            let advice = rng.pick(&["normal", "normal", "random", "sequential", "hugepage"]);
            mapping.advice = Some(advice.to_string());
        }
        _ => mapping.shift = rng.chance(50).then(|| rng.below(512)),
    }
}

/// Redraws the accesses of a phase of `thread`.
fn change_phase(job: &mut JobSpec, thread: usize, rng: &mut Rng) {
    let phases = job.thread[thread].phase.iter().enumerate();
    let accessing: Vec<usize> =
        phases.filter(|(_, phase)| phase.has_accesses()).map(|(at, _)| at).collect();
    let which = rng.below(accessing.len().max(1) as u64) as usize;
    let Some(&at) = accessing.get(which) else { return };
    let phase = &job.thread[thread].phase[at];
    let mapping = job.mapping.iter().find(|mapping| is_of(phase, mapping));
    let mapped = mapping.map_or(1, |mapping| mapped_pages(job, mapping));
    let JobSpec { thread: threads, mapping: mappings, .. } = job;
    let phase = &mut threads[thread].phase[at];
    match (rng.below(3), phase.accesses) {
        (0, Some(accesses)) => {
            phase.accesses = Some(vary_number(rng, accesses, MAX_PHASE_ACCESSES))
        }
        // One access for each page.
        (1, Some(_)) => phase.accesses = Some(mapped.min(MAX_PHASE_ACCESSES)),
        (0 | 1, None) if phase.pages.is_some() || phase.offsets.is_some() => {
            let lists = [&mut phase.pages, &mut phase.offsets];
            for list in lists.into_iter().flatten() {
                let first = rng.below(list.len().max(1) as u64) as usize;
                let kept = 1 + rng.below((list.len() - first).max(1) as u64) as usize;
                *list = Arc::new(list.iter().skip(first).take(kept).copied().collect());
            }
        }
        _ => {
            let PhaseSpec { workload, bs, .. } = random_jobs::phase(rng, mapped);
            let own = phase.accesses();
            let accesses = random_jobs::accesses(phase);
            let accesses = PhaseSpec { workload, bs, accesses, accesses_file: None, ..own };
            set_accesses(phase, &accesses, mappings);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn draws_valid_jobs_with_fixed_keys() {
        let fixed = JobFlags::from_toml("read_ahead_kb = 128\nfile_size = '4m'").unwrap();
        for space in [
            JobSpace::new(None, JobFlags::default()),
            JobSpace::new(None, fixed.clone()),
            JobSpace::new(Some(JobSpec::from_toml(TABLES).unwrap()), JobFlags::default()),
        ] {
            let mut rng = Rng(1);
            let mut valid = 0;
            for number in 0..200 {
                let drawn = space.job(7, number).unwrap();
                let varied = space.vary_job(&drawn, &mut rng).unwrap();
                for job in [drawn, varied] {
                    assert!(number == 0 || space.has(&job), "{job:?}");
                    valid += u32::from(job.validate(None).is_ok());
                }
            }
            assert!(valid > 300, "{valid} of 400");
        }
    }

    const TABLES: &str = "[[file]]\nname = 'a'\nsize = '4m'\n[[file]]\nname = 'b'\nsize = '2m'\n\
        [[open]]\nname = 'a'\nfile = 'a'\n[[open]]\nname = 'b'\nfile = 'b'\n\
        [[mapping]]\nname = 'm'\nopen = 'a'\n[[mapping]]\nname = 'n'\nopen = 'b'\n\
        [[thread]]\nphase = [{ mapping = 'm', pages = [3, 4, 5, 6] },\n\
        { mapping = 'm', madvise = 'willneed' }]\n\
        [[thread]]\nphase = [{ mapping = 'n', workload = 'random', accesses = 40, think_ns = 9 },\n\
        { open = 'b', workload = 'read-random', accesses = 5, bs = '8k' }]\n";

    /// Random jobs are those that flags describe, and variations of them stay such.
    #[test]
    fn varies_jobs_of_flags_to_jobs_of_flags() {
        let space = JobSpace::new(None, JobFlags::default());
        let mut rng = Rng(1);
        for number in 0..200 {
            let mut job = space.job(7, number).unwrap();
            for _ in 0..3 {
                assert!(job.to_flags().is_some(), "{number}: {job:?}");
                job = space.vary_job(&job, &mut rng).unwrap();
            }
        }
    }
}

//! A job back as text that repeats it.

use filemap_core::address::mapping::SplitProt;
use filemap_core::address::vma::Advice;
use filemap_core::rules::Family;
use filemap_core::units::PageCount;

use crate::flags::JobSpec;
use crate::job::Job;
use crate::one_file::OneFile;
use crate::parts::{EngineKind, Filesystem, Pattern, Phase};
use crate::phase_spec::PhaseSpec;
use crate::phases::DEFAULT_READ_BYTES;
use crate::size::SizeText;
use crate::validate::{DEFAULT_FAULT_AROUND_BYTES, DEFAULT_READ_AHEAD_KB};
use crate::workload::{EXEC, Workload};
use crate::xorshift::DEFAULT_SEED;

impl OneFile {
    /// The job as written, with everything said that decides what it does, defaults included:
    /// [`JobSpec::validate`] makes the same job of it (given the text of its accesses files).
    pub(crate) fn to_spec(&self) -> JobSpec {
        let (mapping, machine) = (&self.mapping, &self.machine);
        let bytes = |pages: PageCount| SizeText::of(pages.bytes(self.page_size()));
        let limit =
            machine.cache_limit.filter(|_| machine.cache_limit != machine.implied_cache_limit());
        let mut spec = JobSpec {
            file_size: Some(SizeText::of(self.file.size_bytes)),
            file: self.file.path.clone(),
            map_offset: Some(SizeText::of(mapping.offset.0 * self.page_size())),
            map_len: Some(bytes(mapping.pages)),
            map_shift: Some(mapping.shift.0),
            split: mapping.split.map(|split| split.pages.0),
            split_prot: mapping.split.map(|split| split.prot.name().to_string()),
            advice: Some(mapping.advice.name().to_string()),
            exec: Some(mapping.exec),
            private: Some(mapping.private),
            sparse: Some(self.file.sparse),
            cold: self.file.cold.then_some(true),
            cache_limit: limit.map(bytes),
            ..spec_of(self)
        };
        if self.elf.is_some() {
            spec = JobSpec {
                file_size: None,
                map_offset: None,
                map_len: None,
                exec: None,
                private: None,
                sparse: None,
                elf: self.elf.clone(),
                ..spec
            };
        }
        match self.phases.as_slice() {
            [only] if !only.has_own_seed => {
                let phase = self.phase_spec(only);
                spec.workload = phase.workload;
                spec.accesses = phase.accesses;
                spec.accesses_file = phase.accesses_file;
                spec.bs = phase.bs;
            }
            [cold, random] if self.is_exec(cold, random) => {
                spec.workload = Some(EXEC.to_string());
                spec.accesses = Some(random.accesses);
            }
            several => spec.phase = several.iter().map(|phase| self.phase_spec(phase)).collect(),
        }
        spec
    }

    /// Whether these are the two phases of `exec`, nothing about them said otherwise.
    fn is_exec(&self, cold: &Phase, random: &Phase) -> bool {
        cold.pattern == Pattern::Generated(Workload::ExecCold)
            && cold.accesses == self.mapping.pages.0
            && random.pattern == Pattern::Generated(Workload::ExecRandom)
            && !(cold.has_own_seed || random.has_own_seed)
    }

    fn phase_spec(&self, phase: &Phase) -> PhaseSpec {
        let mut spec = phase.to_spec();
        if self.elf.is_some() && spec.accesses_file.is_some() {
            spec.workload = Some(Workload::Elf.to_string());
        }
        spec
    }
}

impl Job {
    /// It as a job file.
    pub fn to_toml(&self) -> String {
        let Some(flags) = &self.of_flags else {
            return toml::to_string(&self.spec).unwrap_or_default();
        };
        let mut spec = flags.clone();
        // TOML does not round the number.
        spec.seed_text = None;
        spec.phase.iter_mut().for_each(|phase| phase.seed_text = None);
        spec.to_toml()
    }

    /// The command line that repeats it, without what is default; for what no flags can say, the
    /// command for the job file of [`Job::to_toml`].
    pub fn command(&self) -> String {
        match &self.of_flags {
            Some(flags) if flags.phase.is_empty() => {
                self.without_defaults(JobSpec::clone(flags)).run_command()
            }
            _ => "filemap run JOB.toml".to_string(),
        }
    }

    fn without_defaults(&self, mut spec: JobSpec) -> JobSpec {
        drop_defaults(&mut spec, self.page_size());
        drop_if(&mut spec.bs, SizeText::of(DEFAULT_READ_BYTES));
        drop_if(&mut spec.map_offset, SizeText::of(0));
        let offset = self.mappings[0].mapping.offset;
        let rest = self.file_pages(0).saturating_sub(PageCount(offset.0));
        drop_if(&mut spec.map_len, SizeText::of(rest.bytes(self.page_size())));
        drop_if(&mut spec.map_shift, 0);
        drop_if(&mut spec.advice, Advice::NORMAL.name().to_string());
        drop_if(&mut spec.split_prot, SplitProt::Write.name().to_string());
        spec
    }
}

/// What a job says of engine, kernel and machine, as written.
fn spec_of(job: &OneFile) -> JobSpec {
    let OneFile { rules, machine, .. } = job;
    let page_size = job.page_size();
    JobSpec {
        on: Some(job.engine.to_string()),
        kernel: Some(rules.kernel.name().to_string()),
        image: job.image.as_ref().map(|image| image.path.clone()),
        modules: job.image.as_ref().and_then(|image| image.modules.clone()),
        with: Some(rules.series.to_string()),
        runs: Some(job.runs),
        machine: machine.profile.clone(),
        governor: machine.governor.then_some(true),
        seed: Some(job.seed),
        seed_text: Some(job.seed.to_string()),
        ram: machine.ram_bytes.map(SizeText::of),
        memory_high: machine.memory_high_bytes.map(SizeText::of),
        memory_max: machine.memory_max_bytes.map(SizeText::of),
        read_ahead_kb: Some(machine.read_ahead.bytes(page_size) / 1024),
        fault_around: Some(SizeText::of(machine.fault_around.bytes(page_size))),
        arch: Some(machine.arch.family.name().to_string()),
        page_size: Some(SizeText::of(page_size)),
        fs: Some(machine.fs.to_string()),
        ..JobSpec::default()
    }
}

/// Takes away what is default of `spec_of`.
fn drop_defaults(spec: &mut JobSpec, page_size: u64) {
    drop_if(&mut spec.on, EngineKind::Model.to_string());
    drop_if(&mut spec.with, "baseline".to_string());
    drop_if(&mut spec.runs, 1);
    drop_if(&mut spec.seed, DEFAULT_SEED);
    drop_if(&mut spec.read_ahead_kb, DEFAULT_READ_AHEAD_KB);
    let fault_around = DEFAULT_FAULT_AROUND_BYTES.max(page_size);
    drop_if(&mut spec.fault_around, SizeText::of(fault_around));
    drop_if(&mut spec.arch, Family::X86_64.name().to_string());
    drop_if(&mut spec.page_size, SizeText::of(4096));
    drop_if(&mut spec.fs, Filesystem::Ext4.to_string());
}

impl JobSpec {
    /// The command line that runs what flags can say of it.
    fn run_command(&self) -> String {
        let words = ["filemap".to_string(), "run".to_string()];
        words.into_iter().chain(self.flags()).collect::<Vec<_>>().join(" ")
    }

    /// What the job does, for a heading: `random of 1g`, `accesses of pages.txt of 1g`, `3 phases`.
    pub fn heading(&self) -> String {
        let listed = self.accesses_file.as_ref().map(|path| format!("accesses of {path}"));
        let does = self.workload.clone().or(listed);
        let does = does.unwrap_or_else(|| format!("{} phases", self.phase.len()));
        match &self.file_size {
            Some(size) => format!("{does} of {}", size.0),
            None => does,
        }
    }
}

impl Phase {
    fn to_spec(&self) -> PhaseSpec {
        let mut spec = PhaseSpec::default();
        match &self.pattern {
            Pattern::Generated(workload) => {
                spec.workload = Some(workload.to_string());
                spec.accesses = Some(self.accesses);
                spec.seed = self.has_own_seed.then_some(self.seed);
                spec.seed_text = spec.seed.map(|seed| seed.to_string());
            }
            Pattern::Listed(list) => spec.accesses_file = Some(list.path.clone()),
        }
        spec.bs = self.is_read().then(|| SizeText::of(self.bs_bytes));
        spec
    }
}

/// Takes `value` away where it is the default.
fn drop_if<T: PartialEq>(value: &mut Option<T>, default: T) {
    if value.as_ref() == Some(&default) {
        *value = None;
    }
}

//! A job of one file as its flags say it, before it becomes a program.

use filemap_core::rules::Rules;
use filemap_core::units::PageCount;

use crate::elf::{Elf, Segment};
use crate::flags::JobSpec;
use crate::parts::{EngineKind, File, Image, Machine, Mapping, Pattern, Phase};
use crate::phase_spec::PhaseSpec;
use crate::size::SizeText;
use crate::workload::{EXEC, Workload};

/// A job that flags say, every value resolved: the program that it is follows from it.
#[derive(Clone, Debug, PartialEq)]
pub(crate) struct OneFile {
    /// The engine that is to run it.
    pub engine: EngineKind,
    /// The kernel that is booted for it, instead of the running one.
    pub image: Option<Image>,
    /// The kernel's rules with the patch series on top.
    pub rules: Rules,
    /// How many times it runs: 1 or more.
    pub runs: u64,
    /// Seed of the phases that name none: not 0.
    pub seed: u64,
    /// The accesses, one phase after the other: at least one.
    pub phases: Vec<Phase>,
    /// The file.
    pub file: File,
    /// The mapping of it. Of an ELF file only length, advice and shift count: the length is that
    /// of all segments together.
    pub mapping: Mapping,
    /// The file as a program that is loaded: each of its segments is mapped.
    pub elf: Option<Elf>,
    /// Memory, readahead and architecture.
    pub machine: Machine,
}

impl OneFile {
    /// Base page size in bytes.
    pub(crate) fn page_size(&self) -> u64 {
        self.machine.arch.page_size
    }

    /// The segments that are mapped of an ELF file, in its order; none of any other file.
    pub(crate) fn segments(&self) -> Vec<Segment> {
        let segments = self.elf.as_ref().map(|elf| elf.segments(self.page_size()));
        segments.map_or(Vec::new(), |valid| valid.expect("the job was validated"))
    }

    /// Bytes of the file that are mapped: the mapping's length up to the end of the file. Of an
    /// ELF file all, as reads know no segments.
    pub(crate) fn mapped_bytes(&self) -> u64 {
        match self.elf {
            Some(_) => self.file.size_bytes,
            None => self.mapping.bytes_of(&self.file, self.page_size()),
        }
    }

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
            ..self.of_machine()
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

    /// What it says of engine, kernel and machine, as written.
    fn of_machine(&self) -> JobSpec {
        let OneFile { rules, machine, .. } = self;
        let page_size = self.page_size();
        let has_blocks = machine.block_bytes > page_size;
        JobSpec {
            on: Some(self.engine.to_string()),
            kernel: Some(rules.kernel.name().to_string()),
            image: self.image.as_ref().map(|image| image.path.clone()),
            modules: self.image.as_ref().and_then(|image| image.modules.clone()),
            with: Some(rules.series.to_string()),
            runs: Some(self.runs),
            machine: machine.profile.clone(),
            governor: machine.governor.then_some(true),
            seed: Some(self.seed),
            seed_text: Some(self.seed.to_string()),
            ram: machine.ram_bytes.map(SizeText::of),
            memory_high: machine.memory_high_bytes.map(SizeText::of),
            memory_max: machine.memory_max_bytes.map(SizeText::of),
            read_ahead_kb: Some(machine.read_ahead.bytes(page_size) / 1024),
            fault_around: Some(SizeText::of(machine.fault_around.bytes(page_size))),
            arch: Some(machine.arch.family.name().to_string()),
            page_size: Some(SizeText::of(page_size)),
            fs: Some(machine.fs.to_string()),
            block_size: has_blocks.then(|| SizeText::of(machine.block_bytes)),
            ..JobSpec::default()
        }
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

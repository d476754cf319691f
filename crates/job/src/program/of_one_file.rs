//! A job of one file as the program that it is: one file, opened and mapped once, and one thread.

use super::spec::{FileSpec, FoundFile, MappingSpec, OpenSpec, ThreadPhaseSpec, ThreadSpec};
use super::{
    Access, Job, NamedFile, NamedMapping, Open, ProgramSpec, ProgramStep, ProgramThread, TableOf,
    threads,
};
use crate::flags::JobSpec;
use crate::one_file::OneFile;
use crate::parts::{Pattern, Phase};
use crate::size::SizeText;

/// What its tables are called.
const FILE: &str = "file";
const OPEN: &str = "open";
const MAPPING: &str = "mapping";

impl OneFile {
    /// The program that it is.
    pub(crate) fn program(&self) -> Job {
        let steps = self.phases.iter().map(|phase| self.step(phase)).collect();
        let flags = self.to_spec();
        Job {
            spec: self.program_spec(&flags),
            of_flags: Some(Box::new(flags)),
            engine: self.engine,
            image: self.image.clone(),
            runs: self.runs,
            rules: self.rules,
            machine: self.machine.clone(),
            seed: self.seed,
            anonymous: Default::default(),
            files: vec![NamedFile { name: FILE.to_string(), file: self.file.clone() }],
            opens: vec![Open { name: OPEN.to_string(), file: 0, direct: false }],
            mappings: vec![self.named_mapping()],
            cpus: None,
            processes: vec![threads::MAIN.to_string()],
            barriers: Vec::new(),
            threads: vec![ProgramThread::once(steps)],
            tables: TableOf { files: vec![0], opens: vec![0], mappings: vec![0], threads: vec![0] },
        }
    }

    /// Its mapping.
    pub(crate) fn named_mapping(&self) -> NamedMapping {
        NamedMapping {
            name: MAPPING.to_string(),
            open: 0,
            mapping: self.mapping,
            segments: self.segments(),
            at_start: true,
        }
    }

    fn step(&self, phase: &Phase) -> ProgramStep {
        let (accesses, think_ns) = (phase.clone(), 0);
        if phase.is_read() {
            let offset_bytes = self.mapping.offset.0 * self.page_size();
            let len_bytes = self.mapped_bytes();
            return ProgramStep::Read { open: 0, offset_bytes, len_bytes, accesses, think_ns };
        }
        let access = match () {
            () if phase.is_exec() => Access::Call,
            () if self.mapping.private => Access::Write,
            () => Access::Read,
        };
        ProgramStep::Touch { mapping: 0, accesses, access, think_ns }
    }

    /// The job file of that program, with everything said that decides what it does, where `spec`
    /// is [`OneFile::to_spec`].
    fn program_spec(&self, spec: &JobSpec) -> ProgramSpec {
        let is_elf = self.elf.is_some();
        let file = FileSpec {
            name: FILE.to_string(),
            size: spec.file_size.clone().filter(|_| self.file.path.is_none()),
            path: self.file.path.clone(),
            sparse: self.file.sparse && self.file.path.is_none(),
            count: None,
            found: self.file.path.is_some().then(|| FoundFile {
                size_bytes: self.file.size_bytes,
                sparse: self.file.sparse,
                elf: self.elf.clone(),
            }),
        };
        let mapping = MappingSpec {
            name: MAPPING.to_string(),
            open: OPEN.to_string(),
            offset: spec.map_offset.clone().filter(|_| !is_elf),
            len: spec.map_len.clone().filter(|_| !is_elf),
            shift: spec.map_shift,
            advice: spec.advice.clone(),
            elf: is_elf,
            exec: self.mapping.exec,
            private: self.mapping.private,
            split: spec.split,
            split_prot: spec.split_prot.clone(),
        };
        let program = ProgramSpec {
            file: vec![file],
            open: vec![OpenSpec { name: OPEN.to_string(), file: FILE.to_string(), direct: false }],
            mapping: vec![mapping],
            thread: vec![ThreadSpec {
                phase: self.phases.iter().map(|phase| self.thread_phase(phase)).collect(),
                ..ThreadSpec::default()
            }],
            ..ProgramSpec::default()
        };
        program.overlay(spec)
    }

    fn thread_phase(&self, phase: &Phase) -> ThreadPhaseSpec {
        let touch = ThreadPhaseSpec {
            mapping: Some(MAPPING.to_string()),
            write: self.mapping.private,
            ..ThreadPhaseSpec::default()
        };
        let workload = match &phase.pattern {
            Pattern::Listed(list) => {
                return ThreadPhaseSpec { pages: Some(list.pages.clone()), ..touch };
            }
            Pattern::Generated(workload) => *workload,
        };
        let own = if workload.is_read() { self.read(phase) } else { touch };
        ThreadPhaseSpec {
            workload: Some(workload.to_string()),
            accesses: Some(phase.accesses),
            seed: phase.has_own_seed.then_some(phase.seed),
            ..own
        }
    }

    /// It reads what is mapped, as far as the file goes.
    fn read(&self, phase: &Phase) -> ThreadPhaseSpec {
        ThreadPhaseSpec {
            open: Some(OPEN.to_string()),
            offset: Some(SizeText::of(self.mapping.offset.0 * self.page_size())),
            len: Some(SizeText::of(self.mapped_bytes())),
            bs: Some(SizeText::of(phase.bs_bytes)),
            ..ThreadPhaseSpec::default()
        }
    }
}

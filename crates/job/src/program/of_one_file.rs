//! A job of one file as the program that it is: one file, opened and mapped once, and one thread.

use super::ProgramSpec;
use super::spec::{FileSpec, FoundFile, MappingSpec, OpenSpec, ThreadPhaseSpec, ThreadSpec};
use crate::Error;
use crate::job::{Job, Pattern, Phase};
use crate::size::SizeText;
use crate::workload::Workload;

/// What its tables are called.
const FILE: &str = "file";
const OPEN: &str = "open";
const MAPPING: &str = "mapping";

impl Job {
    /// The program that makes the same decisions, with everything said that decides what it does.
    ///
    /// # Errors
    /// Of a job that calls code or loads segments, for which programs have no steps.
    pub fn to_program(&self) -> Result<ProgramSpec, Error> {
        let spec = self.to_spec();
        let file = FileSpec {
            name: FILE.to_string(),
            size: spec.file_size.clone().filter(|_| self.file.path.is_none()),
            path: self.file.path.clone(),
            sparse: self.file.sparse && self.file.path.is_none(),
            found: self.file.path.is_some().then_some(FoundFile {
                size_bytes: self.file.size_bytes,
                sparse: self.file.sparse,
            }),
        };
        let mapping = MappingSpec {
            name: MAPPING.to_string(),
            open: OPEN.to_string(),
            offset: spec.map_offset.clone(),
            len: spec.map_len.clone(),
            shift: spec.map_shift,
            advice: spec.advice.clone(),
            exec: self.mapping.exec,
            private: self.mapping.private,
            split: spec.split,
            split_prot: spec.split_prot.clone(),
        };
        let phase = self.phases.iter().map(|phase| self.thread_phase(phase));
        let program = ProgramSpec {
            file: vec![file],
            open: vec![OpenSpec { name: OPEN.to_string(), file: FILE.to_string() }],
            mapping: vec![mapping],
            thread: vec![ThreadSpec { name: None, phase: phase.collect::<Result<_, _>>()? }],
            ..ProgramSpec::default()
        };
        Ok(program.overlay(&spec))
    }

    fn thread_phase(&self, phase: &Phase) -> Result<ThreadPhaseSpec, Error> {
        let touch = ThreadPhaseSpec {
            mapping: Some(MAPPING.to_string()),
            write: self.mapping.private,
            ..ThreadPhaseSpec::default()
        };
        match &phase.pattern {
            Pattern::Listed(list) if self.elf.is_none() => {
                Ok(ThreadPhaseSpec { pages: Some(list.pages.clone()), ..touch })
            }
            Pattern::Generated(workload) if self.elf.is_none() && has_step(*workload) => {
                let own = match workload.is_read() {
                    true => self.read(phase),
                    false => touch,
                };
                Ok(ThreadPhaseSpec {
                    workload: Some(workload.to_string()),
                    accesses: Some(phase.accesses),
                    seed: (phase.seed != self.seed).then_some(phase.seed),
                    ..own
                })
            }
            pattern => Err(Error::NoProgram { workload: pattern.to_string() }),
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

/// Whether a step of a program does it.
fn has_step(workload: Workload) -> bool {
    !workload.is_exec() && workload != Workload::Elf
}

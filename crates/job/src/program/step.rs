//! What a step is about.

use std::sync::Arc;

use super::{Access, Fadvise, Job, Madvise, ProgramStep, ProgramThread};
use crate::job::Phase;
use crate::xorshift::DEFAULT_SEED;

impl ProgramStep {
    /// Reads a byte of each of these pages of a mapping, in order.
    pub fn touch(mapping: usize, pages: Vec<u64>) -> ProgramStep {
        let accesses = Phase::listed(Arc::new(pages), DEFAULT_SEED, 1);
        ProgramStep::Touch { mapping, accesses, access: Access::Read, think_ns: 0 }
    }

    /// The mapping that it is about.
    pub fn mapping(&self) -> Option<usize> {
        match self {
            ProgramStep::Map { mapping } | ProgramStep::Unmap { mapping, .. } => Some(*mapping),
            step => step.touched(),
        }
    }

    /// The mapping whose pages it touches, advises or protects, as an index.
    pub fn touched(&self) -> Option<usize> {
        match self {
            ProgramStep::Touch { mapping, .. }
            | ProgramStep::Madvise { mapping, .. }
            | ProgramStep::Mprotect { mapping, .. } => Some(*mapping),
            _ => None,
        }
    }

    /// Time between two of its accesses, in nanoseconds.
    pub fn think_ns(&self) -> u64 {
        match self {
            ProgramStep::Touch { think_ns, .. } | ProgramStep::Read { think_ns, .. } => *think_ns,
            _ => 0,
        }
    }

    /// Time that it spends so in all, in nanoseconds.
    pub fn thinks_ns(&self) -> u64 {
        self.accesses().saturating_mul(self.think_ns())
    }

    /// Whether it takes `mmap_lock` to write.
    pub fn changes_mappings(&self) -> bool {
        match self {
            ProgramStep::Map { .. }
            | ProgramStep::Unmap { .. }
            | ProgramStep::Mprotect { .. }
            | ProgramStep::Fork => true,
            ProgramStep::Madvise { advice, .. } => matches!(advice, Madvise::Flag(_)),
            _ => false,
        }
    }

    /// Whether it calls code.
    pub fn calls(&self) -> bool {
        matches!(self, ProgramStep::Touch { access: Access::Call, .. })
    }

    /// Whether it drops pages of its file from the cache.
    pub fn drops(&self) -> bool {
        let drops = matches!(self, ProgramStep::Fadvise { advice: Fadvise::DontNeed, .. });
        drops || self.pages_out()
    }

    /// Whether it evicts pages of its file as reclaim does.
    pub fn pages_out(&self) -> bool {
        matches!(self, ProgramStep::Madvise { advice: Madvise::PageOut, .. })
    }
}

impl Job {
    /// The open file that `step` is about, as an index.
    pub fn open_of(&self, step: &ProgramStep) -> Option<usize> {
        match step {
            ProgramStep::Map { mapping }
            | ProgramStep::Unmap { mapping, .. }
            | ProgramStep::Madvise { mapping, .. }
            | ProgramStep::Mprotect { mapping, .. }
            | ProgramStep::Touch { mapping, .. } => Some(self.mappings[*mapping].open),
            ProgramStep::Fadvise { open, .. } | ProgramStep::Read { open, .. } => Some(*open),
            ProgramStep::Fork | ProgramStep::Barrier { .. } | ProgramStep::Sleep { .. } => None,
        }
    }

    /// The file that `step` is about, as an index.
    pub fn file_of(&self, step: &ProgramStep) -> Option<usize> {
        self.open_of(step).map(|open| self.opens[open].file)
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

    /// The same program with another seed: its own, and that of the phases that had it.
    pub fn with_seed(&self, seed: u64) -> Job {
        let mut program = self.clone();
        let steps = program.threads.iter_mut().flat_map(|thread| &mut thread.steps);
        for step in steps {
            let (ProgramStep::Touch { accesses, .. } | ProgramStep::Read { accesses, .. }) = step
            else {
                continue;
            };
            if accesses.seed == self.seed {
                accesses.seed = seed;
            }
        }
        program.seed = seed;
        program.spec.seed = Some(seed);
        if let Some(flags) = &mut program.of_flags {
            flags.reseed(self.seed, seed);
        }
        program
    }
}

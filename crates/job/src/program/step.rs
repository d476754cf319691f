//! What a step is about.

use super::{Fadvise, Program, ProgramStep};

impl ProgramStep {
    /// The mapping whose pages it touches or advises, as an index.
    pub fn touched(&self) -> Option<usize> {
        match self {
            ProgramStep::Touch { mapping, .. } | ProgramStep::Madvise { mapping, .. } => {
                Some(*mapping)
            }
            _ => None,
        }
    }

    /// Whether it drops pages of its file from the cache.
    pub fn drops(&self) -> bool {
        matches!(self, ProgramStep::Fadvise { advice: Fadvise::DontNeed, .. })
    }
}

impl Program {
    /// The open file that `step` is about, as an index.
    pub fn open_of(&self, step: &ProgramStep) -> usize {
        match step {
            ProgramStep::Map { mapping }
            | ProgramStep::Unmap { mapping }
            | ProgramStep::Madvise { mapping, .. }
            | ProgramStep::Touch { mapping, .. } => self.mappings[*mapping].open,
            ProgramStep::Fadvise { open, .. } | ProgramStep::Read { open, .. } => *open,
        }
    }

    /// The file that `step` is about, as an index.
    pub fn file_of(&self, step: &ProgramStep) -> usize {
        self.opens[self.open_of(step)].file
    }

    /// Time that its threads spend thinking, in nanoseconds: that of all of them together.
    pub fn think_ns(&self) -> u64 {
        let thinks = self.steps().map(|step| match step {
            ProgramStep::Touch { accesses, think_ns, .. }
            | ProgramStep::Read { accesses, think_ns, .. } => {
                accesses.accesses.saturating_mul(*think_ns)
            }
            _ => 0,
        });
        thinks.fold(0, u64::saturating_add)
    }

    /// Whether any of its accesses are drawn, so that another seed means other accesses.
    pub fn is_random(&self) -> bool {
        self.steps().any(|step| match step {
            ProgramStep::Touch { accesses, .. } | ProgramStep::Read { accesses, .. } => {
                accesses.is_random()
            }
            _ => false,
        })
    }

    /// The same program with another seed: its own, and that of the phases that had it.
    pub fn with_seed(&self, seed: u64) -> Program {
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
        program
    }
}

//! What a step is about, and how reports name it.

use super::{Program, ProgramStep};

impl ProgramStep {
    /// The mapping whose pages it touches, as an index.
    pub fn touched(&self) -> Option<usize> {
        match self {
            ProgramStep::Touch { mapping, .. } => Some(*mapping),
            _ => None,
        }
    }
}

impl Program {
    /// The open file that `step` is about, as an index.
    pub fn open_of(&self, step: &ProgramStep) -> usize {
        match step {
            ProgramStep::Map { mapping }
            | ProgramStep::Unmap { mapping }
            | ProgramStep::Touch { mapping, .. } => self.mappings[*mapping].open,
            ProgramStep::Read { open, .. } => *open,
        }
    }

    /// The file that `step` is about, as an index.
    pub fn file_of(&self, step: &ProgramStep) -> usize {
        self.opens[self.open_of(step)].file
    }

    /// What `step` does, in words: `map left`.
    pub fn describe(&self, step: &ProgramStep) -> String {
        let mapping = |number: &usize| &self.mappings[*number].name;
        match step {
            ProgramStep::Map { mapping: number } => format!("map {}", mapping(number)),
            ProgramStep::Unmap { mapping: number } => format!("unmap {}", mapping(number)),
            ProgramStep::Touch { mapping: number, accesses, write, .. } => {
                let does = if *write { "write" } else { "touch" };
                format!("{does} {}: {}", mapping(number), accesses.pattern)
            }
            ProgramStep::Read { open, accesses, .. } => {
                format!("read {}: {}", self.opens[*open].name, accesses.pattern)
            }
        }
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

//! What jobs of every form have in common.

use filemap_core::rules::Rules;
use serde_json::{Map, Value};

use crate::job::{EngineKind, Image, Job, Machine};
use crate::program::{Program, ProgramRecord, ProgramRun};
use crate::record::{Record, Run};

/// A job of a form that is run: of one file, or shaped like a program.
pub trait Work: Clone + Send + Sync {
    /// What one run comes to.
    type Run: Clone + Send;
    /// What all runs come to.
    type Record: Recorded<Run = Self::Run> + Send;

    /// The engine that is to run it.
    fn engine(&self) -> EngineKind;

    /// The kernel that is booted for it, instead of the running one.
    fn image(&self) -> Option<&Image>;

    /// The same, to be changed.
    fn image_mut(&mut self) -> Option<&mut Image>;

    /// The kernel's rules with the patch series on top.
    fn rules(&self) -> &Rules;

    /// How many times it runs: 1 or more.
    fn runs(&self) -> u64;

    /// The seed that it names.
    fn seed(&self) -> u64;

    /// The machine that it is for.
    fn machine(&self) -> &Machine;

    /// The same, to be changed.
    fn machine_mut(&mut self) -> &mut Machine;

    /// Whether it reads a file of this machine.
    fn has_file(&self) -> bool;

    /// The same with another seed.
    fn with_seed(&self, seed: u64) -> Self;

    /// The record of `runs`, which `engine` made in `environment`.
    fn record(
        &self,
        engine: EngineKind,
        environment: Map<String, Value>,
        runs: Vec<Self::Run>,
    ) -> Self::Record;
}

/// What all runs of a job come to.
pub trait Recorded {
    /// What one run came to.
    type Run;

    /// Where and how the runs took place.
    fn environment(&self) -> &Map<String, Value>;

    /// The same, to be added to, and the name of the engine that made the runs.
    fn environment_mut(&mut self) -> (&mut Map<String, Value>, &str);

    /// The environment and all runs.
    fn into_parts(self) -> (Map<String, Value>, Vec<Self::Run>);
}

macro_rules! work {
    ($job:ty, $run:ty, $record:ty, $of_runs:path, $has_file:expr) => {
        impl Work for $job {
            type Run = $run;
            type Record = $record;

            fn engine(&self) -> EngineKind {
                self.engine
            }

            fn image(&self) -> Option<&Image> {
                self.image.as_ref()
            }

            fn image_mut(&mut self) -> Option<&mut Image> {
                self.image.as_mut()
            }

            fn rules(&self) -> &Rules {
                &self.rules
            }

            fn runs(&self) -> u64 {
                self.runs
            }

            fn seed(&self) -> u64 {
                self.seed
            }

            fn machine(&self) -> &Machine {
                &self.machine
            }

            fn machine_mut(&mut self) -> &mut Machine {
                &mut self.machine
            }

            fn has_file(&self) -> bool {
                let has_file: fn(&$job) -> bool = $has_file;
                has_file(self)
            }

            fn with_seed(&self, seed: u64) -> Self {
                <$job>::with_seed(self, seed)
            }

            fn record(
                &self,
                engine: EngineKind,
                environment: Map<String, Value>,
                runs: Vec<$run>,
            ) -> $record {
                $of_runs(self, engine.name(), environment, runs)
            }
        }
    };
}

work!(Job, Run, Record, Record::new, |job| job.file.path.is_some());
work!(Program, ProgramRun, ProgramRecord, ProgramRecord::new, |program| {
    program.files.iter().any(|named| named.file.path.is_some())
});

macro_rules! recorded {
    ($record:ty, $run:ty, $into_parts:expr) => {
        impl Recorded for $record {
            type Run = $run;

            fn environment(&self) -> &Map<String, Value> {
                &self.environment
            }

            fn environment_mut(&mut self) -> (&mut Map<String, Value>, &str) {
                (&mut self.environment, &self.engine)
            }

            fn into_parts(self) -> (Map<String, Value>, Vec<$run>) {
                let into_parts: fn($record) -> (Map<String, Value>, Vec<$run>) = $into_parts;
                into_parts(self)
            }
        }
    };
}

recorded!(Record, Run, |record| (record.environment, record.runs));
recorded!(ProgramRecord, ProgramRun, |record| {
    let runs = record.all_runs().to_vec();
    (record.environment, runs)
});

//! The keys that programs and jobs of one file share: where and how something runs.

use super::ProgramSpec;
use crate::flags::JobSpec;

macro_rules! shared {
    ($($key:ident),+ $(,)?) => {
        impl ProgramSpec {
            /// The keys of this that jobs of one file have as well.
            pub fn shared(&self) -> JobSpec {
                JobSpec { $( $key: self.$key.clone(), )+ ..JobSpec::default() }
            }

            /// This program with what `job` gives of the keys that both have, in place of its own.
            pub fn overlay(self, job: &JobSpec) -> ProgramSpec {
                ProgramSpec { $( $key: job.$key.clone().or(self.$key), )+ ..self }
            }

            /// The first flag of `job` that no program has.
            pub fn foreign_flag(job: &JobSpec) -> Option<String> {
                let foreign = JobSpec { $( $key: None, )+ ..job.clone() };
                foreign.flags().into_iter().next()
            }
        }
    };
}

shared! {
    on, kernel, image, modules, with, runs, machine, seed, cold, ram, cache_limit, memory_high,
    memory_max, read_ahead_kb, fault_around, arch, page_size, fs,
}

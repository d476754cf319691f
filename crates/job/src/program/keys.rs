//! A program as written: its tables, and the keys that stand before them.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use super::spec::{FileSpec, FoundFile, MappingSpec, OpenSpec, ThreadSpec};
use crate::Error;
use crate::flags::JobSpec;
use crate::job_file::{self, Form};
use crate::size::SizeText;

/// Declares the struct, and what goes over its keys. Those that are `shared` are keys of jobs of
/// one file as well: where and how something runs.
macro_rules! program {
    (
        shared { $( $(#[doc = $shared_doc:literal])+ $shared:ident: $shared_type:ty, )+ }
        own { $( $(#[doc = $own_doc:literal])+ $own:ident: $own_type:ty, )+ }
    ) => {
        /// A program as written. What is `None` was not given.
        #[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
        #[serde(default, deny_unknown_fields)]
        pub struct ProgramSpec {
            $( $(#[doc = $shared_doc])+ #[serde(skip_serializing_if = "Option::is_none")]
            pub $shared: Option<$shared_type>, )+
            $( $(#[doc = $own_doc])+ #[serde(skip_serializing_if = "Option::is_none")]
            pub $own: Option<$own_type>, )+
            /// The files.
            pub file: Vec<FileSpec>,
            /// Open file descriptions.
            pub open: Vec<OpenSpec>,
            /// Mappings.
            #[serde(skip_serializing_if = "Vec::is_empty")]
            pub mapping: Vec<MappingSpec>,
            /// What the program does: the phases of each thread.
            pub thread: Vec<ThreadSpec>,
        }

        impl ProgramSpec {
            /// The keys that stand before its tables.
            pub(crate) const KEYS: &[&str] = &[$( stringify!($shared), )+ $( stringify!($own), )+];

            /// The keys of this that jobs of one file have as well.
            pub fn shared(&self) -> JobSpec {
                JobSpec { $( $shared: self.$shared.clone(), )+ ..JobSpec::default() }
            }

            /// This program with what `job` gives of the keys that both have, in place of its own.
            pub fn overlay(self, job: &JobSpec) -> ProgramSpec {
                ProgramSpec { $( $shared: job.$shared.clone().or(self.$shared), )+ ..self }
            }

            /// The first flag of `job` that no program has. Advice is for all of its mappings: see
            /// [`ProgramSpec::advise`].
            pub fn foreign_flag(job: &JobSpec) -> Option<String> {
                let foreign = JobSpec { $( $shared: None, )+ advice: None, ..job.clone() };
                foreign.flags().into_iter().next()
            }
        }
    };
}

program! {
    shared {
        /// Engine: `model` or `kernel`.
        on: String,
        /// How many runs.
        runs: u64,
        /// Rules of the model: `6.1`, `6.6`, `6.12`, `6.18` or `host`.
        kernel: String,
        /// Path of a kernel image to boot.
        image: String,
        /// Directory with the modules of the image.
        modules: String,
        /// Patch series on top, joined by `,` or `+`.
        with: String,
        /// Path of a machine profile.
        machine: String,
        /// Seed of random patterns.
        seed: u64,
        /// Existing files are dropped from the page cache for a real kernel, even where much of
        /// them is cached.
        cold: bool,
        /// RAM of the machine.
        ram: SizeText,
        /// Size of the page cache.
        cache_limit: SizeText,
        /// `memory.high` of the cgroup.
        memory_high: SizeText,
        /// `memory.max` of the cgroup.
        memory_max: SizeText,
        /// Readahead size in KiB.
        read_ahead_kb: u64,
        /// Fault-around size.
        fault_around: SizeText,
        /// Architecture: `x86-64` or `arm64`.
        arch: String,
        /// Base page size.
        page_size: SizeText,
        /// Filesystem: `ext4`, `xfs` or `base-pages`.
        fs: String,
        /// Size of its blocks, on XFS.
        block_size: SizeText,
        /// CPUs that its threads run on.
        cpus: u64,
        /// The governor's policy reads ahead, in the model.
        governor: bool,
    }
    own {
        /// Memory that the program holds beside its files.
        anonymous: SizeText,
    }
}

/// A file that exists already.
pub struct ExistingFile<'a> {
    /// Its name.
    pub name: &'a str,
    /// Its path.
    pub path: &'a str,
    /// Whether its headers are wanted.
    pub is_elf: bool,
    /// Where to put what is found there.
    pub found: &'a mut Option<FoundFile>,
}

impl ProgramSpec {
    /// Whether a job file is of this form: it has tables of files, opens, mappings or threads.
    pub fn is_meant(text: &str) -> bool {
        job_file::has_tables(text)
    }

    /// The files that exist already.
    pub fn existing_files(&mut self) -> impl Iterator<Item = ExistingFile<'_>> {
        let ProgramSpec { file, open, mapping, .. } = self;
        let (opens, mappings) = (&*open, &*mapping);
        file.iter_mut().filter_map(|file| {
            let mut of_file = opens.iter().filter(|open| open.file == file.name);
            let is_elf = of_file.any(|open| {
                mappings.iter().any(|mapping| mapping.elf && mapping.open == open.name)
            });
            let (path, found) = (file.path.as_deref()?, &mut file.found);
            Some(ExistingFile { name: &file.name, path, is_elf, found })
        })
    }

    /// Reads a job file.
    ///
    /// # Errors
    /// As for [`crate::JobSpec::from_toml`].
    pub fn from_toml(text: &str) -> Result<ProgramSpec, Error> {
        let form = Form::Program { keys: ProgramSpec::KEYS };
        toml::from_str(text).map_err(|error| job_file::in_one_line(text, form, &error))
    }
}

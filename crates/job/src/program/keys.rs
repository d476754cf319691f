//! A program as written: its tables, and the keys that stand before them.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use super::spec::{FileSpec, FoundFile, MappingSpec, OpenSpec, ThreadSpec};
use crate::Error;
use crate::flags::JobSpec;
use crate::job_file::{self, Form};
use crate::origins::Origins;
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
            /// Which of its values flags gave, for messages.
            #[serde(skip)]
            pub origins: Origins,
        }

        impl ProgramSpec {
            /// The keys that stand before its tables.
            pub(crate) const KEYS: &[&str] = &[$( stringify!($shared), )+ $( stringify!($own), )+];

            /// The keys before the tables, as flags.
            pub fn shared(&self) -> JobSpec {
                JobSpec { $( $shared: self.$shared.clone(), )+ ..JobSpec::default() }
            }

            /// Replaces the keys before the tables by those that `flags` give.
            pub(crate) fn overlay(self, flags: &JobSpec) -> ProgramSpec {
                let mut spec =
                    ProgramSpec { $( $shared: flags.$shared.clone().or(self.$shared), )+ ..self };
                if flags.seed.is_some() {
                    spec.seed_text = flags.seed_text.clone();
                }
                let given = flags.given().map(|flag| flag.key);
                given.filter(|key| ProgramSpec::is_shared(key)).for_each(|key| spec.origins.add(key));
                spec
            }

            /// Sets the keys before the tables that are not given to those of `other`.
            pub fn or_shared(self, other: &ProgramSpec) -> ProgramSpec {
                ProgramSpec { $( $shared: self.$shared.or(other.$shared.clone()), )+ ..self }
            }

            /// Whether `key` stands before the tables.
            pub(crate) fn is_shared(key: &str) -> bool {
                [$( stringify!($shared) ),+].contains(&key)
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
        /// `seed` in decimal digits, for readers of JSON that round large numbers; takes precedence.
        seed_text: String,
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

    /// The accesses files that its phases name, with the place for the text of each.
    pub fn accesses_files(&mut self) -> impl Iterator<Item = (&str, &mut Option<String>)> {
        let phases = self.thread.iter_mut().flat_map(|thread| &mut thread.phase);
        phases.filter_map(|phase| {
            phase.accesses_file.as_deref().map(|path| (path, &mut phase.accesses_text))
        })
    }

    /// The job as a job file.
    pub fn to_toml(&self) -> String {
        let mut spec = self.clone();
        // TOML does not round integers.
        spec.seed_text = None;
        let phases = spec.thread.iter_mut().flat_map(|thread| &mut thread.phase);
        phases.for_each(|phase| phase.seed_text = None);
        toml::to_string(&spec).unwrap_or_default()
    }

    /// Reads a job file, with tables or without.
    ///
    /// # Errors
    /// Those of [`ProgramSpec::from_toml`] and [`ProgramSpec::from_flags`].
    pub fn read(text: &str) -> Result<ProgramSpec, Error> {
        match job_file::has_tables(text) {
            true => ProgramSpec::from_toml(text),
            false => ProgramSpec::from_flags(&JobSpec::from_toml(text)?),
        }
    }

    /// Reads a job file with tables.
    ///
    /// # Errors
    /// As for [`crate::JobSpec::from_toml`].
    pub fn from_toml(text: &str) -> Result<ProgramSpec, Error> {
        let form = Form::Program { keys: ProgramSpec::KEYS };
        toml::from_str(text).map_err(|error| job_file::in_one_line(text, form, &error))
    }
}

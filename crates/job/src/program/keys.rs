//! A job file with tables: its top-level keys and their parsing.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use super::spec::{FileSpec, FoundFile, MappingSpec, OpenSpec, ThreadSpec};
use crate::Error;
use crate::flags::JobFlags;
use crate::job_file::{self, Form};
use crate::origins::Origins;
use crate::size::SizeText;

/// Declares the struct and the operations over its keys. All of them also exist in jobs with a
/// single file: they say where and how the job runs.
macro_rules! program {
    (
        $( $(#[doc = $shared_doc:literal])+ $shared:ident: $shared_type:ty, )+
    ) => {
        /// A job as written, with tables. `None`: not given.
        #[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
        #[serde(default, deny_unknown_fields)]
        pub struct JobSpec {
            $( $(#[doc = $shared_doc])+ #[serde(skip_serializing_if = "Option::is_none")]
            pub $shared: Option<$shared_type>, )+
            /// Files.
            pub file: Vec<FileSpec>,
            /// Open file descriptions.
            pub open: Vec<OpenSpec>,
            /// Mappings.
            #[serde(skip_serializing_if = "Vec::is_empty")]
            pub mapping: Vec<MappingSpec>,
            /// Threads and their phases.
            pub thread: Vec<ThreadSpec>,
            /// Which values came from flags, for error messages.
            #[serde(skip)]
            pub origins: Origins,
        }

        impl JobSpec {
            /// The top-level keys.
            pub(crate) const KEYS: &[&str] = &[$( stringify!($shared), )+];

            /// The shared keys, as flags.
            pub fn shared(&self) -> JobFlags {
                JobFlags { $( $shared: self.$shared.clone(), )+ ..JobFlags::default() }
            }

            /// Replaces the shared keys that `flags` sets.
            pub(crate) fn overlay(self, flags: &JobFlags) -> JobSpec {
                let mut spec =
                    JobSpec { $( $shared: flags.$shared.clone().or(self.$shared), )+ ..self };
                if flags.seed.is_some() {
                    spec.seed_text = flags.seed_text.clone();
                }
                let keys = flags.present().map(|flag| flag.key);
                keys.filter(|key| JobSpec::is_shared(key)).for_each(|key| spec.origins.add(key));
                spec
            }

            /// Takes shared keys that are not set from `other`.
            pub fn or_shared(self, other: &JobSpec) -> JobSpec {
                JobSpec { $( $shared: self.$shared.or(other.$shared.clone()), )+ ..self }
            }

            /// Whether `key` is a shared key.
            pub(crate) fn is_shared(key: &str) -> bool {
                [$( stringify!($shared) ),+].contains(&key)
            }
        }
    };
}

program! {
    /// Engine: `model` or `kernel`. Default: `model`.
    on: String,
    /// Number of runs. Default: 1.
    runs: u64,
    /// Kernel version to model: `6.1`, `6.6`, `6.12`, `6.18` (the default) and others, or
    /// `host`.
    kernel: String,
    /// Path of a kernel image to boot.
    image: String,
    /// Directory with the modules of the image.
    modules: String,
    /// Patch series to apply, joined by `,` or `+`.
    with: String,
    /// Machine profile: a path, or the name of a built-in one.
    machine: String,
    /// Seed of random patterns.
    seed: u64,
    /// `seed` in decimal digits, for JSON readers that round large numbers. Takes precedence.
    seed_text: String,
    /// On a kernel, drop existing files from the page cache even if much of them is cached.
    cold: bool,
    /// What of the files is in the page cache at the beginning: `cold`, `warm`, a fraction, or
    /// `recorded` for what `cached` in the `[[file]]` tables lists. Default: `cold`.
    start: String,
    /// RAM size.
    ram: SizeText,
    /// Maximum size of the page cache.
    cache_limit: SizeText,
    /// `memory.high` of the memory cgroup.
    memory_high: SizeText,
    /// `memory.max` of the memory cgroup.
    memory_max: SizeText,
    /// Anonymous memory that the program holds at the beginning in addition to its files.
    anonymous: SizeText,
    /// Readahead size in KiB. Default: 128.
    read_ahead_kb: u64,
    /// Fault-around size. Default: `64k`.
    fault_around: SizeText,
    /// Architecture: `x86-64` or `arm64`. Default: `x86-64`.
    arch: String,
    /// Base page size. Default: `4k`.
    page_size: SizeText,
    /// Filesystem: `ext4`, `xfs` or `base-pages`. Default: `ext4`.
    fs: String,
    /// Block size of the filesystem; larger than a page on XFS only.
    block_size: SizeText,
    /// Number of CPUs that the threads run on.
    cpus: u64,
    /// Replace the kernel's readahead in the model by the governor's policy.
    governor: bool,
}

/// An existing file that a job names.
pub struct ExistingFile<'a> {
    /// Name of the file's table.
    pub name: &'a str,
    /// Path of the file.
    pub path: &'a str,
    /// Whether its ELF headers are needed.
    pub is_elf: bool,
    /// Where the caller stores what it found.
    pub found: &'a mut Option<FoundFile>,
}

impl JobSpec {
    /// Whether `text` is a job file with tables of files, opens, mappings or threads.
    pub fn is_meant(text: &str) -> bool {
        job_file::has_tables(text)
    }

    /// Makes the phases that allocate and free anonymous memory do nothing: `anonymous` is the size
    /// throughout. They stay, as other phases may wait for them.
    pub fn fix_anonymous(&mut self) {
        let phases = self.thread.iter_mut().flat_map(|thread| &mut thread.phase);
        for size in phases.flat_map(|phase| [&mut phase.allocate, &mut phase.free]) {
            *size = size.take().map(|_| SizeText::from_bytes(0));
        }
    }

    /// The existing files that the job names.
    pub fn existing_files(&mut self) -> impl Iterator<Item = ExistingFile<'_>> {
        let JobSpec { file, open, mapping, .. } = self;
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

    /// The accesses files that the phases name, each with the field for its contents.
    pub fn accesses_files(&mut self) -> impl Iterator<Item = (&str, &mut Option<String>)> {
        let phases = self.thread.iter_mut().flat_map(|thread| &mut thread.phase);
        phases.filter_map(|phase| {
            phase.accesses_file.as_deref().map(|path| (path, &mut phase.accesses_text))
        })
    }

    /// The job as a job file.
    pub fn to_toml(&self) -> String {
        let mut spec = self.clone();
        // TOML integers are not rounded.
        spec.seed_text = None;
        let phases = spec.thread.iter_mut().flat_map(|thread| &mut thread.phase);
        phases.for_each(|phase| phase.seed_text = None);
        toml::to_string(&spec).unwrap_or_default()
    }

    /// Parses a job file, with or without tables.
    ///
    /// # Errors
    /// As for [`JobSpec::from_toml`] and [`JobSpec::from_flags`].
    pub fn read(text: &str) -> Result<JobSpec, Error> {
        if job_file::has_tables(text) {
            JobSpec::from_toml(text)
        } else {
            JobSpec::from_flags(&JobFlags::from_toml(text)?)
        }
    }

    /// Parses a job file with tables.
    ///
    /// # Errors
    /// As for [`crate::JobFlags::from_toml`].
    pub fn from_toml(text: &str) -> Result<JobSpec, Error> {
        let form = Form::Program { keys: JobSpec::KEYS };
        toml::from_str(text).map_err(|error| job_file::in_one_line(text, form, &error))
    }
}

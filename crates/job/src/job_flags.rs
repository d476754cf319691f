//! A job as written: its struct, parsing, serialization and the files that it names.

use crate::Error;
use crate::flags::JobFlags;
use crate::job_file::{self, Form};
use crate::workload::{EXEC, Workload};

/// Declares [`JobFlags`] with one field per flag and the operations over all of them. Used once, in
/// [`crate::flags`], whose imports it relies on.
macro_rules! spec {
    ($( $(#[doc = $doc:literal])+ $key:ident: $type:ty = $flag:expr, )+) => {
        /// A job as written: one field per command-line flag, which is also a key of the job file.
        /// `None`: not given.
        #[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, schemars::JsonSchema)]
        #[serde(default, deny_unknown_fields)]
        pub struct JobFlags {
            $( $(#[doc = $doc])+ #[serde(skip_serializing_if = "Option::is_none")]
            pub $key: Option<$type>, )+
            /// Workloads that run one after the other, instead of `workload`.
            #[serde(skip_serializing_if = "Vec::is_empty")]
            pub phase: Vec<PhaseSpec>,
            /// `seed` in decimal digits, for JSON readers that round large numbers. Takes
            /// precedence.
            #[serde(skip_serializing_if = "Option::is_none")]
            pub seed_text: Option<String>,
            /// Contents of `accesses_file`, read by the caller.
            #[serde(skip)]
            pub accesses_text: Option<String>,
            /// ELF headers of `file` for the workload `elf`, read by the caller.
            #[serde(skip)]
            pub elf: Option<Elf>,
        }

        const FLAGS: &[Flag] = &[ $( Flag {
            key: stringify!($key),
            name: {
                const NAME: [u8; stringify!($key).len()] = dashed(stringify!($key));
                match std::str::from_utf8(&NAME) {
                    Ok(name) => name,
                    Err(_) => panic!("keys are ASCII"),
                }
            },
            doc: concat!($($doc, "\n"),+),
            kind: <$type as FlagValue>::KIND,
            ..$flag
        }, )+ ];

        impl JobFlags {
            /// This job with the values of `flags` replacing its own. A flag also removes its
            /// alternatives: `accesses` and `fraction` replace each other, and so do `workload`,
            /// `accesses_file` and phases.
            pub fn overlay(mut self, flags: JobFlags) -> JobFlags {
                self.remove_alternatives(&flags);
                JobFlags {
                    $( $key: flags.$key.or(self.$key), )+
                    phase: if flags.phase.is_empty() { self.phase } else { flags.phase },
                    seed_text: match flags.seed {
                        Some(_) => flags.seed_text,
                        None => flags.seed_text.or(self.seed_text),
                    },
                    accesses_text: flags.accesses_text.or(self.accesses_text),
                    elf: flags.elf.or(self.elf),
                }
            }

            /// Removes the alternatives of the flags set in `flags`.
            fn remove_alternatives(&mut self, flags: &JobFlags) {
                if flags.workload.is_some() || flags.accesses_file.is_some() {
                    self.phase.clear();
                    self.workload = None;
                    self.accesses_file = None;
                    self.accesses_text = None;
                }
                let lists = flags.accesses_file.is_some();
                if flags.accesses.is_some() || flags.fraction.is_some() || lists {
                    self.accesses = None;
                    self.fraction = None;
                }
            }

            /// Sets `key`, a flag's name with underscores, to `value`.
            ///
            /// # Errors
            /// An unknown key, or a value that does not parse.
            pub fn set(&mut self, key: &str, value: &str) -> Result<(), Error> {
                match key {
                    $( stringify!($key) => {
                        self.$key = Some(FlagValue::parse_text(value)?);
                        Ok(())
                    } )+
                    _ => Err(unknown("key", key, [$(stringify!($key)),+])),
                }
            }

            /// The flags that are set.
            pub fn present(&self) -> impl Iterator<Item = &'static Flag> {
                let is_set = [$( self.$key.is_some() ),+];
                FLAGS.iter().zip(is_set).filter_map(|(flag, is_set)| is_set.then_some(flag))
            }

            /// The job as command-line arguments, without phases.
            pub fn flags(&self) -> Vec<String> {
                let mut words = Vec::new();
                $( if let Some(value) = &self.$key {
                    value.push_flag(stringify!($key), &mut words);
                } )+
                words
            }
        }
    };
}

pub(crate) use spec;

impl JobFlags {
    /// Parses a job file.
    ///
    /// # Errors
    /// One line with the line number: invalid TOML, an unknown or duplicate key, or a value of the
    /// wrong type.
    pub fn from_toml(text: &str) -> Result<JobFlags, Error> {
        toml::from_str(text).map_err(|error| {
            if job_file::has_tables(text) {
                Error::IsProgram
            } else {
                job_file::in_one_line(text, Form::OneFile, &error)
            }
        })
    }

    /// The job as a job file, without defaults.
    pub fn to_toml(&self) -> String {
        toml::to_string(self).expect("a job's keys and values are all TOML's")
    }

    /// Whether it maps the segments of the ELF file `file`. The caller then reads its headers into
    /// `elf`.
    pub fn maps_elf(&self) -> bool {
        self.workloads().any(|name| name == Workload::Elf.to_string())
    }

    /// Whether it executes code in the mapping.
    pub(crate) fn calls(&self) -> bool {
        self.workloads().any(|name| {
            name == EXEC || name.parse().is_ok_and(|workload: Workload| workload.is_exec())
        })
    }

    fn workloads(&self) -> impl Iterator<Item = &str> {
        let phases = self.phase.iter().filter_map(|phase| phase.workload.as_deref());
        self.workload.as_deref().into_iter().chain(phases)
    }

    /// The accesses files that the job names, each with the field for its contents.
    pub fn accesses_files(&mut self) -> impl Iterator<Item = (&str, &mut Option<String>)> {
        let own = self.accesses_file.as_deref().map(|path| (path, &mut self.accesses_text));
        let phases = self.phase.iter_mut().filter_map(|phase| {
            phase.accesses_file.as_deref().map(|path| (path, &mut phase.accesses_text))
        });
        own.into_iter().chain(phases)
    }
}

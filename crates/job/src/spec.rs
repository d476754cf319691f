//! A job as written.

use serde::{Deserialize, Serialize};

use crate::Error;
use crate::flags::JobSpec;
use crate::job_file::{Form, in_one_line};
use crate::size::SizeText;
use crate::workload::{EXEC, Workload};

/// Declares the struct, and what goes over all its fields.
macro_rules! spec {
    ($( $(#[doc = $doc:literal])+ $key:ident: $type:ty = $flag:expr, )+) => {
        /// A job as written: one field for each flag of the command line, which is also the key
        /// of that name in a job file. What is `None` was not given.
        #[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
        #[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
        #[serde(default, deny_unknown_fields)]
        pub struct JobSpec {
            $( $(#[doc = $doc])+ #[serde(skip_serializing_if = "Option::is_none")]
            pub $key: Option<$type>, )+
            /// Workloads one after the other, instead of `workload`.
            #[serde(skip_serializing_if = "Vec::is_empty")]
            pub phase: Vec<PhaseSpec>,
            /// `seed` as text, which no reader of JSON rounds: where it is given, it counts.
            #[serde(skip_serializing_if = "Option::is_none")]
            pub seed_text: Option<String>,
            /// Text of `accesses_file`, which the caller reads.
            #[serde(skip)]
            pub accesses_text: Option<String>,
            /// The headers of `file` for the workload `elf`, which the caller reads.
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

        impl JobSpec {
            /// This job with what `flags` gives in place of its own. A flag also removes what
            /// it is an alternative to: `accesses` and `fraction`; `duration` and `rounds`;
            /// `workload`, `accesses_file` and phases.
            pub fn overlay(mut self, flags: JobSpec) -> JobSpec {
                self.remove_alternatives(&flags);
                JobSpec {
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

            /// Gives `key`, a flag's name with underscores, this value.
            ///
            /// # Errors
            /// For a key that no job has, and a value that is not of its kind.
            pub fn set(&mut self, key: &str, value: &str) -> Result<(), Error> {
                match key {
                    $( stringify!($key) => {
                        self.$key = Some(FlagValue::of_text(value)?);
                        Ok(())
                    } )+
                    _ => Err(unknown("key", key, [$(stringify!($key)),+])),
                }
            }

            /// The flags that were given.
            pub(crate) fn given(&self) -> impl Iterator<Item = &'static Flag> {
                let given = [$( self.$key.is_some() ),+];
                FLAGS.iter().zip(given).filter_map(|(flag, given)| given.then_some(flag))
            }

            /// The command line's words for what was given, except phases.
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

/// One `[[phase]]` of a job as written.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(default, deny_unknown_fields)]
pub struct PhaseSpec {
    /// Access pattern.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub workload: Option<String>,
    /// Number of accesses.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub accesses: Option<u64>,
    /// Number of accesses as a fraction of the mapping: of its pages, of reads of its bytes.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub fraction: Option<f64>,
    /// Path of a list of page indexes.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub accesses_file: Option<String>,
    /// Seed of random patterns; the job's if not given.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub seed: Option<u64>,
    /// `seed` as text, which no reader of JSON rounds: where it is given, it counts.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub seed_text: Option<String>,
    /// Size of a read.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub bs: Option<SizeText>,
    /// Text of `accesses_file`, which the caller reads.
    #[serde(skip)]
    pub accesses_text: Option<String>,
}

impl JobSpec {
    /// Reads a job file.
    ///
    /// # Errors
    /// In one line, with the line of the file: what is no TOML, a key that is unknown or given
    /// twice, or a value of the wrong type.
    pub fn from_toml(text: &str) -> Result<JobSpec, Error> {
        toml::from_str(text).map_err(|error| match has_tables(text) {
            true => Error::IsProgram,
            false => in_one_line(text, Form::OneFile, &error),
        })
    }

    pub(crate) fn remove_alternatives(&mut self, flags: &JobSpec) {
        if flags.workload.is_some() || flags.accesses_file.is_some() {
            self.phase.clear();
            self.workload = None;
            self.accesses_file = None;
            self.accesses_text = None;
        }
        if flags.accesses.is_some() || flags.fraction.is_some() || flags.accesses_file.is_some() {
            self.accesses = None;
            self.fraction = None;
        }
        if flags.duration.is_some() || flags.rounds.is_some() {
            self.duration = None;
            self.rounds = None;
        }
    }

    /// Whether it maps the segments of an ELF file, whose headers are then wanted in `elf`.
    pub fn maps_elf(&self) -> bool {
        self.workloads().any(|name| name == Workload::Elf.to_string())
    }

    /// Whether it calls what it maps.
    pub(crate) fn calls(&self) -> bool {
        self.workloads().any(|name| {
            name == EXEC || name.parse().is_ok_and(|workload: Workload| workload.is_exec())
        })
    }

    fn workloads(&self) -> impl Iterator<Item = &str> {
        let phases = self.phase.iter().filter_map(|phase| phase.workload.as_deref());
        self.workload.as_deref().into_iter().chain(phases)
    }

    /// The accesses files that the job names, with the place for the text of each.
    pub fn accesses_files(&mut self) -> impl Iterator<Item = (&str, &mut Option<String>)> {
        let own = self.accesses_file.as_deref().map(|path| (path, &mut self.accesses_text));
        let phases = self.phase.iter_mut().filter_map(|phase| {
            phase.accesses_file.as_deref().map(|path| (path, &mut phase.accesses_text))
        });
        own.into_iter().chain(phases)
    }
}

/// The tables that tell a program from a job of one file.
const TABLES: [&str; 4] = ["file", "open", "mapping", "thread"];

/// Whether a job file has tables of files, opens, mappings or threads, as a program has.
pub(crate) fn has_tables(text: &str) -> bool {
    let Ok(table) = text.parse::<toml::Table>() else { return has_headers(text) };
    let tables = TABLES.map(|key| table.get(key));
    tables.into_iter().flatten().any(|value| value.is_array() || value.is_table())
}

/// The same of a text that is no TOML: a line of its own says that such a table begins.
fn has_headers(text: &str) -> bool {
    let headers = text.lines().filter_map(|line| {
        let name = line.trim_start().strip_prefix('[')?;
        let name = name.strip_prefix('[').unwrap_or(name).split_once(']')?.0;
        name.split('.').next()
    });
    headers.map(str::trim).any(|name| TABLES.contains(&name))
}

//! Which values of a job flags gave, so that messages about them name the flag.

use std::collections::BTreeSet;

use crate::Error;
use crate::flags::Flag;

/// The flags that gave values of a job. Where a value was written does not change the job, so that
/// all origins are equal.
#[derive(Clone, Debug, Default)]
pub struct Origins {
    /// Keys of the flags that gave a value.
    flags: BTreeSet<&'static str>,
    /// No job file has tables: every value, and every value that is missing, is a flag's.
    pub(crate) is_flat: bool,
    /// The phases are those of `[[phase]]` tables, so that messages number them.
    pub(crate) has_phases: bool,
}

impl PartialEq for Origins {
    fn eq(&self, _: &Origins) -> bool {
        true
    }
}

/// The keys of tables whose flags have other names.
const RENAMED: [(&str, &str, &str); 7] = [
    ("file", "size", "file_size"),
    ("file", "path", "file"),
    ("mapping", "offset", "map_offset"),
    ("mapping", "len", "map_len"),
    ("mapping", "shift", "map_shift"),
    ("phase", "offset", "map_offset"),
    ("phase", "len", "map_len"),
];

impl Origins {
    /// Adds the flag with `key`.
    pub(crate) fn add(&mut self, key: &'static str) {
        self.flags.insert(key);
    }

    /// Whether a flag gave the value of `key`.
    pub(crate) fn is_flag(&self, key: &str) -> bool {
        self.is_flat || self.flags.contains(key)
    }

    /// `error` of the job, naming the flag where a flag gave the value.
    pub(crate) fn name_flags(&self, error: Error) -> Error {
        self.in_table("", error)
    }

    /// The same of an error in `table`.
    fn in_table(&self, table: &str, error: Error) -> Error {
        match error {
            Error::Key { key, error } => match self.flag(table, &key) {
                Some(flag) => error.of(flag),
                None => Error::Key { key, error },
            },
            Error::MissingKey { key, remedy } => match self.flag(table, &key) {
                Some(flag) => Error::Missing { flag, remedy },
                None => Error::MissingKey { key, remedy },
            },
            Error::InTable { table, name, error } => {
                let named = self.in_table(table, (*error).clone());
                if self.is_flat || named != *error {
                    return named;
                }
                Error::InTable { table, name, error }
            }
            Error::InPhase { number, error } => {
                let error = self.in_table("phase", *error);
                if self.is_flat && !self.has_phases {
                    return error;
                }
                Error::InPhase { number, error: Box::new(error) }
            }
            other => other,
        }
    }

    /// The flag that gave the value of `key` in `table`, without its dashes.
    fn flag(&self, table: &str, key: &str) -> Option<&'static str> {
        // The number of streams is a part of the workload.
        if key == "workload interleave" {
            return self.is_flag("workload").then_some("workload interleave");
        }
        let renamed = RENAMED.iter().find(|(of, own, _)| (*of, *own) == (table, key));
        let key = renamed.map_or(key, |(_, _, flag)| flag);
        let flag = Flag::all().find(|flag| flag.key == key)?;
        self.is_flag(key).then_some(flag.name)
    }
}

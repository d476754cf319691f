//! Which values of a job came from flags, so that error messages name the flag.

use std::collections::BTreeSet;

use crate::Error;
use crate::flags::Flag;

/// The flags that set values of a job. They do not change the job, so all origins compare equal.
#[derive(Clone, Debug, Default)]
pub struct Origins {
    /// Keys of the flags that set a value.
    flags: BTreeSet<&'static str>,
    /// The job has no tables: every value, given or missing, belongs to a flag.
    pub(crate) is_flat: bool,
    /// Phases are `[[phase]]` tables, so messages number them.
    pub(crate) has_phases: bool,
}

impl PartialEq for Origins {
    fn eq(&self, _: &Origins) -> bool {
        true
    }
}

/// Keys in tables whose flags have other names: table, key, flag.
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
    /// Records that the flag with `key` set a value.
    pub(crate) fn add(&mut self, key: &'static str) {
        self.flags.insert(key);
    }

    /// Whether a flag set the value of `key`.
    pub(crate) fn is_flag(&self, key: &str) -> bool {
        self.is_flat || self.flags.contains(key)
    }

    /// `error`, naming the flag instead of the key if a flag set the value.
    pub(crate) fn name_flags(&self, error: Error) -> Error {
        self.in_table("", error)
    }

    /// [`Self::name_flags`] for an error in `table`.
    fn in_table(&self, table: &str, error: Error) -> Error {
        match error {
            Error::Key { key, error } => match self.flag(table, &key) {
                Some(flag) => error.with_flag(flag),
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

    /// The flag that set `key` in `table`, without dashes.
    fn flag(&self, table: &str, key: &str) -> Option<&'static str> {
        // The number of streams is part of the workload.
        if key == "workload interleave" {
            return self.is_flag("workload").then_some("workload interleave");
        }
        let renamed =
            RENAMED.iter().find(|(table_name, own, _)| (*table_name, *own) == (table, key));
        let key = renamed.map_or(key, |(_, _, flag)| flag);
        let flag = Flag::all().find(|flag| flag.key == key)?;
        self.is_flag(key).then_some(flag.name)
    }
}

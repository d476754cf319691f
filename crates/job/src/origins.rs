//! Where the values of a job came from, so that error messages name the flag, or the line of a job
//! file without tables.

use std::collections::{BTreeMap, BTreeSet};

use toml::Spanned;
use toml::de::{DeTable, DeValue};

use crate::Error;
use crate::flags::{Flag, JobFlags};
use crate::size::shorten;

/// The flags that set values of a job. They do not change the job, so all origins compare equal.
#[derive(Clone, Debug, Default)]
pub struct Origins {
    /// Keys of the flags that set a value.
    flags: BTreeSet<&'static str>,
    /// The job has no tables: every value, given or missing, belongs to a flag.
    pub(crate) is_flat: bool,
    /// Phases are `[[phase]]` tables, so messages number them.
    pub(crate) has_phases: bool,
    /// Lines of the job file without tables that set values.
    pub lines: KeyLines,
}

/// The lines of a job file without tables, by key.
#[derive(Clone, Debug, Default)]
pub struct KeyLines {
    /// For phase number, or 0 outside of phases, and key: line number from 1, and its text.
    lines: BTreeMap<(usize, String), (usize, String)>,
}

impl KeyLines {
    /// The lines of the job file `text`.
    pub fn from_toml(text: &str) -> KeyLines {
        let (file, _) = DeTable::parse_recoverable(text);
        let mut lines = KeyLines::default();
        lines.add(text, 0, file.get_ref());
        lines
    }

    fn add(&mut self, text: &str, phase: usize, table: &DeTable<'_>) {
        for (key, value) in table {
            let start = key.span().start.min(text.len());
            let line = text.as_bytes()[..start].iter().filter(|byte| **byte == b'\n').count();
            let shown = shorten(text.lines().nth(line).unwrap_or_default().trim());
            self.lines.insert((phase, key.get_ref().to_string()), (line + 1, shown));
            let phases: &[Spanned<DeValue<'_>>] = match value.get_ref() {
                DeValue::Array(values) if phase == 0 => values,
                _ => &[],
            };
            for (number, value) in (1..).zip(phases) {
                if let DeValue::Table(table) = value.get_ref() {
                    self.add(text, number, table);
                }
            }
        }
    }

    /// Removes the lines of the keys that `flags` sets.
    pub fn remove(&mut self, flags: &JobFlags) {
        for flag in flags.present() {
            self.lines.retain(|(_, key), _| key != flag.key);
        }
    }

    /// `error`, naming the line and the key instead of the flag if a line set the value.
    pub fn name_line(&self, error: Error) -> Error {
        let place = match &error {
            Error::InPhase { number, error } => (*number, &**error),
            error => (0, error),
        };
        let (phase, Error::Flag { flag, error: cause }) = place else { return error };
        // The number of streams is part of the workload.
        let key = flag.split(' ').next().unwrap_or_default().replace('-', "_");
        let Some((line, text)) = self.lines.get(&(phase, key.clone())) else { return error };
        let table = if phase == 0 { String::new() } else { format!("phase {phase}: ") };
        let message = format!("{table}'{key}': {cause}");
        Error::JobFile { line: *line, text: text.clone(), message }
    }
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
        self.lines.name_line(self.in_table("", error))
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

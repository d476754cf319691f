//! Names of tables, and errors that refer to them.

use std::collections::{BTreeMap, BTreeSet};

use super::error::ProgramError;
use crate::Error;
use crate::limits::out_of_range;
use crate::size::{is_one_line, shorten};

/// The names of one kind of table.
pub(super) struct Names<'a> {
    table: &'static str,
    indexes: BTreeMap<&'a str, usize>,
}

impl<'a> Names<'a> {
    pub(super) fn new(
        table: &'static str,
        names: impl ExactSizeIterator<Item = &'a String>,
        most: usize,
    ) -> Result<Names<'a>, Error> {
        let least = usize::from(matches!(table, "file" | "thread"));
        if !(least..=most).contains(&names.len()) {
            let value = format!("a number of {} [[{table}]] tables", names.len());
            return Err(out_of_range(value, least, most));
        }
        let mut indexes = BTreeMap::new();
        for (index, name) in names.enumerate() {
            if name.trim().is_empty() {
                return Err(ProgramError::NoName { table, number: index + 1 }.into());
            }
            if !is_one_line(name) {
                return Err(ProgramError::NameOfLines { table, name: shorten(name) }.into());
            }
            if indexes.insert(name.as_str(), index).is_some() {
                return Err(ProgramError::SameName { table, name: shorten(name) }.into());
            }
        }
        Ok(Names { table, indexes })
    }

    pub(super) fn find(&self, name: &str) -> Result<usize, Error> {
        if name.is_empty() {
            let remedy = "the name of one of these tables";
            return Err(Error::MissingKey { key: self.table.to_string(), remedy });
        }
        self.indexes.get(name).copied().ok_or_else(|| {
            let known: BTreeSet<&str> = self.indexes.keys().copied().collect();
            let known = known.into_iter().collect::<Vec<_>>().join(", ");
            Error::UnknownName { what: self.table, text: shorten(name), known: shorten(&known) }
        })
    }
}

/// Converts an error about a flag to one about the key.
pub(super) fn with_key_error(error: Error) -> Error {
    match error {
        Error::Flag { flag, error } => Error::Key { key: flag.replace('-', "_"), error },
        Error::Missing { flag, remedy } => {
            Error::MissingKey { key: flag.replace('-', "_"), remedy }
        }
        other => other,
    }
}

/// Adds the table called `name` to an error.
pub(super) fn table_error(table: &'static str, name: &str, error: Error) -> Error {
    Error::InTable { table, name: shorten(name), error: Box::new(with_key_error(error)) }
}

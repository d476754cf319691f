//! Records as pages to look at: one HTML file each, which needs nothing beside it.
//!
//! A page is made of the JSON of a record alone, so that the same page can be made later. Texts of
//! records are escaped where they are written: `maud` does that with every value.

pub(crate) mod course;
mod explain;
pub(crate) mod waited;
pub(crate) mod windows;

use filemap_job::record::SCHEMA;
use maud::Markup;
use serde::Deserialize;
use serde::de::DeserializeOwned;
use serde_json::{Map, Value};

use crate::advise::Advice;
use crate::compare::Comparison;
use crate::conform::Conformance;
use crate::error::Error;
use crate::explain::History;
use crate::folio_ops;
use crate::footer::Footer as About;
use crate::published::Published;
use crate::run::RunRecord;
use filemap_report::{Part, Report, Table};

/// What is shown of a record: its title, and all below.
struct Shown {
    title: String,
    body: Markup,
}

/// Makes what is shown of a record of one kind.
type Show = fn(&str) -> Result<Shown, Error>;

/// Kinds of records by a key that no other kind has, in the order in which they are tried.
const KINDS: [(&str, Show); 2] = [("causes", explain::page), ("through", explain::program)];

/// Makes the report on a record of one kind.
type Reported = fn(&str) -> Result<Report, Error>;

/// The kinds of records that have a report of their own, in the same order behind the others.
const REPORTED: [(&str, Reported); 6] = [
    ("tried", |json| Ok(read::<Advice>(json)?.report())),
    ("patterns", |json| Ok(read::<Conformance>(json)?.report())),
    ("sources", |json| Ok(read::<Published>(json)?.report())),
    ("benchmark", |json| Ok(folio_ops::report(&read(json)?, false, read::<About>(json)?.command))),
    ("regressions", |json| Ok(read::<Comparison>(json)?.check()?.report(false))),
    ("runs", |json| Ok(read::<RunRecord>(json)?.check()?.report(false))),
];

/// The page of the record that `json` is.
///
/// # Errors
/// What is no record that there is a page of.
pub fn page(json: &str) -> Result<String, Error> {
    let record: Map<String, Value> = read(json)?;
    let schema = record.get("schema").and_then(Value::as_u64);
    let show = KINDS.iter().find(|(key, _)| record.contains_key(*key)).map(|(_, show)| show);
    let reported = REPORTED.iter().find(|(key, _)| record.contains_key(*key));
    if let (Some(SCHEMA_READ), None, Some((_, report))) = (schema, show, reported) {
        return Ok(report(json)?.html());
    }
    let (Some(SCHEMA_READ), Some(show)) = (schema, show) else {
        return Err(Error::NoPage { schema, known: SCHEMA });
    };
    let about: About = read(json)?;
    let Shown { title, body } = show(json)?;
    let parts = vec![Part::Heading(title), Part::Drawn(body)];
    Ok(Report { parts, rows: Table::default(), footer: about.footer(), json: String::new() }.html())
}

/// The version of records that pages are made of.
const SCHEMA_READ: u64 = SCHEMA as u64;

/// Reads a record, or a part of it.
fn read<T: DeserializeOwned>(json: &str) -> Result<T, Error> {
    serde_json::from_str(json).map_err(|error| Error::NoRecord { reason: error.to_string() })
}

/// What of a record is a history.
#[derive(Deserialize)]
struct WithHistory {
    #[serde(default)]
    history: Option<History>,
}

/// The history in a record, if there is one.
fn history(json: &str) -> Result<Option<History>, Error> {
    let WithHistory { history } = read(json)?;
    let is_sound = history.as_ref().is_none_or(History::is_sound);
    if is_sound { Ok(history) } else { Err(contradictory()) }
}

fn contradictory() -> Error {
    Error::NoRecord { reason: "its history contradicts itself".to_string() }
}

#[cfg(test)]
mod tests;

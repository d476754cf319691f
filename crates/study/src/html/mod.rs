//! Records as pages to look at: one HTML file each, which needs nothing beside it.
//!
//! A page is made of the JSON of a record alone, so that the same page can be made later. Texts of
//! records are escaped where they are written: `maud` does that with every value.

use filemap_job::record::SCHEMA;
use serde::de::DeserializeOwned;
use serde_json::{Map, Value};

use crate::advise::Advice;
use crate::calibrate::Calibration;
use crate::compare::Comparison;
use crate::conform::Conformance;
use crate::doctor::Doctor;
use crate::error::Error;
use crate::explain::ExplainRecord;
use crate::folio_ops;
use crate::footer::Footer;
use crate::govern;
use crate::published::Published;
use crate::run::RunRecord;
use crate::search::Search;
use filemap_report::Report;

/// Makes the report on a record of one kind.
type Reported = fn(&str) -> Result<Report, Error>;

/// Kinds of records by a key that no other kind has, in the order in which they are tried.
const KINDS: [(&str, Reported); 12] = [
    ("groups", |json| Ok(read::<Search>(json)?.report())),
    ("tried", |json| Ok(read::<Advice>(json)?.report())),
    ("causes", |json| Ok(read::<ExplainRecord>(json)?.report())),
    ("patterns", |json| Ok(read::<Conformance>(json)?.report())),
    ("sources", |json| Ok(read::<Published>(json)?.report())),
    ("benchmark", |json| Ok(folio_ops::report(&read(json)?, false, read::<Footer>(json)?.command))),
    ("endings", |json| Ok(read::<govern::GovernCompareRecord>(json)?.report())),
    ("lost_records", |json| Ok(read::<govern::GovernRecord>(json)?.report())),
    ("costs", |json| Ok(read::<Calibration>(json)?.report())),
    ("checks", |json| Ok(read::<Doctor>(json)?.report())),
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
    let kind = KINDS.iter().find(|(key, _)| record.contains_key(*key));
    let (Some(SCHEMA_READ), Some((_, report))) = (schema, kind) else {
        return Err(Error::NoPage { schema, known: SCHEMA });
    };
    Ok(report(json)?.html())
}

/// The version of records that pages are made of.
const SCHEMA_READ: u64 = SCHEMA as u64;

/// Reads a record, or a part of it.
fn read<T: DeserializeOwned>(json: &str) -> Result<T, Error> {
    serde_json::from_str(json).map_err(|error| Error::NoRecord { reason: error.to_string() })
}

#[cfg(test)]
mod tests;

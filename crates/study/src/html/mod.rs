//! Renders a record as a self-contained HTML page.
//!
//! A page depends only on the record's JSON, so that it can be rendered again later. `maud` escapes
//! every string of the record on output.

use filemap_job::record::{RecordKind, SCHEMA};
use serde::de::DeserializeOwned;
use serde_json::{Map, Value};

use crate::advise::AdviseRecord;
use crate::calibrate::CalibrateRecord;
use crate::compare::Comparison;
use crate::conform::ConformRecord;
use crate::doctor::DoctorRecord;
use crate::error::Error;
use crate::explain::ExplainRecord;
use crate::folio_ops;
use crate::footer::Footer;
use crate::govern;
use crate::published::PublishedRecord;
use crate::run::RunRecord;
use crate::search::SearchRecord;

/// The HTML page of the record in `json`.
///
/// # Errors
/// When `json` is not a record, or its kind or schema version is unknown.
pub fn page(json: &str) -> Result<String, Error> {
    let record: Map<String, Value> = read(json)?;
    let schema = record.get("schema").and_then(Value::as_u64);
    let kind = record.get("kind").cloned().map(serde_json::from_value::<RecordKind>);
    let (Some(SCHEMA_READ), Some(Ok(kind))) = (schema, kind) else {
        return Err(Error::NoPage { schema, known: SCHEMA });
    };
    let report = match kind {
        RecordKind::Run => read::<RunRecord>(json)?.check()?.report(false),
        RecordKind::Compare => read::<Comparison>(json)?.check()?.report(false),
        RecordKind::Explain => read::<ExplainRecord>(json)?.report(),
        RecordKind::Advise => read::<AdviseRecord>(json)?.report(),
        RecordKind::Search => read::<SearchRecord>(json)?.report(),
        RecordKind::Conform => read::<ConformRecord>(json)?.report(),
        RecordKind::Published => read::<PublishedRecord>(json)?.report(),
        RecordKind::FolioOps => {
            folio_ops::report(&read(json)?, false, read::<Footer>(json)?.command)
        }
        RecordKind::Govern => read::<govern::GovernRecord>(json)?.report(),
        RecordKind::GovernCompare => read::<govern::GovernCompareRecord>(json)?.report(),
        RecordKind::Calibrate => read::<CalibrateRecord>(json)?.report(),
        RecordKind::Doctor => read::<DoctorRecord>(json)?.report(),
    };
    Ok(report.html())
}

/// The schema version that pages support.
const SCHEMA_READ: u64 = SCHEMA as u64;

/// Parses a record, or a part of it.
fn read<T: DeserializeOwned>(json: &str) -> Result<T, Error> {
    serde_json::from_str(json).map_err(|error| Error::NoRecord { reason: error.to_string() })
}

#[cfg(test)]
mod tests;

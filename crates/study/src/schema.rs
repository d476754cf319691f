//! JSON schemas of the objects that commands print.
//!
//! They are derived from the serialized types and allow no unknown keys. Tests of the command
//! validate every printed object against its schema.

use filemap_job::schema::serialized_schema;
use filemap_job::{LogLine, TracedLine};
use schemars::Schema;

use crate::compare::Comparison;
use crate::run::RunRecord;
use crate::{advise, calibrate, conform, doctor, explain, folio_ops, govern, published, search};

/// Every schema with its name: `job` for job files, `log` for a line of `--log`, `log-kernel` for a
/// line of a traced kernel's decisions, and one for each command's `--json`.
pub fn all_schemas() -> Vec<(&'static str, Schema)> {
    vec![
        ("job", filemap_job::schema::job()),
        ("run", serialized_schema::<RunRecord>()),
        ("compare", serialized_schema::<Comparison>()),
        ("conform", serialized_schema::<conform::ConformRecord>()),
        ("search", serialized_schema::<search::SearchRecord>()),
        ("explain", serialized_schema::<explain::ExplainRecord>()),
        ("advise", serialized_schema::<advise::AdviseRecord>()),
        ("folio-ops", serialized_schema::<folio_ops::Json>()),
        ("calibrate", serialized_schema::<calibrate::CalibrateRecord>()),
        ("published", serialized_schema::<published::PublishedRecord>()),
        ("doctor", serialized_schema::<doctor::DoctorRecord>()),
        ("govern", serialized_schema::<govern::GovernRecord>()),
        ("govern-compare", serialized_schema::<govern::GovernCompareRecord>()),
        ("log", serialized_schema::<LogLine>()),
        ("log-kernel", TracedLine::schema()),
    ]
}

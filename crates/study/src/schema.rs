//! JSON schemas of the objects that commands print.
//!
//! They are derived from the serialized types and allow no unknown keys. Tests of the command
//! validate every printed object against its schema.

use filemap_job::schema::written;
use filemap_job::{LogLine, TracedLine};
use schemars::Schema;

use crate::compare::Comparison;
use crate::run::RunRecord;
use crate::{advise, calibrate, conform, doctor, explain, folio_ops, govern, published, search};

/// Every schema with its name: `job` for job files, `log` for a line of `--log`, `log-kernel` for a
/// line of a traced kernel's decisions, and one for each command's `--json`.
pub fn all() -> Vec<(&'static str, Schema)> {
    vec![
        ("job", filemap_job::schema::job()),
        ("run", written::<RunRecord>()),
        ("compare", written::<Comparison>()),
        ("conform", written::<conform::ConformRecord>()),
        ("search", written::<search::SearchRecord>()),
        ("explain", written::<explain::ExplainRecord>()),
        ("advise", written::<advise::AdviseRecord>()),
        ("folio-ops", written::<folio_ops::Json>()),
        ("calibrate", written::<calibrate::CalibrateRecord>()),
        ("published", written::<published::PublishedRecord>()),
        ("doctor", written::<doctor::DoctorRecord>()),
        ("govern", written::<govern::GovernRecord>()),
        ("govern-compare", written::<govern::GovernCompareRecord>()),
        ("log", written::<LogLine>()),
        ("log-kernel", TracedLine::schema()),
    ]
}

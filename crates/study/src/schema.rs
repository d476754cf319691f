//! JSON schemas of what commands write, one for each kind of object.
//!
//! They follow from the types that are written. The command's tests hold every object that is
//! written against its schema, which allows no key that it does not name.

use filemap_job::schema::written;
use filemap_job::{LogLine, TracedLine};
use schemars::Schema;

use crate::compare::Comparison;
use crate::run::RunRecord;
use crate::{advise, calibrate, conform, doctor, explain, folio_ops, govern, published, search};

/// Every schema with its name: `job` is that of job files, `log` that of a line of `--log`,
/// `log-kernel` that of a line of a kernel's own decisions, the others are those of the commands'
/// `--json`.
pub fn all() -> Vec<(&'static str, Schema)> {
    vec![
        ("job", filemap_job::schema::job()),
        ("run", written::<RunRecord>()),
        ("compare", written::<Comparison>()),
        ("conform", written::<conform::Conformance>()),
        ("search", written::<search::Search>()),
        ("explain", written::<explain::ExplainRecord>()),
        ("advise", written::<advise::Advice>()),
        ("folio-ops", written::<folio_ops::Json>()),
        ("calibrate", written::<calibrate::Calibration>()),
        ("published", written::<published::Published>()),
        ("doctor", written::<doctor::Doctor>()),
        ("govern", written::<govern::GovernRecord>()),
        ("govern-compare", written::<govern::GovernCompareRecord>()),
        ("log", written::<LogLine>()),
        ("log-kernel", TracedLine::schema()),
    ]
}

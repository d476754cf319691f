//! The statistics of a program that has ended, as JSON. A program's outputs are its own, so that
//! there is no table.

use filemap_job::record::SCHEMA;
use serde::Serialize;

use super::process::{Process, Totals};
use crate::footer::Footer;
use crate::report::to_json;

/// How a program ended.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct Ended {
    /// Its exit code; null where a signal ended it.
    pub exit_code: Option<i32>,
    /// The signal that ended it.
    pub signal: Option<i32>,
    /// From its start to its end.
    pub elapsed_ns: u64,
}

/// The report as JSON.
#[derive(Serialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema), schemars(rename = "GovernRun"))]
pub(crate) struct Json<'a> {
    schema: u32,
    #[serde(flatten)]
    footer: &'a Footer,
    /// The program and its arguments.
    program: &'a [String],
    /// Why it ran ungoverned, where that was known before.
    ungoverned: Option<&'a str>,
    ended: Ended,
    totals: Totals,
    processes: &'a [Process],
}

/// The statistics of `program` with its arguments, which ran in these `processes`.
pub fn run(
    program: &[String],
    ungoverned: Option<&str>,
    ended: Ended,
    processes: &[Process],
    footer: &Footer,
) -> String {
    let totals = Totals::of(processes);
    to_json(&Json { schema: SCHEMA, footer, program, ungoverned, ended, totals, processes })
}

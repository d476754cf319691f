//! The statistics of a program that has ended, as JSON. A program's outputs are its own, so that
//! there is no table.

use filemap_job::record::SCHEMA;
use serde::Serialize;

use super::process::{Process, Totals, Unknown};
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
    /// Why nothing of it was governed, where that is known.
    ungoverned: Option<&'a str>,
    ended: Ended,
    /// Of all `processes`.
    totals: Totals,
    processes: &'a [Process],
    /// Processes that are not among these, since they could not tell what was done for them. Of
    /// many only the first are known.
    unknown: &'a [Unknown],
}

/// What the processes of a program told.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Told {
    /// What was done for them.
    pub processes: Vec<Process>,
    /// Those that could not tell it.
    pub unknown: Vec<Unknown>,
}

/// The statistics of `program` with its arguments, whose processes `told` them.
pub fn run(
    program: &[String],
    ungoverned: Option<&str>,
    ended: Ended,
    told: &Told,
    footer: &Footer,
) -> String {
    let Told { processes, unknown } = told;
    let totals = Totals::of(processes);
    to_json(&Json {
        schema: SCHEMA,
        footer,
        program,
        ungoverned,
        ended,
        totals,
        processes,
        unknown,
    })
}

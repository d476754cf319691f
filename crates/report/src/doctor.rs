//! What a machine allows, as JSON.

use serde::Serialize;

use crate::footer::Footer;
use crate::report::to_json;

/// One thing that commands need.
#[derive(Clone, Debug, PartialEq, Serialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct Check<'a> {
    /// What it is.
    pub name: &'a str,
    /// The commands that need it.
    pub used_by: &'a str,
    /// Whether it is here.
    pub ok: bool,
    /// What is here, or what is missing.
    pub here: &'a str,
    /// What to do about it, or what follows.
    pub note: Option<&'a str>,
}

/// The report as JSON.
#[derive(Serialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub(crate) struct Json<'a> {
    schema: u32,
    checks: &'a [Check<'a>],
    #[serde(flatten)]
    footer: &'a Footer,
}

/// `checks` as a JSON object.
pub fn json(checks: &[Check], footer: &Footer) -> String {
    to_json(&Json { schema: filemap_job::record::SCHEMA, checks, footer })
}

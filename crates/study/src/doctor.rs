//! What a machine allows, as JSON.

use serde::Serialize;

use crate::footer::Footer;
use crate::json::to_json;

/// One thing that commands need.
#[derive(Clone, Debug, PartialEq, Serialize, schemars::JsonSchema)]
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

/// A command of filemap.
#[derive(Clone, Debug, PartialEq, Serialize, schemars::JsonSchema)]
pub struct Command<'a> {
    /// Its name.
    pub name: &'a str,
    /// The checks that fail, of those that it needs.
    pub lacks: Vec<&'a str>,
}

/// The report as JSON.
#[derive(Serialize, schemars::JsonSchema)]
pub(crate) struct Json<'a> {
    schema: u32,
    checks: &'a [Check<'a>],
    commands: &'a [Command<'a>],
    #[serde(flatten)]
    footer: &'a Footer,
}

/// `checks`, and what each of `commands` lacks, as a JSON object.
pub fn json(checks: &[Check], commands: &[Command], footer: &Footer) -> String {
    to_json(&Json { schema: filemap_job::record::SCHEMA, checks, commands, footer })
}

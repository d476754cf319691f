//! Engines and variants of a comparison, parsed from flags.

use crate::error::Error;
use crate::job_input::JobInput;
use crate::variants::{self, Variant};

/// Options of a comparison.
#[derive(Clone, Debug, Default)]
#[allow(missing_docs, reason = "their names say it")]
pub struct CompareOptions {
    /// Values of `--variants`, unparsed.
    pub variants: Vec<String>,
    /// Paths of kernel images; `modules` has the directories of their modules.
    pub images: Vec<String>,
    pub modules: Vec<String>,
    /// Number of seeds; `None` runs one.
    pub seeds: Option<u64>,
    /// Whether settings of this machine may be changed (`--apply`).
    pub apply: bool,
}

/// Normalizes a comma-separated list of engines: trims blanks and refuses duplicates.
pub fn parse_engines(text: &str) -> Result<String, Error> {
    let names: Vec<&str> = text.split(',').map(str::trim).collect();
    let twice = (1..names.len()).find(|&at| names[..at].contains(&names[at]));
    match twice {
        Some(at) => Err(Error::Usage(format!(
            "--on {text}: {} is named twice; give each engine once",
            names[at]
        ))),
        None => Ok(names.join(",")),
    }
}

/// The variants of the job `input`.
///
/// # Errors
/// When a variant does not parse or does not apply to the job.
pub fn variants(input: &JobInput, asked: &CompareOptions) -> Result<Vec<Variant>, Error> {
    let variants = parse_variants(input.spec.with.as_deref(), &asked.variants)?;
    if !input.has_tables() && input.spec.is_single_mapping() {
        variants::check_one_file(&variants)?;
    }
    Ok(variants)
}

/// Parses the variants of the flags; without any, the job's own series (`with`).
fn parse_variants(with: Option<&str>, variants: &[String]) -> Result<Vec<Variant>, Error> {
    match (with, variants.is_empty()) {
        (Some(_), false) => Err(Error::Usage(
            "--with does not go with --variants; join the series to each variant with +"
                .to_string(),
        )),
        (Some(series), true) => Ok(vec![Variant::series(&series.replace(',', "+"))]),
        (None, true) => Ok(vec![Variant::baseline()]),
        (None, false) => variants::parse(&variants.join(",")),
    }
}

//! The engines and the variants that are asked for.

use crate::error::Error;
use crate::job_input::JobInput;
use crate::variants::{self, Variant};

/// What is asked of jobs that are compared.
#[derive(Clone, Debug, Default)]
#[allow(missing_docs, reason = "their names say it")]
pub struct Asked {
    /// The variants, as they were written.
    pub variants: Vec<String>,
    /// Kernel images, and where their modules are.
    pub images: Vec<String>,
    pub modules: Vec<String>,
    /// How many seeds, where that was said.
    pub seeds: Option<u64>,
    /// Whether settings of the machine may be changed.
    pub apply: bool,
}

/// The engines of a list, each named once, without the blanks around them.
pub fn engines(text: &str) -> Result<String, Error> {
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
/// What is no variant of it.
pub fn variants(input: &JobInput, asked: &Asked) -> Result<Vec<Variant>, Error> {
    let variants = in_words(input.spec.with.as_deref(), &asked.variants)?;
    if !input.has_tables() && input.spec.is_single_mapping() {
        variants::check_one_file(&variants)?;
    }
    Ok(variants)
}

/// The variants that are asked for; the job's own series where none are.
fn in_words(with: Option<&str>, given: &[String]) -> Result<Vec<Variant>, Error> {
    match (with, given.is_empty()) {
        (Some(_), false) => Err(Error::Usage(
            "--with does not go with --variants; join the series to each variant with +"
                .to_string(),
        )),
        (Some(series), true) => Ok(vec![Variant::series(&series.replace(',', "+"))]),
        (None, true) => Ok(vec![Variant::baseline()]),
        (None, false) => variants::parse(&given.join(",")),
    }
}

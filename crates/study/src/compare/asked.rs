//! The engines and the variants that are asked for.

use filemap_job::{JobSpec, ProgramSpec, Written};

use crate::error::Error;
use crate::given::{Given, workload_of};
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

/// The variants of a job that was `given`.
///
/// # Errors
/// What is no variant of it.
pub fn variants(given: &Given, asked: &Asked) -> Result<Vec<Variant>, Error> {
    let variants = in_words(&given.written.flags(), &asked.variants)?;
    match &given.written {
        Written::Flags(_) => variants::check_one_file(&variants)?,
        // What flags say, variants can say otherwise.
        Written::Tables(_) if given.is_thrash => {}
        Written::Tables(_) => variants.iter().try_for_each(check_of_tables)?,
    }
    Ok(variants)
}

/// Refuses a variant that sets what belongs to a table of a job file.
fn check_of_tables(variant: &Variant) -> Result<(), Error> {
    let Some(flag) = ProgramSpec::foreign_flag(&variant.applied(&JobSpec::default())) else {
        return Ok(());
    };
    let key = flag.trim_start_matches("--").replace('-', "_");
    Err(variant.error(Error::Usage(match workload_of(&flag) {
        Some(name) => {
            format!("{key} is for the flags of --workload {name}; change the job file instead")
        }
        None => format!(
            "{key} belongs to a file, a mapping or a phase of a program; compare two job files"
        ),
    })))
}

/// The variants that are asked for; the job's own series where none are.
fn in_words(spec: &JobSpec, given: &[String]) -> Result<Vec<Variant>, Error> {
    match (&spec.with, given.is_empty()) {
        (Some(_), false) => Err(Error::Usage(
            "--with does not go with --variants; join the series to each variant with +"
                .to_string(),
        )),
        (Some(series), true) => Ok(vec![Variant::series(&series.replace(',', "+"))]),
        (None, true) => Ok(vec![Variant::baseline()]),
        (None, false) => variants::parse(&given.join(",")),
    }
}

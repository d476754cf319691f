//! The engines and the variants that are asked for.

use filemap_job::JobSpec;

use crate::error::Error;
use crate::variants::{self, Variant};

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

/// The variants that are asked for; the job's own series where none are.
pub fn variants(spec: &JobSpec, given: &[String]) -> Result<Vec<Variant>, Error> {
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

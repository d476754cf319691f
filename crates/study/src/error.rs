//! Why there is no report.

/// Why a report could not be made.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum Error {
    /// A name is not one of the published series.
    #[error("unknown published series '{name}'; known: {known}")]
    UnknownSeries {
        /// The name given.
        name: String,
        /// The names there are.
        known: String,
    },
    /// What a page was to be made of is no record.
    #[error("it is no record of filemap: {reason}; give what --json wrote")]
    NoRecord {
        /// What is wrong with it.
        reason: String,
    },
    /// What a page was to be made of is an object of another kind or version.
    #[error(
        "it is no record that there is a page of{}; give what --json of run, compare, explain, \
         advise, published, conform or folio-ops wrote", of_schema(*schema, *known)
    )]
    NoPage {
        /// The version of its layout, where it says one.
        schema: Option<u64>,
        /// The version that is known.
        known: u32,
    },
}

/// What is said of a version that is not known.
fn of_schema(schema: Option<u64>, known: u32) -> String {
    match schema {
        Some(schema) if schema != u64::from(known) => {
            format!(" (its schema is {schema}, and {known} is known)")
        }
        _ => String::new(),
    }
}

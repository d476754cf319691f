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
}

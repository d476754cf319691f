//! The published figures of the series.

use std::collections::BTreeMap;
use std::sync::LazyLock;

use serde::Deserialize;

use crate::published::data::Series;

pub const NAME: &str = "mm-owner";

pub static PUBLISHED: LazyLock<Published> = LazyLock::new(|| Series::figures(NAME));

#[derive(Deserialize)]
pub struct Published {
    /// Statements about children that copy, by case.
    pub vm_scalability: BTreeMap<String, String>,
    pub tolerance: OwnerTolerance,
    /// By operation and size of the folios in KiB: the change of the time in percent, with counts
    /// of pages and without.
    #[serde(flatten)]
    pub changes: BTreeMap<String, BTreeMap<String, [f64; 2]>>,
}

/// Tolerances of times, explained in data/published.toml.
#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
pub struct OwnerTolerance {
    pub same_percent: f64,
    pub copied_percent: f64,
    pub owner_free_kib: u64,
    pub owner_locked: f64,
    pub saved_locked: (f64, f64),
    pub saved_kib: u64,
    pub most_percent: f64,
    pub reuse_percent: f64,
    pub alike_points: f64,
}

#[cfg(test)]
mod tests {
    use filemap_job::folio_ops::Operation;

    use super::*;

    #[test]
    fn has_every_operation_and_size() {
        for operation in Operation::SINGLE_THREADED {
            assert_eq!(PUBLISHED.changes[operation.name()].len(), 8, "{operation}");
        }
        assert_eq!(PUBLISHED.changes["fork"]["2048"], [-1.0, -21.0]);
    }
}

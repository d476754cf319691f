//! What is compared: variants, and figures of each. [`crate::comparison`] lays them out.

use crate::column::Unit;

/// What was compared.
#[derive(Clone, Debug, PartialEq)]
#[allow(missing_docs, reason = "their names say it")]
pub struct ComparedTable {
    /// The first is what the others are held against.
    pub variants: Vec<Variant>,
    pub figures: Vec<Figure>,
}

/// What the figures of one column are of.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Variant {
    /// Its name, of parts that are joined by `+` and `=`.
    pub name: String,
    /// What ran it, where others ran on something else.
    pub group: String,
    /// What a letter says of it.
    pub about: String,
}

/// A figure of every variant.
#[derive(Clone, Debug, PartialEq)]
#[allow(missing_docs, reason = "their names say it")]
pub struct Figure {
    /// Its name; one that begins with blanks is a part of the one above.
    pub name: String,
    pub unit: Unit,
    /// Its place among those that matter most, if it is one of them.
    pub rank: Option<usize>,
    /// Of each variant; `None` where nobody knows.
    pub samples: Vec<Option<Sample>>,
}

/// A figure over the runs of a variant.
#[derive(Clone, Copy, Debug, PartialEq)]
#[allow(missing_docs, reason = "their names say it")]
pub struct Sample {
    pub median: f64,
    pub min: f64,
    pub max: f64,
    /// What stands after it; what has a mark is not held against anything.
    pub mark: &'static str,
}

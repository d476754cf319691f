//! Seeds in JSON, both as a number and as text: programs that parse numbers as floating point, such
//! as jq, round integers above 2^53.

use serde::{Deserialize, Deserializer, Serialize, Serializer};

use crate::Error;
use crate::size::shorten;

/// A seed in both forms.
#[derive(Serialize, Deserialize, schemars::JsonSchema)]
pub(crate) struct SeedTwice {
    /// Seed of random patterns.
    #[serde(default)]
    seed: u64,
    /// `seed` in decimal digits, for JSON readers that round large numbers. Takes precedence.
    #[serde(default)]
    seed_text: String,
}

/// Writes `seed` as `seed` and `seed_text`.
pub(crate) fn serialize<S: Serializer>(seed: &u64, serializer: S) -> Result<S::Ok, S::Error> {
    SeedTwice { seed: *seed, seed_text: seed.to_string() }.serialize(serializer)
}

/// Parses the text if present, else the number.
pub(crate) fn deserialize<'de, D: Deserializer<'de>>(deserializer: D) -> Result<u64, D::Error> {
    let SeedTwice { seed, seed_text } = SeedTwice::deserialize(deserializer)?;
    Ok(seed_text.parse().unwrap_or(seed))
}

/// The seed given as a number, as text, or both.
///
/// # Errors
/// Text that is not a seed.
pub(crate) fn resolve_seed(number: Option<u64>, text: Option<&str>) -> Result<Option<u64>, Error> {
    let Some(text) = text else { return Ok(number) };
    let seed = text.parse().map_err(|_| Error::NoNumber {
        what: "seed_text",
        text: shorten(text),
        remedy: "the digits of seed, or leave it out",
    });
    seed.map(Some)
}

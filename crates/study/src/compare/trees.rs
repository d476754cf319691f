//! Identity and build configuration of the kernel images in a comparison.

use std::collections::BTreeMap;
use std::path::Path;

use filemap_kernel::image;
use serde_json::{Map, Value, json};

use super::RanVariant;

/// Environment key of a record: SHA-256 of the kernel image.
pub(super) const HASH: &str = "image_sha256";

/// Environment key of a record: number of configuration options that differ from the first image of
/// the comparison. `null` if either image does not embed its configuration.
pub(super) const DIFFERS: &str = "image_config_differs";

/// Environment key of a record: the first of these options, each with its value in the first image
/// and in this one.
pub(super) const OPTIONS: &str = "image_config_options";

/// Maximum number of differing options that are listed.
const MAX_LISTED_OPTIONS: usize = 12;

/// Hash and configuration of an image.
#[derive(Clone, Debug, Default)]
struct Tree {
    sha256: Option<String>,
    configuration: Option<String>,
}

/// Images by path; each file is read once.
#[derive(Clone, Debug, Default)]
pub(super) struct Trees(BTreeMap<String, Tree>);

impl Trees {
    /// Adds the facts about each image to the environment of its record, with the differences from
    /// the first image. Returns warnings about identical images.
    pub(super) fn add_to_environment(&mut self, ran: &mut [RanVariant]) -> Vec<String> {
        let mut described: Vec<(String, Tree)> = Vec::new();
        let mut warnings = Vec::new();
        for own in ran {
            let Some(path) = own.job.image.as_ref().map(|image| image.path.clone()) else {
                continue;
            };
            let tree = self.tree(&path);
            let is_new = described.iter().all(|(known, _)| *known != path);
            if is_new {
                let same = described.iter().find(|(_, before)| tree.is(before));
                warnings.extend(same.map(|(before, _)| {
                    format!("{path} is the same image as {before}: differences are noise")
                }));
                described.push((path, tree.clone()));
            }
            tree.describe(&described[0].1, &mut own.record.environment);
        }
        warnings
    }

    fn tree(&mut self, path: &str) -> Tree {
        let look = || Tree {
            sha256: image::sha256(Path::new(path)),
            configuration: image::configuration(Path::new(path)),
        };
        self.0.entry(path.to_string()).or_insert_with(look).clone()
    }
}

impl Tree {
    /// Whether both images have the same contents.
    fn is(&self, other: &Tree) -> bool {
        self.sha256.is_some() && self.sha256 == other.sha256
    }

    fn describe(&self, first: &Tree, environment: &mut Map<String, Value>) {
        let both = first.configuration.as_deref().zip(self.configuration.as_deref());
        let differs = both.map(|(first, own)| differing_options(first, own));
        environment.insert(HASH.to_string(), json!(self.sha256));
        environment.insert(DIFFERS.to_string(), json!(differs.as_ref().map(Vec::len)));
        let first = differs.map(|options| options.into_iter().take(MAX_LISTED_OPTIONS));
        environment.insert(OPTIONS.to_string(), first.into_iter().flatten().collect());
    }
}

/// The options that differ between two configurations, with the value in each. A missing option
/// counts as not set.
fn differing_options(first: &str, own: &str) -> Vec<String> {
    let [first, own] = [first, own].map(|text| {
        let set = text.lines().filter(|line| line.starts_with("CONFIG_"));
        set.filter_map(|line| line.split_once('=')).collect::<BTreeMap<_, _>>()
    });
    let mut options: Vec<&str> = first.keys().chain(own.keys()).copied().collect();
    options.sort_unstable();
    options.dedup();
    let value = |options: &BTreeMap<&str, &str>, option| {
        options.get(option).copied().unwrap_or("n").to_string()
    };
    let pairs =
        options.into_iter().map(|option| (option, value(&first, option), value(&own, option)));
    let pairs = pairs.filter(|(_, first, own)| first != own);
    pairs.map(|(option, first, own)| format!("{option}: {first} / {own}")).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn options_that_differ_are_named() {
        let first = "CONFIG_A=y\n# CONFIG_B is not set\nCONFIG_C=7\n# CONFIG_D is not set\n";
        let own = "#\nCONFIG_A=y\nCONFIG_B=m\nCONFIG_C=\"x=1\"\n";
        assert_eq!(differing_options(first, own), ["CONFIG_B: n / m", "CONFIG_C: 7 / \"x=1\""]);
        assert_eq!(differing_options(own, first)[0], "CONFIG_B: m / n");
        assert!(differing_options(first, first).is_empty());
    }
}

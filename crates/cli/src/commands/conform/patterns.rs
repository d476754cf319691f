//! The built-in patterns.

use filemap_job::JobSpec;
use serde::Deserialize;

/// Names and jobs, in order.
pub fn built_in() -> Vec<(String, JobSpec)> {
    #[derive(Deserialize)]
    struct File {
        pattern: Vec<Entry>,
    }
    #[derive(Deserialize)]
    struct Entry {
        name: String,
        job: JobSpec,
    }
    let file: File = toml::from_str(include_str!("patterns.toml")).expect("patterns.toml is ours");
    file.pattern.into_iter().map(|entry| (entry.name, entry.job)).collect()
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeSet;

    use super::*;

    #[test]
    fn every_pattern_is_a_job_of_its_own() {
        let patterns = built_in();
        assert!(patterns.len() >= 24);
        let names: BTreeSet<_> = patterns.iter().map(|(name, _)| name.clone()).collect();
        assert_eq!(names.len(), patterns.len());
        for (name, spec) in patterns {
            assert!(spec.validate(None).is_ok(), "{name}");
        }
    }
}

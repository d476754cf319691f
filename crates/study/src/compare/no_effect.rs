//! Detects variants whose changed rules have no effect on a job.

use filemap_core::series::{Series, Switch};
use filemap_job::{EngineKind, Job};
use filemap_model::{Digest, Profile, trace};

use super::RanVariant;
use crate::error::Error;

/// Warnings about model variants whose rules differ from the first variant's without changing a
/// single decision in this job. Compares digests of all decisions, not only counters. `profiles`
/// are the profiles that the variants ran with.
pub fn variants_without_effect(
    ran: &[RanVariant],
    profiles: &[Profile],
) -> Result<Vec<String>, Error> {
    let all = ran.iter().zip(profiles);
    let mut of_model = all.filter(|(ran, _)| ran.job.engine == EngineKind::Model);
    let Some((first, profile)) = of_model.next() else { return Ok(Vec::new()) };
    let mut first_digest = None;
    let mut warnings = Vec::new();
    for (own, own_profile) in of_model {
        let switches = differing_switches(first.job.rules.series, own.job.rules.series);
        if switches.is_empty() || own.record.runs != first.record.runs {
            continue;
        }
        let before = match first_digest {
            Some(before) => before,
            None => *first_digest.insert(digest(&first.job, profile)?),
        };
        if digest(&own.job, own_profile)? == before {
            warnings.push(format!(
                "this job cannot see this change: in {} no rule of {} ever decided otherwise than \
                 in {}; all {} decisions are the same",
                own.variant,
                switches.join(", "),
                first.variant,
                before.decisions(),
            ));
        }
    }
    Ok(warnings)
}

/// The digest of all decisions that the model makes in `job`.
fn digest(job: &Job, profile: &Profile) -> Result<Digest, Error> {
    let mut digest = Digest::default();
    trace(job, profile, &mut digest)?;
    Ok(digest)
}

/// Merges the warnings of several variants: each sentence once, prefixed by the names of its
/// variants unless it holds for all.
pub fn merge_warnings(warnings: &[(&str, Vec<String>)]) -> Vec<String> {
    let mut sentences: Vec<&String> = Vec::new();
    for sentence in warnings.iter().flat_map(|(_, sentences)| sentences) {
        if !sentences.contains(&sentence) {
            sentences.push(sentence);
        }
    }
    let prefixed = |sentence: &String| {
        let own = warnings.iter().filter(|(_, sentences)| sentences.contains(sentence));
        let mut names: Vec<&str> = own.clone().map(|(name, _)| *name).collect();
        names.dedup();
        if own.count() == warnings.len() {
            sentence.clone()
        } else {
            format!("in {}: {sentence}", names.join(", "))
        }
    };
    sentences.into_iter().map(prefixed).collect()
}

/// The switches set in exactly one of both series.
fn differing_switches(one: Series, other: Series) -> Vec<&'static str> {
    let switches = one.union(other).switches();
    switches.filter(|&switch| one.has(switch) != other.has(switch)).map(Switch::name).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn merged_warning_names_its_variants() {
        let warnings = |sentences: &[&[&str]]| {
            let sentences = sentences.iter().map(|all| all.iter().map(|one| one.to_string()));
            let names = ["a", "b", "c"];
            merge_warnings(
                &names.into_iter().zip(sentences.map(Iterator::collect)).collect::<Vec<_>>(),
            )
        };
        assert_eq!(warnings(&[&["no"], &["no"], &["no"]]), ["no"]);
        assert_eq!(warnings(&[&["no"], &[], &["no", "never"]]), ["in a, c: no", "in c: never"]);
        assert!(warnings(&[&[], &[], &[]]).is_empty());
    }
}

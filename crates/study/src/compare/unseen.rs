//! Variants that a job cannot see.

use filemap_core::series::{Series, Switch};
use filemap_job::Run;
use filemap_model::Digest;

use crate::error::Error;

/// A variant that ran in the model.
pub struct OfModel<'a> {
    pub variant: &'a str,
    pub series: Series,
    /// What came out.
    pub ran: &'a [Run],
    /// The digest of its decisions.
    pub digest: Box<dyn Fn() -> Result<Digest, Error> + 'a>,
}

/// What to warn of: variants whose rules the job never told from the first one's. Every decision
/// of the model was the same, not only what was counted.
pub fn unseen<'a>(cells: impl IntoIterator<Item = OfModel<'a>>) -> Result<Vec<String>, Error> {
    let mut cells = cells.into_iter();
    let Some(first) = cells.next() else { return Ok(Vec::new()) };
    let mut first_digest = None;
    let mut warnings = Vec::new();
    for cell in cells {
        let switches = differing(first.series, cell.series);
        if switches.is_empty() || cell.ran != first.ran {
            continue;
        }
        let before = match first_digest {
            Some(before) => before,
            None => *first_digest.insert((first.digest)()?),
        };
        if (cell.digest)()? == before {
            warnings.push(format!(
                "this job cannot see this change: in {} no rule of {} ever decided otherwise than \
                 in {}; all {} decisions are the same",
                cell.variant,
                switches.join(", "),
                first.variant,
                before.decisions(),
            ));
        }
    }
    Ok(warnings)
}

/// The sentences of `told`, which are variants with what the job of each says, once each: with the
/// variants that say it, unless all do.
pub fn named(told: &[(&str, Vec<String>)]) -> Vec<String> {
    let mut sentences: Vec<&String> = Vec::new();
    for sentence in told.iter().flat_map(|(_, sentences)| sentences) {
        if !sentences.contains(&sentence) {
            sentences.push(sentence);
        }
    }
    let of = |sentence: &String| {
        let own = told.iter().filter(|(_, sentences)| sentences.contains(sentence));
        let mut names: Vec<&str> = own.clone().map(|(name, _)| *name).collect();
        names.dedup();
        match own.count() == told.len() {
            true => sentence.clone(),
            false => format!("in {}: {sentence}", names.join(", ")),
        }
    };
    sentences.into_iter().map(of).collect()
}

/// The switches that one of both has and the other has not.
fn differing(one: Series, other: Series) -> Vec<&'static str> {
    let switches = one.union(other).switches();
    switches.filter(|&switch| one.has(switch) != other.has(switch)).map(Switch::name).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_sentence_names_the_variants_that_say_it() {
        let told = |sentences: &[&[&str]]| {
            let sentences = sentences.iter().map(|all| all.iter().map(|one| one.to_string()));
            let names = ["a", "b", "c"];
            named(&names.into_iter().zip(sentences.map(Iterator::collect)).collect::<Vec<_>>())
        };
        assert_eq!(told(&[&["no"], &["no"], &["no"]]), ["no"]);
        assert_eq!(told(&[&["no"], &[], &["no", "never"]]), ["in a, c: no", "in c: never"]);
        assert!(told(&[&[], &[], &[]]).is_empty());
    }
}

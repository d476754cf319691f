//! Selects built-in patterns by name.

use std::cmp::Reverse;

use filemap_job::JobSpec;

use super::patterns::built_in;
use crate::error::Error;

/// Number of similar names suggested for an unknown one.
const MAX_SUGGESTIONS: usize = 5;

/// The built-in patterns in `names`, in their own order. Each entry is a name or several joined by
/// commas; names contain commas too.
///
/// # Errors
/// For an unknown name.
pub fn select_patterns(names: &[String]) -> Result<Vec<(String, JobSpec)>, Error> {
    let mut all = built_in().to_vec();
    let known: Vec<String> = all.iter().map(|(name, _)| name.clone()).collect();
    let mut wanted = Vec::new();
    for text in names {
        let mut rest = text.trim();
        loop {
            let begins = |name: &&String| {
                let behind = rest.strip_prefix(name.as_str());
                behind.is_some_and(|behind| behind.is_empty() || behind.starts_with(','))
            };
            let name = known.iter().filter(begins).max_by_key(|name| name.len());
            let name = name.ok_or_else(|| unknown_pattern_error(rest, &known))?;
            wanted.push(name.clone());
            rest = rest[name.len()..].trim_start_matches([',', ' ']);
            if rest.is_empty() {
                break;
            }
        }
    }
    all.retain(|(name, _)| wanted.contains(name));
    Ok(all)
}

/// Error for an unknown `name` that suggests the most similar names.
fn unknown_pattern_error(name: &str, known: &[String]) -> Error {
    let words = |text: &str| -> Vec<String> {
        let words = text.split(|c: char| !c.is_alphanumeric()).filter(|word| !word.is_empty());
        words.map(str::to_lowercase).collect()
    };
    let wanted = words(name);
    let mut like: Vec<&String> = known.iter().collect();
    like.sort_by_cached_key(|known| {
        let own = words(known);
        let has = |word: &&String| own.iter().any(|own| own.starts_with(word.as_str()));
        let shared = wanted.iter().filter(has).count();
        (Reverse(shared), own.len())
    });
    like.truncate(MAX_SUGGESTIONS);
    let like = like.iter().map(|name| format!("'{name}'")).collect::<Vec<_>>().join("; ");
    let number = known.len();
    Error::Usage(format!(
        "--pattern '{name}' is no built-in pattern; give the name of one of the {number}, such as \
         {like}"
    ))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_may_be_joined_although_they_have_commas() {
        let all = built_in();
        let with_comma = all.iter().map(|(name, _)| name).find(|name| name.contains(','));
        let last = &all.last().unwrap().0;
        let first = with_comma.unwrap_or(&all[0].0);
        let names = |texts: &[String]| -> Vec<String> {
            select_patterns(texts).unwrap().into_iter().map(|(name, _)| name).collect()
        };
        assert_eq!(names(&[format!("{last},{first}")]), [first.clone(), last.clone()]);
        assert_eq!(names(&[last.clone(), first.clone()]), [first.clone(), last.clone()]);
        let error = select_patterns(&[format!("{first}, none")]).unwrap_err();
        assert_eq!(error.exit_code(), 2);
        let message = error.to_string();
        assert!(message.starts_with("--pattern 'none' is no built-in pattern; give"), "{message}");
        assert!(message.matches("'; '").count() + 1 == MAX_SUGGESTIONS && !message.contains('\n'));
        // Other case, and one word less.
        let near = last.to_uppercase().rsplit_once(',').unwrap().0.to_string();
        let message = select_patterns(&[near]).unwrap_err().to_string();
        assert!(message.contains(&format!("such as '{last}'")), "{message}");
    }
}

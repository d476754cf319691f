//! The words of the command line, before they are flags.

use std::ffi::OsString;

use crate::govern;

/// Flags that take a list.
const LISTS: [&str; 3] = ["--variants", "--with", "--on"];

/// `words` with each list in one word: `baseline, p1` without quotes comes in two. The words of a
/// program that is run stay as they are.
pub fn joined(words: impl Iterator<Item = OsString>) -> Vec<OsString> {
    let words: Vec<OsString> = words.collect();
    if govern::is_meant(words.iter().cloned()) {
        return words;
    }
    let mut all: Vec<OsString> = Vec::new();
    // The last word is a list, or will be.
    let mut in_list = false;
    for word in words {
        let text = word.to_str().unwrap_or_default();
        let goes_on = |last: &OsString| last.to_str().is_some_and(|last| last.ends_with(','));
        if in_list && !text.starts_with('-') && all.last().is_some_and(goes_on) {
            all.last_mut().expect("it goes on").push(&word);
            continue;
        }
        let flag = text.split('=').next().unwrap_or_default();
        let after_flag = all.last().is_some_and(|last| LISTS.iter().any(|&list| last == list));
        in_list = after_flag || LISTS.contains(&flag);
        all.push(word);
    }
    all
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_list_with_blanks_is_one_word() {
        for (words, expected) in [
            ("filemap compare --variants baseline, p1", "filemap compare --variants baseline,p1"),
            ("x --variants=a, b, c d", "x --variants=a,b,c d"),
            ("x --variants a,b job.toml", "x --variants a,b job.toml"),
            ("x --on model, kernel --with p1, p2", "x --on model,kernel --with p1,p2"),
            ("x --variants a, --seed 1", "x --variants a, --seed 1"),
            ("x --file a, b", "x --file a, b"),
            ("x job, --variants a", "x job, --variants a"),
            ("x govern -- y --on a, b", "x govern -- y --on a, b"),
        ] {
            let words = joined(words.split(' ').map(OsString::from));
            let expected: Vec<_> = expected.split(' ').map(OsString::from).collect();
            assert_eq!(words, expected);
        }
    }
}

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

/// Flags whose values may be any bytes.
const ANY_BYTES: [&str; 2] = ["--include", "--exclude"];

/// Which of `words` is no text, where a flag or a command wants one.
pub fn not_text(words: &[OsString]) -> Option<String> {
    let may_be_any = |at: usize| ANY_BYTES.iter().any(|flag| words[at - 1] == *flag);
    let at = (1..words.len()).find(|&at| words[at].to_str().is_none() && !may_be_any(at))?;
    let shown = words[at].to_string_lossy();
    let own = shown.split_once('=').filter(|(flag, _)| flag.starts_with("--"));
    let before = words[at - 1].to_str().filter(|word| word.starts_with("--") && word.len() > 2);
    let (flag, value) = match (own, before.filter(|word| !word.contains('='))) {
        (Some((flag, value)), _) => (format!("{flag}: "), value),
        (None, Some(flag)) => (format!("{flag}: "), &*shown),
        (None, None) => (String::new(), &*shown),
    };
    let value = value.replace(char::is_control, "?");
    Some(format!("{flag}'{value}' is not UTF-8; give a name that is"))
}

#[cfg(test)]
mod tests {
    use std::os::unix::ffi::OsStringExt;

    use super::*;

    #[test]
    fn what_is_no_text_is_named_with_its_flag() {
        let of = |words: &[&[u8]]| {
            let words = words.iter().map(|word| OsString::from_vec(word.to_vec()));
            not_text(&words.collect::<Vec<_>>())
        };
        let said = |text: &str| Some(format!("{text} is not UTF-8; give a name that is"));
        assert_eq!(of(&[b"x", b"run", b"--json", b"a\xff"]), said("--json: 'a\u{fffd}'"));
        assert_eq!(of(&[b"x", b"run", b"--json=\xffb\n"]), said("--json: '\u{fffd}b?'"));
        assert_eq!(of(&[b"x", b"run", b"\xff"]), said("'\u{fffd}'"));
        assert_eq!(of(&[b"x", b"run", b"--seed=1", b"\xff"]), said("'\u{fffd}'"));
        assert_eq!(of(&[b"x", b"record", b"--include", b"\xff", b"--output", b"y"]), None);
    }

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

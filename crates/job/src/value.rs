//! What the values of flags are, as words of the command line.

use crate::Error;
use crate::limits::unknown;
use crate::size::{SizeText, parse_count, shorten};

/// What the value of a flag is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Kind {
    /// A text.
    Text,
    /// A size in bytes, with a unit or without.
    Size,
    /// A whole number.
    Count,
    /// A number such as 0.01.
    Number,
    /// It has none: it is given or not.
    Switch,
}

/// A value as a word of the command line.
pub(crate) trait FlagValue: Sized {
    /// What it is.
    const KIND: Kind;

    /// Reads it.
    ///
    /// # Errors
    /// For a text that is none.
    fn of_text(text: &str) -> Result<Self, Error>;

    /// Adds the words that give `key` this value.
    fn push_flag(&self, key: &str, words: &mut Vec<String>);
}

macro_rules! with_value {
    ($($type:ty: $kind:expr, $read:expr;)+) => {$(
        impl FlagValue for $type {
            const KIND: Kind = $kind;

            fn of_text(text: &str) -> Result<Self, Error> {
                $read(text)
            }
            fn push_flag(&self, key: &str, words: &mut Vec<String>) {
                words.extend([flag(key), shell_word(&self.to_string())]);
            }
        }
    )+};
}

with_value! {
    String: Kind::Text, |text: &str| Ok(text.to_string());
    SizeText: Kind::Size, |text: &str| Ok(SizeText(text.to_string()));
    u64: Kind::Count, parse_count;
    f64: Kind::Number, |text: &str| text.parse().map_err(|_| no_number(text));
}

fn no_number(text: &str) -> Error {
    Error::NoNumber { what: "number", text: shorten(text), remedy: "a number such as 0.01" }
}

impl FlagValue for bool {
    const KIND: Kind = Kind::Switch;

    fn of_text(text: &str) -> Result<Self, Error> {
        match text {
            "true" => Ok(true),
            "false" => Ok(false),
            _ => Err(unknown("value", text, ["true", "false"])),
        }
    }

    fn push_flag(&self, key: &str, words: &mut Vec<String>) {
        words.extend(self.then(|| flag(key)));
    }
}

fn flag(key: &str) -> String {
    format!("--{}", key.replace('_', "-"))
}

/// `word` as a POSIX shell takes it for one word.
pub fn shell_word(word: &str) -> String {
    let plain = |c: char| c.is_alphanumeric() || "-_./:,+=@%".contains(c);
    if !word.is_empty() && word.chars().all(plain) {
        word.to_string()
    } else {
        format!("'{}'", word.replace('\'', r"'\''"))
    }
}

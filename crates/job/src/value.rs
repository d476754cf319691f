//! Types of flag values and their conversion to and from command-line arguments.

use crate::Error;
use crate::limits::unknown;
use crate::size::{SizeText, parse_count, shorten};

/// Type of a flag's value.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ValueKind {
    /// Text.
    Text,
    /// Size in bytes, with an optional unit.
    Size,
    /// A whole number.
    Count,
    /// Decimal number such as 0.01.
    Number,
    /// No value: the flag is present or absent.
    Switch,
}

/// A value that a command-line argument can hold.
pub(crate) trait FlagValue: Sized {
    /// Its type.
    const KIND: ValueKind;

    /// Parses it.
    ///
    /// # Errors
    /// Text that does not parse.
    fn parse_text(text: &str) -> Result<Self, Error>;

    /// Appends the arguments that set `key` to this value.
    fn push_flag(&self, key: &str, words: &mut Vec<String>);
}

macro_rules! with_value {
    ($($type:ty: $kind:expr, $read:expr;)+) => {$(
        impl FlagValue for $type {
            const KIND: ValueKind = $kind;

            fn parse_text(text: &str) -> Result<Self, Error> {
                $read(text)
            }
            fn push_flag(&self, key: &str, words: &mut Vec<String>) {
                words.extend([flag(key), shell_word(&self.to_string())]);
            }
        }
    )+};
}

with_value! {
    String: ValueKind::Text, |text: &str| Ok(text.to_string());
    SizeText: ValueKind::Size, |text: &str| Ok(SizeText(text.to_string()));
    u64: ValueKind::Count, parse_count;
    f64: ValueKind::Number, |text: &str| text.parse().map_err(|_| no_number(text));
}

fn no_number(text: &str) -> Error {
    Error::NoNumber { what: "number", text: shorten(text), remedy: "a number such as 0.01" }
}

impl FlagValue for bool {
    const KIND: ValueKind = ValueKind::Switch;

    fn parse_text(text: &str) -> Result<Self, Error> {
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

/// Quotes `word` for a POSIX shell, if necessary.
pub fn shell_word(word: &str) -> String {
    let plain = |c: char| c.is_alphanumeric() || "-_./:,+=@%".contains(c);
    if !word.is_empty() && word.chars().all(plain) {
        word.to_string()
    } else {
        format!("'{}'", word.replace('\'', r"'\''"))
    }
}

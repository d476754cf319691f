//! Sizes, durations and counts as text, in fio's notation: `4k` is 4096.

use std::fmt;
use std::str::FromStr;

use serde::de::{self, Deserialize, Deserializer, Visitor};
use serde::{Serialize, Serializer};

use crate::Error;

/// A size as written, not yet parsed. In a job file it is a string or an integer number of bytes.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct SizeText(pub String);

const BYTE_UNITS: [(&str, u64); 7] = [
    ("", 1),
    ("b", 1),
    ("k", 1 << 10),
    ("m", 1 << 20),
    ("g", 1 << 30),
    ("t", 1 << 40),
    ("p", 1 << 50),
];

/// Smaller numbers of bytes need a unit: `64` is more likely a typo for `64k`.
const MIN_UNITLESS_BYTES: u64 = 4096;

const TIME_UNITS: [(&str, u64); 4] =
    [("ns", 1), ("us", 1_000), ("ms", 1_000_000), ("s", 1_000_000_000)];

/// Suffixes of a size unit that do not change its meaning.
const BYTE_ENDINGS: [&str; 4] = ["", "b", "i", "ib"];

/// Parses a size in bytes: a number with an optional unit `k`, `m`, `g`, `t` or `p` (powers of
/// 1024, either case). `kB` and `KiB` are the same as `k`, as in fio. A decimal such as `1.5g` is
/// accepted if it is a whole number of bytes, and blanks may precede the unit. Bytes have the unit
/// `b`, which is required below 4 KiB except for 0.
///
/// # Errors
/// Text that is not a number, is negative, is not a whole number of bytes, does not fit 64 bits,
/// has an unknown unit, or lacks a required one.
pub fn parse_size(text: &str) -> Result<u64, Error> {
    let quantity = Quantity {
        what: "size",
        unit: "bytes",
        units: &BYTE_UNITS,
        endings: &BYTE_ENDINGS,
        remedy: "give a size such as 4096, 4k or 20g",
        unit_remedy: "units are b for bytes, and k, m, g, t, p (powers of 1024), as in 4k, 20g or \
                      20GiB",
    };
    let bytes = quantity.parse(text)?;
    let has_unit = text.ends_with(|last: char| last.is_ascii_alphabetic());
    if !has_unit && (1..MIN_UNITLESS_BYTES).contains(&bytes) {
        return Err(Error::NoUnit { text: shorten(text) });
    }
    Ok(bytes)
}

/// Parses a duration into nanoseconds: a number with the unit `ns`, `us`, `ms` or `s`.
///
/// # Errors
/// As for [`parse_size`]; also a missing unit.
pub fn parse_duration_ns(text: &str) -> Result<u64, Error> {
    let quantity = Quantity {
        what: "duration",
        unit: "nanoseconds",
        units: &TIME_UNITS,
        endings: &[""],
        remedy: "give a duration such as 60s or 100ms",
        unit_remedy: "units are ns, us, ms, s, as in 60s or 100ms",
    };
    quantity.parse(text)
}

/// Parses a whole number without a unit.
///
/// # Errors
/// Text that is not a whole number, is negative or does not fit 64 bits.
pub fn parse_count(text: &str) -> Result<u64, Error> {
    let digits = text.strip_prefix('-').unwrap_or(text);
    if digits.is_empty() || !digits.bytes().all(|byte| byte.is_ascii_digit()) {
        return Err(Error::NoNumber {
            what: "whole number",
            text: shorten(text),
            remedy: "digits only, such as 1000",
        });
    }
    if digits.len() < text.len() {
        return Err(Error::Negative { text: shorten(text), what: "whole number" });
    }
    text.parse().map_err(|_| out_of_range(text))
}

/// Formats a size for [`parse_size`], in the largest unit that keeps it whole.
pub fn format_size(bytes: u64) -> String {
    let is_whole = |unit: &&(&str, u64)| unit.1 > 1 && bytes.is_multiple_of(unit.1);
    match BYTE_UNITS.iter().rev().find(is_whole) {
        _ if bytes == 0 => "0".to_string(),
        Some((name, unit)) => format!("{}{name}", bytes / unit),
        None if bytes < MIN_UNITLESS_BYTES => format!("{bytes}b"),
        None => bytes.to_string(),
    }
}

/// Formats a duration for [`parse_duration_ns`], in the largest unit that keeps it whole; 0 in
/// seconds.
pub fn format_duration(ns: u64) -> String {
    let whole = |unit: &&(&str, u64)| ns.is_multiple_of(unit.1);
    let (name, unit) = TIME_UNITS.iter().rev().find(whole).unwrap_or(&TIME_UNITS[0]);
    format!("{}{name}", ns / unit)
}

/// Shortens a value for a one-line message.
pub(crate) fn shorten(text: &str) -> String {
    shorten_to(60, text)
}

/// The first `limit` characters of `text` untrimmed, with blanks in place of line breaks and other
/// control characters.
pub(crate) fn shorten_to(limit: usize, text: &str) -> String {
    let mut line: String = text.chars().take(limit).collect();
    if text.chars().nth(limit).is_some() {
        line.push_str("...");
    }
    line.replace(breaks_line, " ")
}

/// Whether a report can show `text` unchanged: no line breaks or other control characters.
pub(crate) fn is_one_line(text: &str) -> bool {
    !text.contains(breaks_line)
}

fn breaks_line(character: char) -> bool {
    character.is_control() || "\u{2028}\u{2029}".contains(character)
}

/// The notation of a number with a unit.
struct Quantity {
    what: &'static str,
    unit: &'static str,
    units: &'static [(&'static str, u64)],
    /// Suffixes that may follow a unit greater than 1.
    endings: &'static [&'static str],
    remedy: &'static str,
    unit_remedy: &'static str,
}

impl Quantity {
    fn parse(&self, text: &str) -> Result<u64, Error> {
        let (unsigned, negative) = match text.strip_prefix('-') {
            Some(rest) => (rest, true),
            None => (text, false),
        };
        let is_number = |c: char| c.is_ascii_digit() || c == '.';
        let end = unsigned.find(|c| !is_number(c)).unwrap_or(unsigned.len());
        let (number, unit) = unsigned.split_at(end);
        let letters = unit.trim_start_matches(' ');
        let unit = if letters.is_empty() { unit } else { letters };
        let (whole, part) = number.split_once('.').unwrap_or((number, "0"));
        if whole.is_empty() || part.is_empty() || part.contains('.') {
            return Err(Error::NoNumber {
                what: self.what,
                text: shorten(text),
                remedy: self.remedy.trim_start_matches("give "),
            });
        }
        let scale = self.scale(unit).ok_or_else(|| {
            let (unit, text, remedy) = (shorten(unit), shorten(text), self.unit_remedy);
            if unit.is_empty() {
                Error::LacksUnit { text, remedy }
            } else {
                Error::UnknownUnit { unit, text, remedy }
            }
        })?;
        if negative {
            return Err(Error::Negative { text: shorten(text), what: self.what });
        }
        let whole: u64 = whole.parse().map_err(|_| out_of_range(text))?;
        let part = self.part(text, part, scale)?;
        let total = whole.checked_mul(scale).and_then(|bytes| bytes.checked_add(part));
        total.ok_or_else(|| out_of_range(text))
    }

    /// Value of one `unit`; `None` if unknown.
    fn scale(&self, unit: &str) -> Option<u64> {
        let lower = unit.to_ascii_lowercase();
        self.units.iter().find_map(|&(name, scale)| {
            let ending = lower.strip_prefix(name)?;
            let is_known = ending.is_empty() || scale > 1 && self.endings.contains(&ending);
            is_known.then_some(scale)
        })
    }

    /// Value of the digits after the decimal point, if whole.
    fn part(&self, text: &str, digits: &str, scale: u64) -> Result<u64, Error> {
        let digits = digits.trim_end_matches('0');
        let not_whole = || Error::NotWhole { text: shorten(text), unit: self.unit };
        // A multiple of 2^-50 has up to 50 decimals, but no sensible size has more than 18.
        if digits.len() > 18 {
            return Err(not_whole());
        }
        let tenths = 10u128.pow(digits.len() as u32);
        let scaled = digits.parse::<u128>().unwrap_or(0) * u128::from(scale);
        if scaled % tenths != 0 { Err(not_whole()) } else { Ok((scaled / tenths) as u64) }
    }
}

fn out_of_range(text: &str) -> Error {
    let to = u64::MAX.to_string();
    Error::OutOfRange { value: shorten(text), from: "0".to_string(), to }
}

impl SizeText {
    /// Parses the size, in bytes.
    ///
    /// # Errors
    /// As [`parse_size`].
    pub fn bytes(&self) -> Result<u64, Error> {
        parse_size(&self.0)
    }

    /// The shortest text for a size in bytes.
    pub fn from_bytes(bytes: u64) -> Self {
        SizeText(format_size(bytes))
    }
}

impl From<&str> for SizeText {
    fn from(text: &str) -> Self {
        SizeText(text.to_string())
    }
}

impl FromStr for SizeText {
    type Err = Error;

    /// Accepts the texts that [`parse_size`] accepts.
    fn from_str(text: &str) -> Result<Self, Error> {
        parse_size(text).map(|_| SizeText(text.to_string()))
    }
}

impl fmt::Display for SizeText {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0)
    }
}

impl Serialize for SizeText {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.serialize_str(&self.0)
    }
}

impl<'de> Deserialize<'de> for SizeText {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        struct TextOrBytes;
        impl Visitor<'_> for TextOrBytes {
            type Value = SizeText;

            fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                f.write_str("a size such as \"20g\", or a whole number of bytes")
            }
            fn visit_str<E: de::Error>(self, text: &str) -> Result<SizeText, E> {
                Ok(SizeText(text.to_string()))
            }
            fn visit_i64<E: de::Error>(self, bytes: i64) -> Result<SizeText, E> {
                Ok(SizeText(bytes.to_string()))
            }
            fn visit_u64<E: de::Error>(self, bytes: u64) -> Result<SizeText, E> {
                Ok(SizeText(bytes.to_string()))
            }
        }
        deserializer.deserialize_any(TextOrBytes)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    #[test]
    fn sizes() {
        let check = |texts: &[&str], bytes: u64| {
            texts.iter().for_each(|text| assert_eq!(parse_size(text), Ok(bytes), "{text}"));
        };
        check(&["0"], 0);
        check(&["4096", "4k", "4K"], 4096);
        check(&["4GiB", "4GB", "4gb", "4G", "4Gi", "4 GiB"], 4 << 30);
        check(&["1m"], 1 << 20);
        check(&["128KiB"], 128 << 10);
        check(&["20g"], 20 << 30);
        check(&["1t"], 1 << 40);
        check(&["2p"], 2 << 50);
        check(&["1PiB"], 1 << 50);
        check(&["1.5g", "1.5 GiB"], 3 << 29);
        check(&["1.50k"], 1536);
        check(&["2b", "2.0B"], 2);
        check(&["0.5k", "512b"], 512);
        check(&["18446744073709551615"], u64::MAX);
        check(&["16383.5p"], 16383 * (1 << 50) + (1 << 49));
    }

    #[test]
    fn refuses_invalid_sizes() {
        let bad = |text: &str, words: &str| {
            let error = parse_size(text).unwrap_err().to_string();
            assert!(error.contains(words) && !error.contains('\n'), "{text}: {error}");
        };
        bad("", "'' is no size; give a size such as");
        for text in ["k", ".5k", "5.k", "1.2.3", " 4k", "+4k"] {
            bad(text, &format!("'{text}' is no size"));
        }
        bad("4x", "unknown unit 'x' in '4x'; units are b for bytes, and k, m, g");
        for unit in ["kbi", "kk", "ib", "bb", "ki b"] {
            bad(&format!("4{unit}"), &format!("unknown unit '{unit}'"));
        }
        for (text, unit, shown) in [("4\tk", " k", "4 k"), ("4k ", "k ", "4k "), ("4 ", " ", "4 ")]
        {
            bad(text, &format!("unknown unit '{unit}' in '{shown}'"));
        }
        bad("4k\n", "unknown unit 'k '");
        bad("1e9", "unknown unit 'e9'");
        bad("-4k", "'-4k' is negative");
        for text in ["0.3k", "1.5"] {
            bad(text, &format!("'{text}' is not a whole number of bytes"));
        }
        bad("0.0000000000000000001p", "not a whole number");
        for text in ["64", "1", "4095", "2.0"] {
            let remedy = format!("give {text}k, or {text}b for bytes");
            bad(text, &format!("'{text}' has no unit and is less than a page; {remedy}"));
        }
        bad("16384p", "16384p is out of range; give 0 to 18446744073709551615");
        for text in ["18446744073709551616", "99999999999999999999999999999999"] {
            bad(text, "out of range");
        }
    }

    #[test]
    fn durations() {
        for (text, ns) in [("60s", 60_000_000_000), ("100ms", 100_000_000), ("1.5us", 1500)] {
            assert_eq!(parse_duration_ns(text), Ok(ns), "{text}");
        }
        let bad = |text: &str, words: &str| {
            let error = parse_duration_ns(text).unwrap_err().to_string();
            assert!(error.contains(words), "{text}: {error}");
        };
        bad("60", "'60' has no unit; units are ns, us, ms, s");
        bad("5m", "unknown unit 'm'");
        bad("-1s", "negative");
        bad("0.5ns", "not a whole number of nanoseconds");
        bad("20000000000s", "out of range");
    }

    proptest! {
        #[test]
        fn sizes_round_trip(bytes: u64) {
            prop_assert_eq!(parse_size(&format_size(bytes)), Ok(bytes));
            let round = bytes & !((1 << 40) - 1);
            prop_assert_eq!(parse_size(&format_size(round)), Ok(round));
        }

        #[test]
        fn arbitrary_text_parses_or_fails_in_one_line(text in "\\PC{0,80}|[-+.0-9kmgtps]{0,30}") {
            for error in [parse_size(&text).err(), parse_duration_ns(&text).err()] {
                prop_assert!(!error.map(|e| e.to_string()).unwrap_or_default().contains('\n'));
            }
        }
    }
}

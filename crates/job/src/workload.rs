//! Names of the access patterns.

use std::fmt;
use std::str::FromStr;

use serde::{Deserialize, Serialize};

use crate::Error;
use crate::size::{format_size, parse_count, parse_size, shorten};

/// An access pattern over the pages of a mapping.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
pub enum Workload {
    /// Touches random pages (xorshift64).
    Random,
    /// Touches every N-th page, wrapping around the mapping.
    Stride(u64),
    /// Touches all pages in order, wrapping around.
    Sequential,
    /// Touches all pages in reverse order, wrapping around.
    Reverse,
    /// Touches page 0 only.
    First,
    /// Touches as K interleaved streams, each sequential in its own K-th of the mapping.
    Interleave(u64),
    /// Touches random pages, rank r with a probability proportional to 1/r^S; the value is S in
    /// thousandths.
    Zipf(u32),
    /// Touches a hot set with a given share of the accesses, and the other pages otherwise.
    Hot {
        /// Share of the accesses, in percent.
        percent: u8,
        /// Share of the pages, in percent.
        hot_percent: u8,
    },
    /// Touches N adjacent pages in order, from a random page on (xorshift64), and so on.
    Runs(u64),
    /// Touches the pages of random records (xorshift64) of this many bytes, each in order. Records
    /// follow each other from the start of the mapping, so most begin within a page.
    Records(u64),
    /// Reads blocks with `read(2)` at random pages (xorshift64).
    ReadRandom,
    /// Reads the file sequentially in blocks with `read(2)`.
    ReadSequential,
    /// Touches all pages of all segments of an ELF file, in order.
    Elf,
    /// Calls the stub in each page, in order.
    ExecCold,
    /// Calls stubs in random pages (xorshift64).
    ExecRandom,
}

/// Name of the workload `thrash`.
pub const THRASH: &str = "thrash";

/// Name of the command `folio-ops`, which is not a workload.
pub const FOLIO_OPS: &str = "folio-ops";

/// Name of a workload of two phases: [`Workload::ExecCold`], then [`Workload::ExecRandom`].
pub const EXEC: &str = "exec";

/// Names without parameters.
const PLAIN: [(&str, Workload); 9] = [
    ("random", Workload::Random),
    ("sequential", Workload::Sequential),
    ("reverse", Workload::Reverse),
    ("first", Workload::First),
    ("read-random", Workload::ReadRandom),
    ("read-sequential", Workload::ReadSequential),
    ("elf", Workload::Elf),
    ("exec:cold", Workload::ExecCold),
    ("exec:random", Workload::ExecRandom),
];

const KNOWN: &str = "random, stride:N, sequential, reverse, first, interleave:K, zipf:S, hot:P/Q, \
    runs:N, records:SIZE, read-random, read-sequential, elf, exec, exec:cold, exec:random, thrash";

impl Workload {
    /// Whether it reads with `read(2)` instead of touching the mapping.
    pub const fn is_read(self) -> bool {
        matches!(self, Workload::ReadRandom | Workload::ReadSequential)
    }

    /// Whether its accesses depend on the seed.
    pub const fn is_random(self) -> bool {
        matches!(
            self,
            Workload::Random
                | Workload::Zipf(_)
                | Workload::Hot { .. }
                | Workload::Runs(_)
                | Workload::Records(_)
                | Workload::ReadRandom
                | Workload::ExecRandom
        )
    }

    /// Whether it calls code, which requires an executable mapping.
    pub const fn is_exec(self) -> bool {
        matches!(self, Workload::ExecCold | Workload::ExecRandom)
    }
}

impl FromStr for Workload {
    type Err = Error;

    fn from_str(text: &str) -> Result<Self, Error> {
        if let Some(plain) = PLAIN.iter().find(|plain| plain.0 == text) {
            return Ok(plain.1);
        }
        match text.split_once(':') {
            Some(("stride", number)) => {
                positive(number, "a stride in pages, such as stride:1021").map(Workload::Stride)
            }
            Some(("interleave", number)) => {
                positive(number, "a number of streams, such as interleave:2")
                    .map(Workload::Interleave)
            }
            Some(("runs", number)) => {
                positive(number, "a number of pages, such as runs:16").map(Workload::Runs)
            }
            Some(("records", size)) => match parse_size(size)? {
                0 => Err(Error::Zero { remedy: "a size of records, such as records:3000bb" }),
                bytes => Ok(Workload::Records(bytes)),
            },
            Some(("zipf", exponent)) => zipf(exponent),
            Some(("hot", shares)) => hot(shares),
            _ if text == THRASH => Err(Error::IsThrash),
            _ if text == FOLIO_OPS => Err(Error::IsFolioOps),
            _ => Err(Error::UnknownName {
                what: "workload",
                text: shorten(text),
                known: KNOWN.to_string(),
            }),
        }
    }
}

/// Largest exponent of `zipf`.
const MAX_EXPONENT: u32 = 10;

/// Decimal places of the exponent.
const EXPONENT_DIGITS: usize = 3;

fn zipf(exponent: &str) -> Result<Workload, Error> {
    let (whole, part) = exponent.split_once('.').unwrap_or((exponent, "0"));
    let is_number = |digits: &str| digits.bytes().all(|digit| digit.is_ascii_digit());
    let digits = format!("{whole}{part:0<EXPONENT_DIGITS$}");
    let thousandths = digits.parse().ok().filter(|thousandths| {
        is_number(whole)
            && is_number(part)
            && !whole.is_empty()
            && !part.is_empty()
            && part.len() <= EXPONENT_DIGITS
            && *thousandths <= MAX_EXPONENT * 1000
    });
    thousandths.map(Workload::Zipf).ok_or_else(|| Error::BadPattern {
        text: shorten(exponent),
        remedy: "give zipf:S an exponent from 0 to 10 with at most 3 decimals, such as zipf:0.99",
    })
}

fn hot(shares: &str) -> Result<Workload, Error> {
    let percent = |text: &str| {
        let digits = text.bytes().all(|digit| digit.is_ascii_digit()).then_some(text)?;
        digits.parse().ok().filter(|percent| (1..=99).contains(percent))
    };
    let both = shares.split_once('/').and_then(|(accesses, pages)| {
        Some(Workload::Hot { percent: percent(accesses)?, hot_percent: percent(pages)? })
    });
    both.ok_or_else(|| Error::BadPattern {
        text: shorten(shares),
        remedy: "give hot:P/Q two percentages from 1 to 99, such as hot:90/10 for 90 % of the \
                 accesses on 10 % of the pages",
    })
}

fn positive(number: &str, remedy: &'static str) -> Result<u64, Error> {
    match parse_count(number)? {
        0 => Err(Error::Zero { remedy }),
        count => Ok(count),
    }
}

impl fmt::Display for Workload {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Workload::Stride(pages) => write!(f, "stride:{pages}"),
            Workload::Interleave(streams) => write!(f, "interleave:{streams}"),
            Workload::Runs(pages) => write!(f, "runs:{pages}"),
            Workload::Records(bytes) => write!(f, "records:{}", format_size(*bytes)),
            Workload::Zipf(thousandths) => {
                let (whole, part) = (thousandths / 1000, thousandths % 1000);
                let part = format!("{part:03}");
                match part.trim_end_matches('0') {
                    "" => write!(f, "zipf:{whole}"),
                    part => write!(f, "zipf:{whole}.{part}"),
                }
            }
            Workload::Hot { percent, hot_percent } => write!(f, "hot:{percent}/{hot_percent}"),
            plain => {
                let named = PLAIN.iter().find(|named| named.1 == *plain);
                f.write_str(named.expect("every workload without a number is in PLAIN").0)
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn workload_names_round_trip() {
        for text in [
            "random",
            "stride:1021",
            "stride:18446744073709551615",
            "sequential",
            "reverse",
            "first",
            "interleave:2",
            "zipf:0.99",
            "zipf:1",
            "zipf:0",
            "zipf:1.205",
            "hot:90/10",
            "runs:16",
            "records:3000b",
            "records:64k",
            "read-random",
            "read-sequential",
            "elf",
            "exec:cold",
            "exec:random",
        ] {
            assert_eq!(text.parse::<Workload>().unwrap().to_string(), text);
        }
    }

    #[test]
    fn refuses_unknown_workloads() {
        for (text, words) in [
            ("randm", "unknown workload 'randm'; known: random,"),
            ("", "unknown workload ''"),
            ("elf:1", "unknown workload 'elf:1'"),
            ("exec:hot", "unknown workload 'exec:hot'; known: random,"),
            ("stride", "unknown workload 'stride'"),
            ("random:3", "unknown workload 'random:3'"),
            ("stride:0", "0 is not allowed; give a stride in pages"),
            ("stride:", "'' is no whole number"),
            ("stride:-1", "'-1' is negative"),
            ("stride:1k", "'1k' is no whole number"),
            ("stride:18446744073709551616", "18446744073709551616 is out of range"),
            ("zipf:", "'' is no pattern; give zipf:S an exponent"),
            ("zipf:10.001", "'10.001'"),
            ("zipf:0.9999", "'0.9999'"),
            ("zipf:-1", "'-1'"),
            ("zipf:+1", "'+1'"),
            ("zipf:.5", "'.5'"),
            ("zipf:1.", "'1.'"),
            ("hot:+90/10", "'+90/10'"),
            ("hot:90", "'90' is no pattern; give hot:P/Q two percentages from 1 to 99"),
            ("hot:0/10", "'0/10'"),
            ("hot:90/100", "'90/100'"),
            ("runs:0", "0 is not allowed; give a number of pages"),
            ("runs:4k", "'4k' is no whole number"),
            ("records:0", "0 is not allowed; give a size of records"),
            ("records:x", "'x' is no size"),
            ("interleave:0", "0 is not allowed; give a number of streams"),
        ] {
            let error = text.parse::<Workload>().unwrap_err().to_string();
            assert!(error.contains(words), "{text}: {error}");
        }
    }
}

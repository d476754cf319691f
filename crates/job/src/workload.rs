//! Names of the access patterns.

use std::fmt;
use std::str::FromStr;

use crate::Error;
use crate::folio_ops::FOLIO_OPS;
use crate::size::{parse_count, shorten};
use crate::thrash::THRASH;

/// An access pattern over the pages of a mapping.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Workload {
    /// Touches pages drawn by xorshift64.
    Random,
    /// Touches every N-th page, wrapping round the mapping.
    Stride(u64),
    /// Touches each page in order, wrapping.
    Sequential,
    /// Touches each page from the last to the first, wrapping.
    Reverse,
    /// Touches page 0 only.
    First,
    /// Touches as K streams in turn, each sequential in its own K-th of the mapping.
    Interleave(u64),
    /// Reads blocks with `read(2)` at pages drawn by xorshift64.
    ReadRandom,
    /// Reads the file block after block with `read(2)`.
    ReadSequential,
    /// Touches each page of each segment of an ELF file, in order.
    Elf,
    /// Calls the stub in each page, in order.
    ExecCold,
    /// Calls stubs in pages drawn by xorshift64.
    ExecRandom,
}

/// The name of two phases in one: [`Workload::ExecCold`], then [`Workload::ExecRandom`].
pub(crate) const EXEC: &str = "exec";

/// Names without a number.
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

const KNOWN: &str = "random, stride:N, sequential, reverse, first, interleave:K, read-random, \
    read-sequential, elf, exec, exec:cold, exec:random, thrash, folio-ops";

impl Workload {
    /// Whether it reads with `read(2)` instead of touching the mapping.
    pub const fn is_read(self) -> bool {
        matches!(self, Workload::ReadRandom | Workload::ReadSequential)
    }

    /// Whether its pages are drawn from a seed.
    pub const fn is_random(self) -> bool {
        matches!(self, Workload::Random | Workload::ReadRandom | Workload::ExecRandom)
    }

    /// Whether it calls what it maps, so that the mapping is executable.
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
    fn names_come_back() {
        for text in [
            "random",
            "stride:1021",
            "stride:18446744073709551615",
            "sequential",
            "reverse",
            "first",
            "interleave:2",
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
    fn bad_names_are_named() {
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
            ("interleave:0", "0 is not allowed; give a number of streams"),
        ] {
            let error = text.parse::<Workload>().unwrap_err().to_string();
            assert!(error.contains(words), "{text}: {error}");
        }
    }
}

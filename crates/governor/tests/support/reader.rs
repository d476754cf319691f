//! A program that reads the pages of a mapped file in some order.

use std::fs::File;
use std::path::Path;
use std::time::{Duration, Instant};

use super::draws::{Digest, Draws};
use super::mapping::Mapping;

/// Pages of 256 MiB.
const HOT_AND_COLD_PAGES: u64 = 1 << 16;

/// In which order.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Pattern {
    /// So many pages anywhere.
    Random(u64),
    /// One page of so many, so many times, and from the end on at the beginning.
    Stride(u64, u64),
    /// The first so many, one by one.
    First(u64),
    /// So many times so many pages, one by one, anywhere.
    Clusters(u64, u64),
    /// The first so many pages, one by one; behind each so many of them a page anywhere.
    Mix(u64, u64),
    /// All pages, and all their bytes.
    Scan,
    /// All pages from the last to the first.
    Backward,
    /// So many pages of the first 256 MiB, nine in ten of them from an eighth of its pages, of
    /// which no two lie side by side.
    HotCold(u64),
}

impl Pattern {
    /// Understands a name and numbers, such as `clusters:100:16`.
    pub fn parse(text: &str) -> Pattern {
        let mut parts = text.split(':');
        let name = parts.next().unwrap_or_default();
        let mut number = || parts.next().and_then(|part| part.parse().ok()).expect("a number");
        match name {
            "random" => Pattern::Random(number()),
            "stride" => Pattern::Stride(number(), number()),
            "first" => Pattern::First(number()),
            "clusters" => Pattern::Clusters(number(), number()),
            "mix" => Pattern::Mix(number(), number()),
            "scan" => Pattern::Scan,
            "backward" => Pattern::Backward,
            "hot-cold" => Pattern::HotCold(number()),
            _ => panic!("{text} is no pattern"),
        }
    }

    /// Calls `read` with each page, of `pages`.
    pub fn each(self, pages: u64, mut read: impl FnMut(u64)) {
        let mut draws = Draws::new(7);
        match self {
            Pattern::Random(count) => (0..count).for_each(|_| read(draws.below(pages))),
            Pattern::Stride(step, count) => (0..count).for_each(|n| read(n * step % pages)),
            Pattern::First(count) => (0..count.min(pages)).for_each(read),
            Pattern::Clusters(count, length) => {
                for _ in 0..count {
                    let first = draws.below(pages - length);
                    (first..first + length).for_each(&mut read);
                }
            }
            Pattern::Mix(count, every) => {
                for page in 0..count.min(pages) {
                    read(page);
                    if page % every == every - 1 {
                        read(draws.below(pages));
                    }
                }
            }
            Pattern::Scan => (0..pages).for_each(read),
            Pattern::Backward => (0..pages).rev().for_each(read),
            Pattern::HotCold(count) => {
                let pages = pages.min(HOT_AND_COLD_PAGES);
                for _ in 0..count {
                    let is_hot = draws.below(10) != 0;
                    let index = draws.below(if is_hot { pages / 8 } else { pages });
                    read(if is_hot { index * 8 } else { index });
                }
            }
        }
    }
}

/// What a reader did.
pub struct Read {
    /// Of all numbers that it read.
    pub digest: u64,
    pub elapsed: Duration,
}

/// Reads a file by `pattern`, after the program's own `advice`, if any.
pub fn read(path: &Path, pattern: Pattern, advice: Option<i32>) -> Read {
    let file = File::open(path).expect("the file can be opened");
    let begun = Instant::now();
    let mapping = Mapping::of(&file);
    if let Some(advice) = advice {
        assert_eq!(mapping.advise(advice), 0);
    }
    let mut digest = Digest::NEW;
    pattern.each(mapping.pages(), |page| {
        digest.add(if pattern == Pattern::Scan { mapping.sum(page) } else { mapping.word(page) });
    });
    Read { digest: digest.0, elapsed: begun.elapsed() }
}

/// The advice of a name.
pub fn advice(name: &str) -> Option<i32> {
    match name {
        "none" => None,
        "random" => Some(libc::MADV_RANDOM),
        "sequential" => Some(libc::MADV_SEQUENTIAL),
        _ => panic!("{name} is no advice"),
    }
}

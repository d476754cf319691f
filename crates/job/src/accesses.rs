//! Sequences of page and block accesses of a workload.

use std::ops::Range;
use std::slice;
use std::sync::Arc;

use filemap_core::units::PageCount;

use crate::Error;
use crate::size::{parse_count, shorten};
use crate::skewed::Skewed;
use crate::workload::Workload;
use crate::xorshift::xorshift64;

/// Page indexes relative to the start of a mapping, in order of access.
#[derive(Clone, Debug)]
pub struct Accesses<'a> {
    source: Source<'a>,
    pages: u64,
    done: u64,
    count: u64,
}

#[derive(Clone, Debug)]
enum Source<'a> {
    Random { state: u64 },
    Stride { step: u64, next: u64 },
    Sequential,
    Reverse,
    First,
    Interleave { streams: u64 },
    Skewed(Skewed),
    Runs(Runs),
    Listed(slice::Iter<'a, u64>),
}

/// Draws ranges of pages, and yields the pages of each in order.
#[derive(Clone, Debug)]
struct Runs {
    length: RunLength,
    state: u64,
    /// The rest of the current range.
    left: Range<u64>,
}

#[derive(Clone, Copy, Debug)]
enum RunLength {
    /// Pages of each run, which begins at any page.
    Pages(u64),
    /// Bytes of each record, which begins at a multiple of them, and of a page.
    Bytes { record: u64, page: u64 },
}

impl Runs {
    fn new(length: RunLength, seed: u64) -> Runs {
        Runs { length, state: seed, left: 0..0 }
    }

    /// The next page of a mapping of `pages` pages, which has room for a run.
    fn draw(&mut self, pages: u64) -> u64 {
        if let Some(page) = self.left.next() {
            return page;
        }
        self.state = xorshift64(self.state);
        let range = match self.length {
            RunLength::Pages(length) => {
                let start = self.state % (pages - length + 1);
                start..start + length
            }
            RunLength::Bytes { record, page } => {
                let records = u128::from(pages) * u128::from(page) / u128::from(record);
                let start = u128::from(self.state) % records * u128::from(record);
                let of_byte = |byte: u128| (byte / u128::from(page)) as u64;
                of_byte(start)..of_byte(start + u128::from(record) - 1) + 1
            }
        };
        self.left = range.start + 1..range.end;
        range.start
    }
}

impl<'a> Accesses<'a> {
    /// Generates `count` accesses of a touch workload, or of `read-random`, over `pages` pages (not
    /// 0) of `page_size` bytes. `seed` is not 0.
    ///
    /// With `interleave:K`, stream s wraps around the pages from s x pages / K up to (s + 1) x
    /// pages / K, both rounded down; K is at most `pages`. `read-sequential` works on bytes: see
    /// [`crate::parts::Phase::reads`].
    pub(crate) fn generated(
        workload: Workload,
        (pages, page_size): (PageCount, u64),
        count: u64,
        seed: u64,
    ) -> Self {
        let source = match workload {
            Workload::Random | Workload::ReadRandom | Workload::ExecRandom => {
                Source::Random { state: seed }
            }
            Workload::Stride(step) => Source::Stride { step: step % pages.0, next: 0 },
            Workload::Sequential
            | Workload::ReadSequential
            | Workload::Elf
            | Workload::ExecCold => Source::Sequential,
            Workload::Reverse => Source::Reverse,
            Workload::First => Source::First,
            Workload::Interleave(streams) => Source::Interleave { streams },
            Workload::Runs(length) => Source::Runs(Runs::new(RunLength::Pages(length), seed)),
            Workload::Records(record) => {
                let length = RunLength::Bytes { record, page: page_size };
                Source::Runs(Runs::new(length, seed))
            }
            Workload::Zipf(thousandths) => Source::Skewed(Skewed::zipf(thousandths, pages.0, seed)),
            Workload::Hot { percent, hot_percent } => {
                Source::Skewed(Skewed::hot(percent, hot_percent, pages.0, seed))
            }
        };
        Accesses { source, pages: pages.0, done: 0, count }
    }

    /// The first `count` entries of a list.
    pub(crate) fn from_list(list: &'a [u64], count: u64) -> Self {
        Accesses { source: Source::Listed(list.iter()), pages: 0, done: 0, count }
    }
}

impl Iterator for Accesses<'_> {
    type Item = u64;

    fn next(&mut self) -> Option<u64> {
        if self.done == self.count {
            return None;
        }
        let (number, pages) = (self.done, self.pages);
        self.done += 1;
        Some(match &mut self.source {
            Source::Random { state } => {
                *state = xorshift64(*state);
                *state % pages
            }
            Source::Stride { step, next } => {
                let page = *next;
                *next = (page + *step) % pages;
                page
            }
            Source::Sequential => number % pages,
            Source::Reverse => pages - 1 - number % pages,
            Source::First => 0,
            Source::Interleave { streams } => {
                let stream = number % *streams;
                let bound = |stream: u64| {
                    (u128::from(stream) * u128::from(pages) / u128::from(*streams)) as u64
                };
                let start = bound(stream);
                start + number / *streams % (bound(stream + 1) - start)
            }
            Source::Skewed(skewed) => skewed.draw(),
            Source::Runs(runs) => runs.draw(pages),
            Source::Listed(list) => *list.next()?,
        })
    }

    fn size_hint(&self) -> (usize, Option<usize>) {
        let left = usize::try_from(self.count - self.done);
        (0, left.ok())
    }
}

/// One `read(2)`.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Read {
    /// Offset from the start of the mapping.
    pub offset_bytes: u64,
    /// Length: not 0.
    pub len_bytes: u64,
}

/// The blocks that a read workload reads, in order.
///
/// `read-random` reads from the start of a random page. `read-sequential` reads block i at i x bs
/// and starts over at 0 after the last block, which is shorter if the mapping is not a multiple of
/// bs. Listed reads use the offsets of the list. No block extends beyond the last mapped byte of
/// the file.
#[derive(Clone, Debug)]
pub struct Reads {
    random: Option<(PageCount, u64, u64)>,
    listed: Option<Arc<Vec<u64>>>,
    bytes: u64,
    bs: u64,
    done: u64,
    count: u64,
}

impl Reads {
    /// `count` blocks of `bs` bytes in the first `bytes` bytes. `random`: number of pages, page
    /// size and seed of random reads; `None` for sequential reads.
    pub(crate) fn new(
        random: Option<(PageCount, u64, u64)>,
        bytes: u64,
        bs: u64,
        count: u64,
    ) -> Self {
        Reads { random, listed: None, bytes, bs, done: 0, count }
    }

    /// A block of `bs` bytes at each offset in `list`; all offsets are below `bytes`.
    pub(crate) fn from_list(list: Arc<Vec<u64>>, bytes: u64, bs: u64) -> Self {
        let count = list.len() as u64;
        Reads { random: None, listed: Some(list), bytes, bs, done: 0, count }
    }
}

impl Iterator for Reads {
    type Item = Read;

    fn next(&mut self) -> Option<Read> {
        if self.done == self.count {
            return None;
        }
        let offset_bytes = match (&mut self.random, &self.listed) {
            (Some((pages, page_size, state)), _) => {
                *state = xorshift64(*state);
                *state % pages.0 * *page_size
            }
            (None, Some(list)) => *list.get(self.done as usize)?,
            (None, None) => self.done % self.bytes.div_ceil(self.bs) * self.bs,
        };
        self.done += 1;
        Some(Read { offset_bytes, len_bytes: self.bs.min(self.bytes - offset_bytes) })
    }
}

/// Parses an accesses file: one page index per line, each below `pages`, the length of the mapping.
/// Blank lines are ignored.
///
/// # Errors
/// The first line that is not a whole number or lies beyond the mapping; a file without any index.
pub fn parse_accesses(text: &str, pages: PageCount) -> Result<Vec<u64>, Error> {
    let mut list = Vec::new();
    for (number, line) in text.lines().enumerate() {
        let (line, number) = (line.trim(), number + 1);
        if line.is_empty() {
            continue;
        }
        let page =
            parse_count(line).map_err(|_| Error::ListLine { line: number, text: shorten(line) })?;
        if page >= pages.0 {
            return Err(Error::ListBeyond { line: number, page, last: pages.0.saturating_sub(1) });
        }
        list.push(page);
    }
    if list.is_empty() { Err(Error::ListEmpty) } else { Ok(list) }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::xorshift::{DEFAULT_SEED, seeds};

    fn pages(workload: &str, pages: u64, count: u64) -> Vec<u64> {
        let workload: Workload = workload.parse().unwrap();
        Accesses::generated(workload, (PageCount(pages), 4096), count, DEFAULT_SEED).collect()
    }

    /// Expected values computed by a three-line Python program.
    #[test]
    fn random_is_xorshift64() {
        let first = [
            8748534153485358512,
            3040900993826735515,
            3453997556048239312,
            16431732851926010853,
            8204724074003728306,
        ];
        let mut state = DEFAULT_SEED;
        for output in first {
            state = xorshift64(state);
            assert_eq!(state, output);
        }
        assert_eq!(pages("random", 1000, 5), [512, 515, 312, 853, 306]);
        assert_eq!(pages("read-random", 1000, 5), [512, 515, 312, 853, 306]);
    }

    #[test]
    fn seeds_are_a_thousand_steps_apart() {
        let first: Vec<u64> = seeds(DEFAULT_SEED, 3).collect();
        assert_eq!(first, [88172645463325252, 1363160026601443621, 14004281193724023956]);
        let later: Vec<u64> = seeds(first[1], 2).collect();
        assert_eq!(later, first[1..], "a series goes on from any of its seeds");
        assert_eq!(seeds(7, 1).collect::<Vec<_>>(), [7]);
    }

    #[test]
    fn patterns() {
        for (workload, page_count, expected) in [
            ("sequential", 3, vec![0, 1, 2, 0, 1, 2, 0]),
            ("reverse", 3, vec![2, 1, 0, 2, 1, 0, 2]),
            ("first", 3, vec![0; 7]),
            ("stride:4", 10, vec![0, 4, 8, 2, 6, 0, 4]),
            ("stride:13", 10, vec![0, 3, 6, 9, 2, 5, 8]),
            ("stride:10", 10, vec![0; 7]),
            ("interleave:1", 3, vec![0, 1, 2, 0, 1, 2, 0]),
            ("interleave:2", 10, vec![0, 5, 1, 6, 2, 7, 3]),
            ("interleave:2", 4, vec![0, 2, 1, 3, 0, 2, 1]),
            // Thirds of 8 pages: 0..2, 2..5, 5..8.
            ("interleave:3", 8, vec![0, 2, 5, 1, 3, 6, 0]),
            ("interleave:4", 4, vec![0, 1, 2, 3, 0, 1, 2]),
        ] {
            assert_eq!(pages(workload, page_count, 7), expected, "{workload} of {page_count}");
        }
        for workload in ["random", "stride:7", "sequential", "reverse", "first", "interleave:1"] {
            assert_eq!(pages(workload, 1, 3), [0; 3], "{workload}");
        }
    }

    /// The generator's outputs are in `random_is_xorshift64`.
    #[test]
    fn runs_and_records() {
        // Expected values computed in Python. Modulo 998: 458, 163, 142.
        assert_eq!(pages("runs:3", 1000, 8), [458, 459, 460, 163, 164, 165, 142, 143]);
        assert_eq!(pages("runs:1", 1000, 3), [512, 515, 312], "one page is random");
        assert_eq!(pages("runs:7", 7, 8), [0, 1, 2, 3, 4, 5, 6, 0]);
        // Records of 3000 bytes from bytes 2751000, 1155000 and 336000.
        assert_eq!(pages("records:3000b", 1000, 5), [671, 672, 281, 282, 82]);
        // A record of a page is a random page, and of two begins at an even one.
        assert_eq!(pages("records:4k", 1000, 3), [512, 515, 312]);
        assert_eq!(pages("records:8k", 1000, 4), [24, 25, 30, 31]);
    }

    #[test]
    fn a_stride_is_a_product_modulo_the_mapping() {
        let most = PageCount(1 << 48);
        for stride in [1021, u64::MAX, u64::MAX - 1, 1 << 63, (1 << 48) - 1] {
            let made =
                Accesses::generated(Workload::Stride(stride), (most, 4096), 100, DEFAULT_SEED);
            for (number, page) in made.enumerate() {
                let product = number as u128 * u128::from(stride) % u128::from(most.0);
                assert_eq!(u128::from(page), product);
            }
        }
    }

    #[test]
    fn the_largest_interleave_does_not_overflow() {
        let most = PageCount(1 << 48);
        let made = Accesses::generated(Workload::Interleave(most.0), (most, 4096), 3, DEFAULT_SEED);
        assert_eq!(made.collect::<Vec<_>>(), [0, 1, 2]);
    }

    #[test]
    fn reads() {
        let blocks = |random, bytes, bs, count| -> Vec<(u64, u64)> {
            let reads = Reads::new(random, bytes, bs, count);
            reads.map(|read| (read.offset_bytes, read.len_bytes)).collect()
        };
        let laps = [(0, 4096), (4096, 4096), (8192, 1808), (0, 4096)];
        assert_eq!(blocks(None, 10_000, 4096, 4), laps);
        assert_eq!(blocks(None, 10_000, 1 << 20, 2), [(0, 10_000), (0, 10_000)]);
        assert_eq!(blocks(None, 3, 1, 4), [(0, 1), (1, 1), (2, 1), (0, 1)]);
        // The generator's outputs modulo 3 are 2, 1, 1.
        let random = Some((PageCount(3), 4096, DEFAULT_SEED));
        assert_eq!(blocks(random, 10_000, 4096, 3), [(8192, 1808), (4096, 4096), (4096, 4096)]);
    }

    #[test]
    fn lists() {
        assert_eq!(parse_accesses("1\n 0 \r\n\n2", PageCount(3)), Ok(vec![1, 0, 2]));
        for (text, words) in [
            ("", "the accesses file has no page index"),
            ("1\nx\n", "line 2: 'x' is no page index; give one whole number a line"),
            ("-1", "line 1: '-1' is no page index"),
            ("1.5", "line 1: '1.5' is no page index"),
            ("1 2", "line 1: '1 2' is no page index"),
            ("99999999999999999999", "line 1: '99999999999999999999' is no page index"),
            ("0\n\n3", "line 3: page 3 is beyond the mapping; its last page is 2; map"),
        ] {
            let error = parse_accesses(text, PageCount(3)).unwrap_err().to_string();
            assert!(error.contains(words), "{text:?}: {error}");
        }
    }
}

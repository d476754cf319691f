//! The column encoding of touches.

use crate::error::Problem;
use crate::wait;
use crate::wire::{ByteReader, encode_number};

/// A touch with its wait encoded as a byte.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct EncodedTouch {
    pub thread: u32,
    pub mapping: u32,
    pub page: u64,
    pub is_write: bool,
    pub wait: u8,
}

/// Maximum bytes per page number.
const MAX_WIDTH: usize = 8;

/// The encoding of the page column.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum PageCoding {
    /// Byte planes of page minus lowest page of the block: all lowest bytes, then all second bytes,
    /// and so on.
    #[default]
    Planes,
    /// Byte planes of the zigzag-encoded difference to the previous page of the same mapping.
    Differences,
    /// Page minus lowest page of the block, as little-endian words one after the other.
    Words,
}

impl PageCoding {
    pub const ALL: [PageCoding; 3] =
        [PageCoding::Planes, PageCoding::Differences, PageCoding::Words];

    fn number(self) -> u8 {
        match self {
            PageCoding::Planes => 0,
            PageCoding::Differences => 1,
            PageCoding::Words => 2,
        }
    }
}

/// The columns of a sequence of touches.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct TouchColumns {
    pub threads: Vec<u8>,
    pub mappings: Vec<u8>,
    pub pages: PageColumn,
    pub waits: Vec<u8>,
    pub writes: Vec<u8>,
}

/// The page column: header and bytes.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct PageColumn {
    /// The header, which precedes the parts.
    pub head: PageColumnHeader,
    /// One part per byte plane; a single part for [`PageCoding::Words`].
    pub parts: Vec<Vec<u8>>,
}

/// Coding, bytes per value, and the page number that is added to each value.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct PageColumnHeader {
    coding: PageCoding,
    width: usize,
    base: u64,
}

impl PageColumnHeader {
    pub fn encode(&self, bytes: &mut Vec<u8>) {
        bytes.extend([self.coding.number(), self.width as u8]);
        encode_number(bytes, self.base);
    }

    pub fn decode(bytes: &mut ByteReader<'_>) -> Result<PageColumnHeader, Problem> {
        let number = bytes.byte()?;
        let coding = PageCoding::ALL.into_iter().find(|coding| coding.number() == number);
        let coding =
            coding.ok_or_else(|| Problem::malformed(format!("pages have the coding {number}")))?;
        let width = usize::from(bytes.byte()?);
        if width > MAX_WIDTH {
            return Err(Problem::malformed(format!("a page takes {width} bytes")));
        }
        Ok(PageColumnHeader { coding, width, base: bytes.number()? })
    }

    /// Number of parts that follow the header.
    pub fn parts(&self) -> usize {
        if self.coding == PageCoding::Words { 1 } else { self.width }
    }
}

/// Encodes `touches`.
pub fn encode(touches: &[EncodedTouch], coding: PageCoding) -> TouchColumns {
    TouchColumns {
        threads: encode_runs(touches.iter().map(|touch| u64::from(touch.thread))),
        mappings: encode_runs(touches.iter().map(|touch| u64::from(touch.mapping))),
        pages: encode_pages(touches, coding),
        waits: touches.iter().map(|touch| touch.wait).collect(),
        writes: encode_runs(touches.iter().map(|touch| u64::from(touch.is_write))),
    }
}

/// Decodes `count` touches. An error if a column has another length or an invalid value.
pub fn decode(columns: &TouchColumns, count: usize) -> Result<Vec<EncodedTouch>, Problem> {
    let TouchColumns { threads, mappings, pages, waits, writes } = columns;
    let mut touches =
        vec![EncodedTouch { thread: 0, mapping: 0, page: 0, is_write: false, wait: 0 }; count];
    decode_runs(threads, &mut touches, |touch, value| {
        touch.thread = value.try_into().ok()?;
        Some(())
    })?;
    decode_runs(mappings, &mut touches, |touch, value| {
        touch.mapping = value.try_into().ok()?;
        Some(())
    })?;
    decode_pages(pages, &mut touches)?;
    if waits.len() != count {
        return Err(Problem::malformed("a block has more or fewer waits than touches"));
    }
    for (touch, byte) in touches.iter_mut().zip(waits) {
        if wait::decode(*byte).is_none() {
            return Err(Problem::malformed(format!("a wait is written as {byte}")));
        }
        touch.wait = *byte;
    }
    decode_runs(writes, &mut touches, |touch, value| {
        touch.is_write = value == 1;
        (value <= 1).then_some(())
    })?;
    Ok(touches)
}

/// Run-length encoding: pairs of value and run length.
fn encode_runs(values: impl Iterator<Item = u64>) -> Vec<u8> {
    let mut bytes = Vec::new();
    let mut run: Option<(u64, u64)> = None;
    for value in values {
        match &mut run {
            Some((same, count)) if *same == value => *count += 1,
            _ => {
                encode_run(&mut bytes, run);
                run = Some((value, 1));
            }
        }
    }
    encode_run(&mut bytes, run);
    bytes
}

fn encode_run(bytes: &mut Vec<u8>, run: Option<(u64, u64)>) {
    if let Some((value, count)) = run {
        encode_number(bytes, value);
        encode_number(bytes, count);
    }
}

/// Decodes a run-length encoded column into `touches`. `set` returns `None` for an invalid value.
fn decode_runs(
    bytes: &[u8],
    touches: &mut [EncodedTouch],
    set: impl Fn(&mut EncodedTouch, u64) -> Option<()>,
) -> Result<(), Problem> {
    let other_count = || Problem::malformed("a column has more or fewer values than touches");
    let mut bytes = ByteReader::new(bytes);
    let mut left = touches;
    while !bytes.is_empty() {
        let value = bytes.number()?;
        let count = bytes.count("touches in a row", left.len())?;
        let (run, behind) = left.split_at_mut(count);
        for touch in run {
            let beyond = || Problem::malformed(format!("a column has the value {value}"));
            set(touch, value).ok_or_else(beyond)?;
        }
        left = behind;
    }
    if left.is_empty() { Ok(()) } else { Err(other_count()) }
}

/// Encodes the page column of `touches`.
pub fn encode_pages(touches: &[EncodedTouch], coding: PageCoding) -> PageColumn {
    let base = match coding {
        PageCoding::Differences => 0,
        PageCoding::Planes | PageCoding::Words => {
            touches.iter().map(|touch| touch.page).min().unwrap_or_default()
        }
    };
    let mut before = LastPages::default();
    let values = touches.iter().map(|touch| match coding {
        PageCoding::Differences => {
            let last = before.replace(touch.mapping, touch.page);
            let difference = touch.page.wrapping_sub(last) as i64;
            (difference << 1 ^ difference >> 63) as u64
        }
        PageCoding::Planes | PageCoding::Words => touch.page - base,
    });
    let values: Vec<u64> = values.collect();
    let most = values.iter().copied().max().unwrap_or_default();
    let width = (u64::BITS - most.leading_zeros()).div_ceil(8) as usize;
    let plane = |plane| values.iter().map(|value| (value >> (8 * plane)) as u8).collect();
    let parts = match coding {
        PageCoding::Words => {
            vec![
                values
                    .iter()
                    .flat_map(|value| value.to_le_bytes().into_iter().take(width))
                    .collect(),
            ]
        }
        PageCoding::Planes | PageCoding::Differences => (0..width).map(plane).collect(),
    };
    PageColumn { head: PageColumnHeader { coding, width, base }, parts }
}

fn decode_pages(pages: &PageColumn, touches: &mut [EncodedTouch]) -> Result<(), Problem> {
    let PageColumnHeader { coding, width, base } = pages.head;
    let length = if coding == PageCoding::Words { width * touches.len() } else { touches.len() };
    if pages.parts.iter().any(|part| part.len() != length) {
        return Err(Problem::malformed("a block has more or fewer pages than touches"));
    }
    let mut before = LastPages::default();
    for (number, touch) in touches.iter_mut().enumerate() {
        let mut value = 0u64;
        for place in 0..width {
            let byte = match coding {
                PageCoding::Words => pages.parts[0][number * width + place],
                PageCoding::Planes | PageCoding::Differences => pages.parts[place][number],
            };
            value |= u64::from(byte) << (8 * place);
        }
        touch.page = match coding {
            PageCoding::Differences => {
                let difference = (value >> 1) as i64 ^ -((value & 1) as i64);
                let page = before.last_page(touch.mapping).wrapping_add_signed(difference);
                before.replace(touch.mapping, page);
                page
            }
            PageCoding::Planes | PageCoding::Words => base
                .checked_add(value)
                .ok_or_else(|| Problem::malformed("a page is longer than 64 bits"))?,
        };
    }
    Ok(())
}

/// The last page of each mapping, initially 0.
#[derive(Default)]
struct LastPages {
    pages: std::collections::HashMap<u32, u64>,
    /// The most recent mapping and its page, not yet in `pages`: consecutive touches are mostly in
    /// the same mapping.
    cached: Option<(u32, u64)>,
}

impl LastPages {
    fn last_page(&self, mapping: u32) -> u64 {
        match self.cached {
            Some((same, page)) if same == mapping => page,
            _ => self.pages.get(&mapping).copied().unwrap_or_default(),
        }
    }

    fn replace(&mut self, mapping: u32, page: u64) -> u64 {
        let last = self.last_page(mapping);
        if let Some((other, page)) = self.cached.filter(|(other, _)| *other != mapping) {
            self.pages.insert(other, page);
        }
        self.cached = Some((mapping, page));
        last
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn each_coding_gives_the_same_touches() {
        let pages = [7, 1 << 29, 8, u64::MAX, 0, 9, 1 << 40];
        let touch = |(number, page): (usize, u64)| EncodedTouch {
            thread: number as u32 / 3,
            mapping: number as u32 % 2,
            page,
            is_write: number % 3 == 0,
            wait: number as u8,
        };
        let touches: Vec<EncodedTouch> = pages.into_iter().enumerate().map(touch).collect();
        for some in [&touches[..], &touches[..1], &[]] {
            for coding in PageCoding::ALL {
                let columns = encode(some, coding);
                assert_eq!(decode(&columns, some.len()).as_deref(), Ok(some), "{coding:?}");
                assert!(decode(&columns, some.len() + 1).is_err());
            }
        }
    }
}

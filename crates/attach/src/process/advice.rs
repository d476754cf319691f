//! Advice in effect on mappings, from `VmFlags` in `/proc/PID/smaps`.

use std::fs::File;
use std::io::Read;

use super::{maps, read, unreadable};
use crate::{Error, MappedRange};

/// Read size: the kernel returns about a page of text at a time, a few mappings' worth.
const READ_BYTES: usize = 4096;

/// Advice that the kernel keeps in the flags of a VMA.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct VmaAdvice {
    pub readahead: ReadaheadMode,
    /// `MADV_HUGEPAGE` or `MADV_NOHUGEPAGE`.
    pub huge_pages: Option<bool>,
}

/// Readahead mode of a mapping.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum ReadaheadMode {
    #[default]
    Normal,
    /// `MADV_RANDOM`
    Random,
    /// `MADV_SEQUENTIAL`
    Sequential,
}

/// Lists the file mappings with their current advice. Takes milliseconds per GiB of resident
/// memory, as reading smaps walks the page tables.
pub fn maps_with_advice(pid: u32) -> Result<Vec<(MappedRange, VmaAdvice)>, Error> {
    Ok(parse_smaps(&read(pid, "smaps")?))
}

/// [`maps_with_advice`] for mappings that start below `end`. Stops reading there, which saves time
/// for new mappings: the kernel usually places them below older ones.
pub fn maps_with_advice_before(pid: u32, end: u64) -> Result<Vec<(MappedRange, VmaAdvice)>, Error> {
    let failed = |cause| unreadable(pid, "smaps", cause);
    let mut file = File::open(format!("/proc/{pid}/smaps")).map_err(failed)?;
    let (mut parser, mut text, mut part) = (SmapsParser::default(), Vec::new(), [0; READ_BYTES]);
    loop {
        let count = file.read(&mut part).map_err(failed)?;
        text.extend_from_slice(&part[..count]);
        let whole_lines = text.iter().rposition(|byte| *byte == b'\n').map_or(0, |last| last + 1);
        parser.parse(&text[..whole_lines]);
        text.drain(..whole_lines);
        let is_enough = parser.found.last().is_some_and(|(range, _)| range.end() >= end);
        if count == 0 || is_enough {
            let found = parser.found.into_iter();
            return Ok(found.filter(|(range, _)| range.address < end).collect());
        }
    }
}

fn parse_smaps(text: &[u8]) -> Vec<(MappedRange, VmaAdvice)> {
    let mut parser = SmapsParser::default();
    parser.parse(text);
    parser.found
}

/// Parses smaps piece by piece.
#[derive(Default)]
struct SmapsParser {
    found: Vec<(MappedRange, VmaAdvice)>,
    /// The file mapping whose flags come next.
    last: Option<MappedRange>,
}

impl SmapsParser {
    /// Parses whole lines.
    fn parse(&mut self, text: &[u8]) {
        for line in text.split(|byte| *byte == b'\n') {
            if let Some(flags) = line.strip_prefix(b"VmFlags:") {
                let range = self.last.take();
                self.found.extend(range.map(|range| (range, parse_vm_flags(flags))));
            } else if line.first().is_some_and(u8::is_ascii_hexdigit)
                && let Some(range) = maps::parse_maps_line(line)
            {
                self.last = Some(range).filter(|range| range.file.is_some());
            }
        }
    }
}

fn parse_vm_flags(flags: &[u8]) -> VmaAdvice {
    let mut advice = VmaAdvice::default();
    for flag in flags.split(|byte| *byte == b' ') {
        match flag {
            b"rr" => advice.readahead = ReadaheadMode::Random,
            b"sr" => advice.readahead = ReadaheadMode::Sequential,
            b"hg" => advice.huge_pages = Some(true),
            b"nh" => advice.huge_pages = Some(false),
            _ => {}
        }
    }
    advice
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn flags_show_the_advice_of_their_mapping() {
        let text = b"1000-2000 r--s 00000000 fe:01 7 /a VmFlags: rr\nSize: 4 kB\n\
                     VmFlags: rd mr sr \n2000-3000 rw-p 00000000 00:00 0\nVmFlags: rr\n\
                     3000-4000 r--p 00000000 fe:01 8 /b\nVmFlags: rd rr nh\n";
        let found: Vec<_> =
            parse_smaps(text).into_iter().map(|(r, advice)| (r.address, advice)).collect();
        let sequential = VmaAdvice { readahead: ReadaheadMode::Sequential, huge_pages: None };
        let random = VmaAdvice { readahead: ReadaheadMode::Random, huge_pages: Some(false) };
        assert_eq!(found, [(0x1000, sequential), (0x3000, random)]);
    }

    /// Stopping early gives what reading everything gives.
    #[test]
    fn maps_below_an_address_are_a_part_of_all() {
        let pid = std::process::id();
        let all = maps_with_advice(pid).unwrap();
        let middle = all[all.len() / 2].0.address + 1;
        for end in [middle, u64::MAX] {
            let below = maps_with_advice_before(pid, end).unwrap();
            let expected: Vec<_> =
                all.iter().filter(|(range, _)| range.address < end).cloned().collect();
            assert_eq!(below, expected, "{end:x}");
        }
    }
}

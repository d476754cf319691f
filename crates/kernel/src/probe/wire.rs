//! What parent and child say to each other: 64-bit words in this machine's byte order.

use std::ffi::OsString;
use std::io::{self, Read, Write};
use std::os::unix::ffi::{OsStrExt, OsStringExt};
use std::path::{Path, PathBuf};

use filemap_core::address::mapping::{Split, SplitProt};
use filemap_core::address::vma::{Advice, HugeHint, ReadHint};
use filemap_core::units::{PageCount, PageIndex};
use filemap_job::elf::Segment;
use filemap_job::program::{Fadvise, Madvise};

use super::access::Access;
use super::outcome::{Ended, EndedThread, Left, PhaseCost};
use super::process::{Area, Process, Step};
use crate::residency::PageSet;

/// What the child says.
#[derive(Debug)]
pub(super) enum Reply {
    /// The files are mapped.
    Ready {
        /// Where each mapping is, or will be.
        addresses: Vec<u64>,
    },
    /// It cannot go on.
    Failed(String),
    /// It cannot go on, because the system refuses it memory.
    Starved(String),
    /// It got SIGBUS for touching this address.
    Bus(u64),
    /// The steps are taken.
    Done(Ended),
    /// What came out of operations over folios.
    Numbers(Vec<u64>),
}

const READY: u64 = 1;
const FAILED: u64 = 2;
const DONE: u64 = 3;
const STARVED: u64 = 4;
const BUS: u64 = 5;
const NUMBERS: u64 = 6;

/// [`Reply::Bus`] as it is sent: nothing is allocated.
pub(super) fn bus_message(address: u64) -> [u8; 16] {
    let mut message = [0; 16];
    let (kind, value) = message.split_at_mut(8);
    kind.copy_from_slice(&BUS.to_ne_bytes());
    value.copy_from_slice(&address.to_ne_bytes());
    message
}

impl Process {
    pub(super) fn encode(&self) -> Vec<u8> {
        let mut out = Vec::new();
        put_all(&mut out, &self.files, |out, path| put_path(out, path));
        put_all(&mut out, &self.opens, |out, file| put(out, *file as u64));
        put_all(&mut out, &self.mappings, put_area);
        let words = [
            self.anonymous.0,
            self.cpus.unwrap_or(0),
            u64::from(self.settle),
            u64::from(self.report_mapped),
        ];
        words.iter().for_each(|&word| put(&mut out, word));
        put_all(&mut out, &self.threads, |out, steps| put_all(out, steps, put_step));
        out
    }

    pub(super) fn decode(input: &mut impl Read) -> io::Result<Process> {
        Ok(Process {
            files: get_all(input, get_path)?,
            opens: get_all(input, get_number)?,
            mappings: get_all(input, get_area)?,
            anonymous: PageCount(get(input)?),
            cpus: Some(get(input)?).filter(|&cpus| cpus > 0),
            settle: get(input)? != 0,
            report_mapped: get(input)? != 0,
            threads: get_all(input, |input| get_all(input, get_step))?,
        })
    }
}

fn put_area(out: &mut Vec<u8>, area: &Area) {
    let (split_pages, split_executable) = match area.split {
        Some(split) => (split.pages.0, split.prot == SplitProt::Exec),
        None => (0, false),
    };
    let flags = [area.executable, area.writable, area.private, split_executable, area.at_start];
    let words = [
        area.open as u64,
        area.offset.0,
        area.pages.0,
        area.shift.0,
        area.advice.read as u64,
        area.advice.huge as u64,
        split_pages,
        bits(&flags),
    ];
    words.iter().for_each(|&word| put(out, word));
    put_all(out, &area.segments, |out, segment| {
        let Segment { offset, pages, start, executable, writable } = *segment;
        let words = [offset.0, pages.0, start.0, bits(&[executable, writable])];
        words.iter().for_each(|&word| put(out, word));
    });
}

fn get_area(input: &mut impl Read) -> io::Result<Area> {
    let open = get_number(input)?;
    let (offset, pages, shift) = (get(input)?, get(input)?, get(input)?);
    let advice = get_advice(input)?;
    let (split_pages, flags) = (PageCount(get(input)?), get(input)?);
    let is_set = |bit: u32| flags >> bit & 1 == 1;
    let prot = if is_set(3) { SplitProt::Exec } else { SplitProt::Write };
    Ok(Area {
        open,
        offset: PageIndex(offset),
        pages: PageCount(pages),
        shift: PageCount(shift),
        advice,
        executable: is_set(0),
        writable: is_set(1),
        private: is_set(2),
        split: (split_pages.0 > 0).then_some(Split { pages: split_pages, prot }),
        segments: get_all(input, get_segment)?,
        at_start: is_set(4),
    })
}

fn get_segment(input: &mut impl Read) -> io::Result<Segment> {
    let (offset, pages, start) = (get(input)?, get(input)?, get(input)?);
    let flags = get(input)?;
    Ok(Segment {
        offset: PageIndex(offset),
        pages: PageCount(pages),
        start: PageCount(start),
        executable: flags & 1 != 0,
        writable: flags & 2 != 0,
    })
}

fn put_step(out: &mut Vec<u8>, step: &Step) {
    match step {
        Step::Map(mapping) => [0, *mapping as u64].iter().for_each(|&word| put(out, word)),
        Step::Unmap(mapping) => [1, *mapping as u64].iter().for_each(|&word| put(out, word)),
        Step::Madvise { mapping, advice, first, pages } => {
            let advice = position(&Madvise::ALL, advice);
            let words = [3, *mapping as u64, advice, first.0, pages.0];
            words.iter().for_each(|&word| put(out, word));
        }
        Step::Fadvise { open, advice, offset_bytes, len_bytes } => {
            let (advice, len) = (position(&Fadvise::ALL, advice), len_bytes.unwrap_or(u64::MAX));
            let words = [4, *open as u64, advice, *offset_bytes, len];
            words.iter().for_each(|&word| put(out, word));
        }
        Step::Accesses { open, mapping, accesses, think_ns } => {
            let mapping = mapping.map_or(u64::MAX, |mapping| mapping as u64);
            [2, *open as u64, mapping, *think_ns].iter().for_each(|&word| put(out, word));
            put_all(out, accesses, put_access);
        }
    }
}

fn get_step(input: &mut impl Read) -> io::Result<Step> {
    Ok(match get(input)? {
        0 => Step::Map(get_number(input)?),
        1 => Step::Unmap(get_number(input)?),
        2 => Step::Accesses {
            open: get_number(input)?,
            mapping: Some(get(input)?).filter(|&word| word != u64::MAX).map(|word| word as usize),
            think_ns: get(input)?,
            accesses: get_all(input, get_access)?,
        },
        3 => Step::Madvise {
            mapping: get_number(input)?,
            advice: get_one_of(&Madvise::ALL, input)?,
            first: PageCount(get(input)?),
            pages: PageCount(get(input)?),
        },
        4 => Step::Fadvise {
            open: get_number(input)?,
            advice: get_one_of(&Fadvise::ALL, input)?,
            offset_bytes: get(input)?,
            len_bytes: Some(get(input)?).filter(|&len| len != u64::MAX),
        },
        _ => return Err(io::ErrorKind::InvalidData.into()),
    })
}

fn put_access(out: &mut Vec<u8>, access: &Access) {
    let (kind, value, bytes) = match *access {
        Access::Touch(page) => (0, page.0, 0),
        Access::Store(page) => (1, page.0, 0),
        Access::Read { offset, bytes } => (2, offset, bytes),
        Access::Call(page) => (3, page.0, 0),
    };
    put(out, kind << 62 | value);
    if kind == 2 {
        put(out, bytes);
    }
}

fn get_access(input: &mut impl Read) -> io::Result<Access> {
    let word = get(input)?;
    let value = word & !(3 << 62);
    Ok(match word >> 62 {
        0 => Access::Touch(PageIndex(value)),
        1 => Access::Store(PageIndex(value)),
        2 => Access::Read { offset: value, bytes: get(input)? },
        _ => Access::Call(PageIndex(value)),
    })
}

pub(super) fn write_reply(output: &mut impl Write, reply: &Reply) -> io::Result<()> {
    let mut out = Vec::new();
    match reply {
        Reply::Ready { addresses } => {
            put(&mut out, READY);
            put_all(&mut out, addresses, |out, &address| put(out, address));
        }
        Reply::Failed(message) => put_message(&mut out, FAILED, message),
        Reply::Starved(message) => put_message(&mut out, STARVED, message),
        Reply::Bus(address) => out.extend_from_slice(&bus_message(*address)),
        Reply::Numbers(numbers) => {
            put(&mut out, NUMBERS);
            put_all(&mut out, numbers, |out, &number| put(out, number));
        }
        Reply::Done(ended) => {
            put(&mut out, DONE);
            put(&mut out, u64::from(ended.locked));
            put_all(&mut out, &ended.threads, |out, thread| {
                put(out, thread.elapsed_ns);
                put_all(out, &thread.steps, put_cost);
            });
            put_all(&mut out, ended.mapped.words(), |out, &word| put(out, word));
            put_all(&mut out, &ended.begun_at_flushes, |out, &begun| put(out, begun));
        }
    }
    output.write_all(&out)?;
    output.flush()
}

fn put_cost(out: &mut Vec<u8>, cost: &PhaseCost) {
    let PhaseCost { minor, major, elapsed_ns, .. } = *cost;
    let read_bytes = cost.read_bytes.unwrap_or(u64::MAX);
    let left = cost.left.unwrap_or(Left { cached: u64::MAX, evicted: 0 });
    let dropped = cost.dropped.unwrap_or(u64::MAX);
    let waits = u64::from(cost.counts_waits);
    let words = [minor, major, read_bytes, elapsed_ns, left.cached, left.evicted, dropped, waits];
    words.iter().for_each(|&word| put(out, word));
}

fn get_cost(input: &mut impl Read) -> io::Result<PhaseCost> {
    Ok(PhaseCost {
        minor: get(input)?,
        major: get(input)?,
        read_bytes: Some(get(input)?).filter(|&bytes| bytes != u64::MAX),
        elapsed_ns: get(input)?,
        left: Some(Left { cached: get(input)?, evicted: get(input)? })
            .filter(|left| left.cached != u64::MAX),
        dropped: Some(get(input)?).filter(|&pages| pages != u64::MAX),
        counts_waits: get(input)? != 0,
    })
}

fn put_message(out: &mut Vec<u8>, kind: u64, message: &str) {
    put(out, kind);
    put_bytes(out, message.as_bytes());
}

fn get_message(input: &mut impl Read) -> io::Result<String> {
    Ok(String::from_utf8_lossy(&get_bytes(input)?).into_owned())
}

pub(super) fn read_reply(input: &mut impl Read) -> io::Result<Reply> {
    match get(input)? {
        READY => Ok(Reply::Ready { addresses: get_all(input, get)? }),
        FAILED => Ok(Reply::Failed(get_message(input)?)),
        STARVED => Ok(Reply::Starved(get_message(input)?)),
        BUS => Ok(Reply::Bus(get(input)?)),
        NUMBERS => Ok(Reply::Numbers(get_all(input, get)?)),
        DONE => Ok(Reply::Done(Ended {
            locked: get(input)? != 0,
            threads: get_all(input, |input| {
                Ok(EndedThread { elapsed_ns: get(input)?, steps: get_all(input, get_cost)? })
            })?,
            mapped: PageSet::from_words(get_all(input, get)?),
            begun_at_flushes: get_all(input, get)?,
        })),
        _ => Err(io::ErrorKind::InvalidData.into()),
    }
}

fn bits(flags: &[bool]) -> u64 {
    flags.iter().enumerate().map(|(bit, &flag)| u64::from(flag) << bit).sum()
}

pub(super) fn put(out: &mut Vec<u8>, word: u64) {
    out.extend_from_slice(&word.to_ne_bytes());
}

pub(super) fn put_all<T>(out: &mut Vec<u8>, items: &[T], put_one: impl Fn(&mut Vec<u8>, &T)) {
    put(out, items.len() as u64);
    items.iter().for_each(|item| put_one(out, item));
}

pub(super) fn put_path(out: &mut Vec<u8>, path: &Path) {
    put_bytes(out, path.as_os_str().as_bytes());
}

fn put_bytes(out: &mut Vec<u8>, bytes: &[u8]) {
    put(out, bytes.len() as u64);
    out.extend_from_slice(bytes);
}

pub(super) fn get_path(input: &mut impl Read) -> io::Result<PathBuf> {
    Ok(OsString::from_vec(get_bytes(input)?).into())
}

pub(super) fn get(input: &mut impl Read) -> io::Result<u64> {
    let mut word = [0; 8];
    input.read_exact(&mut word)?;
    Ok(u64::from_ne_bytes(word))
}

/// The place of `one` among `all`, which have it.
fn position<T: PartialEq>(all: &[T], one: &T) -> u64 {
    all.iter().position(|other| other == one).expect("it is one of them") as u64
}

fn get_one_of<T: Copy>(all: &[T], input: &mut impl Read) -> io::Result<T> {
    all.get(get_number(input)?).copied().ok_or(io::ErrorKind::InvalidData.into())
}

fn get_number(input: &mut impl Read) -> io::Result<usize> {
    usize::try_from(get(input)?).map_err(|_| io::ErrorKind::InvalidData.into())
}

pub(super) fn get_all<R: Read, T>(
    input: &mut R,
    get_one: impl Fn(&mut R) -> io::Result<T>,
) -> io::Result<Vec<T>> {
    let items = get(input)?;
    (0..items).map(|_| get_one(input)).collect()
}

fn get_advice(input: &mut impl Read) -> io::Result<Advice> {
    let read = match get(input)? {
        0 => ReadHint::Normal,
        1 => ReadHint::Random,
        2 => ReadHint::Sequential,
        _ => return Err(io::ErrorKind::InvalidData.into()),
    };
    let huge = match get(input)? {
        0 => HugeHint::None,
        1 => HugeHint::Huge,
        2 => HugeHint::NoHuge,
        _ => return Err(io::ErrorKind::InvalidData.into()),
    };
    Ok(Advice { read, huge })
}

fn get_bytes(input: &mut impl Read) -> io::Result<Vec<u8>> {
    let length = get(input)?;
    let mut bytes = Vec::new();
    input.take(length).read_to_end(&mut bytes)?;
    if bytes.len() as u64 == length { Ok(bytes) } else { Err(io::ErrorKind::UnexpectedEof.into()) }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn process() -> Process {
        let area = Area {
            open: 1,
            offset: PageIndex(3),
            pages: PageCount(40),
            shift: PageCount(5),
            advice: Advice::HUGEPAGE,
            executable: true,
            private: true,
            split: Some(Split { pages: PageCount(16), prot: SplitProt::Exec }),
            segments: vec![Segment {
                offset: PageIndex(9),
                pages: PageCount(8),
                start: PageCount(7),
                executable: false,
                writable: true,
            }],
            ..Area::of_one_page(false)
        };
        let accesses = |accesses: &[Access]| Step::Accesses {
            open: 1,
            mapping: accesses.first().map(|_| 0),
            accesses: accesses.to_vec(),
            think_ns: accesses.len() as u64,
        };
        Process {
            files: vec!["/tmp/a b".into(), "c".into()],
            opens: vec![0, 1, 0],
            mappings: vec![area, Area { at_start: true, ..Area::of_one_page(true) }],
            anonymous: PageCount(77),
            threads: vec![
                vec![
                    accesses(&[Access::Touch(PageIndex(7)), Access::Store(PageIndex(39))]),
                    Step::Map(0),
                    Step::Madvise {
                        mapping: 1,
                        advice: Madvise::PopulateRead,
                        first: PageCount(3),
                        pages: PageCount(4),
                    },
                    accesses(&[]),
                ],
                vec![],
                vec![
                    Step::Unmap(1),
                    Step::Fadvise {
                        open: 2,
                        advice: Fadvise::NoReuse,
                        offset_bytes: 0,
                        len_bytes: None,
                    },
                    accesses(&[
                        Access::Read { offset: 1 << 40, bytes: 4096 },
                        Access::Call(PageIndex(0)),
                    ]),
                ],
            ],
            cpus: Some(2),
            settle: true,
            report_mapped: false,
        }
    }

    #[test]
    fn a_process_arrives_as_it_was_sent() {
        assert_eq!(Process::decode(&mut process().encode().as_slice()).unwrap(), process());
    }

    #[test]
    fn a_process_cut_short_is_refused() {
        let bytes = process().encode();
        assert!((0..bytes.len()).all(|end| Process::decode(&mut &bytes[..end]).is_err()));
    }

    fn arrived(reply: &Reply) -> Reply {
        let mut bytes = Vec::new();
        write_reply(&mut bytes, reply).unwrap();
        read_reply(&mut bytes.as_slice()).unwrap()
    }

    #[test]
    fn what_came_out_arrives_as_it_was_sent() {
        let cost = PhaseCost {
            minor: 1,
            major: 2,
            read_bytes: Some(3),
            elapsed_ns: 4,
            left: Some(Left { cached: 5, evicted: 6 }),
            dropped: Some(7),
            counts_waits: true,
        };
        let thread = |steps| EndedThread { elapsed_ns: 7, steps };
        let steps = vec![cost, PhaseCost { read_bytes: None, dropped: None, ..cost }];
        let ended = Ended {
            locked: true,
            threads: vec![thread(steps), thread(vec![])],
            mapped: PageSet::collect([true, false, true].into_iter()),
            begun_at_flushes: vec![8, 9],
        };
        assert!(matches!(arrived(&Reply::Done(ended.clone())), Reply::Done(same) if same == ended));
        let ready = Reply::Ready { addresses: vec![0x7f00_0000_0000, 5] };
        assert!(matches!(arrived(&ready), Reply::Ready { addresses } if addresses[1] == 5));
        assert!(matches!(arrived(&Reply::Bus(99)), Reply::Bus(99)));
    }
}

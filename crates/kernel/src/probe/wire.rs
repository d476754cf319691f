//! What parent and child say to each other: 64-bit words in this machine's byte order.

use std::ffi::OsString;
use std::io::{self, Read, Write};
use std::os::unix::ffi::{OsStrExt, OsStringExt};

use filemap_core::units::{PageCount, PageIndex};

use super::{
    Access, Advice, HugeHint, Left, Mapping, Outcome, PhaseCost, Plan, ReadHint, Segment, Split,
    SplitProt,
};
use crate::residency::PageSet;

/// What the child says.
#[derive(Debug)]
pub(super) enum Reply {
    /// The file is mapped.
    Ready,
    /// It cannot go on.
    Failed(String),
    /// It cannot go on, because the system refuses it memory.
    Starved(String),
    /// The accesses are made.
    Done(Outcome),
}

const READY: u64 = 1;
const FAILED: u64 = 2;
const DONE: u64 = 3;
const STARVED: u64 = 4;

impl Plan {
    pub(super) fn encode(&self) -> Vec<u8> {
        let mut out = Vec::new();
        put_bytes(&mut out, self.path.as_os_str().as_bytes());
        let Mapping { offset, pages, shift, advice, executable, private, split } = &self.mapping;
        let (split_pages, split_executable) = match split {
            Some(split) => (split.pages.0, split.prot == SplitProt::Exec),
            None => (0, false),
        };
        let words = [
            offset.0,
            pages.0,
            shift.0,
            advice.read as u64,
            advice.huge as u64,
            u64::from(*executable),
            u64::from(*private),
            split_pages,
            u64::from(split_executable),
            u64::from(self.settle),
            u64::from(self.report_mapped),
            self.segments.len() as u64,
        ];
        words.iter().for_each(|&word| put(&mut out, word));
        for segment in &self.segments {
            let Segment { offset, pages, start, executable, writable } = *segment;
            let flags = u64::from(executable) | u64::from(writable) << 1;
            [offset.0, pages.0, start.0, flags].iter().for_each(|&word| put(&mut out, word));
        }
        put(&mut out, self.phases.len() as u64);
        for phase in &self.phases {
            put(&mut out, phase.len() as u64);
            for access in phase {
                let (kind, value, bytes) = match *access {
                    Access::Touch(page) => (0, page.0, 0),
                    Access::Store(page) => (1, page.0, 0),
                    Access::Read { offset, bytes } => (2, offset, bytes),
                    Access::Call(page) => (3, page.0, 0),
                };
                put(&mut out, kind << 62 | value);
                if kind == 2 {
                    put(&mut out, bytes);
                }
            }
        }
        out
    }

    pub(super) fn decode(input: &mut impl Read) -> io::Result<Plan> {
        let path = OsString::from_vec(get_bytes(input)?).into();
        let mapping = Mapping {
            offset: PageIndex(get(input)?),
            pages: PageCount(get(input)?),
            shift: PageCount(get(input)?),
            advice: get_advice(input)?,
            executable: get(input)? != 0,
            private: get(input)? != 0,
            split: {
                let (pages, executable) = (PageCount(get(input)?), get(input)? != 0);
                let prot = if executable { SplitProt::Exec } else { SplitProt::Write };
                (pages.0 > 0).then_some(Split { pages, prot })
            },
        };
        let (settle, report_mapped) = (get(input)? != 0, get(input)? != 0);
        let segments = get(input)?;
        let segments = (0..segments).map(|_| get_segment(input)).collect::<io::Result<_>>()?;
        let mut phases = Vec::new();
        for _ in 0..get(input)? {
            let accesses = get(input)?;
            phases.push((0..accesses).map(|_| get_access(input)).collect::<io::Result<_>>()?);
        }
        Ok(Plan { path, mapping, segments, phases, settle, report_mapped })
    }
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
        Reply::Ready => put(&mut out, READY),
        Reply::Failed(message) => put_message(&mut out, FAILED, message),
        Reply::Starved(message) => put_message(&mut out, STARVED, message),
        Reply::Done(outcome) => {
            let header = [DONE, outcome.address, u64::from(outcome.locked)];
            header.iter().for_each(|&word| put(&mut out, word));
            put(&mut out, outcome.phases.len() as u64);
            for phase in &outcome.phases {
                let read_bytes = phase.read_bytes.unwrap_or(u64::MAX);
                let left = phase.left.unwrap_or(Left { cached: u64::MAX, evicted: 0 });
                let PhaseCost { minor, major, elapsed_ns, .. } = *phase;
                let words = [minor, major, read_bytes, elapsed_ns, left.cached, left.evicted];
                words.iter().for_each(|&word| put(&mut out, word));
            }
            put(&mut out, outcome.mapped.words().len() as u64);
            outcome.mapped.words().iter().for_each(|&word| put(&mut out, word));
        }
    }
    output.write_all(&out)?;
    output.flush()
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
        READY => Ok(Reply::Ready),
        FAILED => Ok(Reply::Failed(get_message(input)?)),
        STARVED => Ok(Reply::Starved(get_message(input)?)),
        DONE => {
            let (address, locked) = (get(input)?, get(input)? != 0);
            let mut phases = Vec::new();
            for _ in 0..get(input)? {
                phases.push(PhaseCost {
                    minor: get(input)?,
                    major: get(input)?,
                    read_bytes: Some(get(input)?).filter(|&bytes| bytes != u64::MAX),
                    elapsed_ns: get(input)?,
                    left: Some(Left { cached: get(input)?, evicted: get(input)? })
                        .filter(|left| left.cached != u64::MAX),
                });
            }
            let words = (0..get(input)?).map(|_| get(input)).collect::<io::Result<_>>()?;
            let mapped = PageSet::from_words(words);
            Ok(Reply::Done(Outcome { address, locked, phases, mapped }))
        }
        _ => Err(io::ErrorKind::InvalidData.into()),
    }
}

fn put(out: &mut Vec<u8>, word: u64) {
    out.extend_from_slice(&word.to_ne_bytes());
}

fn put_bytes(out: &mut Vec<u8>, bytes: &[u8]) {
    put(out, bytes.len() as u64);
    out.extend_from_slice(bytes);
}

fn get(input: &mut impl Read) -> io::Result<u64> {
    let mut word = [0; 8];
    input.read_exact(&mut word)?;
    Ok(u64::from_ne_bytes(word))
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

    fn plan() -> Plan {
        Plan {
            path: "/tmp/a b".into(),
            mapping: Mapping {
                offset: PageIndex(3),
                pages: PageCount(40),
                shift: PageCount(5),
                advice: Advice::HUGEPAGE,
                executable: true,
                private: true,
                split: Some(Split { pages: PageCount(16), prot: SplitProt::Exec }),
            },
            segments: vec![Segment {
                offset: PageIndex(9),
                pages: PageCount(8),
                start: PageCount(7),
                executable: false,
                writable: true,
            }],
            phases: vec![
                vec![Access::Touch(PageIndex(7)), Access::Store(PageIndex(39))],
                vec![],
                vec![Access::Read { offset: 1 << 40, bytes: 4096 }, Access::Call(PageIndex(0))],
            ],
            settle: true,
            report_mapped: false,
        }
    }

    #[test]
    fn a_plan_arrives_as_it_was_sent() {
        assert_eq!(Plan::decode(&mut plan().encode().as_slice()).unwrap(), plan());
    }

    #[test]
    fn a_plan_cut_short_is_refused() {
        let bytes = plan().encode();
        assert!((0..bytes.len()).all(|end| Plan::decode(&mut &bytes[..end]).is_err()));
    }

    #[test]
    fn an_outcome_arrives_as_it_was_sent() {
        let outcome = Outcome {
            address: 0x7f00_0000_0000,
            locked: true,
            phases: vec![
                PhaseCost {
                    minor: 1,
                    major: 2,
                    read_bytes: Some(3),
                    elapsed_ns: 4,
                    left: Some(Left { cached: 5, evicted: 6 }),
                },
                PhaseCost { read_bytes: None, ..PhaseCost::default() },
            ],
            mapped: PageSet::collect([true, false, true].into_iter()),
        };
        let mut bytes = Vec::new();
        write_reply(&mut bytes, &Reply::Done(outcome.clone())).unwrap();
        match read_reply(&mut bytes.as_slice()).unwrap() {
            Reply::Done(arrived) => assert_eq!(arrived, outcome),
            other => panic!("{other:?}"),
        }
    }
}

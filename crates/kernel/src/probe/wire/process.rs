//! A process as it is sent to the child that is to become it.

use std::io::{self, Read};

use filemap_core::address::mapping::{Split, SplitProt};
use filemap_core::address::vma::{Advice, HugeHint, ReadHint};
use filemap_core::units::{PageCount, PageIndex};
use filemap_job::elf::Segment;
use filemap_job::program::{Fadvise, Madvise, StepOf};

use super::super::access::Access;
use super::super::process::{Area, Process, Step};
use super::words::{
    bits, get, get_all, get_number, get_one_of, get_path, position, put, put_all, put_path,
};

impl Process {
    pub(in crate::probe) fn encode(&self) -> Vec<u8> {
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
        put_all(&mut out, &self.after, |out, of| put_all(out, of, put_after));
        out
    }

    pub(in crate::probe) fn decode(input: &mut impl Read) -> io::Result<Process> {
        Ok(Process {
            files: get_all(input, get_path)?,
            opens: get_all(input, get_number)?,
            mappings: get_all(input, get_area)?,
            anonymous: PageCount(get(input)?),
            cpus: Some(get(input)?).filter(|&cpus| cpus > 0),
            settle: get(input)? != 0,
            report_mapped: get(input)? != 0,
            is_governed: false,
            threads: get_all(input, |input| get_all(input, get_step))?,
            after: get_all(input, |input| get_all(input, get_after))?,
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

fn put_after(out: &mut Vec<u8>, (step, after): &(usize, Vec<StepOf>)) {
    put(out, *step as u64);
    put_all(out, after, |out, of| {
        [of.thread, of.step].iter().for_each(|number| put(out, *number as u64));
    });
}

fn get_after(input: &mut impl Read) -> io::Result<(usize, Vec<StepOf>)> {
    let step = get_number(input)?;
    let step_of =
        |input: &mut _| Ok(StepOf { thread: get_number(input)?, step: get_number(input)? });
    Ok((step, get_all(input, step_of)?))
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
            after: vec![vec![], vec![], vec![(1, vec![StepOf { thread: 0, step: 3 }])]],
            cpus: Some(2),
            settle: true,
            report_mapped: false,
            is_governed: false,
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
}

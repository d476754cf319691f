//! A thread of the child: its steps, one after the other.

use std::collections::BTreeMap;
use std::collections::btree_map::Entry;
use std::fs::File;
use std::num::NonZeroU64;
use std::os::unix::fs::FileExt;
use std::path::Path;
use std::time::Duration;

use filemap_job::program::{Fadvise, Madvise, StepOf};
use rustix::fs::{Advice as FileAdvice, fadvise};

use super::busy::Busy;
use super::files::Files;
use super::flushes::begin_access;
use super::mapping::{self, Mapped};
use super::meter::Meter;
use super::order::Order;
use super::populate::{self, Populated};
use super::process::{Area, Process, Step};
use super::settle::{NewReads, Settle};
use super::{Access, Left, PhaseCost};
use crate::residency::CacheStat;
use crate::{Error, page_size};

/// What is counted at the end of each step is not worth it for more files times steps than these.
const MAX_COUNTED: usize = 200_000;

/// What all threads of a process share.
pub(super) struct Shared<'a> {
    pub(super) process: &'a Process,
    pub(super) files: Files<'a>,
    pub(super) mapped: Vec<Mapped<'a>>,
    pub(super) order: Order,
}

/// A thread with everything that its steps need, already in memory.
pub(super) struct Thread<'a> {
    number: usize,
    steps: &'a [Step],
    /// The steps that wait for other threads.
    after: &'a [(usize, Vec<StepOf>)],
    meter: Meter,
    busy: Busy,
    buffer: Vec<u8>,
    costs: Vec<PhaseCost>,
    counts_left: bool,
    is_alone: bool,
    asked: NewReads,
    settles: BTreeMap<usize, Settle>,
}

impl<'a> Thread<'a> {
    /// Makes thread `number` of `process` ready. It is the one that calls this.
    pub(super) fn prepare(process: &'a Process, number: usize) -> Result<Self, Error> {
        let steps = &process.threads[number];
        let reads = steps.iter().flat_map(Step::accesses).map(|access| match access {
            Access::Read { bytes, .. } => *bytes,
            _ => 0,
        });
        let mut buffer = vec![1; reads.max().unwrap_or(0) as usize];
        let mut meter = Meter::open();
        warm_up(&mut meter, &mut buffer, process)?;
        let counted = steps.len().saturating_mul(process.files.len());
        Ok(Thread {
            number,
            steps,
            after: process.after.get(number).map_or(&[], Vec::as_slice),
            meter,
            busy: Busy::new(steps.iter().any(Step::thinks)),
            buffer,
            costs: Vec::with_capacity(steps.len()),
            counts_left: process.threads.len() == 1 && steps.len() > 1 && counted <= MAX_COUNTED,
            is_alone: process.threads.len() == 1,
            asked: NewReads::new(),
            settles: BTreeMap::new(),
        })
    }

    /// Opens what tells when nothing of a file is being read any more.
    pub(super) fn watch(&mut self, shared: &Shared) -> Result<(), Error> {
        for step in self.steps {
            let open = match step {
                Step::Accesses { open, .. } | Step::Fadvise { open, .. } => *open,
                Step::Madvise { mapping, .. } => shared.process.mappings[*mapping].open,
                Step::Map(_) | Step::Unmap(_) => continue,
            };
            let file = shared.process.opens[open];
            if let Entry::Vacant(unwatched) = self.settles.entry(file) {
                unwatched.insert(Settle::open(&shared.process.files[file])?);
            }
        }
        Ok(())
    }

    /// Takes its steps; what each cost.
    pub(super) fn run(mut self, shared: &Shared) -> Result<Vec<PhaseCost>, Error> {
        for (at, step) in self.steps.iter().enumerate() {
            if let Some(((_, first), rest)) = self.after.split_first().filter(|(of, _)| of.0 == at)
            {
                shared.order.wait(first);
                self.after = rest;
            }
            let mut cost = self.step(step, shared)?;
            shared.order.done(self.number);
            if self.counts_left {
                let stat = shared.files.cached();
                cost.left = stat.map(|stat| Left { cached: stat.cached, evicted: stat.evicted });
            }
            self.costs.push(cost);
        }
        Ok(self.costs)
    }

    fn step(&mut self, step: &Step, shared: &Shared) -> Result<PhaseCost, Error> {
        let Shared { process, files, mapped, .. } = shared;
        match step {
            Step::Map(number) => {
                let open = process.mappings[*number].open;
                self.meter.phase(|| mapped[*number].map(files.of(open), files.path(open)))
            }
            Step::Unmap(number) => self.meter.phase(|| mapped[*number].unmap()),
            Step::Madvise { mapping, advice, first, pages } => {
                let of = &process.mappings[*mapping];
                let (file, page) = (process.opens[of.open], of.offset + *first);
                if *advice == Madvise::PopulateRead {
                    let opened = files.of(of.open);
                    let part =
                        Populated { mapped: &mapped[*mapping], file: opened, first: *first, page };
                    let Thread { meter, asked, settles, .. } = self;
                    let settle = settles.get_mut(&file).map(|settle| (settle, asked));
                    return populate::populate(&part, *pages, meter, settle);
                }
                let of = &mapped[*mapping];
                let cost = self.meter.phase(|| of.madvise(*advice, *first, *pages))?;
                self.settle(file, page.0, pages.0)?;
                Ok(cost)
            }
            Step::Fadvise { open, advice, offset_bytes, len_bytes } => {
                let (file, offset) = (files.of(*open), *offset_bytes);
                let cached = |drops: bool| {
                    CacheStat::of(file, ..).ok().filter(|_| drops).map(|stat| stat.cached)
                };
                let before = cached(*advice == Fadvise::DontNeed);
                let mut cost = self.meter.phase(|| give(file, *advice, offset, *len_bytes))?;
                let left = before.zip(cached(before.is_some()));
                cost.dropped = left.map(|(before, left)| before.saturating_sub(left));
                let (page, pages) = (offset / page_size(), len_bytes.map(|len| len / page_size()));
                self.settle(process.opens[*open], page, pages.unwrap_or(u64::MAX))?;
                Ok(cost)
            }
            Step::Accesses { open, mapping, accesses, think_ns } => {
                let mapping = mapping.map(|number| &mapped[number]);
                let think = Duration::from_nanos(*think_ns);
                self.access((process.opens[*open], files.of(*open)), mapping, accesses, think)
            }
        }
    }

    /// Makes accesses to `file`, which has a number, and thinks after each.
    fn access(
        &mut self,
        (number, file): (usize, &File),
        mapping: Option<&Mapped>,
        accesses: &[Access],
        think: Duration,
    ) -> Result<PhaseCost, Error> {
        let Thread { meter, busy, buffer, asked, settles, is_alone, .. } = self;
        let Some(settle) = settles.get_mut(&number) else {
            return meter.phase(|| {
                for &access in accesses {
                    if *is_alone {
                        begin_access();
                    }
                    perform(mapping, file, access, buffer)?;
                    busy.be(think);
                }
                Ok(())
            });
        };
        let mut own = Meter::open();
        meter.phase(|| {
            for &access in accesses {
                perform(mapping, file, access, buffer)?;
                if asked.anything(&mut own) {
                    settle.after(page_of(mapping, access))?;
                }
            }
            Ok(())
        })
    }

    /// Waits until nothing of `pages` pages of a file is being read, where that is wanted.
    fn settle(&mut self, file: usize, page: u64, pages: u64) -> Result<(), Error> {
        let Thread { meter, asked, settles, .. } = self;
        match settles.get_mut(&file) {
            Some(settle) if asked.anything(meter) => settle.after_range(page, pages),
            _ => Ok(()),
        }
    }
}

/// Gives advice for a part of an open file.
fn give(
    file: &File,
    advice: Fadvise,
    offset_bytes: u64,
    len_bytes: Option<u64>,
) -> Result<(), Error> {
    let advice = match advice {
        Fadvise::Normal => FileAdvice::Normal,
        Fadvise::Random => FileAdvice::Random,
        Fadvise::Sequential => FileAdvice::Sequential,
        Fadvise::NoReuse => FileAdvice::NoReuse,
        Fadvise::WillNeed => FileAdvice::WillNeed,
        Fadvise::DontNeed => FileAdvice::DontNeed,
    };
    fadvise(file, offset_bytes, len_bytes.and_then(NonZeroU64::new), advice)
        .map_err(|errno| Error::call("advise the file", errno))
}

/// The page of the file that `access` begins at.
fn page_of(mapping: Option<&Mapped>, access: Access) -> u64 {
    match access {
        Access::Touch(page) | Access::Store(page) | Access::Call(page) => {
            mapping.expect("the process was checked").file_page(page)
        }
        Access::Read { offset, .. } => offset / page_size(),
    }
}

#[inline]
fn perform(
    mapping: Option<&Mapped>,
    file: &File,
    access: Access,
    buffer: &mut [u8],
) -> Result<(), Error> {
    let mapped = || mapping.expect("the process was checked");
    match access {
        Access::Touch(page) => mapped().touch(page.0),
        Access::Store(page) => mapped().store(page.0),
        Access::Call(page) => mapped().call(page.0),
        Access::Read { offset, bytes } => {
            // One call, as programs do; what is short of the end of file is short.
            file.read_at(&mut buffer[..bytes as usize], offset)
                .map_err(|error| Error::call("read the file", error))?;
        }
    }
    Ok(())
}

/// Runs once what will be counted.
fn warm_up(meter: &mut Meter, buffer: &mut [u8], process: &Process) -> Result<(), Error> {
    let path = Path::new("/dev/zero");
    let zero = File::open(path).map_err(|error| Error::os("open", path, error))?;
    let calls = process.accesses().any(|access| matches!(access, Access::Call(_)));
    let area = Area::of_one_page(calls);
    let mapped = mapping::anonymous(&area)?;
    let read = Access::Read { offset: 0, bytes: buffer.len().min(1) as u64 };
    let page = Default::default();
    for _ in 0..2 {
        meter.phase(|| {
            for access in [Access::Store(page), Access::Touch(page), read] {
                perform(Some(&mapped), &zero, access, buffer)?;
            }
            if !calls {
                return Ok(());
            }
            perform(Some(&mapped), &zero, Access::Call(page), buffer)
        })?;
    }
    Ok(())
}

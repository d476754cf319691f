//! A thread of the child: its steps, one after the other.

use std::collections::BTreeMap;
use std::fs::File;
use std::hint::spin_loop;
use std::os::unix::fs::FileExt;
use std::path::Path;
use std::time::{Duration, Instant};

use super::files::Files;
use super::mapping::{self, Mapped};
use super::meter::Meter;
use super::process::{Area, Process, Step};
use super::settle::{Asked, Settle};
use super::{Access, Left, PhaseCost};
use crate::{Error, page_size};

/// What is counted at the end of each step is not worth it for more files times steps than these.
const MAX_COUNTED: usize = 200_000;

/// What all threads of a process share.
pub(super) struct Shared<'a> {
    pub(super) process: &'a Process,
    pub(super) files: Files<'a>,
    pub(super) mapped: Vec<Mapped<'a>>,
}

/// A thread with everything that its steps need, already in memory.
pub(super) struct Thread<'a> {
    steps: &'a [Step],
    meter: Meter,
    buffer: Vec<u8>,
    costs: Vec<PhaseCost>,
    counts_left: bool,
    asked: Asked,
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
            steps,
            meter,
            buffer,
            costs: Vec::with_capacity(steps.len()),
            counts_left: process.threads.len() == 1 && steps.len() > 1 && counted <= MAX_COUNTED,
            asked: Asked::new(),
            settles: BTreeMap::new(),
        })
    }

    /// Opens what tells when nothing of a file is being read any more.
    pub(super) fn watch(&mut self, shared: &Shared) -> Result<(), Error> {
        for step in self.steps {
            let Step::Accesses { open, .. } = step else { continue };
            let file = shared.process.opens[*open];
            if !self.settles.contains_key(&file) {
                self.settles.insert(file, Settle::open(&shared.process.files[file])?);
            }
        }
        Ok(())
    }

    /// Takes its steps; what each cost.
    pub(super) fn run(mut self, shared: &Shared) -> Result<Vec<PhaseCost>, Error> {
        for step in self.steps {
            let mut cost = self.step(step, shared)?;
            if self.counts_left {
                let stat = shared.files.cached();
                cost.left = stat.map(|stat| Left { cached: stat.cached, evicted: stat.evicted });
            }
            self.costs.push(cost);
        }
        Ok(self.costs)
    }

    fn step(&mut self, step: &Step, shared: &Shared) -> Result<PhaseCost, Error> {
        let Shared { process, files, mapped } = shared;
        let Thread { meter, buffer, asked, settles, .. } = self;
        match step {
            Step::Map(number) => {
                let open = process.mappings[*number].open;
                meter.phase(|| mapped[*number].map(files.of(open), files.path(open)))
            }
            Step::Unmap(number) => meter.phase(|| mapped[*number].unmap()),
            Step::Accesses { open, mapping, accesses, think_ns } => {
                let mapping = mapping.map(|number| &mapped[number]);
                let (file, think) = (files.of(*open), Duration::from_nanos(*think_ns));
                let settle = settles.get_mut(&process.opens[*open]);
                match settle {
                    None => meter.phase(|| {
                        for &access in accesses {
                            perform(mapping, file, access, buffer)?;
                            be_busy(think);
                        }
                        Ok(())
                    }),
                    Some(settle) => {
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
                }
            }
        }
    }
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

/// Keeps this thread's CPU busy for a while.
#[inline]
fn be_busy(time: Duration) {
    if time.is_zero() {
        return;
    }
    let start = Instant::now();
    while start.elapsed() < time {
        spin_loop();
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
                be_busy(Duration::from_nanos(1));
            }
            if !calls {
                return Ok(());
            }
            perform(Some(&mapped), &zero, Access::Call(page), buffer)
        })?;
    }
    Ok(())
}

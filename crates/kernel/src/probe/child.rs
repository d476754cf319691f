//! The child's side of a probe.

use std::fs::File;
use std::io::{BufReader, Read, stdin, stdout};
use std::os::unix::fs::FileExt;
use std::thread::sleep;
use std::time::{Duration, Instant};

use rustix::mm::{MlockAllFlags, mlockall};
use rustix::process::{Signal, set_parent_process_death_signal};

use super::mapping::{self, Mapped};
use super::wire::{Reply, write_reply};
use super::{Access, Left, Outcome, PhaseCost, Plan};
use crate::procstat::{Faults, read_bytes};
use crate::residency::{CacheStat, View, mapped_pages};
use crate::{Error, page_size};

/// Runs the probe that comes in on standard input; the process's exit code.
pub(super) fn main() -> i32 {
    // The parent cannot end us when it is killed itself.
    let _ = set_parent_process_death_signal(Some(Signal::KILL));
    let mut input = BufReader::new(stdin().lock());
    let Ok(plan) = Plan::decode(&mut input) else { return 1 };
    let reply = prepare(plan).and_then(|prepared| {
        reply(&Reply::Ready)?;
        match input.read_exact(&mut [0]) {
            Ok(()) => prepared.run().map(Reply::Done),
            // The parent is gone, or has thought better of it.
            Err(_) => std::process::exit(1),
        }
    });
    let reply_written = match reply {
        Ok(done) => self::reply(&done),
        Err(error) if error.is_starved() => self::reply(&Reply::Starved(error.to_string())),
        Err(error) => self::reply(&Reply::Failed(error.to_string())),
    };
    i32::from(reply_written.is_err())
}

fn reply(reply: &Reply) -> Result<(), Error> {
    write_reply(&mut stdout().lock(), reply).map_err(|error| Error::call("answer", error))
}

/// Everything that the accesses need, already in memory.
struct Prepared {
    plan: Plan,
    mapped: Mapped,
    meter: Meter,
    settle: Option<Settle>,
    buffer: Vec<u8>,
    locked: bool,
}

fn prepare(plan: Plan) -> Result<Prepared, Error> {
    let file = mapping::open(&plan)?;
    let mut buffer = vec![1; plan.longest_read() as usize];
    let mut meter = Meter::open();
    let settle = if plan.settle { Some(Settle::open(&plan)?) } else { None };
    // Without the right to lock, what was run once is as good as locked unless memory is short.
    let locked = mlockall(MlockAllFlags::CURRENT).is_ok();
    warm_up(&mut meter, &mut buffer, plan.calls())?;
    // Only now: memory that is mapped later is not locked, and the file must not be.
    let mapped = Mapped::map(file, &plan)?;
    Ok(Prepared { plan, mapped, meter, settle, buffer, locked })
}

/// Runs once what will be counted.
fn warm_up(meter: &mut Meter, buffer: &mut [u8], calls: bool) -> Result<(), Error> {
    let path = std::path::Path::new("/dev/zero");
    let zero = File::open(path).map_err(|error| Error::os("open", path, error))?;
    let mapped = Mapped::anonymous(zero, calls)?;
    let read = Access::Read { offset: 0, bytes: buffer.len().min(1) as u64 };
    let page = Default::default();
    for _ in 0..2 {
        meter.phase(|| {
            for access in [Access::Store(page), Access::Touch(page), read] {
                perform(&mapped, access, buffer)?;
            }
            if calls { perform(&mapped, Access::Call(page), buffer) } else { Ok(()) }
        })?;
    }
    Ok(())
}

impl Prepared {
    fn run(mut self) -> Result<Outcome, Error> {
        let mut phases = Vec::with_capacity(self.plan.phases.len());
        let Prepared { plan, mapped, meter, settle, buffer, .. } = &mut self;
        for accesses in &plan.phases {
            let mut cost = meter.phase(|| {
                for &access in accesses {
                    perform(mapped, access, buffer)?;
                    if let Some(settle) = settle {
                        settle.after(access, plan)?;
                    }
                }
                Ok(())
            })?;
            if plan.phases.len() > 1 {
                let stat = CacheStat::of(&mapped.file, ..).ok();
                cost.left = stat.map(|stat| Left { cached: stat.cached, evicted: stat.evicted });
            }
            phases.push(cost);
        }
        let mapped = if self.plan.report_mapped {
            mapped_pages(self.mapped.address(), self.plan.mapping.pages.0)?
        } else {
            Default::default()
        };
        let address = self.mapped.address() as u64;
        Ok(Outcome { address, locked: self.locked, phases, mapped })
    }
}

#[inline]
fn perform(mapped: &Mapped, access: Access, buffer: &mut [u8]) -> Result<(), Error> {
    match access {
        Access::Touch(page) => mapped.touch(page.0),
        Access::Store(page) => mapped.store(page.0),
        Access::Call(page) => mapped.call(page.0),
        Access::Read { offset, bytes } => {
            // One call, as programs do; what is short of the end of file is short.
            mapped
                .file
                .read_at(&mut buffer[..bytes as usize], offset)
                .map_err(|error| Error::call("read the file", error))?;
        }
    }
    Ok(())
}

/// Counts what a phase costs.
struct Meter {
    io: Option<File>,
    text: [u8; 512],
}

impl Meter {
    fn open() -> Self {
        Meter { io: File::open("/proc/self/io").ok(), text: [0; 512] }
    }

    fn phase(&mut self, accesses: impl FnOnce() -> Result<(), Error>) -> Result<PhaseCost, Error> {
        let bytes_before = self.read_bytes();
        let faults_before = Faults::now();
        let start = Instant::now();
        accesses()?;
        let elapsed = start.elapsed();
        let faults = Faults::now() - faults_before;
        let read_bytes = self.read_bytes().zip(bytes_before).map(|(after, before)| after - before);
        Ok(PhaseCost {
            minor: faults.minor,
            major: faults.major,
            read_bytes,
            elapsed_ns: elapsed.as_nanos() as u64,
            left: None,
        })
    }

    fn read_bytes(&mut self) -> Option<u64> {
        let length = self.io.as_ref()?.read_at(&mut self.text, 0).ok()?;
        read_bytes(std::str::from_utf8(&self.text[..length]).ok()?)
    }
}

/// Waits until no page of the file is being read any more.
struct Settle {
    // An open file of its own: this must not disturb the readahead state under test.
    file: File,
    view: View,
    file_pages: u64,
    present: Vec<u8>,
    meter: Meter,
    read_bytes: Option<u64>,
}

/// Pages to either side of an access that readahead may have asked for.
const REACH_PAGES: u64 = 8192;
const PATIENCE: Duration = Duration::from_secs(30);

impl Settle {
    fn open(plan: &Plan) -> Result<Self, Error> {
        let path = &plan.path;
        let file = File::open(path).map_err(|error| Error::os("open", path, error))?;
        let bytes =
            file.metadata().map_err(|error| Error::os("read the size of", path, error))?.len();
        let file_pages = bytes.div_ceil(page_size()).max(1);
        let view = View::map(&file, file_pages)?;
        let present = vec![1; file_pages.min(2 * REACH_PAGES) as usize];
        Ok(Settle { file, view, file_pages, present, meter: Meter::open(), read_bytes: None })
    }

    /// Waits for what `access` of `plan` may have started.
    fn after(&mut self, access: Access, plan: &Plan) -> Result<(), Error> {
        let page = match access {
            Access::Touch(page) | Access::Store(page) | Access::Call(page) => {
                plan.file_page(page).expect("the plan was checked").0
            }
            Access::Read { offset, .. } => offset / page_size(),
        };
        // Looking at thousands of pages is worth it only where something was asked for.
        let read_bytes = self.meter.read_bytes();
        if read_bytes.is_some() && read_bytes == self.read_bytes {
            return Ok(());
        }
        self.read_bytes = read_bytes;
        let last_first = self.file_pages - self.present.len() as u64;
        let first = page.saturating_sub(REACH_PAGES).min(last_first);
        let start = Instant::now();
        loop {
            // A page in the cache is resident for mincore only once it was read.
            self.view.query(first, &mut self.present)?;
            let resident = self.present.iter().filter(|&&byte| byte & 1 == 1).count() as u64;
            let range = first..first + self.present.len() as u64;
            if CacheStat::of(&self.file, range)?.cached == resident {
                return Ok(());
            }
            if start.elapsed() > PATIENCE {
                return Err(Error::Child {
                    message: format!("pages near page {page} are still being read after 30 s"),
                });
            }
            sleep(Duration::from_micros(50));
        }
    }
}

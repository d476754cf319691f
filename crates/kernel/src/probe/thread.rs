//! A thread of the child: its steps and their accesses, in order.

use std::collections::BTreeMap;
use std::collections::btree_map::Entry;
use std::fs::File;
use std::num::NonZeroU64;
use std::os::unix::fs::FileExt;
use std::path::Path;
use std::thread::sleep;
use std::time::Duration;

use filemap_core::units::{PageCount, PageIndex};
use filemap_job::program::{
    self, DIRECT_BLOCK_BYTES, Fadvise, Madvise, NamedMapping, ProgramStep, Rounds, Thread,
    ThreadStep,
};
use filemap_job::waits::{Call, Histogram};
use rustix::fs::{Advice as FileAdvice, fadvise};

use super::flushes::note_access;
use super::fork::ForkStack;
use super::in_flight::{InFlightReads, ReadProgress};
use super::mapping::{self, ProbeMapping};
use super::memory::{HeldMemory, ReadBuffer};
use super::meter::{PopulateRange, StepMeter, populate};
use super::pacing::{Deadline, ThinkTime};
use super::process::{OpenFiles, ProbeProcess, longest_read};
use super::sync::ProbeSync;
use super::{CacheCounts, PhaseCost};
use crate::residency::CacheStat;
use crate::{Error, page_size};

/// Maximum number of files times steps for which the cache is counted after each step.
const MAX_COUNTED: usize = 200_000;

/// Durations of calls that change mappings.
type Calls = [Histogram; Call::ALL.len()];

/// The costs of a thread.
pub(super) struct ThreadCosts {
    /// Number of rounds of its steps.
    pub(super) rounds: u64,
    /// The cost of each step.
    pub(super) costs: Vec<PhaseCost>,
    pub(super) calls: Calls,
}

/// State shared by all threads.
pub(super) struct ChildContext<'a> {
    pub(super) process: &'a ProbeProcess,
    pub(super) files: OpenFiles<'a>,
    pub(super) mapped: Vec<ProbeMapping<'a>>,
    pub(super) held: HeldMemory,
    pub(super) sync: ProbeSync,
}

/// A thread with everything that its steps need, already in memory.
pub(super) struct ProbeThread<'a> {
    pub(super) number: usize,
    plan: &'a Thread,
    begins_ns: u64,
    /// The accesses of each step.
    accesses: Vec<Vec<ProbeAccess>>,
    /// Remaining steps that wait for other threads.
    after: &'a [(usize, Vec<ThreadStep>)],
    fork_stack: Option<ForkStack>,
    deadline: Deadline,
    meter: StepMeter,
    busy: ThinkTime,
    buffer: ReadBuffer,
    costs: Vec<PhaseCost>,
    calls: Calls,
    counts_cache: bool,
    is_alone: bool,
    progress: ReadProgress,
    in_flight: BTreeMap<usize, InFlightReads>,
}

impl<'a> ProbeThread<'a> {
    /// Prepares thread `number` of `process`, on that thread.
    pub(super) fn prepare(process: &'a ProbeProcess, number: usize) -> Result<Self, Error> {
        let plan = &process.threads[number];
        let steps = &plan.steps;
        let accesses = steps.iter().map(|step| accesses(process, step)).collect();
        let longest = steps.iter().map(longest_read).max().unwrap_or(0);
        let mut buffer = ReadBuffer::new(longest);
        let mut meter = StepMeter::open();
        warm_up(&mut meter, buffer.bytes(), process)?;
        let counted = steps.len().saturating_mul(process.files.len());
        let is_alone = process.is_alone();
        let takes_each_once = steps.len() > 1 && plan.rounds == Rounds::Times(1);
        // Ones, because zeros would not populate the memory.
        let mut costs = vec![PhaseCost { minor: 1, ..PhaseCost::default() }; steps.len()];
        costs.fill(PhaseCost { read_bytes: Some(0), dropped: Some(0), ..PhaseCost::default() });
        let fork_stack = steps.contains(&ProgramStep::Fork).then(ForkStack::new).transpose()?;
        Ok(ProbeThread {
            number,
            plan,
            begins_ns: plan.begins_ns(number, process.seed),
            accesses,
            after: &plan.after,
            fork_stack,
            deadline: Deadline::NEVER,
            meter,
            busy: ThinkTime::new(steps.iter().any(|step| step.think_ns() > 0)),
            buffer,
            costs,
            calls: Calls::default(),
            counts_cache: is_alone && takes_each_once && counted <= MAX_COUNTED,
            is_alone,
            progress: ReadProgress::new(),
            in_flight: BTreeMap::new(),
        })
    }

    /// Opens the in-flight reads of each file that the thread reads.
    pub(super) fn open_settles(&mut self, shared: &ChildContext) -> Result<(), Error> {
        for step in &self.plan.steps {
            let open = match step {
                ProgramStep::Read { open, .. } | ProgramStep::Fadvise { open, .. } => *open,
                ProgramStep::Touch { mapping, .. } | ProgramStep::Madvise { mapping, .. } => {
                    shared.process.mappings[*mapping].open
                }
                _ => continue,
            };
            let file = shared.process.opens[open];
            if let Entry::Vacant(unwatched) = self.in_flight.entry(file) {
                unwatched.insert(InFlightReads::open(&shared.process.files[file])?);
            }
        }
        Ok(())
    }

    /// Runs its steps for the number of rounds, or until its deadline.
    pub(super) fn run(mut self, shared: &ChildContext) -> Result<ThreadCosts, Error> {
        sleep(Duration::from_nanos(self.begins_ns));
        if let Rounds::For(ns) = self.plan.rounds {
            self.deadline = Deadline::after(Duration::from_nanos(ns));
        }
        let mut rounds = 0;
        while self.plan.rounds.begins(rounds) && !self.deadline.is_past() {
            rounds += u64::from(self.round(shared)?);
        }
        Ok(ThreadCosts { rounds, costs: self.costs, calls: self.calls })
    }

    /// Runs each step once. Returns whether all were run before the deadline.
    fn round(&mut self, shared: &ChildContext) -> Result<bool, Error> {
        let order = &shared.sync.order;
        for (at, step) in self.plan.steps.iter().enumerate() {
            if self.deadline.is_past() {
                return Ok(false);
            }
            if let Some(((_, first), rest)) =
                self.after.split_first().filter(|(step, _)| step.0 == at)
            {
                order.wait(first);
                self.after = rest;
            }
            let sleep_is_cut = self.cuts_sleep(step);
            let mut cost = self.step(at, shared)?;
            order.finish_step(self.number);
            if let Some(call) = step.call().filter(|call| *call != Call::Fork) {
                self.calls[call as usize].add(cost.elapsed_ns);
            }
            if self.counts_cache {
                let stat = shared.files.cached();
                cost.cache =
                    stat.map(|stat| CacheCounts { cached: stat.cached, evicted: stat.evicted });
            }
            self.costs[at] = self.costs[at].plus(cost);
            if sleep_is_cut || cost.accesses < self.accesses[at].len() as u64 {
                return Ok(false);
            }
        }
        Ok(true)
    }

    /// Whether `step` is a sleep that would exceed the deadline.
    fn cuts_sleep(&self, step: &ProgramStep) -> bool {
        let ProgramStep::Sleep { ns } = step else { return false };
        let sleep_time = Duration::from_nanos(*ns);
        self.deadline.clamp(sleep_time) < sleep_time
    }

    /// Runs step number `at`.
    fn step(&mut self, at: usize, shared: &ChildContext) -> Result<PhaseCost, Error> {
        let ChildContext { process, files, mapped, held, sync: meeting } = shared;
        let deadline = self.deadline;
        match &self.plan.steps[at] {
            ProgramStep::Map { mapping } => {
                let open = process.mappings[*mapping].open;
                self.meter.measure(|| mapped[*mapping].map(files.get(open), files.path(open)))
            }
            ProgramStep::Unmap { mapping, first, pages } => {
                let mapping_spec = &mapped[*mapping];
                self.meter.measure(|| {
                    if pages.0 == mapping_spec.pages() {
                        mapping_spec.unmap()
                    } else {
                        mapping_spec.unmap_part(*first, *pages)
                    }
                })
            }
            ProgramStep::Mprotect { mapping, protection, first, pages } => {
                self.meter.measure(|| mapped[*mapping].protect(*protection, *first, *pages))
            }
            ProgramStep::Fork => {
                let stack = self.fork_stack.as_ref().expect("a thread that forks has one");
                let mut took = Duration::ZERO;
                let cost = self.meter.measure(|| {
                    took = stack.fork()?;
                    Ok(())
                })?;
                self.calls[Call::Fork as usize].add(took.as_nanos() as u64);
                Ok(cost)
            }
            ProgramStep::Allocate { pages } => self.meter.measure(|| held.allocate(*pages)),
            ProgramStep::Free { pages } => self.meter.measure(|| held.free(*pages)),
            ProgramStep::Barrier { barrier } => self.meter.measure(|| {
                meeting.barriers.wait(*barrier);
                Ok(())
            }),
            ProgramStep::Sleep { ns } => self.meter.measure(|| {
                sleep(deadline.clamp(Duration::from_nanos(*ns)));
                Ok(())
            }),
            ProgramStep::Madvise { mapping, advice, first, pages } => {
                let mapping_spec = &process.mappings[*mapping];
                let (file, page) =
                    (process.opens[mapping_spec.open], mapping_spec.mapping.offset + *first);
                if *advice == Madvise::PopulateRead {
                    let opened = files.get(mapping_spec.open);
                    let part = PopulateRange {
                        mapped: &mapped[*mapping],
                        file: opened,
                        first: *first,
                        page,
                    };
                    let ProbeThread { meter, progress, in_flight: settles, .. } = self;
                    let settle = settles.get_mut(&file).map(|settle| (settle, progress));
                    return populate(&part, *pages, meter, settle);
                }
                let (mapping_spec, opened) = (&mapped[*mapping], files.get(mapping_spec.open));
                let before = cached_pages(opened, *advice == Madvise::PageOut);
                let mut cost =
                    self.meter.measure(|| mapping_spec.madvise(*advice, *first, *pages))?;
                cost.dropped = dropped_pages(opened, before);
                self.settle(file, page.0, pages.0)?;
                Ok(cost)
            }
            ProgramStep::Fadvise { open, advice, offset_bytes, len_bytes } => {
                let (file, offset) = (files.get(*open), *offset_bytes);
                let before = cached_pages(file, *advice == Fadvise::DontNeed);
                let mut cost =
                    self.meter.measure(|| advise_file(file, *advice, offset, *len_bytes))?;
                cost.dropped = dropped_pages(file, before);
                let (page, pages) = (offset / page_size(), len_bytes.map(|len| len / page_size()));
                self.settle(process.opens[*open], page, pages.unwrap_or(u64::MAX))?;
                Ok(cost)
            }
            ProgramStep::Touch { mapping, .. } => {
                let open = process.mappings[*mapping].open;
                self.access((process.opens[open], files.get(open)), Some(&mapped[*mapping]), at)
            }
            ProgramStep::Read { open, .. } => {
                self.access((process.opens[*open], files.get(*open)), None, at)
            }
        }
    }

    /// Makes the accesses of step number `at` to `file`, whose index is given, with think time
    /// after each.
    fn access(
        &mut self,
        (number, file): (usize, &File),
        mapping: Option<&ProbeMapping>,
        at: usize,
    ) -> Result<PhaseCost, Error> {
        let think = Duration::from_nanos(self.plan.steps[at].think_ns());
        let ProbeThread {
            meter,
            busy,
            buffer,
            progress,
            in_flight: settles,
            is_alone,
            deadline,
            accesses,
            ..
        } = self;
        let (accesses, buffer) = (&accesses[at], buffer.bytes());
        let mut made = 0;
        let cost = match settles.get_mut(&number) {
            None => meter.measure(|| {
                for &access in accesses {
                    if deadline.is_past() {
                        break;
                    }
                    if *is_alone {
                        note_access();
                    }
                    do_access(mapping, file, access, buffer)?;
                    made += 1;
                    busy.spin(deadline.clamp(think));
                }
                Ok(())
            }),
            Some(settle) => {
                let mut own_meter = StepMeter::open();
                meter.measure(|| {
                    for &access in accesses {
                        if deadline.is_past() {
                            break;
                        }
                        do_access(mapping, file, access, buffer)?;
                        made += 1;
                        if progress.has_advanced(&mut own_meter) {
                            settle.wait_near(page_of(mapping, access))?;
                        }
                    }
                    Ok(())
                })
            }
        };
        Ok(PhaseCost { accesses: made, ..cost? })
    }

    /// Waits until none of `pages` pages of a file is being read, if settling is on.
    fn settle(&mut self, file: usize, page: u64, pages: u64) -> Result<(), Error> {
        let ProbeThread { meter, progress, in_flight: settles, .. } = self;
        match settles.get_mut(&file) {
            Some(settle) if progress.has_advanced(meter) => settle.wait_range(page, pages),
            _ => Ok(()),
        }
    }
}

/// Number of cached pages of `file`, if requested and permitted.
fn cached_pages(file: &File, is_asked: bool) -> Option<u64> {
    let stat = is_asked.then(|| CacheStat::query(file, ..).ok()).flatten();
    stat.map(|stat| stat.cached)
}

/// How many of the `before` cached pages of `file` were dropped.
fn dropped_pages(file: &File, before: Option<u64>) -> Option<u64> {
    let left = cached_pages(file, before.is_some());
    before.zip(left).map(|(before, left)| before.saturating_sub(left))
}

/// Gives advice for a range of an open file.
fn advise_file(
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

/// The page of the file at which `access` begins.
fn page_of(mapping: Option<&ProbeMapping>, access: ProbeAccess) -> u64 {
    match access {
        ProbeAccess::Touch(page) | ProbeAccess::Store(page) | ProbeAccess::Call(page) => {
            mapping.expect("a valid program").file_page(page)
        }
        ProbeAccess::Read { offset, .. } => offset / page_size(),
    }
}

#[inline]
fn do_access(
    mapping: Option<&ProbeMapping>,
    file: &File,
    access: ProbeAccess,
    buffer: &mut [u8],
) -> Result<(), Error> {
    let mapped = || mapping.expect("a valid program");
    match access {
        ProbeAccess::Touch(page) => mapped().touch(page.0),
        ProbeAccess::Store(page) => mapped().store(page.0),
        ProbeAccess::Call(page) => mapped().call(page.0),
        ProbeAccess::Read { offset, bytes } => {
            // A single call, as programs do; a read at the end of the file is short.
            file.read_at(&mut buffer[..bytes as usize], offset)
                .map_err(|error| Error::call("read the file", error))?;
        }
    }
    Ok(())
}

/// Runs the measured code once, so that it is in memory.
fn warm_up(meter: &mut StepMeter, buffer: &mut [u8], process: &ProbeProcess) -> Result<(), Error> {
    let path = Path::new("/dev/zero");
    let zero = File::open(path).map_err(|error| Error::os("open", path, error))?;
    let calls = process.calls();
    let mut page = NamedMapping::from_first_pages(PageCount(1));
    (page.mapping.private, page.mapping.exec) = (true, calls);
    let mapped = mapping::map_anonymous_page(&page)?;
    let read = ProbeAccess::Read { offset: 0, bytes: buffer.len().min(1) as u64 };
    let page = Default::default();
    for _ in 0..2 {
        meter.measure(|| {
            for access in [ProbeAccess::Store(page), ProbeAccess::Touch(page), read] {
                do_access(Some(&mapped), &zero, access, buffer)?;
            }
            if !calls {
                return Ok(());
            }
            do_access(Some(&mapped), &zero, ProbeAccess::Call(page), buffer)
        })?;
    }
    Ok(())
}

/// One access.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum ProbeAccess {
    /// Reads a byte of a page of the mapping, counted from its beginning.
    Touch(PageIndex),
    /// Writes a byte of a page of a private mapping.
    Store(PageIndex),
    /// Calls the code at the start of a page of an executable mapping, which has to be
    /// [`RETURN_OPCODE`].
    Call(PageIndex),
    /// `read(2)`s from the file, through the same open file as the mapping.
    Read {
        /// File offset in bytes.
        offset: u64,
        /// Length, up to [`super::MAX_READ_BYTES`].
        bytes: u64,
    },
}

/// The accesses of `step`, a step of `process`, in order.
pub(super) fn accesses(process: &ProbeProcess, step: &ProgramStep) -> Vec<ProbeAccess> {
    match step {
        ProgramStep::Touch { mapping, accesses, access, .. } => {
            let access = match access {
                program::Access::Read => ProbeAccess::Touch,
                program::Access::Write => ProbeAccess::Store,
                program::Access::Call => ProbeAccess::Call,
            };
            let mapping_spec = &process.mappings[*mapping];
            let from_start = mapping_spec.from_beginning();
            mapping_spec
                .touches(accesses, page_size())
                .map(|page| access(from_start(page)))
                .collect()
        }
        ProgramStep::Read { open, offset_bytes, len_bytes, accesses, .. } => {
            let blocks = accesses.reads(*len_bytes, page_size());
            // Direct reads request the last block of a file whole, and are short there.
            let unit = if process.is_direct(*open) { DIRECT_BLOCK_BYTES } else { 1 };
            let read = blocks.map(|block| ProbeAccess::Read {
                offset: offset_bytes + block.offset_bytes,
                bytes: block.len_bytes.next_multiple_of(unit),
            });
            read.collect()
        }
        _ => Vec::new(),
    }
}

/// One-byte return instruction of x86-64, the only architecture on which a probe calls code.
pub const RETURN_OPCODE: u8 = 0xc3;

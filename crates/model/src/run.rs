//! One run of a job in virtual time.

use filemap_core::cache::{FolioRun, PageCache};
use filemap_core::decision::{Cause, Decision, Log};
use filemap_core::fault::{Access, Fault, Step, View};
use filemap_core::layout::Layout;
use filemap_core::page_table::PageTables;
use filemap_core::read::{Read, ReadView};
use filemap_core::readahead::{Limits, ReadaheadState, Window};
use filemap_core::reclaim;
use filemap_core::statistics::FLUSH_NS;
use filemap_core::units::{Order, PageCount, PageIndex};
use filemap_core::vma::{Mapping, Vma};
use filemap_job::bounds::MAX_MODEL_BYTES;
use filemap_job::{Job, Phase};

use crate::charge::Charge;
use crate::device::Device;
use crate::profile::Profile;
use crate::tally::Tally;
use crate::tlb::{self, Tlb};
use crate::{Error, setup};

/// When what is read arrives.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Timing {
    /// As the profile's device delivers it.
    #[default]
    Device,
    /// Within an access only what it waits for, and everything before the next. What a program
    /// meets then depends on no device, so another engine can be compared line by line.
    Settled,
}

/// The state of a run: one open file, one mapping, one thread.
pub struct Run<'a, C, L> {
    limits: Limits,
    mapping: Mapping,
    access: Access,
    memory_pages: Option<PageCount>,
    /// What else the limit pays for, where it is a memory cgroup's.
    charge: Option<Charge>,
    timing: Timing,
    profile: &'a Profile,
    /// The page cache.
    pub cache: C,
    ra: ReadaheadState,
    tables: PageTables,
    tlb: Tlb,
    device: Device,
    now_ns: u64,
    /// When the statistics of the lists are flushed next.
    next_flush_ns: u64,
    /// Private copies that count against the memory.
    copies: PageCount,
    log: Metered<'a, L>,
    tally: Tally,
    /// Highest value of the counter of misses since the phase began.
    highest_miss: u16,
    /// Accesses of all phases.
    accesses: u64,
    /// Most memory that this may take.
    most_bytes: u64,
}

impl<'a, C: PageCache, L: Log> Run<'a, C, L> {
    /// A run of `job` that has not begun, with an empty `cache`.
    pub fn new(
        job: &Job,
        profile: &'a Profile,
        timing: Timing,
        cache: C,
        log: &'a mut L,
    ) -> Run<'a, C, L> {
        let limits = setup::limits(job, profile);
        Run {
            mapping: setup::mapping(job),
            access: if job.mapping.private { Access::WritePrivate } else { Access::Read },
            memory_pages: job.machine.cache_limit,
            charge: job.machine.limit_is_cgroups().then(Charge::default),
            timing,
            profile,
            cache,
            ra: ReadaheadState::NEW,
            tables: PageTables::default(),
            tlb: Tlb::new(profile.itlb, limits.arch.page_size),
            device: Device::new(setup::device(job, profile), limits.arch.page_size),
            now_ns: 0,
            next_flush_ns: FLUSH_NS,
            copies: PageCount(0),
            log: Metered { log, mapped: PageCount(0) },
            tally: Tally::default(),
            highest_miss: 0,
            accesses: job.phases.iter().fold(0, |sum, phase| sum.saturating_add(phase.accesses)),
            most_bytes: MAX_MODEL_BYTES,
            limits,
        }
    }

    /// Makes the accesses of `phase`.
    ///
    /// # Errors
    /// When the memory is too small to hold what one access needs, and when this takes more memory
    /// itself than it may.
    pub fn phase(&mut self, job: &Job, phase: &Phase) -> Result<(), Error> {
        self.highest_miss = self.ra.mmap_miss;
        if phase.is_read() {
            let base = job.mapping.offset.0 * job.page_size();
            for block in job.reads(phase) {
                self.read(base + block.offset_bytes, block.len_bytes, job.file.size_bytes)?;
                self.settle();
            }
            return Ok(());
        }
        if phase.is_exec() {
            return self.calls(job, phase);
        }
        if let Some(segments) = self.mapping.segments.clone() {
            for page in job.accesses(phase) {
                let (placed, index) = segments.locate(page);
                self.cache.select(placed.layer);
                self.touch(index, &placed.vma)?;
                self.settle();
            }
            return Ok(());
        }
        let pieces = self.mapping.split.is_some();
        let mut vma = self.mapping.whole;
        for page in job.accesses(phase) {
            let index = self.mapping.whole.pgoff + PageCount(page);
            if pieces {
                vma = self.mapping.vma(index);
            }
            self.touch(index, &vma)?;
            self.settle();
        }
        Ok(())
    }

    /// Makes the calls of `phase`: touches that look their translation up.
    fn calls(&mut self, job: &Job, phase: &Phase) -> Result<(), Error> {
        for page in job.accesses(phase) {
            let index = self.mapping.whole.pgoff + PageCount(page);
            let vma = self.mapping.vma(index);
            self.touch(index, &vma)?;
            let translation =
                tlb::translation(index, &vma, &self.limits, &self.tables, &self.cache);
            let cost_ns = self.profile.itlb.call_ns + self.tlb.look_up(translation);
            self.pass(cost_ns);
            self.settle();
        }
        Ok(())
    }

    /// What the run counted so far.
    pub fn tally(&self) -> Tally {
        self.tally
    }

    /// Highest value of the counter of misses since the last phase began.
    pub fn highest_miss(&self) -> u16 {
        self.highest_miss
    }

    /// What the instruction TLB counted so far.
    pub fn tlb(&self) -> tlb::Counts {
        self.tlb.counts()
    }

    /// The counter of misses.
    pub fn mmap_miss(&self) -> u16 {
        self.ra.mmap_miss
    }

    /// Predicted time so far.
    pub fn elapsed_ns(&self) -> u64 {
        self.now_ns
    }

    /// Lets time pass. It ends after 584 years, which only a profile reaches that makes no sense.
    fn pass(&mut self, ns: u64) {
        self.now_ns = self.now_ns.saturating_add(ns);
    }

    fn begin_access(&mut self) {
        self.log.access(self.tally.accesses);
        self.tally.accesses += 1;
    }

    fn touch(&mut self, index: PageIndex, vma: &Vma) -> Result<(), Error> {
        self.begin_access();
        self.pass(self.profile.cost.touch_ns);
        if self.cache.touch(index) {
            return Ok(());
        }
        let mut fault = Fault::new(index, self.access);
        let mut misses_at_first = 0;
        loop {
            self.arrivals();
            let step = fault.step(&mut View {
                limits: &self.limits,
                vma,
                ra: &mut self.ra,
                tables: &mut self.tables,
                cache: &mut self.cache,
                log: &mut self.log,
            });
            self.highest_miss = self.highest_miss.max(self.ra.mmap_miss);
            self.tally.mmap_miss_max = self.tally.mmap_miss_max.max(self.ra.mmap_miss);
            match step {
                Step::Lock(_) => {
                    self.pass(self.profile.cost.fault_ns);
                    if fault.tries() == 2 {
                        misses_at_first = fault.misses();
                    }
                }
                Step::Unlock => self.tally.lock_drops += 1,
                Step::Done(outcome) => {
                    let retry_misses =
                        if outcome.tries > 1 { fault.misses() - misses_at_first } else { 0 };
                    self.tally.retry_misses += u64::from(retry_misses);
                    self.tally.major_faults += u64::from(fault.misses());
                    self.tally.minor_faults += u64::from(!outcome.major);
                    let mapped = std::mem::take(&mut self.log.mapped);
                    self.pass(self.profile.cost.map_page_ns.saturating_mul(mapped.0));
                    self.cache.touch(index);
                    if self.access == Access::WritePrivate {
                        self.charge_copy(index)?;
                    }
                    return self.check_held();
                }
                step => self.carry_out(step)?,
            }
        }
    }

    fn read(&mut self, offset: u64, bytes: u64, file_bytes: u64) -> Result<(), Error> {
        self.begin_access();
        self.pass(self.profile.cost.touch_ns);
        let mut read = Read::new(offset, bytes, file_bytes, &self.limits);
        loop {
            self.arrivals();
            let step = read.step(&mut ReadView {
                limits: &self.limits,
                ra: &mut self.ra,
                cache: &mut self.cache,
                log: &mut self.log,
            });
            match step {
                Some(step) => self.carry_out(step)?,
                None => return self.check_held(),
            }
        }
    }

    /// Refuses to take more memory than allowed: what a job needs shows only as it goes.
    fn check_held(&self) -> Result<(), Error> {
        let charged = self.charge.as_ref().map_or(0, Charge::held_bytes);
        let held = self.cache.held_bytes() + self.tables.held_bytes() + charged;
        if held <= self.most_bytes {
            return Ok(());
        }
        let all = u128::from(held) * u128::from(self.accesses.max(1));
        let needed = (all / u128::from(self.tally.accesses.max(1))).max(held.into());
        Err(Error::TooLarge {
            needed_gib: u64::try_from(needed >> 30).unwrap_or(u64::MAX).saturating_add(1),
            most_gib: self.most_bytes >> 30,
        })
    }

    fn carry_out(&mut self, step: Step) -> Result<(), Error> {
        match step {
            Step::Read(window) => self.read_window(window),
            Step::ReadPage(index) => self.read_page(index)?,
            Step::Wait(index) => self.wait(index),
            Step::Lock(_) | Step::Unlock | Step::Done(_) => {}
        }
        Ok(())
    }

    fn read_window(&mut self, window: Window) {
        self.tally.readahead_calls += 1;
        self.tally.read_around += u64::from(window.cause == Cause::ReadAround);
        self.tally.async_readahead += u64::from(window.cause.is_async());
        let mut layout = Layout::new(window, &self.limits, &mut self.ra, &mut self.log);
        while let Some(run) = layout.next(&self.cache, &mut self.log) {
            let fits = self.make_room(run.pages());
            let folios = run.folios.min(fits.0 >> run.order.0);
            if folios > 0 {
                let added = FolioRun { folios, ..run };
                let added =
                    FolioRun { marked: added.marked.filter(|&at| at < added.end()), ..added };
                self.add(added);
                self.device.ask(added.start, added.pages());
            }
            if folios < run.folios {
                break;
            }
        }
        self.device.submit(self.now_ns);
    }

    fn read_page(&mut self, index: PageIndex) -> Result<(), Error> {
        while self.make_room(PageCount(1)) < PageCount(1) {
            let Some(done_ns) = self.device.next_done_ns() else {
                return Err(Error::OutOfMemory { index: index.0 });
            };
            self.now_ns = self.now_ns.max(done_ns);
            self.unlock_arrived();
        }
        if self.cache.folio(index).is_none() {
            self.add(FolioRun { start: index, order: Order(0), folios: 1, marked: None });
            self.device.ask(index, PageCount(1));
            self.device.submit(self.now_ns);
        }
        Ok(())
    }

    fn add(&mut self, run: FolioRun) {
        self.log.record(Decision::Added {
            start: run.start,
            order: run.order,
            folios: run.folios,
            marked: run.marked,
        });
        self.cache.add(run);
        if let Some(charge) = &mut self.charge {
            charge.add(run);
        }
        self.tally.pages_read += run.pages().0;
        self.pass(self.profile.cost.add_page_ns.saturating_mul(run.pages().0));
    }

    /// Reclaims for `pages` more pages. Returns how many of them fit.
    fn make_room(&mut self, pages: PageCount) -> PageCount {
        let Some(limit) = self.memory_pages else {
            return pages;
        };
        if self.now_ns >= self.next_flush_ns {
            self.next_flush_ns = (self.now_ns - self.now_ns % FLUSH_NS).saturating_add(FLUSH_NS);
            self.cache.flush_statistics();
        }
        let wanted = self.memory_used() + pages;
        if wanted > limit {
            let page_size = self.limits.arch.page_size;
            let goal = wanted - limit;
            let evicted =
                reclaim::reclaim(&mut self.cache, goal, page_size, &self.mapping, &mut self.log);
            self.tally.evicted_pages += evicted.0;
        }
        pages.min(limit.saturating_sub(self.memory_used()))
    }

    /// What counts against the limit.
    fn memory_used(&self) -> PageCount {
        let page_size = self.limits.arch.page_size;
        let charged = |charge: &Charge| charge.pages(&self.tables, &self.cache, page_size);
        let kernel = self.charge.as_ref().map_or(PageCount(0), charged);
        self.cache.inactive() + self.cache.active() + self.copies + kernel
    }

    fn charge_copy(&mut self, index: PageIndex) -> Result<(), Error> {
        if self.make_room(PageCount(1)) < PageCount(1) {
            return Err(Error::OutOfMemory { index: index.0 });
        }
        self.copies += PageCount(1);
        Ok(())
    }

    fn wait(&mut self, index: PageIndex) {
        loop {
            let done_ns = self.device.next_done_ns().expect("a locked folio is being read");
            self.now_ns = self.now_ns.max(done_ns);
            self.unlock_arrived();
            if !self.cache.folio(index).is_some_and(|folio| folio.locked) {
                return;
            }
        }
    }

    /// Unlocks what has arrived while nothing was waited for.
    fn arrivals(&mut self) {
        if self.timing == Timing::Device {
            self.unlock_arrived();
        }
    }

    /// Lets everything arrive, where that is the timing.
    fn settle(&mut self) {
        if self.timing == Timing::Settled {
            while let Some(done_ns) = self.device.next_done_ns() {
                self.now_ns = self.now_ns.max(done_ns);
                self.unlock_arrived();
            }
        }
    }

    fn unlock_arrived(&mut self) {
        while let Some((start, pages)) = self.device.arrived(self.now_ns) {
            self.cache.unlock(start, pages);
        }
    }
}

/// The log of a run, which counts the pages that fault-around maps as it goes through.
struct Metered<'a, L> {
    log: &'a mut L,
    mapped: PageCount,
}

impl<L: Log> Log for Metered<'_, L> {
    fn record(&mut self, decision: Decision) {
        if let Decision::MapPages { mapped, .. } = decision {
            self.mapped += mapped;
        }
        self.log.record(decision);
    }

    fn access(&mut self, number: u64) {
        self.log.access(number);
    }
}

#[cfg(test)]
mod tests {
    use filemap_core::plain::PlainCache;
    use filemap_core::statistics::Statistics;
    use filemap_job::JobSpec;

    use super::*;

    /// What the statistics know after so many misses, at no more than `touches` a second.
    fn known_after(misses: u64, touches: u64) -> Statistics {
        let spec = format!(
            "workload = 'sequential'\nfile_size = '4m'\nread_ahead_kb = 0\n\
             cache_limit = '1m'\naccesses = {misses}\n"
        );
        let job = JobSpec::from_toml(&spec).unwrap().validate(None).unwrap();
        let mut profile = Profile::DEFAULT;
        profile.cost.touch_ns = 1_000_000_000 / touches;
        let cache = PlainCache::new(job.machine.cache_limit);
        let mut log = ();
        let mut run = Run::new(&job, &profile, Timing::Device, cache, &mut log);
        run.phase(&job, &job.phases[0]).unwrap();
        run.cache.statistics()
    }

    #[test]
    fn statistics_are_flushed_every_two_seconds() {
        let inactive = |pages| Statistics { inactive: PageCount(pages), active: PageCount(0) };
        // A page every 10 ms and, as each is read, some 60 us: two seconds are over before room is
        // made for page 199, and four before it is for page 398. Of 397 five batches are gone by
        // then, as 256 may be there.
        for (misses, known) in [(198, 0), (199, 198), (390, 198), (405, 237)] {
            assert_eq!(known_after(misses, 100), inactive(known), "{misses}");
        }
        // A page a second: a flush before the second, the fourth, and so on.
        for (misses, known) in [(1, 0), (2, 1), (3, 1), (4, 3), (5, 3), (6, 5)] {
            assert_eq!(known_after(misses, 1), inactive(known), "{misses}");
        }
    }

    #[test]
    fn a_job_that_takes_more_memory_than_allowed_ends() {
        let spec = "workload = 'random'\nfile_size = '1p'\naccesses = 10000";
        let job = JobSpec::from_toml(spec).unwrap().validate(None).unwrap();
        let mut log = ();
        let cache = crate::extents::ExtentCache::new(None);
        let mut run = Run::new(&job, &Profile::DEFAULT, Timing::Device, cache, &mut log);
        run.most_bytes = 1 << 20;
        let ended = run.phase(&job, &job.phases[0]);
        let done = run.tally.accesses;
        assert!((100..1000).contains(&done), "{done} accesses in 1 MiB");
        // All of them take some 25 MiB, and whole GiB are told.
        assert_eq!(ended, Err(Error::TooLarge { needed_gib: 1, most_gib: 0 }));
        // A limit of the cache bounds that too: what is evicted is forgotten in the end.
        let spec = "workload = 'random'\nfile_size = '1p'\naccesses = 10000\nram = '16m'";
        let job = JobSpec::from_toml(spec).unwrap().validate(None).unwrap();
        let mut log = ();
        let cache = crate::extents::ExtentCache::new(job.machine.cache_limit);
        let mut run = Run::new(&job, &Profile::DEFAULT, Timing::Device, cache, &mut log);
        run.most_bytes = 10 << 20;
        run.phase(&job, &job.phases[0]).unwrap();
    }
}

//! From events to decisions.

use std::mem;

use filemap_core::address::mapping::Split;
use filemap_core::decision::{Cause, Decision, Found, Lock};
use filemap_core::units::{Order, PageCount, PageIndex};
use filemap_job::{Job, Segment};

use crate::decisions::{Event, Seen};
use crate::page_size;
use crate::probe::Plan;

/// The decisions that `events` show of a run of `job` by thread `pid`, by the `plan` whose mapping
/// began at `address`. Of other threads only what they evicted.
pub(super) fn decisions(
    events: &[Event],
    job: &Job,
    plan: &Plan,
    pid: u32,
    address: u64,
) -> Vec<Decision> {
    let (executable, out) = (job.mapping.exec, Vec::new());
    let (fault, looked_up, found) = (None, None, None);
    let mut reader = Reader { job, plan, address, executable, fault, looked_up, found, out };
    for event in events {
        if event.pid == pid || matches!(event.seen, Seen::Removed { .. }) {
            reader.event(event.seen);
        }
    }
    reader.end_fault();
    reader.out
}

struct Reader<'a> {
    job: &'a Job,
    plan: &'a Plan,
    address: u64,
    /// Whether the last fault was on executable pages.
    executable: bool,
    /// The page of the fault at hand.
    fault: Option<PageIndex>,
    /// A look-up of which it is not known yet whether it missed.
    looked_up: Option<PageIndex>,
    /// The readahead that was entered, and why.
    found: Option<(Found, Cause)>,
    out: Vec<Decision>,
}

impl Reader<'_> {
    fn event(&mut self, seen: Seen) {
        match seen {
            Seen::UserFault { address } => {
                if let Some((page, executable)) = self.mapped(address) {
                    self.end_fault();
                    (self.fault, self.executable) = (Some(page), executable);
                    self.out.push(Decision::Locked(Lock::Vma));
                }
            }
            Seen::Read { .. } => self.end_fault(),
            Seen::Fault { index } => {
                self.found = None;
                self.looked_up = Some(index);
            }
            Seen::MapPages { from, last } => {
                let mapped = PageCount(0);
                self.out.push(Decision::MapPages { from, last, mapped, credit: 0 });
            }
            Seen::SyncReadahead(found) => {
                let cause = self.either(Cause::SequentialFault, Cause::ReadStream);
                self.entered(found, cause);
            }
            Seen::AsyncReadahead(found) => {
                let cause = self.either(Cause::AsyncFault, Cause::AsyncRead);
                self.entered(found, cause);
            }
            Seen::Window { start, order, size, async_size, .. } => {
                let (cause, index) = self.cause(order, start);
                self.window(cause, index, start, size, async_size);
            }
            Seen::BasePages { start, size, async_size } => {
                // A single read has no window before its base pages.
                if let Some((found, _)) = self.found.take() {
                    let cause = self.either(Cause::SequentialLone, Cause::ReadLone);
                    self.window(cause, found.index, start, size, async_size);
                }
                self.out.push(Decision::BasePages { start, size, async_size });
            }
            Seen::Added { start, order } => {
                if let Some(index) = self.looked_up.filter(|index| *index == start) {
                    self.missed();
                    self.out.push(Decision::NoReadahead { index, mmap_miss: 0 });
                }
                self.out.push(Decision::Added { start, order, folios: 1, marked: None });
            }
            Seen::Removed { start, order } => {
                let pages = PageCount(order.pages());
                self.out.push(Decision::Evicted { start, pages });
            }
        }
    }

    /// The page of the file that `address` shows, and whether it is mapped executable; none
    /// outside of the mapping.
    fn mapped(&self, address: u64) -> Option<(PageIndex, bool)> {
        let page = PageIndex(address.checked_sub(self.address)? / page_size());
        let holds = |part: &&Segment| (part.start.0..part.start.0 + part.pages.0).contains(&page.0);
        let segment = self.plan.segments.iter().find(holds);
        let mapping = &self.job.mapping;
        let piece = |split: Split| split.makes_executable(page.0 / split.pages.0);
        let executable = segment.map_or_else(
            || mapping.exec || mapping.split.is_some_and(piece),
            |segment| segment.executable,
        );
        Some((self.plan.file_page(page)?, executable))
    }

    /// `of_fault` within a fault, else `of_read`.
    fn either(&self, of_fault: Cause, of_read: Cause) -> Cause {
        if self.fault.is_some() { of_fault } else { of_read }
    }

    fn entered(&mut self, found: Found, cause: Cause) {
        self.found = Some((found, cause));
        self.out.push(Decision::Entered { cause, found });
    }

    /// Why a window is asked for, and on access to which page.
    fn cause(&mut self, order: Order, start: PageIndex) -> (Cause, PageIndex) {
        if let Some((found, cause)) = self.found.take() {
            return (cause, found.index);
        }
        let mapping = &self.job.mapping;
        let huge = mapping.advice.is_huge() && order == self.job.machine.arch.pmd_order();
        let cause = match () {
            () if huge => Cause::HugePage,
            () if self.executable && self.job.rules.executable_readahead => Cause::Executable,
            () => Cause::ReadAround,
        };
        (cause, self.fault.unwrap_or(start))
    }

    fn window(
        &mut self,
        cause: Cause,
        index: PageIndex,
        start: PageIndex,
        size: PageCount,
        async_size: PageCount,
    ) {
        if !cause.is_async() {
            self.missed();
        }
        self.looked_up = None;
        let (order, mmap_miss) = (Order(0), 0);
        self.out.push(Decision::Readahead {
            cause,
            index,
            order,
            start,
            size,
            async_size,
            mmap_miss,
        });
    }

    /// The look-up at hand missed.
    fn missed(&mut self) {
        if let Some(index) = self.looked_up.take() {
            self.out.push(Decision::Lookup { index, hit: false, tried: false, mmap_miss: 0 });
        }
    }

    fn end_fault(&mut self) {
        (self.looked_up, self.found) = (None, None);
        if let Some(index) = mem::take(&mut self.fault) {
            self.out.push(Decision::Served { index, major: false, tries: 1 });
        }
    }
}

#[cfg(test)]
mod tests {
    use filemap_job::JobSpec;

    use super::*;
    use crate::engine::plan;

    const ADDRESS: u64 = 0x7f00_0000_0000;

    fn causes(advice: &str, seen: &[Seen]) -> Vec<Cause> {
        causes_in(JobSpec { advice: Some(advice.to_string()), ..JobSpec::default() }, seen)
    }

    fn causes_in(spec: JobSpec, seen: &[Seen]) -> Vec<Cause> {
        let spec = JobSpec {
            workload: Some("random".to_string()),
            file_size: Some("16m".parse().expect("a size")),
            ..spec
        };
        let job = spec.validate(None).expect("a job");
        let plan = plan(&job, "file".as_ref()).expect("a plan");
        let event = |seen: &Seen| Event { at_ns: 0, cpu: 0, pid: 7, file: 0, seen: *seen };
        let events: Vec<Event> = seen.iter().map(event).collect();
        let decisions = decisions(&events, &job, &plan, 7, ADDRESS);
        let cause = |decision: &Decision| match decision {
            Decision::Readahead { cause, .. } => Some(*cause),
            _ => None,
        };
        decisions.iter().filter_map(cause).collect()
    }

    fn fault(page: u64) -> [Seen; 2] {
        let address = ADDRESS + page * page_size() + 5;
        [Seen::UserFault { address }, Seen::Fault { index: PageIndex(page) }]
    }

    fn window(order: u8) -> Seen {
        let (start, size, async_size) = (PageIndex(0), PageCount(512), PageCount(0));
        Seen::Window { start, order: Order(order), size, async_size, ra_pages: size }
    }

    #[test]
    fn a_window_is_told_by_what_came_before_and_by_the_job() {
        let found = Found::default();
        let with = |seen: &[Seen]| [&fault(0), seen].concat();
        for (advice, seen, cause) in [
            ("normal", with(&[window(0)]), Cause::ReadAround),
            ("hugepage", with(&[window(9)]), Cause::HugePage),
            ("hugepage", with(&[window(0)]), Cause::ReadAround),
            ("sequential", with(&[Seen::SyncReadahead(found), window(0)]), Cause::SequentialFault),
            ("normal", with(&[Seen::AsyncReadahead(found), window(2)]), Cause::AsyncFault),
            ("normal", vec![Seen::SyncReadahead(found), window(0)], Cause::ReadStream),
            ("normal", vec![Seen::AsyncReadahead(found), window(0)], Cause::AsyncRead),
        ] {
            assert_eq!(causes(advice, &seen), [cause], "{advice} {seen:?}");
        }
    }

    #[test]
    fn every_second_piece_may_be_executable() {
        let pieces = |prot: &str| JobSpec {
            split: Some(4),
            split_prot: Some(prot.to_string()),
            ..JobSpec::default()
        };
        let windows = |page| [&fault(page)[..], &[window(0)]].concat();
        assert_eq!(causes_in(pieces("exec"), &windows(3)), [Cause::ReadAround]);
        assert_eq!(causes_in(pieces("exec"), &windows(4)), [Cause::Executable]);
        assert_eq!(causes_in(pieces("write"), &windows(4)), [Cause::ReadAround]);
    }

    #[test]
    fn a_page_without_a_window_is_read_alone() {
        let added = Seen::Added { start: PageIndex(3), order: Order(0) };
        assert_eq!(causes("random", &[&fault(3)[..], &[added]].concat()), []);
        let foreign = Seen::UserFault { address: 16 };
        assert_eq!(causes("random", &[foreign]), []);
    }
}

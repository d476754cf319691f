use std::sync::Arc;
use std::time::Duration;

use filemap_policy::{FilePlan, PlannedAdvice};

use super::*;
use crate::decision::{FileDecision, FileWay};
use crate::file::OpenFile;
use crate::range::tests::mapped;

const MIB: u64 = 1 << 20;

/// A governor whose requests the test inspects and answers.
struct GovernorHarness {
    governor: Governor,
    now_ns: u64,
    seen: Vec<Request>,
}

impl GovernorHarness {
    fn new() -> GovernorHarness {
        GovernorHarness {
            governor: Governor::new(GovernSettings::default(), true),
            now_ns: 0,
            seen: Vec::new(),
        }
    }

    fn event(&mut self, pid: u32, kind: EventKind) {
        self.now_ns += 100_000;
        self.governor.on_event(&Event { at_ns: self.now_ns, pid, tid: pid, kind });
        let requests = self.governor.take_requests();
        self.seen.extend(requests);
    }

    fn map(&mut self, pid: u32, range: MappedRange) {
        self.event(pid, EventKind::Map(range));
    }

    fn fault(&mut self, pid: u32, address: u64) {
        self.event(pid, EventKind::Fault { address, kind: FaultKind::Major });
    }

    fn take_takes(&mut self) -> Vec<TakeMapping> {
        let take = |request: Request| match request {
            Request::Task(AdvisorTask::Take(take)) => Some(take),
            _ => None,
        };
        std::mem::take(&mut self.seen).into_iter().filter_map(take).collect()
    }

    fn reply_take(&mut self, take: &TakeMapping, took: TakeResult) {
        let answer = AdvisorReply::Took { id: take.id, pid: take.pid, took };
        self.governor.on_reply(answer, self.now_ns);
        let requests = self.governor.take_requests();
        self.seen.extend(requests);
    }

    /// Answers all pending takes with `Governed`. Returns their number.
    fn govern(&mut self) -> usize {
        let takes = self.take_takes();
        for take in &takes {
            self.reply_take(take, governed(AdviceOrigin::Governor { stopped_ns: 7 }));
        }
        takes.len()
    }

    fn maps(&mut self, pid: u32, maps: Vec<MappedRange>) {
        let before = self.governor.next_id;
        self.governor
            .on_reply(AdvisorReply::Maps { pid, before, maps, elapsed_ns: 0 }, self.now_ns);
        let requests = self.governor.take_requests();
        self.seen.extend(requests);
    }

    /// Takes the requested reads.
    fn take_reads(&mut self) -> Vec<PageRange> {
        let read = |request: Request| match request {
            Request::Read { pages, .. } => Some(pages),
            _ => None,
        };
        std::mem::take(&mut self.seen).into_iter().filter_map(read).collect()
    }

    /// Process 7 has 64 MiB of a file mapped and governed.
    fn with_mapping() -> GovernorHarness {
        let mut bench = GovernorHarness::new();
        bench.map(7, mapped(0x1000_0000, 64 * MIB, 1));
        bench
    }

    /// The restorable mappings: PID, address, length.
    fn restorable(&self) -> Vec<(u32, u64, u64)> {
        let range = |(pid, own): (u32, MappedRange)| (pid, own.address, own.length_bytes);
        let mut all: Vec<_> = self.governor.restorable().into_iter().map(range).collect();
        all.sort_unstable();
        all
    }
}

fn governed(origin: AdviceOrigin) -> TakeResult {
    governed_with_window(origin, 2048)
}

/// A governed mapping of a file whose device has a read-around window of `window_pages`.
fn governed_with_window(origin: AdviceOrigin, window_pages: u64) -> TakeResult {
    let file = std::fs::File::open("/proc/self/exe").unwrap();
    let (call_pages, speculative_call_pages, was_cached) = (128, 64, false);
    let file = OpenFile { file, window_pages, call_pages, speculative_call_pages, was_cached };
    let decision = Arc::new(FileDecision::rent_or_buy());
    TakeResult::Governed { file: Arc::new(file), pages: 1 << 20, origin, decision }
}

#[test]
fn takes_large_read_only_mappings_once() {
    let mut bench = GovernorHarness::with_mapping();
    bench.map(7, mapped(0x8000_0000, MIB, 2));
    let mut writable = mapped(0x9000_0000, 64 * MIB, 3);
    writable.protection |= libc::PROT_WRITE.cast_unsigned();
    bench.map(7, writable);
    assert_eq!(bench.govern(), 1);
    bench.fault(7, 0x1000_0000);
    assert_eq!(bench.govern(), 0);
    assert_eq!(bench.restorable(), [(7, 0x1000_0000, 64 * MIB)]);
    // MADV_RANDOM that the program set is not restored.
    bench.map(8, mapped(0x1000_0000, 64 * MIB, 1));
    let takes = bench.take_takes();
    bench.reply_take(&takes[0], governed(AdviceOrigin::Program));
    assert_eq!(bench.restorable().len(), 1);
}

#[test]
fn streams_are_read_ahead_and_only_once() {
    let mut bench = GovernorHarness::with_mapping();
    bench.govern();
    for page in 0..64 {
        bench.fault(7, 0x1000_0000 + page * 4096);
    }
    let reads = bench.take_reads();
    assert!(!reads.is_empty());
    assert!(reads.iter().all(|pages| pages.count() <= 128), "{reads:?}");
    let mut pages: Vec<u64> = reads.iter().flat_map(|own| own.first..own.end).collect();
    let all = pages.len();
    pages.sort_unstable();
    pages.dedup();
    assert_eq!(pages.len(), all, "{reads:?}");
    assert!(pages.iter().all(|page| *page < 64 * 256), "inside the mapping");
    let statistics = bench.governor.statistics();
    let mapping = &statistics.processes[0].mappings[0];
    assert_eq!((mapping.major_faults, mapping.stopped_ns), (64, 7));
    assert_eq!((mapping.asked_bytes, mapping.calls), (4096 * all as u64, reads.len() as u64));
}

#[test]
fn observe_mode_advises_and_reads_nothing() {
    let settings = GovernSettings { observe_only: true, ..GovernSettings::default() };
    let mut bench =
        GovernorHarness { governor: Governor::new(settings, true), ..GovernorHarness::new() };
    bench.map(7, mapped(0x1000_0000, 64 * MIB, 1));
    let takes = bench.take_takes();
    bench.reply_take(&takes[0], governed(AdviceOrigin::ObserveOnly));
    for page in 0..64 {
        bench.fault(7, 0x1000_0000 + page * 4096);
    }
    assert!(bench.take_reads().is_empty() && bench.restorable().is_empty());
    assert!(bench.governor.statistics().processes[0].mappings[0].asked_bytes > 0);
}

#[test]
fn mapping_over_governed_range_replaces_it() {
    let mut bench = GovernorHarness::with_mapping();
    bench.govern();
    let anonymous = MappedRange { file: None, ..mapped(0x1100_0000, 16 * MIB, 0) };
    bench.map(7, anonymous);
    let (start, end) = (0x1000_0000, 0x1400_0000);
    let expected = [(7, start, 16 * MIB), (7, 0x1200_0000, end - 0x1200_0000)];
    assert_eq!(bench.restorable(), expected);
    // The same file at the same address: whether the advice is still set has to be read.
    bench.map(7, mapped(0x1000_0000, 64 * MIB, 1));
    let takes = bench.take_takes();
    assert!(takes.len() == 1 && takes[0].may_be_inherited, "{takes:?}");
    bench.reply_take(&takes[0], governed(AdviceOrigin::Inherited));
    assert_eq!(bench.restorable(), [(7, start, 64 * MIB)]);
    bench.map(7, mapped(0x1000_0000, 64 * MIB, 9));
    assert!(!bench.take_takes()[0].may_be_inherited, "another file");
}

#[test]
fn writable_mapping_is_released() {
    let mut bench = GovernorHarness::with_mapping();
    bench.govern();
    let mut part = mapped(0x1100_0000, 16 * MIB, 1);
    part.offset_bytes = 0x100_0000;
    part.protection |= libc::PROT_WRITE.cast_unsigned();
    bench.map(7, part);
    let put_back = bench.seen.iter().find_map(|request| match request {
        Request::Task(AdvisorTask::Restore { range, .. }) => {
            Some((range.address, range.length_bytes))
        }
        _ => None,
    });
    assert_eq!(put_back, Some((0x1100_0000, 16 * MIB)));
    assert_eq!(bench.restorable().len(), 2);
}

#[test]
fn moved_mapping_is_found_by_faults() {
    let mut bench = GovernorHarness::with_mapping();
    bench.govern();
    bench.event(7, EventKind::Fault { address: 0x5000_0000, kind: FaultKind::Minor });
    assert!(
        !bench
            .seen
            .iter()
            .any(|request| matches!(request, Request::Task(AdvisorTask::ReadMaps { .. })))
    );
    for _ in 0..10 {
        bench.fault(7, 0x5000_0000);
    }
    let asked = bench
        .seen
        .iter()
        .filter(|request| matches!(request, Request::Task(AdvisorTask::ReadMaps { .. })));
    assert_eq!(asked.count(), 1, "not again within a short time");
    bench.maps(7, vec![mapped(0x5000_0000, 64 * MIB, 1), mapped(0x7000_0000, MIB, 4)]);
    let takes = bench.take_takes();
    assert_eq!((takes.len(), takes[0].range.address), (1, 0x5000_0000));
    assert!(takes[0].may_be_inherited);
    bench.reply_take(&takes[0], governed(AdviceOrigin::Inherited));
    assert_eq!(bench.restorable(), [(7, 0x5000_0000, 64 * MIB)]);
}

#[test]
fn forked_processes_share_file_state() {
    let mut bench = GovernorHarness::with_mapping();
    bench.govern();
    for child in 8..12 {
        bench.event(child, EventKind::Fork { parent: 7 });
    }
    assert_eq!(bench.govern(), 0, "its mappings have the advice");
    assert_eq!(bench.restorable().len(), 5);
    bench.governor.tick();
    let noted = bench.governor.take_requests();
    let noted = noted
        .iter()
        .filter(|request| matches!(request, Request::Task(AdvisorTask::NoteInherited { .. })));
    assert_eq!(noted.count(), 4);
    // The two processes take turns on the pages of one stream.
    for page in 0..64 {
        bench.fault(8 + page as u32 % 4, 0x1000_0000 + page * 4096);
    }
    assert!(!bench.take_reads().is_empty());
    bench.event(8, EventKind::Exec);
    bench.governor.on_exit(9);
    assert_eq!(bench.restorable().len(), 3);
    for pid in [7, 10, 11] {
        bench.governor.on_exit(pid);
    }
    bench.governor.tick();
    assert!(bench.governor.files.is_empty() && bench.governor.ranges == 0);
    let statistics = bench.governor.statistics();
    let major = statistics.processes.iter().map(|own| own.mappings[0].major_faults).sum::<u64>();
    assert_eq!((statistics.processes.len(), major), (5, 64));
}

/// A fork between the request and its reply.
#[test]
fn forked_child_of_pending_mapping_is_taken() {
    let mut bench = GovernorHarness::with_mapping();
    bench.event(8, EventKind::Fork { parent: 7 });
    let takes = bench.take_takes();
    assert_eq!((takes.len(), takes[1].pid, takes[1].may_be_inherited), (2, 8, true));
    assert_ne!(takes[0].id, takes[1].id);
}

#[test]
fn failed_advice_is_retried() {
    let mut bench = GovernorHarness::with_mapping();
    let mut tries = 0;
    // A fault every 100 us, for 20 s.
    for _ in 0..200_000 {
        for take in bench.take_takes() {
            tries += 1;
            assert_eq!(take.tries, tries);
            bench.reply_take(&take, TakeResult::Retry("thread 7 is in a system call".to_string()));
        }
        bench.fault(7, 0x1000_0000);
    }
    assert!((20..1010).contains(&tries), "once in 20 ms at most: {tries}");
    assert!(bench.governor.statistics().processes[0].reason.is_some());
    bench.now_ns += 1 << 40;
    bench.governor.retry_idle(bench.now_ns);
    assert!(bench.governor.take_requests().is_empty(), "it does nothing any more");
    bench.fault(7, 0x1000_0000);
    assert_eq!(bench.govern(), 1);
    assert!(bench.governor.statistics().processes[0].reason.is_none());
}

#[test]
fn idle_process_is_retried_for_a_while() {
    let mut bench = GovernorHarness::with_mapping();
    for _ in 0..1000 {
        for take in bench.take_takes() {
            bench.reply_take(&take, TakeResult::Retry("thread 7 is in a system call".to_string()));
        }
        bench.now_ns += 200_000_000;
        bench.governor.retry_idle(bench.now_ns);
        let requests = bench.governor.take_requests();
        bench.seen.extend(requests);
    }
    let tries = bench.governor.processes[&7].ranges().map(|own| own.state).collect::<Vec<_>>();
    assert_eq!(tries, [RangeState::Requested { tries: MAX_IDLE_TRIES, is_due: true }]);
}

/// The first four attempts may each find the thread in a system call.
#[test]
fn retries_mapping_a_bounded_number_of_times() {
    let mut bench = GovernorHarness::new();
    assert!(!bench.governor.expects_more());
    bench.map(7, mapped(0x1000_0000, 64 * MIB, 1));
    for _ in 1..MAX_FIRST_TRIES {
        let takes = bench.take_takes();
        bench.reply_take(&takes[0], TakeResult::Retry("thread 7 is in a system call".to_string()));
        assert!(bench.governor.expects_more());
        bench.now_ns += 1 << 30;
        bench.governor.retry_idle(bench.now_ns);
        bench.seen = bench.governor.take_requests();
    }
    assert!(!bench.governor.expects_more());
    let mut bench = GovernorHarness::with_mapping();
    assert!(bench.governor.expects_more());
    bench.govern();
    assert!(!bench.governor.expects_more());
}

#[test]
fn missing_mapping_rereads_maps() {
    let mut bench = GovernorHarness::with_mapping();
    let takes = bench.take_takes();
    bench.reply_take(&takes[0], TakeResult::Gone);
    assert!(matches!(bench.seen[..], [Request::Task(AdvisorTask::ReadMaps { pid: 7, .. })]));
    assert_eq!(bench.governor.ranges, 0);
    bench.seen.clear();
    let mut rest = mapped(0x1100_0000, 48 * MIB, 1);
    rest.offset_bytes = 0x100_0000;
    bench.maps(7, vec![rest]);
    assert_eq!(bench.govern(), 1);
}

#[test]
fn a_million_mappings_need_bounded_memory() {
    let mut bench = GovernorHarness::new();
    for pid in 1..=8 {
        for at in 0..2000 {
            bench.map(pid, mapped((1 + at) << 26, 32 * MIB, at));
        }
        bench.govern();
        let of_process = bench.governor.processes.get(&pid).map_or(0, GovernedProcess::len);
        assert!(of_process <= MAX_RANGES_PER_PROCESS, "{of_process}");
    }
    assert_eq!(bench.governor.ranges, MAX_RANGES);
    bench.event(9, EventKind::Fork { parent: 1 });
    assert_eq!(bench.governor.ranges, MAX_RANGES);
    let left_alone: u64 =
        bench.governor.statistics().processes.iter().map(|own| own.mappings_left_alone).sum();
    assert_eq!(left_alone, 8 * 2000 - MAX_RANGES as u64 + MAX_RANGES_PER_PROCESS as u64);
    // Remapping one address repeatedly leaves no state behind.
    for round in 0..20_000 {
        bench.map(1, mapped(1 << 26, 32 * MIB, round % 3));
        bench.seen.clear();
    }
    assert_eq!(bench.governor.ranges, MAX_RANGES);
}

#[test]
fn exec_resets_process_state() {
    let mut bench = GovernorHarness::new();
    for image in 0..3 {
        bench.map(7, mapped(0x1000_0000, 64 * MIB, 1));
        bench.govern();
        bench.fault(7, 0x1000_0000);
        bench.event(7, EventKind::Exec);
        let statistics = bench.governor.statistics();
        assert_eq!(statistics.processes.len(), image + 1);
        assert_eq!(statistics.processes[image].image, image as u32);
        assert!(!statistics.processes[image].is_running);
    }
    assert!(bench.restorable().is_empty());
}

impl GovernorHarness {
    /// Takes the requests to leave a mapping to the kernel.
    fn take_releases(&mut self) -> Vec<ReleaseMapping> {
        let leave = |request: Request| match request {
            Request::Task(AdvisorTask::Leave(leave)) => Some(leave),
            _ => None,
        };
        std::mem::take(&mut self.seen).into_iter().filter_map(leave).collect()
    }

    fn reply_release(&mut self, leave: ReleaseMapping, stopped_ns: Option<u64>) {
        self.governor.on_reply(AdvisorReply::Released { leave, stopped_ns }, self.now_ns);
    }

    /// Reads objects of six pages in random order, each within an aligned window of 32 pages.
    fn read_objects(&mut self, pid: u32, objects: std::ops::Range<u64>) {
        for object in objects {
            for page in [0, 9, 4, 13, 7, 2] {
                self.fault(pid, 0x1000_0000 + ((object * 677 % 1500) * 40 + page) * 4096);
            }
        }
    }
}

#[test]
fn a_file_is_left_to_the_kernel_where_its_own_windows_cost_less() {
    let mut bench = GovernorHarness::new();
    bench.map(7, mapped(0x1000_0000, 256 * MIB, 1));
    let takes = bench.take_takes();
    let advised = || governed_with_window(AdviceOrigin::Governor { stopped_ns: 7 }, 32);
    bench.reply_take(&takes[0], advised());
    bench.read_objects(7, 0..40);
    let leaves = bench.take_releases();
    assert_eq!(leaves.len(), 1, "once, until it is answered");
    assert_eq!(bench.restorable().len(), 1, "it has the advice yet");
    bench.reply_release(leaves[0].clone(), None);
    bench.read_objects(7, 40..120);
    let again = bench.take_releases();
    assert!(!again.is_empty(), "it is asked for again after a pause");
    bench.reply_release(again[0].clone(), Some(5));
    assert_eq!(bench.restorable(), []);
    bench.read_objects(7, 120..200);
    assert!(bench.seen.is_empty(), "nothing is read and asked for any more: {:?}", bench.seen);
    let statistics = bench.governor.statistics();
    let mapping = &statistics.processes[0].mappings[0];
    assert_eq!((mapping.state, mapping.stopped_ns), (MappingState::Restored, 12));
    // Further mappings of the file are left to the kernel without an attempt to advise them.
    bench.map(8, mapped(0x1000_0000, 256 * MIB, 1));
    assert!(bench.take_takes()[0].prefers_kernel);
    bench.map(8, mapped(0x8000_0000, 256 * MIB, 2));
    assert!(!bench.take_takes()[0].prefers_kernel);
}

#[test]
fn the_programs_own_advice_is_never_restored() {
    let mut bench = GovernorHarness::new();
    bench.map(7, mapped(0x1000_0000, 256 * MIB, 1));
    let takes = bench.take_takes();
    bench.reply_take(&takes[0], governed_with_window(AdviceOrigin::Program, 32));
    bench.read_objects(7, 0..200);
    assert_eq!(bench.take_releases(), []);
}

/// A reply that a mapping is governed by `way`, of a file that is remembered in `store` or not.
fn governed_by(way: FileWay, origin: AdviceOrigin) -> TakeResult {
    let TakeResult::Governed { file, pages, .. } = governed(origin) else { unreachable!() };
    let decision =
        Arc::new(FileDecision { way, reason: "watched only: first time".to_string(), costs: None });
    TakeResult::Governed { file, pages, origin, decision }
}

/// A file that is met for the first time: nothing is read, and what was touched is kept, also
/// before the mapping was known.
#[test]
fn unknown_file_is_only_watched() {
    let mut bench = GovernorHarness::with_mapping();
    bench.fault(7, 0x1000_0000);
    let takes = bench.take_takes();
    bench.reply_take(&takes[0], governed_by(FileWay::Watch, AdviceOrigin::Watched));
    assert!(bench.governor.only_watches());
    for page in 1..3000 {
        bench.fault(7, 0x1000_0000 + page * 4096);
    }
    assert_eq!((bench.take_reads(), bench.restorable()), (Vec::new(), Vec::new()));
    bench.event(7, EventKind::Exit);
    bench.governor.on_exit(7);
    bench.governor.tick();
    assert_eq!(bench.governor.take_touched_files().len(), 1);
    assert!(bench.governor.take_touched_files().is_empty());
    let done = bench.governor.statistics().files.pop().unwrap().done;
    assert_eq!(done, "watched only: first time");
}

/// After the time of watching, what was touched decides, and mappings are advised then.
#[test]
fn long_watched_file_is_governed() {
    let settings = GovernSettings { watch_time: Duration::ZERO, ..GovernSettings::default() };
    let mut bench = GovernorHarness::with_mapping();
    bench.governor.settings = settings;
    let takes = bench.take_takes();
    bench.reply_take(&takes[0], governed_by(FileWay::Watch, AdviceOrigin::Watched));
    bench.governor.tick();
    assert_eq!(bench.take_takes().len(), 0, "nothing was touched");
    for number in 0..20_u64 {
        bench.fault(7, 0x1000_0000 + number * 7919 % 16_384 * 4096);
    }
    bench.governor.tick();
    bench.seen = bench.governor.take_requests();
    let takes = bench.take_takes();
    assert!(takes[0].decision.as_ref().unwrap().advises_random());
    bench.reply_take(&takes[0], governed_by(FileWay::Watch, AdviceOrigin::Watched));
    bench.governor.on_exit(7);
    bench.governor.tick();
    let done = bench.governor.statistics().files.pop().unwrap().done;
    assert!(done.starts_with("RANDOM: ") && done.ends_with(", after 0 s"), "{done}");
    assert_eq!(bench.governor.take_touched_files().len(), 1, "users are counted once");
}

/// Programs advise a mapping after they have made it: that is seen after some faults, once.
#[test]
fn own_advice_after_mmap_is_seen() {
    let mut bench = GovernorHarness::with_mapping();
    let takes = bench.take_takes();
    bench.reply_take(&takes[0], governed_by(FileWay::Watch, AdviceOrigin::Watched));
    for page in 0..15 {
        bench.fault(7, 0x1000_0000 + page * 4096);
    }
    let is_check = |request: &Request| matches!(request, Request::Task(AdvisorTask::Check { .. }));
    assert!(!bench.seen.iter().any(is_check));
    bench.fault(7, 0x1000_0000 + 15 * 4096);
    bench.fault(7, 0x1000_0000 + 16 * 4096);
    assert_eq!(bench.seen.iter().filter(|request| is_check(request)).count(), 1);
    let (id, pid) = (takes[0].id, takes[0].pid);
    bench.governor.on_reply(AdvisorReply::Checked { id, pid, is_random: true }, bench.now_ns);
    for page in 17..100 {
        bench.fault(7, 0x1000_0000 + page * 4096);
    }
    bench.event(7, EventKind::Exit);
    bench.governor.on_exit(7);
    bench.governor.tick();
    let touched = bench.governor.take_touched_files();
    let text = format!("{touched:?}");
    assert!(text.contains("is_random: true") && text.contains("pages: 100 "), "{text}");
}

/// Regions that were touched whole are read before; a program that goes elsewhere ends that.
#[test]
fn prefetch_ends_if_program_goes_elsewhere() {
    let plan = |pages: PageRange| FilePlan {
        advice: PlannedAdvice::Unchanged,
        follows_runs: false,
        prefetch: vec![pages],
        run_lengths: Vec::new(),
        expected_faults: 0,
        own_ns: 0,
        planned_ns: 0,
    };
    for (first, is_wrong) in [(0, false), (8192, true)] {
        let mut bench = GovernorHarness::with_mapping();
        let takes = bench.take_takes();
        let way = FileWay::Plan(plan(PageRange { first: 512, end: 2048 }));
        bench.reply_take(&takes[0], governed_by(way, AdviceOrigin::Watched));
        let read: u64 = bench.take_reads().iter().map(|pages| pages.count()).sum();
        assert_eq!(read, 1536);
        for number in 0..100 {
            bench.fault(7, 0x1000_0000 + (first + number * 23) * 4096);
        }
        let cancels = |request: &Request| matches!(request, Request::CancelReads { .. });
        assert_eq!(bench.seen.iter().any(cancels), is_wrong);
        let done = bench.governor.statistics().files.pop().unwrap().done;
        assert_eq!(done.contains("the program went elsewhere"), is_wrong, "{done}");
    }
}

//! Explanations of small hand-written logs.

use filemap_core::decision::{
    Cause, Decision, Lock, Log, MissChange, MissChangeCause, ReadaheadSnapshot,
};
use filemap_core::units::{Order, PageCount, PageIndex};
use filemap_job::{Job, JobFlags};
use filemap_study::explain::{CounterVisibility, Explanation, Origin, TraceExplainer};

/// A job that accesses the pages `accesses` of a mapping of pages `start..end` of a file of 2048
/// pages.
fn job(accesses: &[u64], start: u64, end: u64, change: impl Fn(&mut JobFlags)) -> Job {
    let size = |pages: u64| (pages * 4096).to_string().parse().expect("a size");
    let lines: Vec<String> = accesses.iter().map(u64::to_string).collect();
    let mut spec = JobFlags {
        accesses_file: Some("list".to_string()),
        accesses_text: Some(lines.join("\n")),
        file_size: Some(size(2048)),
        map_offset: Some(size(start)),
        map_len: Some(size(end - start)),
        ..JobFlags::default()
    };
    change(&mut spec);
    spec.validate(None).expect("a job")
}

/// A line of a log, or a change of `mmap_miss`.
#[derive(Clone, Copy)]
enum Entry {
    Decision(Decision),
    Change(MissChange),
}

impl From<Decision> for Entry {
    fn from(decision: Decision) -> Entry {
        Entry::Decision(decision)
    }
}

fn explain(job: &Job, log: &[Vec<Entry>]) -> Explanation {
    let mut explainer = TraceExplainer::new(job, CounterVisibility::Every, &[]);
    for entry in log.concat() {
        match entry {
            Entry::Decision(decision) => explainer.record(decision),
            Entry::Change(change) => explainer.mmap_miss_changed(change),
        }
    }
    let explanation = explainer.finish();
    assert_eq!(explanation.absent_accesses, 0);
    explanation
}

/// Origins with a nonzero number of pages, their pages, and how many of these were read again.
fn page_totals(explanation: &Explanation) -> Vec<(Origin, u64, u64)> {
    let totals = explanation.totals();
    let some = totals.iter().filter(|(_, total)| total.pages > 0);
    some.map(|(origin, total)| (origin, total.pages, total.again)).collect()
}

fn window(cause: Cause, index: u64, start: u64, size: u64, mmap_miss: u16) -> Entry {
    Entry::Decision(Decision::Readahead {
        cause,
        index: PageIndex(index),
        order: Order(0),
        start: PageIndex(start),
        size: PageCount(size),
        async_size: PageCount(0),
        mmap_miss,
    })
}

fn added(start: u64, order: u8, folios: u64) -> Entry {
    Decision::Added { start: PageIndex(start), order: Order(order), folios, marked: None }.into()
}

fn evicted(start: u64, pages: u64) -> Entry {
    Decision::Evicted { start: PageIndex(start), pages: PageCount(pages) }.into()
}

fn lookup(index: u64, hit: bool, mmap_miss: u16) -> Entry {
    Decision::Lookup { index: PageIndex(index), hit, tried: false, mmap_miss }.into()
}

/// A fault-around that decrements a counter of `before`.
fn around(hits: u32, before: u16) -> Vec<Entry> {
    let (from, last) = (PageIndex(0), PageIndex(0));
    let after = before.saturating_sub(hits as u16);
    let change = MissChange { cause: MissChangeCause::Around { hits }, before, after };
    let map = Decision::MapPages { from, last, mapped: PageCount(0), credit: hits };
    vec![Entry::Change(change), map.into()]
}

/// A miss that increments the counter to `after`.
fn miss(reads_window: bool, after: u16) -> Entry {
    let cause = MissChangeCause::Miss { reads_window };
    Entry::Change(MissChange { cause, before: after - 1, after })
}

/// A fault on `index` with `entries`.
fn fault(index: u64, entries: &[Entry]) -> Vec<Entry> {
    let served = Decision::Served { index: PageIndex(index), major: true, tries: 2 };
    [&[Decision::Locked { lock: Lock::Vma }.into()], entries, &[served.into()]].concat()
}

/// A fault that reads around and whose retry cancels its miss; `before` has earlier entries.
fn read_around_after(before: &[Entry], index: u64, start: u64, pages: u64) -> Vec<Entry> {
    let first = [lookup(index, false, 0), miss(true, 1)];
    let read = [window(Cause::ReadAround, index, start, pages, 1)];
    let added = [added(start, 0, pages)];
    fault(index, &[&first, &read[..], before, &added, &around(16, 1)].concat())
}

fn read_around(index: u64, start: u64, pages: u64) -> Vec<Entry> {
    read_around_after(&[], index, start, pages)
}

#[test]
fn separates_pages_beyond_mapping() {
    let job = job(&[5], 100, 120, |_| {});
    let found = explain(&job, &[read_around(105, 89, 32)]);
    let expected =
        [(Origin::Used, 1, 0), (Origin::BeyondMapping, 12, 0), (Origin::ReadAround, 19, 0)];
    assert_eq!(page_totals(&found), expected);
    assert_eq!(found.sources().get(Origin::ReadAround).used, 1);
}

#[test]
fn an_access_needs_no_fault_to_count() {
    let job = job(&[5, 6, 5, 7], 0, 2048, |_| {});
    let found = explain(&job, &[read_around(5, 0, 32)]);
    assert_eq!(page_totals(&found), [(Origin::Used, 3, 0), (Origin::ReadAround, 29, 0)]);
}

#[test]
fn a_page_accessed_before_and_after_it_left_is_refetched() {
    let job = job(&[5, 300, 5], 0, 2048, |_| {});
    let far = read_around_after(&[evicted(0, 32)], 300, 284, 32);
    let found = explain(&job, &[read_around(5, 0, 32), far, read_around(5, 0, 32)]);
    let expected = [(Origin::Used, 2, 0), (Origin::Refetched, 1, 1), (Origin::ReadAround, 93, 31)];
    assert_eq!(page_totals(&found), expected);
    assert_eq!(found.files[0].evicted, 32);
}

#[test]
fn page_evicted_unused_counts_from_second_read() {
    let job = job(&[5, 6], 0, 2048, |_| {});
    let leaves = fault(6, &[evicted(6, 1), lookup(6, false, 0), added(6, 0, 1)]);
    let found = explain(&job, &[read_around(5, 0, 32), leaves]);
    assert_eq!(page_totals(&found), [(Origin::Used, 2, 1), (Origin::ReadAround, 31, 0)]);
}

#[test]
fn a_mark_brings_in_async_readahead() {
    let job = job(&[5, 24], 0, 2048, |_| {});
    let mark = fault(
        24,
        &[
            lookup(24, true, 0),
            window(Cause::AsyncFault, 24, 32, 32, 0),
            added(32, 2, 8),
            Decision::Dropped { lock: Lock::Vma }.into(),
        ],
    );
    let found = explain(&job, &[read_around(5, 0, 32), mark]);
    let expected = [(Origin::Used, 2, 0), (Origin::ReadAround, 30, 0), (Origin::Async, 32, 0)];
    assert_eq!(page_totals(&found), expected);
}

#[test]
fn rounding_is_what_large_folios_add() {
    let huge = job(&[700], 0, 2048, |spec| spec.advice = Some("hugepage".to_string()));
    let log = fault(
        700,
        &[lookup(700, false, 0), window(Cause::HugePage, 700, 512, 1024, 0), added(512, 9, 2)],
    );
    let expected =
        [(Origin::Used, 1, 0), (Origin::FolioRounding, 511, 0), (Origin::HugePage, 512, 0)];
    assert_eq!(page_totals(&explain(&huge, &[log])), expected);

    // With base pages, 32 pages from 37 on would be read; aligned to 16 pages these are 32..80.
    let exec = job(&[37], 0, 2048, |spec| spec.exec = Some(true));
    let log = fault(
        37,
        &[
            lookup(37, false, 0),
            miss(true, 1),
            window(Cause::Executable, 37, 32, 48, 1),
            added(32, 4, 3),
        ],
    );
    let expected =
        [(Origin::Used, 1, 0), (Origin::FolioRounding, 16, 0), (Origin::Executable, 31, 0)];
    assert_eq!(page_totals(&explain(&exec, &[log])), expected);
}

#[test]
fn a_copy_of_its_own_no_longer_uses_the_cache() {
    let job = job(&[5, 300, 5], 0, 2048, |spec| spec.private = Some(true));
    let copies = |index: u64, start: u64, first: &[Entry]| {
        let log = [
            first,
            &[
                lookup(index, false, 0),
                miss(true, 1),
                window(Cause::ReadAround, index, start, 32, 1),
                added(start, 0, 32),
            ],
            &around(1, 1),
            &[Decision::Copied { index: PageIndex(index) }.into()],
        ];
        fault(index, &log.concat())
    };
    let log = [copies(5, 0, &[]), copies(300, 284, &[evicted(0, 32)]), vec![added(0, 0, 32)]];
    let found = explain(&job, &log);
    assert_eq!(found.totals().get(Origin::Used).pages, 2);
    assert_eq!(found.totals().get(Origin::Refetched).pages, 0);
}

#[test]
fn a_read_uses_every_page_of_its_block() {
    let job = job(&[0], 0, 2048, |spec| {
        (spec.accesses_file, spec.accesses_text) = (None, None);
        spec.workload = Some("read-sequential".to_string());
        spec.bs = Some("16k".parse().expect("a size"));
        spec.accesses = Some(2);
    });
    let found = ReadaheadSnapshot { req: PageCount(4), ..ReadaheadSnapshot::default() };
    let entered = Decision::Entered { cause: Cause::ReadStream, found }.into();
    let found =
        explain(&job, &[vec![entered, window(Cause::ReadStream, 0, 0, 16, 0), added(0, 2, 4)]]);
    assert_eq!(page_totals(&found), [(Origin::Used, 8, 0), (Origin::OnDemand, 8, 0)]);
}

#[test]
fn each_retry_cancels_its_miss() {
    let accesses: Vec<u64> = (0..20).map(|number| number * 64 + 16).collect();
    let job = job(&accesses, 0, 2048, |_| {});
    let log: Vec<_> = accesses.iter().map(|page| read_around(*page, page - 16, 32)).collect();
    let found = explain(&job, &log).counters.remove(&0).expect("its counter");
    let moves = found.moves;
    assert_eq!((moves.misses, moves.retries_taking, moves.taken_by_retries), (20, 20, 20));
    assert_eq!((moves.lost_at_zero, moves.unexplained), (20 * 15, 0));
    assert_eq!((found.last, found.max, found.first_above), (0, 1, None));
}

/// A fault on each of `pages` pages without hits; it reads a window while the counter is at most
/// `threshold`.
fn misses_up_to(threshold: u16, pages: u64) -> Vec<Vec<Entry>> {
    let fault_on = |page: u64| {
        let counter = page as u16 + 1;
        let reads_window = counter <= threshold;
        let read = if reads_window {
            window(Cause::ReadAround, page, page, 1, counter)
        } else {
            Decision::NoReadahead { index: PageIndex(page), mmap_miss: counter }.into()
        };
        let first = [lookup(page, false, counter - 1), miss(reads_window, counter), read];
        fault(page, &[&first[..], &[added(page, 0, 1)], &around(0, counter)].concat())
    };
    (0..pages).map(fault_on).collect()
}

#[test]
fn misses_without_credit_stop_readahead() {
    let accesses: Vec<u64> = (0..120).collect();
    let job = job(&accesses, 0, 2048, |spec| spec.with = Some("mmap-miss".to_string()));
    let found = explain(&job, &misses_up_to(100, 120));
    let counter = &found.counters[&0];
    assert_eq!((counter.max, counter.rises, counter.moves.unexplained), (120, 1, 0));
    assert_eq!(counter.threshold, 100);
    // Access 100 is the 101st miss, and the first without a window.
    let (access, before) = counter.first_above.expect("it stopped");
    assert_eq!((access, before.misses, before.misses_above), (100, 101, 1));
    assert_eq!((counter.moves.misses, counter.moves.misses_above), (120, 20));
    assert_eq!(found.sources().get(Origin::Single).calls, 20);
    assert_eq!(page_totals(&found), [(Origin::Used, 120, 0)]);
}

/// The log determines where readahead stops, whatever threshold the rules had.
#[test]
fn the_log_says_where_readahead_stopped() {
    let accesses: Vec<u64> = (0..120).collect();
    let job = job(&accesses, 0, 2048, |spec| spec.with = Some("mmap-miss".to_string()));
    let found = explain(&job, &misses_up_to(10, 120));
    let counter = &found.counters[&0];
    let (access, before) = counter.first_above.expect("it stopped");
    assert_eq!((access, before.misses), (10, 11));
    assert_eq!((counter.moves.misses, counter.moves.misses_above), (120, 110));
    assert_eq!((counter.off, counter.moves.unexplained), (0, 0));
    assert_eq!(found.sources().get(Origin::ReadAround).calls, 10);
    assert_eq!(found.sources().get(Origin::Single).calls, 110);
}

#[test]
fn reread_page_was_evicted() {
    let job = job(&[5, 5], 0, 2048, |_| {});
    let found = explain(&job, &[read_around(5, 0, 32), read_around(5, 0, 32)]);
    let expected = [(Origin::Used, 1, 0), (Origin::Refetched, 1, 1), (Origin::ReadAround, 62, 31)];
    assert_eq!(page_totals(&found), expected);
}

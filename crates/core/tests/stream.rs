//! On-demand readahead of 6.1 and 6.6: one rule for misses and marks.

use filemap_core::decision::Cause;
use filemap_core::readahead::ReadaheadState;
use filemap_core::rules::Kernel::{V6_1, V6_6, V6_12};
use filemap_core::units::PageCount;

use crate::support::engine::{Engine, Io};
use crate::support::machine::{limits, stream, xfs};
use crate::support::map;

/// Start, size and asynchronous size of a stream.
type Stream = (u64, u64, u64);

/// A request that missed or hit a mark: its page and its number of pages, the stream and the file
/// before it, and the file and the stream after it.
struct Case(u64, u64, Stream, &'static str, &'static str, Stream);

impl Case {
    #[track_caller]
    fn check(&self, is_mark: bool) {
        let &Case(index, req, _, before, after, (start, size, async_size)) = self;
        for kernel in [V6_1, V6_6] {
            let mut engine = self.engine(kernel);
            let window = if is_mark {
                engine.request_at_mark(Cause::AsyncRead, index, req)
            } else {
                Some(engine.request(Cause::ReadStream, index, req))
            };
            engine.read_window(window.expect("these kernels always read"));
            let case = format!("{} at {index} of {before}", kernel.name());
            map::assert_cache(&case, &engine.cache, after);
            assert_eq!(engine.ra, stream(start, size, async_size, 0), "{case}");
        }
    }

    fn engine(&self, kernel: filemap_core::rules::Kernel) -> Engine {
        let &Case(_, _, (start, size, async_size), before, ..) = self;
        let mut engine = Engine::new(limits(kernel, PageCount(64)), Io::Waited, before);
        engine.ra = stream(start, size, async_size, 0);
        engine
    }
}

#[track_caller]
fn check_misses(cases: &[Case]) {
    cases.iter().for_each(|case| case.check(false));
}

#[track_caller]
fn check_marks(cases: &[Case]) {
    cases.iter().for_each(|case| case.check(true));
}

const BEHIND: Case = Case(16, 1, (8, 8, 4), "8. 8# 48.", "8. 8# 8~ m 7~ 32.", (16, 16, 8));

#[test]
fn miss_behind_the_window_advances_the_stream() {
    check_misses(&[
        BEHIND,
        // The window and the next one are merged if both together are not too large.
        Case(10, 1, (8, 2, 1), "64.", "10. 4~ m 7~ 42.", (10, 12, 8)),
        // However little is requested, and whatever is cached before it.
        Case(40, 9, (24, 16, 16), "64.", "40. 8~ m 7~ 8.", (40, 16, 8)),
    ]);
}

#[test]
fn miss_at_due_mark_reads_behind_the_window() {
    // The page itself is not in it: the caller reads it alone.
    check_misses(&[Case(12, 1, (8, 8, 4), "64.", "16. m 15~ 32.", (16, 16, 16))]);
}

#[test]
fn only_marks_advance_streams_since_6_12() {
    let mut engine = BEHIND.engine(V6_12);
    engine.request(Cause::ReadStream, 16, 8);
    assert_eq!(engine.ra, stream(8, 8, 4, 0), "a single read leaves the stream alone");
    let mut engine = Case(16, 1, (8, 8, 4), "8. 8# M 47.", "", (16, 16, 8)).engine(V6_12);
    engine.request_at_mark(Cause::AsyncRead, 16, 1);
    assert_eq!(engine.ra.start.0, 17, "found by search");
}

#[test]
fn other_misses_begin_a_stream_or_read_alone() {
    check_misses(&[
        Case(0, 2, (8, 8, 4), "64.", "2~ m ~ 60.", (0, 4, 2)),
        // A request for a window or more: the mark is in the middle.
        Case(30, 17, (8, 8, 4), "64.", "30. 8~ m 7~ 18.", (30, 16, 8)),
        // Two cached pages before it are more than one.
        Case(40, 1, (8, 8, 4), "38. ## 24.", "38. ## ~~ m 21.", (40, 3, 1)),
        Case(40, 1, (8, 8, 4), "39. # 24.", "39. # ~ 23.", (8, 8, 4)),
    ]);
}

#[test]
fn mark_advances_the_stream() {
    check_marks(&[
        Case(12, 1, (8, 8, 4), "8. 4# M 3# 48.", "8. 8# m 15~ 32.", (16, 16, 16)),
        // A mark of another stream: after the cached pages.
        Case(20, 1, (50, 9, 3), "20. M ## 41.", "20. 3# m 7~ 33.", (23, 8, 8)),
        // A mark after the window, which is so much later that nothing shows it.
        Case(16, 1, (8, 8, 4), "8. 8# M 47.", "8. 9# 7~ m 7~ 32.", (16, 16, 8)),
    ]);
}

#[test]
fn fully_cached_search_continues_at_last_page() {
    // The mark would be page 36, which is cached.
    let case = Case(20, 1, (50, 9, 3), "20. M 17# 26.", "20. 18# 14~ 12.", (36, 16, 16));
    case.check(true);
    let mut engine = case.engine(V6_12);
    assert_eq!(engine.request_at_mark(Cause::AsyncRead, 20, 1), None);
    assert_eq!(engine.ra, stream(50, 9, 3, 0));
}

#[test]
fn large_folios_grow_by_2_from_the_marked_one_and_6_1_has_none_of_two_pages() {
    for (kernel, after) in
        [(V6_1, "2. ~~ (--) <--> (--) ~~ 46."), (V6_6, "2. () (--) <--> (--) () 46.")]
    {
        let mut engine = Engine::new(xfs(kernel, PageCount(64)), Io::Waited, "64.");
        let previous_end = Some(2 * 4096);
        engine.ra = ReadaheadState { previous_end, ..stream(50, 9, 3, 0) };
        let window = engine.request(Cause::ReadStream, 2, 8);
        engine.read_window(window);
        map::assert_cache(kernel.name(), &engine.cache, after);
    }
}

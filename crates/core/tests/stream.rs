//! On-demand readahead of 6.1 and 6.6: one rule for misses and marks.

use filemap_core::decision::Cause;
use filemap_core::readahead::ReadaheadState;
use filemap_core::rules::Kernel::{V6_1, V6_6, V6_12};
use filemap_core::units::PageCount;

use crate::support::engine::{Engine, Io};
use crate::support::machine::{limits, stream, xfs};
use crate::support::map;

/// A request for `req` pages at `index`, which missed or hit a mark, of a file that looks like
/// `before`, and like `after` behind it.
struct Case {
    index: u64,
    req: u64,
    from: (u64, u64, u64),
    before: &'static str,
    after: &'static str,
    to: (u64, u64, u64),
}

impl Case {
    #[track_caller]
    fn check(&self, is_mark: bool) {
        for kernel in [V6_1, V6_6] {
            let mut engine = self.engine(kernel);
            let window = match is_mark {
                true => engine.request_at_mark(Cause::AsyncRead, self.index, self.req),
                false => Some(engine.request(Cause::ReadStream, self.index, self.req)),
            };
            engine.read_window(window.expect("these kernels always read"));
            let case = format!("{} at {} of {}", kernel.name(), self.index, self.before);
            map::assert_cache(&case, &engine.cache, self.after);
            let (start, size, async_size) = self.to;
            assert_eq!(engine.ra, stream(start, size, async_size, 0), "{case}");
        }
    }

    fn engine(&self, kernel: filemap_core::rules::Kernel) -> Engine {
        let mut engine = Engine::new(limits(kernel, PageCount(64)), Io::Waited, self.before);
        let (start, size, async_size) = self.from;
        engine.ra = stream(start, size, async_size, 0);
        engine
    }
}

const BEHIND: Case = Case {
    index: 16,
    req: 1,
    from: (8, 8, 4),
    before: "8. 8# 48.",
    after: "8. 8# 8~ m 7~ 32.",
    to: (16, 16, 8),
};

#[test]
fn a_miss_behind_the_window_moves_the_stream_on() {
    let cases = [
        BEHIND,
        // The window and the next are one where both together are not too large.
        Case {
            index: 10,
            from: (8, 2, 1),
            before: "64.",
            after: "10. 4~ m 7~ 42.",
            to: (10, 12, 8),
            ..BEHIND
        },
        // However little is asked for, and whatever is cached before it.
        Case {
            index: 40,
            req: 9,
            from: (24, 16, 16),
            before: "64.",
            after: "40. 8~ m 7~ 8.",
            to: (40, 16, 8),
        },
    ];
    cases.iter().for_each(|case| case.check(false));
}

#[test]
fn a_miss_where_the_mark_is_due_reads_what_lies_behind_the_window() {
    // The page itself is not in it: whoever asked for it reads it alone.
    let case =
        Case { index: 12, before: "64.", after: "16. m 15~ 32.", to: (16, 16, 16), ..BEHIND };
    case.check(false);
}

#[test]
fn since_6_12_only_marks_move_streams_on() {
    let mut engine = BEHIND.engine(V6_12);
    engine.request(Cause::ReadStream, 16, 8);
    assert_eq!(engine.ra, stream(8, 8, 4, 0), "a single read leaves the stream alone");
    let mut engine = Case { before: "8. 8# M 47.", ..BEHIND }.engine(V6_12);
    engine.request_at_mark(Cause::AsyncRead, 16, 1);
    assert_eq!(engine.ra.start.0, 17, "found by search");
}

#[test]
fn other_misses_begin_a_stream_or_read_alone() {
    let cases = [
        Case {
            index: 0,
            req: 2,
            from: (8, 8, 4),
            before: "64.",
            after: "2~ m ~ 60.",
            to: (0, 4, 2),
        },
        // A request for as much as a window, or more: the mark is half way.
        Case {
            index: 30,
            req: 17,
            before: "64.",
            after: "30. 8~ m 7~ 18.",
            to: (30, 16, 8),
            ..BEHIND
        },
        // Two cached pages before it are more than one.
        Case {
            index: 40,
            before: "38. ## 24.",
            after: "38. ## ~~ m 21.",
            to: (40, 3, 1),
            ..BEHIND
        },
        Case { index: 40, before: "39. # 24.", after: "39. # ~ 23.", to: (8, 8, 4), ..BEHIND },
    ];
    cases.iter().for_each(|case| case.check(false));
}

#[test]
fn a_mark_moves_the_stream_on() {
    let cases = [
        Case {
            index: 12,
            from: (8, 8, 4),
            before: "8. 4# M 3# 48.",
            after: "8. 8# m 15~ 32.",
            to: (16, 16, 16),
            ..BEHIND
        },
        // A mark of another stream: behind what is cached.
        Case {
            index: 20,
            from: (50, 9, 3),
            before: "20. M ## 41.",
            after: "20. 3# m 7~ 33.",
            to: (23, 8, 8),
            ..BEHIND
        },
        // A mark behind the window, which is so much later that nothing shows it.
        Case {
            index: 16,
            from: (8, 8, 4),
            before: "8. 8# M 47.",
            after: "8. 9# 7~ m 7~ 32.",
            to: (16, 16, 8),
            ..BEHIND
        },
    ];
    cases.iter().for_each(|case| case.check(true));
}

#[test]
fn where_all_is_cached_the_stream_goes_on_from_the_last_page_looked_at() {
    let before = "20. M 17# 26.";
    let case = Case {
        index: 20,
        from: (50, 9, 3),
        before,
        // The mark would be page 36, which is cached.
        after: "20. 18# 14~ 12.",
        to: (36, 16, 16),
        ..BEHIND
    };
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

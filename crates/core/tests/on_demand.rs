//! On-demand readahead: window sizes, what starts a stream, and single reads.

use filemap_core::decision::Cause;
use filemap_core::readahead::window_size::{initial_size, next_size};
use filemap_core::readahead::{Limits, ReadaheadState};
use filemap_core::rules::{Family, Kernel};
use filemap_core::units::PageCount;

use crate::support::engine::{Engine, Io};
use crate::support::machine::{KERNELS, limits, on, stream, xfs};
use crate::support::map;

/// Checks `size` for requests of these sizes, with windows of at most `max`.
#[track_caller]
fn check_sizes(size: fn(PageCount, PageCount) -> PageCount, max: u64, cases: &[(u64, u64)]) {
    for &(pages, expected) in cases {
        let found = size(PageCount(pages), PageCount(max));
        assert_eq!(found, PageCount(expected), "{pages} pages of at most {max}");
    }
}

#[test]
fn the_first_window_of_a_stream() {
    // Up to max/32: four times the request, rounded up to a power of two.
    check_sizes(initial_size, 32, &[(1, 4)]);
    check_sizes(initial_size, 2048, &[(64, 256), (33, 256), (1, 4)]);
    // Up to max/4: twice.
    check_sizes(initial_size, 32, &[(2, 4), (3, 8), (4, 8), (5, 16), (8, 16)]);
    check_sizes(initial_size, 2048, &[(65, 256), (512, 1024)]);
    check_sizes(initial_size, 31, &[(1, 2)]);
    check_sizes(initial_size, 4, &[(1, 2)]);
    // Above: max.
    check_sizes(initial_size, 32, &[(9, 32), (33, 32), (64, 32)]);
    check_sizes(initial_size, 2048, &[(513, 2048)]);
    check_sizes(initial_size, 3, &[(1, 3)]);
    check_sizes(initial_size, 1, &[(1, 1)]);
}

#[test]
fn the_next_window_of_a_stream() {
    // Below max/16: four times. Up to max/2: twice. Above: max.
    check_sizes(next_size, 32, &[(1, 4), (2, 4), (16, 32), (17, 32), (31, 32), (32, 32), (33, 32)]);
    check_sizes(next_size, 2048, &[(127, 508), (128, 256), (1023, 2046)]);
    check_sizes(next_size, 2048, &[(1024, 2048), (1025, 2048)]);
    check_sizes(next_size, 1, &[(1, 1)]);
    check_sizes(next_size, 2, &[(1, 2)]);
}

#[test]
fn a_large_request_may_use_the_optimal_io_size() {
    // The optimal I/O size of the device, and the largest window for each request.
    let cases: [(u64, &[(u64, u64)]); 3] = [
        // Requests of up to the readahead size are limited to it.
        (64, &[(1, 32), (32, 32), (33, 33), (64, 64), (65, 64), (1000, 64)]),
        // A device whose optimum is not above the readahead size changes nothing.
        (32, &[(33, 32)]),
        (16, &[(33, 32), (20, 32)]),
    ];
    for (io_pages, windows) in cases {
        let (ra_pages, io_pages) = (PageCount(32), PageCount(io_pages));
        let limits = Limits { ra_pages, io_pages, ..limits(Kernel::V6_18, PageCount(64)) };
        for &(req, max) in windows {
            assert_eq!(limits.max_window(PageCount(req)), PageCount(max), "{limits:?} {req}");
        }
    }
}

struct Case {
    index: u64,
    req: u64,
    /// The byte at which the last read ended.
    previous_end: Option<u64>,
    before: &'static str,
    after: &'static str,
    /// The resulting stream; `None`: a single read, which leaves it unchanged.
    stream: Option<(u64, u64, u64)>,
}

const fn case(index: u64, req: u64, before: &'static str, after: &'static str) -> Case {
    Case { index, req, previous_end: None, before, after, stream: None }
}

impl Case {
    const fn stream(self, start: u64, size: u64, async_size: u64) -> Case {
        Case { stream: Some((start, size, async_size)), ..self }
    }

    const fn after_first(self, previous_end: u64) -> Case {
        Case { previous_end: Some(previous_end), ..self }
    }

    #[track_caller]
    fn check(&self, limits: Limits) {
        let mut engine = Engine::new(limits, Io::Waited, self.before);
        let old =
            ReadaheadState { previous_end: self.previous_end, mmap_miss: 7, ..stream(50, 9, 3, 1) };
        engine.ra = old;
        let window = engine.request(Cause::ReadStream, self.index, self.req);
        let ra = &engine.ra;
        let case = format!(
            "{} read of {} at {} of {} behind {:?}",
            limits.rules.kernel.name(),
            self.req,
            self.index,
            self.before,
            self.previous_end
        );
        match self.stream {
            Some((start, size, async_size)) => {
                let new = stream(start, size, async_size, 0);
                let expected =
                    ReadaheadState { previous_end: self.previous_end, mmap_miss: 7, ..new };
                assert_eq!(*ra, expected, "{case}");
                assert_eq!(window.cause, Cause::ReadStream, "{case}");
            }
            None => {
                assert_eq!(*ra, old, "{case}");
                assert_eq!(window.cause, Cause::ReadSingle, "{case}");
            }
        }
        engine.read_window(window);
        map::assert_cache(&case, &engine.cache, self.after);
    }
}

/// Base pages on either kernel, so that all windows look the same.
fn machines() -> [Limits; 2] {
    KERNELS.map(|kernel| Limits { max_folio: None, ..limits(kernel, PageCount(64)) })
}

#[track_caller]
fn check_on_both(cases: &[Case]) {
    for case in cases {
        machines().iter().for_each(|&limits| case.check(limits));
    }
}

#[test]
fn the_start_of_the_file_begins_a_stream() {
    let cases = [
        case(0, 1, "64.", "~m 62.").stream(0, 2, 1),
        case(0, 2, "64.", "~~m~ 60.").stream(0, 4, 2),
        case(0, 4, "64.", "4~ m3~ 56.").stream(0, 8, 4),
        case(0, 5, "64.", "5~ m10~ 48.").stream(0, 16, 11),
        case(0, 15, "64.", "15~ m 48.").stream(0, 16, 1),
        // The request takes the whole window: half of it is after the mark.
        case(0, 16, "64.", "8~ m7~ 48.").stream(0, 16, 8),
        case(0, 20, "64.", "8~ m7~ 48.").stream(0, 16, 8),
        // A file shorter than the window.
        case(0, 4, "7.", "3~ m3~").stream(0, 8, 4),
        case(0, 4, "3.", "3~").stream(0, 8, 4),
        case(0, 1, ".", "m").stream(0, 2, 1),
    ];
    check_on_both(&cases);
}

#[test]
fn a_request_above_the_largest_window_begins_a_stream() {
    case(32, 17, "64.", "32. 8~ m7~ 16.").stream(32, 16, 8).check(machines()[1]);
    case(32, 16, "64.", "32. 16~ 16.").check(machines()[1]);
    // The device's optimal I/O size raises the largest window.
    let wide = Limits { io_pages: PageCount(64), ..machines()[1] };
    case(32, 17, "64.", "32. 17~ 15.").check(wide);
    case(0, 20, "64.", "10~ m9~ 44.").stream(0, 20, 10).check(wide);
    let wider = Limits { io_pages: PageCount(24), ..machines()[1] };
    case(32, 25, "64.", "32. 12~ m11~ 8.").stream(32, 24, 12).check(wider);
}

#[test]
fn a_read_at_or_next_to_the_end_of_the_last_one_begins_a_stream() {
    let page = |index: u64| index * 4096;
    let cases = [
        case(32, 1, "64.", "32. ~m 30.").after_first(page(32)).stream(32, 2, 1),
        case(32, 1, "64.", "32. ~m 30.").after_first(page(32) + 4095).stream(32, 2, 1),
        case(32, 1, "64.", "32. ~m 30.").after_first(page(31)).stream(32, 2, 1),
        case(32, 4, "64.", "32. 4~ m3~ 24.").after_first(page(32)).stream(32, 8, 4),
        // Two pages after it, or before it, is elsewhere.
        case(32, 1, "64.", "32. ~ 31.").after_first(page(31) - 1),
        case(32, 1, "64.", "32. ~ 31.").after_first(page(33)),
        case(32, 1, "64.", "32. ~ 31.").after_first(page(64)),
        // None before the first read.
        case(1, 1, "64.", ". ~ 62."),
        case(1, 1, "64.", ". ~m 61.").after_first(0).stream(1, 2, 1),
    ];
    check_on_both(&cases);
    // In pages of the architecture.
    let large = on(Family::Arm64, 65536, machines()[1]);
    case(2, 1, "64.", "2. ~m 60.").after_first(65536 * 2 - 1).stream(2, 2, 1).check(large);
    case(2, 1, "64.", "2. ~ 61.").after_first(65536 - 1).check(large);
}

#[test]
fn cached_pages_just_before_make_a_stream() {
    let cases = [
        // No more cached pages than requested ones: a single read.
        case(32, 1, "64.", "32. ~ 31."),
        case(32, 1, "31. # 32.", "31. #~ 31."),
        case(32, 4, "28. 4# 32.", "28. 4# 4~ 28."),
        case(32, 4, "64.", "32. 4~ 28."),
        case(62, 4, "64.", "62. ~~"),
        // More: as many again, and one after the mark.
        case(32, 1, "30. ## 32.", "30. ## ~~m 29.").stream(32, 3, 1),
        case(32, 4, "27. 5# 32.", "27. 5# 8~ m 23.").stream(32, 9, 1),
        // A gap ends the count.
        case(32, 1, "28. # . ## 32.", "28. #.## ~~m 29.").stream(32, 3, 1),
        case(32, 1, "30. #. 32.", "30. #. ~ 31."),
        // At most the readahead size, counted and read.
        case(32, 1, "17. 15# 32.", "17. 15# 15~m 16.").stream(32, 16, 1),
        case(32, 1, "16. 16# 32.", "16. 16# 15~m 16.").stream(32, 16, 1),
        case(32, 1, "32# 32.", "32# 15~m 16.").stream(32, 16, 1),
        case(32, 16, "32# 32.", "32# 16~ 16."),
        // The page looked at last is not counted: 16 count as 15.
        case(32, 15, "32# 32.", "32# 15~ 17."),
        case(32, 14, "32# 32.", "32# 15~m 16.").stream(32, 16, 1),
        // Counted to the start of the file: twice as many.
        case(5, 1, "5# 59.", "5# 10~ m 48.").stream(5, 11, 1),
        case(5, 1, ". 4# 59.", ". 4# 4~ m 54.").stream(5, 5, 1),
        case(8, 2, "8# 56.", "8# 15~ m 40.").stream(8, 16, 1),
        case(2, 1, "## 62.", "## 4~ m 57.").stream(2, 5, 1),
        case(1, 1, "# 63.", "# ~ 62."),
        case(16, 1, "16# 48.", "16# 15~ m 32.").stream(16, 16, 1),
        // Pages being read count like those that are up to date.
        case(32, 1, "30. ~~ 32.", "30. ~~ ~~m 29.").stream(32, 3, 1),
        // Cached pages inside the window are skipped, also at the place of the mark.
        case(32, 1, "30. ## . # 30.", "30. ## ~#m 29.").stream(32, 3, 1),
        case(32, 1, "30. ## .. # 29.", "30. ## ~~# 29.").stream(32, 3, 1),
    ];
    check_on_both(&cases);
}

#[test]
fn a_lone_read_uses_base_pages_on_any_filesystem() {
    for kernel in KERNELS {
        let large = xfs(kernel, PageCount(64));
        case(32, 8, "64.", "32. 8~ 24.").check(large);
    }
    // A stream does not: order 0 on 6.18, grown by 2 on 6.12.
    let large = |kernel| xfs(kernel, PageCount(64));
    case(0, 4, "64.", "4~ m3~ 56.").stream(0, 8, 4).check(large(Kernel::V6_18));
    case(0, 4, "64.", "(--)<--> 56.").stream(0, 8, 4).check(large(Kernel::V6_12));
}

#[test]
fn a_fault_keeps_its_cause() {
    let mut engine = Engine::new(machines()[1], Io::Waited, "64.");
    for (index, cause) in [(0, Cause::SequentialFault), (32, Cause::SequentialSingle)] {
        assert_eq!(engine.request(Cause::SequentialFault, index, 16).cause, cause);
    }
}

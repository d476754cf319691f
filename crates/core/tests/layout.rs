//! The folios of a window, and which of them is marked.

use filemap_core::decision::Cause;
use filemap_core::readahead::{Limits, Window};
use filemap_core::rules::{Arch, Kernel};
use filemap_core::units::{Order, PageCount};

use crate::support::engine::{Engine, Io};
use crate::support::machine::{KERNELS, stream, window, xfs};
use crate::support::map;
use Kernel::{V6_1, V6_6, V6_12, V6_18};

/// A window of `size` pages at `start`, `async_size` of them after the mark, of some order.
#[derive(Clone, Copy)]
struct Asked(u64, u64, u64, u8);

impl Asked {
    /// The window, which may be read up to page `last`.
    fn up_to(self, last: u64) -> Window {
        let Asked(start, size, async_size, order) = self;
        window(start, size, async_size, order, last)
    }
}

/// Lays the window out in a file in the state `before`, and checks the state `after`.
#[track_caller]
fn check(limits: Limits, asked: Asked, before: &str, after: &str) -> Engine {
    bounded(limits, asked, map::pages(before).0 - 1, false, before, after)
}

#[track_caller]
fn bounded(
    limits: Limits,
    Asked(start, size, async_size, order): Asked,
    last: u64,
    base_pages: bool,
    before: &str,
    after: &str,
) -> Engine {
    let mut engine = Engine::new(limits, Io::Waited, before);
    engine.ra = stream(start, size, async_size, order);
    let asked = Asked(start, size, async_size, order).up_to(last);
    engine.read_window(Window { base_pages, ..asked });
    let kernel = limits.rules.kernel.name();
    let case = format!("{kernel} {start}+{size}-{async_size}@{order} in {before}");
    map::assert_cache(&case, &engine.cache, after);
    engine
}

fn large(kernel: Kernel) -> Limits {
    xfs(kernel, PageCount(1))
}

fn up_to(order: u8, kernel: Kernel) -> Limits {
    Limits { max_folio: Some(Order(order)), ..large(kernel) }
}

fn base(kernel: Kernel) -> Limits {
    Limits { max_folio: None, ..large(kernel) }
}

#[test]
fn folios_are_as_large_as_alignment_and_window_allow() {
    let cases = [
        (Asked(0, 16, 0, 4), "32.", "(14-) 16."),
        (Asked(0, 16, 0, 2), "32.", "(--)(--)(--)(--) 16."),
        (Asked(0, 16, 0, 1), "32.", "()()()()()()()() 16."),
        (Asked(0, 16, 0, 0), "32.", "16~ 16."),
        // Rising to the order from the start, falling from it to the end.
        (Asked(5, 30, 0, 4), "40.", "5. ~ () (6-) (14-) () ~ 5."),
        (Asked(1, 15, 0, 3), "32.", ". ~ () (--) (6-) 16."),
        (Asked(8, 15, 0, 3), "32.", "8. (6-) (--) () ~ 9."),
        (Asked(6, 4, 0, 2), "16.", "6. () () 6."),
        // No larger than the window: 7 pages, order 2.
        (Asked(0, 7, 0, 4), "16.", "(--) () ~ 9."),
        (Asked(0, 8, 0, 4), "16.", "(6-) 8."),
        (Asked(0, 1, 0, 4), "16.", "~ 15."),
        (Asked(3, 1, 0, 4), "16.", "3. ~ 12."),
    ];
    for (asked, before, after) in cases {
        check(large(V6_18), asked, before, after);
    }
    // No larger than the mapping's maximum.
    check(up_to(2, V6_18), Asked(0, 16, 0, 4), "32.", "(--)(--)(--)(--) 16.");
    check(up_to(0, V6_18), Asked(0, 16, 0, 4), "32.", "16~ 16.");
}

#[test]
fn the_folio_that_holds_the_mark_carries_it() {
    let cases = [
        (Asked(5, 30, 30, 4), "40.", "5. m () (6-) (14-) () ~ 5."),
        (Asked(5, 30, 29, 4), "40.", "5. ~ <> (6-) (14-) () ~ 5."),
        (Asked(5, 30, 28, 4), "40.", "5. ~ <> (6-) (14-) () ~ 5."),
        (Asked(5, 30, 10, 4), "40.", "5. ~ () (6-) <14-> () ~ 5."),
        (Asked(5, 30, 19, 4), "40.", "5. ~ () (6-) <14-> () ~ 5."),
        (Asked(5, 30, 20, 4), "40.", "5. ~ () <6-> (14-) () ~ 5."),
        (Asked(5, 30, 4, 4), "40.", "5. ~ () (6-) <14-> () ~ 5."),
        (Asked(5, 30, 3, 4), "40.", "5. ~ () (6-) (14-) <> ~ 5."),
        (Asked(5, 30, 1, 4), "40.", "5. ~ () (6-) (14-) () m 5."),
        (Asked(5, 30, 0, 4), "40.", "5. ~ () (6-) (14-) () ~ 5."),
        // In a row of folios of one order.
        (Asked(0, 16, 9, 2), "16.", "(--)<-->(--)(--)"),
        (Asked(0, 16, 8, 2), "16.", "(--)(--)<-->(--)"),
        (Asked(0, 16, 1, 0), "16.", "15~ m"),
    ];
    for (asked, before, after) in cases {
        check(large(V6_18), asked, before, after);
    }
}

#[test]
fn the_end_of_the_file_cuts_the_window() {
    let cases = [
        (Asked(16, 16, 0, 4), "22.", "16. (--)()"),
        // The mark stays where the requested window has it: beyond the end, or before.
        (Asked(16, 16, 4, 4), "22.", "16. (--)()"),
        (Asked(16, 16, 10, 4), "22.", "16. (--)()"),
        (Asked(16, 16, 11, 4), "22.", "16. (--)<>"),
        (Asked(16, 16, 12, 4), "22.", "16. (--)<>"),
        (Asked(16, 16, 13, 4), "22.", "16. <-->()"),
        (Asked(16, 16, 16, 4), "22.", "16. <-->()"),
        (Asked(16, 16, 16, 4), "17.", "16. m"),
        (Asked(0, 32, 0, 4), "31.", "(14-) (6-) (--) () ~"),
        // Wholly beyond the end.
        (Asked(16, 16, 16, 4), "16.", "16."),
        (Asked(40, 16, 16, 4), "16.", "16."),
    ];
    for (asked, before, after) in cases {
        check(large(V6_18), asked, before, after);
    }
    for kernel in KERNELS {
        check(base(kernel), Asked(16, 16, 16, 0), "16.", "16.");
        check(base(kernel), Asked(40, 16, 16, 0), "16.", "16.");
    }
}

#[test]
fn the_last_page_that_may_be_read_cuts_the_window_before_the_file_ends() {
    let asked = Asked(16, 16, 4, 4);
    bounded(large(V6_18), asked, 25, false, "64.", "16. (6-) () 38.");
    bounded(large(V6_18), asked, 15, false, "64.", "64.");
    let asked = Asked(16, 16, 4, 0);
    for kernel in KERNELS {
        bounded(base(kernel), asked, 25, false, "64.", "16. 6~ m3~ 38.");
        bounded(base(kernel), asked, 16, false, "64.", "16. ~ 47.");
        bounded(base(kernel), asked, 15, false, "64.", "64.");
        bounded(base(kernel), asked, 3, false, "64.", "64.");
    }
}

#[test]
fn absent_pages_are_filled_with_base_pages() {
    let cases = [
        (Asked(4, 8, 0, 0), "16.", "4. 8~ 4."),
        (Asked(4, 8, 0, 0), "4. # .. ## 7.", "4. # ~~ ## 3~ 4."),
        (Asked(4, 8, 0, 0), "4. 8# 4.", "4. 8# 4."),
        (Asked(4, 8, 0, 0), "3. # 7. # 4.", "3. # 7~ # 4."),
        (Asked(4, 8, 0, 0), "[--] [--] 8.", "[--] [--] 4~ 4."),
        // The mark: before the pages at the end, if that page was absent.
        (Asked(4, 8, 1, 0), "16.", "4. 7~ m 4."),
        (Asked(4, 8, 2, 0), "16.", "4. 6~ m~ 4."),
        (Asked(4, 8, 8, 0), "16.", "4. m7~ 4."),
        (Asked(4, 8, 9, 0), "16.", "4. 8~ 4."),
        (Asked(4, 8, 2, 0), "10. # 5.", "4. 6~ #~ 4."),
        (Asked(4, 8, 2, 0), "9. # 6.", "4. 5~ # m~ 4."),
        (Asked(4, 8, 8, 0), "4. # 11.", "4. # 7~ 4."),
        // Counted from the clipped end; none when the clipped window is shorter.
        (Asked(4, 8, 2, 0), "10.", "4. 4~ m~"),
        (Asked(4, 8, 6, 0), "10.", "4. m5~"),
        (Asked(4, 8, 7, 0), "10.", "4. 6~"),
        (Asked(4, 8, 8, 0), "5.", "4. ~"),
        (Asked(4, 8, 1, 0), "5.", "4. m"),
    ];
    for (asked, before, after) in cases {
        for kernel in KERNELS {
            check(base(kernel), asked, before, after);
        }
        // A single read, on a filesystem with large folios.
        for kernel in KERNELS {
            let last = map::pages(before).0 - 1;
            bounded(large(kernel), asked, last, true, before, after);
        }
    }
}

#[test]
fn a_cached_page_ends_the_large_folios() {
    let cases = [
        // The rest of the window, in base pages, marked before its end.
        (Asked(0, 16, 0, 2), "9. # 22.", "(--)(--) ~ # 6~ 16."),
        (Asked(0, 16, 4, 2), "9. # 22.", "(--)(--) ~ # ~~ m3~ 16."),
        (Asked(0, 16, 7, 2), "9. # 22.", "(--)(--) ~ # 6~ 16."),
        (Asked(0, 16, 8, 2), "9. # 22.", "(--)(--) m # 6~ 16."),
        // The mark was passed: the folio that contains it has it, the rest is too short for it.
        (Asked(0, 16, 9, 2), "9. # 22.", "(--)<--> ~ # 6~ 16."),
        (Asked(0, 16, 12, 2), "9. # 22.", "(--)<--> ~ # 6~ 16."),
        // Already the first folio does not fit.
        (Asked(0, 16, 16, 4), "9. # 22.", "m8~ # 6~ 16."),
        (Asked(0, 16, 16, 4), "15. # 16.", "m14~ # 16."),
        (Asked(0, 16, 4, 4), "# 31.", "# 11~ m3~ 16."),
        // The page just after the window is in the way of nothing.
        (Asked(0, 16, 0, 4), "16. # 15.", "(14-) # 15."),
        // Cached folios in the way.
        (Asked(0, 16, 4, 3), "8. [--] 20.", "(6-) [--] m3~ 16."),
        (Asked(0, 12, 0, 2), "4. [--] 24.", "(--) [--] 4~ 20."),
        (Asked(2, 12, 0, 2), "10. ## 20.", ".. () (--) ~~ ## ~~ 18."),
    ];
    for (asked, before, after) in cases {
        check(large(V6_18), asked, before, after);
    }
    // The rest ends with the file; its mark is counted from there.
    check(large(V6_18), Asked(0, 16, 4, 2), "9. # 4.", "(--)(--) ~ # m3~");
    check(large(V6_18), Asked(0, 16, 4, 2), "9. # 3.", "(--)(--) ~ # 3~");
    check(large(V6_18), Asked(0, 16, 4, 2), "9. # 2.", "(--)(--) m # 2~");
}

#[test]
fn the_rest_is_as_long_as_the_window_on_6_12() {
    // Order 0 grows to 2; the rest begins at 8 and has 16 pages again.
    let cases = [
        (Asked(0, 16, 0, 0), "9. # 22.", "(--)(--) ~ # 14~ 8."),
        (Asked(0, 16, 4, 0), "9. # 22.", "(--)(--) ~ # 10~ m3~ 8."),
        // The folio that contains the mark has one, the rest has another.
        (Asked(0, 16, 12, 0), "9. # 22.", "(--)<--> ~ # ~~ m11~ 8."),
        (Asked(0, 16, 16, 0), "9. # 22.", "<-->(--) m # 14~ 8."),
        (Asked(0, 16, 4, 0), "9. # 8.", "(--)(--) ~ # ~~~~ m3~"),
        (Asked(0, 16, 10, 0), "9. # 8.", "(--)<--> m # 8~"),
    ];
    for (asked, before, after) in cases {
        check(large(V6_12), asked, before, after);
    }
}

#[test]
fn on_6_12_the_order_grows_with_each_window() {
    let cases = [
        (9, Asked(0, 16, 0, 0), "32.", "(--)(--)(--)(--) 16."),
        (9, Asked(0, 16, 0, 1), "32.", "(6-)(6-) 16."),
        (9, Asked(0, 16, 0, 2), "32.", "(14-) 16."),
        (9, Asked(0, 16, 0, 3), "32.", "(14-) 16."),
        // Up to the mapping's maximum.
        (3, Asked(0, 16, 0, 2), "32.", "(6-)(6-) 16."),
        (3, Asked(0, 16, 0, 3), "32.", "(6-)(6-) 16."),
        (1, Asked(0, 16, 0, 0), "16.", "()()()()()()()()"),
        (3, Asked(0, 16, 0, 4), "32.", "(6-)(6-) 16."),
    ];
    for (maximum, asked, before, after) in cases {
        check(up_to(maximum, V6_12), asked, before, after);
    }
    // 6.18 leaves it.
    check(up_to(9, V6_18), Asked(0, 16, 0, 1), "16.", "()()()()()()()()");
}

#[test]
fn on_6_12_windows_under_4_pages_are_base_pages() {
    check(large(V6_12), Asked(0, 3, 1, 2), "16.", "~~m 13.");
    check(large(V6_12), Asked(0, 2, 0, 2), "16.", "~~ 14.");
    check(large(V6_12), Asked(0, 4, 1, 2), "16.", "<--> 12.");
    // The requested window counts, not the one clipped at the end of the file.
    check(large(V6_12), Asked(0, 4, 0, 2), "3.", "()~");
    check(large(V6_18), Asked(0, 3, 1, 2), "16.", "()m 13.");
    check(large(V6_18), Asked(0, 2, 0, 2), "16.", "() 14.");
}

#[test]
fn order_of_the_next_window() {
    let cases = [
        // Since 6.18 the order used; 6.12 ignores it.
        (large(V6_18), Asked(0, 16, 0, 6), 4),
        (large(V6_18), Asked(0, 16, 0, 3), 3),
        (large(V6_18), Asked(0, 7, 0, 3), 2),
        (up_to(2, V6_18), Asked(0, 16, 0, 3), 2),
        (large(V6_12), Asked(0, 16, 0, 3), 3),
        (large(V6_12), Asked(0, 3, 0, 3), 3),
        // Base pages only.
        (base(V6_18), Asked(0, 16, 0, 3), 0),
        (base(V6_12), Asked(0, 16, 0, 3), 0),
    ];
    for (limits, asked, order) in cases {
        let mut engine = Engine::new(limits, Io::Waited, "32.");
        let Asked(start, size, async_size, asked_order) = asked;
        engine.ra = stream(start, size, async_size, asked_order);
        let old = engine.ra;
        engine.read_window(Window { cause: Cause::AsyncFault, ..asked.up_to(31) });
        let case = format!("{} {size}@{asked_order}", limits.rules.kernel.name());
        assert_eq!(engine.ra.order, Order(order), "{case}");
        engine.ra.order = old.order;
        assert_eq!(engine.ra, old, "{case}");
    }
}

#[test]
fn folios_of_a_whole_pmd() {
    let order = Arch::new(filemap_core::rules::Family::X86_64, 4096).unwrap().pmd_order().0;
    check(large(V6_18), Asked(0, 1024, 512, order), "1024.", "(510-) <510->");
    check(large(V6_18), Asked(256, 768, 768, order), "1024.", "256. <254-> (510-)");
    check(large(V6_18), Asked(0, 1024, 512, order), "1000.", "(510-) <254->(126-)(62-)(30-)(6-)");
}

#[test]
fn remainder_is_logged() {
    let cases = [
        (large(V6_18), "9. # 22.", "around:0+16-4@2 base:8+8-4"),
        (large(V6_12), "9. # 22.", "around:0+16-4@2 base:0+16-4"),
        (large(V6_12), "17. # 14.", "around:0+16-4@2"),
        (base(V6_18), "9. # 2.", "around:0+16-4@2 base:0+12-4"),
    ];
    for (limits, before, words) in cases {
        let mut engine = Engine::new(limits, Io::Waited, before);
        engine.read_window(Asked(0, 16, 4, 2).up_to(map::pages(before).0 - 1));
        assert_eq!(engine.course(), words, "{} in {before}", limits.rules.kernel.name());
    }
}

/// 6.1.192, booted: after a window of 32 pages from 3190 in a file that ends with page 3188, the
/// state has 33.
#[test]
fn a_window_beyond_the_end_grows_before_6_12() {
    for (kernel, grown) in [(V6_1, 3), (V6_6, 3), (V6_12, 0), (V6_18, 0)] {
        let sizes = |engine: Engine| [engine.ra.size.0, engine.ra.async_size.0];
        let name = kernel.name();
        let behind = check(large(kernel), Asked(23, 16, 16, 0), "20.", "20.");
        assert_eq!(sizes(behind), [16 + grown; 2], "{name}");
        let next = check(large(kernel), Asked(20, 16, 16, 0), "20.", "20.");
        assert_eq!(sizes(next), [16; 2], "{name}");
        let small = check(large(kernel), Asked(23, 3, 3, 0), "20.", "20.");
        assert_eq!(sizes(small), [3; 2], "{name}");
        let in_base_pages = check(base(kernel), Asked(23, 16, 16, 0), "20.", "20.");
        assert_eq!(sizes(in_base_pages), [16; 2], "{name}");
    }
}

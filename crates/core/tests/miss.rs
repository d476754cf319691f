//! The miss counter: rises by one to its cap, falls by hits to 0, and has a threshold.

use filemap_core::readahead::miss::{after_hits, after_miss, reads_window, threshold};
use filemap_core::rules::{Kernel, Rules};
use filemap_core::series::Series;

#[test]
fn a_miss_counts_up_to_the_cap() {
    let cases = [(0, 1), (1, 2), (99, 100), (100, 101), (999, 1000), (1000, 1000)];
    for (before, after) in cases {
        assert_eq!(after_miss(before), after, "a miss at {before}");
    }
}

#[test]
fn windows_are_read_up_to_the_threshold() {
    let cases =
        [(0, true), (1, true), (99, true), (100, true), (101, false), (102, false), (1000, false)];
    let rules = Rules::new(Kernel::V6_18, Series::BASELINE);
    assert_eq!(threshold(&rules), 100);
    for (counter, reads) in cases {
        assert_eq!(reads_window(counter, &rules), reads, "the counter at {counter}");
    }
}

#[test]
fn hits_decrement_down_to_0() {
    assert_eq!(
        [after_hits(0, 0), after_hits(0, 1), after_hits(1, 0), after_hits(1, 1)],
        [0, 0, 1, 0]
    );
    assert_eq!([after_hits(16, 16), after_hits(17, 16), after_hits(15, 16)], [0, 1, 0]);
    assert_eq!([after_hits(1000, 1), after_hits(1000, 512)], [999, 488]);
    assert_eq!(after_hits(1000, 65_536 + 1), 0, "more hits than the counter's 16 bits hold");
}

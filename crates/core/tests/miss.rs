//! The counter of misses: rises by one to its cap, falls by hits to 0, and has a threshold.

use filemap_core::readahead::miss::{credited, missed, reads_window};

#[test]
fn a_miss_counts_up_to_the_cap() {
    let cases = [(0, 1), (1, 2), (99, 100), (100, 101), (999, 1000), (1000, 1000)];
    for (before, after) in cases {
        assert_eq!(missed(before), after, "a miss at {before}");
    }
}

#[test]
fn windows_are_read_up_to_the_threshold() {
    let cases =
        [(0, true), (1, true), (99, true), (100, true), (101, false), (102, false), (1000, false)];
    for (counter, reads) in cases {
        assert_eq!(reads_window(counter), reads, "the counter at {counter}");
    }
}

#[test]
fn hits_take_away_down_to_0() {
    let cases = [
        (0, 0, 0),
        (0, 1, 0),
        (1, 0, 1),
        (1, 1, 0),
        (16, 16, 0),
        (17, 16, 1),
        (15, 16, 0),
        (1000, 1, 999),
        (1000, 512, 488),
        // More hits than the counter's 16 bits hold.
        (1000, 65_536 + 1, 0),
    ];
    for (before, hits, after) in cases {
        assert_eq!(credited(before, hits), after, "{hits} hits at {before}");
    }
}

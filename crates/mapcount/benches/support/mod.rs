//! Clocks, huge pages, medians, and the numbers of a command line.
#![allow(dead_code, reason = "each bench uses a part")]

#[path = "../../../kernel/src/clock.rs"]
pub mod clock;

use std::ops::Range;

use rustix::mm::{Advice, madvise};

/// Asks for huge pages, through which a kernel reaches its own memory. A kernel that has none
/// refuses, and then everything is measured through small ones.
pub fn huge_pages(addresses: Range<usize>) {
    let start = addresses.start.next_multiple_of(4096);
    let bytes = addresses.end.saturating_sub(start);
    // SAFETY: this advice changes neither what is in memory nor whether it may be used.
    let _ = unsafe { madvise(start as *mut _, bytes, Advice::LinuxHugepage) };
}

pub fn median(values: &[f64]) -> f64 {
    let mut values = values.to_vec();
    values.sort_by(f64::total_cmp);
    values[values.len() / 2]
}

/// The numbers of the command line, which has a word in front, and others after it.
pub fn numbers() -> Vec<usize> {
    std::env::args().skip(1).filter_map(|word| word.parse().ok()).collect()
}

/// Says in one line what is wrong, as for any command line.
pub fn refuse(line: &str) -> ! {
    eprintln!("{line}");
    std::process::exit(2)
}

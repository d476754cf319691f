//! Shares of what was read, and the parts of a run, in words and colours.

use filemap_report::plot::entry;
use filemap_report::units::number;

use super::super::history::first_access;

/// The class of what share of the pages read was used.
pub(super) fn share_class(read: u64, used: u64) -> &'static str {
    match (read, used) {
        (0, _) => "none",
        (_, 0) => "u0",
        (read, used) if used >= read => "u4",
        (read, used) if used * 4 <= read => "u1",
        (read, used) if used * 2 <= read => "u2",
        _ => "u3",
    }
}

pub(super) fn share_legend() -> Vec<(String, String)> {
    vec![
        entry("", "of the pages read, accessed before they left:"),
        entry("u0", "none"),
        entry("u1", "up to a quarter"),
        entry("u2", "up to half"),
        entry("u3", "more"),
        entry("u4", "all"),
    ]
}

/// The sum of counts that may come from anywhere.
pub(super) fn sum(counts: impl IntoIterator<Item = u64>) -> u64 {
    counts.into_iter().fold(0, u64::saturating_add)
}

/// A share in percent.
pub(super) fn percent(part: u64, whole: u64) -> String {
    format!("{:.1} %", part as f64 * 100.0 / whole.max(1) as f64)
}

/// The accesses of an interval in words: `accesses 12 to 23`.
pub(super) fn interval(accesses: u64, number_of: usize, intervals: usize) -> String {
    let bound = |at: usize| first_access(at as u64, accesses, intervals as u64);
    let (from, end) = (bound(number_of), bound(number_of + 1));
    format!("accesses {} to {}", number(from as f64), number(end.max(from + 1) as f64 - 1.0))
}

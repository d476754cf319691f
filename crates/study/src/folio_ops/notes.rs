//! Notes to the tables.

use filemap_job::FolioOpsRun;

use super::comparison::FAULT_NS;
use crate::stats::MAD;
use crate::verdict::{SIGNIFICANCE_LEVEL, least_paired_p_value};

/// What the figures are and how they were measured.
pub(super) fn figures(runs: &[FolioOpsRun]) -> String {
    let repeats = match runs.len() {
        1 => format!("Figures of one repeat, so that every MAD is 0. {MAD}"),
        repeats => {
            format!("Medians of {repeats} repeats, and of the changes in each of them. {MAD}")
        }
    };
    let tested = if least_paired_p_value(runs.len()) > SIGNIFICANCE_LEVEL {
        "~ marks all changes, as so few repeats cannot show a difference; give --runs 6 or \
             more."
            .to_string()
    } else {
        format!(
            "~ marks a change that is not significant at {SIGNIFICANCE_LEVEL} (signed-rank test on the changes \
             of the repeats)."
        )
    };
    let locked = super::locked(runs).map_or(String::new(), |locked| {
        format!(
            " L is the time of one locked read-modify-write, {:.2} ns here ({:.2} to {:.2}). What \
             is saved in L carries over to other machines. A percentage depends as much on the \
             work around it. L is shown of munmap and fork alone, as writes copy pages or reuse \
             them.",
            locked.median, locked.min, locked.max
        )
    });
    format!(
        "{repeats} All counting schemes took turns; one repeat more warmed up. Times are CPU \
         times of the thread. The base is page-mapcount: an atomic count for each page. \
         plain-counts is the control: the same with non-atomic counts of pages, so that its \
         saving is the cost of the atomics.{locked} {tested}"
    )
}

/// The added costs of a fault.
pub(super) fn with_faults() -> String {
    let [none, one, other] = FAULT_NS;
    format!(
        "A fault is a function call in this mm; the column of {none} ns is as measured. A fault of \
         a machine costs more, so the same is shown with {one} and {other} ns added to each."
    )
}

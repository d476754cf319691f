//! What the tables of the series say, in words.

use std::collections::BTreeMap;

use filemap_job::FolioOps;

use super::plan::Form;
use super::published_vs_model::{Beside, fault_ns};
use crate::folio_ops::{Compared, Figure};
use crate::stats::MAD;
use filemap_report::units::bytes;

/// What was run, and how long it takes.
pub(super) fn form(form: Form, job: &FolioOps, locked: Option<Figure>) -> String {
    let length = match form {
        Form::Brief => {
            "This is a brief form: 1 GiB was published, and times of so little memory are not \
             judged. filemap published mm-owner has 128 MiB and all sizes."
        }
        Form::Short => {
            "This is a short form, which takes one to two minutes: 1 GiB was published. --full has \
             that."
        }
        Form::Full => "This is the published size, which takes some ten minutes.",
    };
    let locked = locked.map_or(String::new(), |locked| {
        format!(
            " L, the time of one locked read-modify-write, was {:.2} ns ({:.2} to {:.2}).",
            locked.median, locked.min, locked.max
        )
    });
    format!(
        "Run here: {} of anonymous memory, {} repeats of each operation in which all ways to count \
         took turns, in a small mm with real atomics. Times are medians of the thread's CPU \
         clock. {MAD}{locked} {length}",
        bytes(job.bytes as f64),
        job.runs,
    )
}

/// What is judged how.
pub(super) fn judged(form: Form, beside: &[Beside]) -> String {
    let exact: Vec<bool> =
        beside.iter().filter(|own| own.is_exact()).filter_map(|own| own.ok).collect();
    let exact_hold = exact.iter().filter(|ok| **ok).count();
    let counts = format!(
        "{exact_hold} of {} counts of copied pages are as published. These are the same on every \
         machine, and decide whether the command fails.",
        exact.len()
    );
    if !form.judges_times() {
        return counts;
    }
    let times: Vec<bool> =
        beside.iter().filter(|own| !own.is_exact()).filter_map(|own| own.ok).collect();
    let hold = times.iter().filter(|ok| **ok).count();
    format!(
        "{counts} {hold} of {} figures of time hold. What is tolerated of the others is named \
         below each table. They depend on this machine and on what else it does, so they do not \
         decide.",
        times.len()
    )
}

/// Which counts of copied pages are not as published, if there are such.
pub(super) fn copied_otherwise(beside: &[Beside]) -> Option<String> {
    let failed = beside.iter().filter(|own| own.is_exact() && own.ok == Some(false));
    let name = |own: &Beside| {
        let size = bytes(own.of.folio_bytes as f64);
        format!("{} with {} at {size}", own.of.operation, own.counters)
    };
    let failed: Vec<String> = failed.map(name).collect();
    (!failed.is_empty()).then(|| format!("Not as published: {}.", failed.join("; ")))
}

/// What carries over from the published machine to this one.
pub(super) fn carries_over(all: &[Compared]) -> String {
    let reuse = reuse(&all.iter().flat_map(fault_ns).collect::<Vec<_>>());
    format!(
        "A percentage depends on how much other work a page makes: here that is a small mm, there \
         it was Linux. So munmap and fork hold without counts of pages where they gain what was \
         published or more, up to 60 %. Above that, work around the counting is missing. What \
         carries over is the saving of a page in L: the series takes one read-modify-write of a \
         page away, so 0.6 to 1.5 L are expected from 64 KiB on. mm-owner may take 2 L more for a \
         folio, and 5 % from 256 KiB on. A fault is a call here, and Linux takes more for it. \
         Reuse instead of a copy holds from 64 % on, if it gains the same in both \
         configurations.{reuse} plain-counts is the control: counts of pages that are not atomic. \
         precise-owners is not in the series. In tables of savings + is a gain, in tables of \
         changes - is one. The last column of a table in L is the saving of a whole folio."
    )
}

/// In how many cells reuse gains more than was published, and which costs of a fault explain that.
/// `faults_ns` has the cost of each cell, which is negative where it gains less.
fn reuse(faults_ns: &[f64]) -> String {
    if faults_ns.is_empty() {
        return String::new();
    }
    let explained = Figure::of(faults_ns.iter().copied().filter(|cost_ns| *cost_ns > 0.0));
    let Some(costs_ns) = explained else {
        return format!(
            " In none of {} cells did it gain more than was published, so no cost of a fault \
             explains a difference.",
            faults_ns.len()
        );
    };
    let more = faults_ns.iter().filter(|cost_ns| **cost_ns > 0.0).count();
    format!(
        " It gained more than was published in {more} of {} cells. With {:.0} to {:.0} ns more for \
         each fault the published change would come out in {}.",
        faults_ns.len(),
        costs_ns.min,
        costs_ns.max,
        if more == faults_ns.len() { "them" } else { "these" },
    )
}

/// Where folios of one page are timed: how far figures are off that ought to be 0.
pub(super) fn noise(all: &[Compared]) -> Option<String> {
    let single = all.iter().filter(|of| of.folio_bytes == filemap_job::folio_ops::PAGE_BYTES);
    let changes = single.flat_map(|of| &of.configurations).filter_map(|own| own.change.as_ref());
    let most = changes
        .map(|change| change.percent.median.abs())
        .fold(None, |most, one| Some(most.map_or(one, |most: f64| most.max(one))))?;
    Some(format!(
        "Folios of 4 KiB are counted alike by all, so that what differs there is noise: up to \
         {most:.1} %. A smaller difference elsewhere may be noise too."
    ))
}

/// What is published of children that copy.
pub(super) fn anon_cow(published: &BTreeMap<String, String>) -> String {
    let said = published.iter().map(|(case, said)| format!("{}: {said}", case.replace('_', "-")));
    format!(
        "Published of vm-scalability, a child for each CPU: {}. Here the memory is shared out \
         among a parent and a child for each CPU, all of which write at once. The time is that of \
         their threads for a page.",
        said.collect::<Vec<_>>().join("; ")
    )
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_reuse_gains_is_said_as_it_came_out() {
        assert_eq!(reuse(&[]), "");
        let more = reuse(&[100.0, 300.0]);
        assert!(more.contains("in 2 of 2 cells. With 100 to 300 ns more"), "{more}");
        let some = reuse(&[-200.0, 50.0, 100.0]);
        assert!(some.contains("in 2 of 3 cells. With 50 to 100 ns more"), "{some}");
        let none = reuse(&[-200.0, 0.0]);
        assert!(none.contains("In none of 2 cells") && !none.contains("ns more"), "{none}");
    }
}

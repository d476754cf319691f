//! What is said around the tables.

use filemap_job::job::{CACHE_PARTS, RAM_PARTS};

use super::cell::{CAPACITY_STEP_GIB, Measured, gib_text};
use super::published_vs_model::{BESIDE, Beside};
use crate::spread::outcomes;

/// What the columns are.
pub fn columns(cells: &[Measured]) -> String {
    let seeds = match cells.iter().map(|cell| cell.gib.samples.len()).max() {
        Some(1) => "that of one seed".to_string(),
        seeds => format!("the median of {} seeds", seeds.unwrap_or(0)),
    };
    let count = |ok| cells.iter().filter(|cell| cell.ok == ok).count();
    let published = cells.iter().filter(|cell| cell.cell.published().is_some()).count();
    let undecided = published - count(Some(true)) - count(Some(false));
    let undecided = match undecided {
        0 => String::new(),
        some => format!(", {some} need more seeds to tell"),
    };
    format!(
        "{} of {published} published cells hold{undecided}; the other {} of the matrix were not \
         published. p1 = miss-fault-address, p2 = miss-no-retry. In random rows the model's \
         figure is {seeds}, as the published access lists are not known.",
        count(Some(true)),
        cells.len() - published
    )
}

/// The notes below the tables, a paragraph each.
pub fn notes(cells: &[Measured], slope: f64) -> Vec<String> {
    let mut notes = vec![beside(cells), capacity(cells, slope)];
    notes.extend(cells.iter().filter(|cell| cell.gib.modes.len() > 1).map(modes));
    notes.push(
        "Why stride1021 does not improve: at 8192 KiB read-around reads 1024 pages before and \
         behind the page that missed, so the next access, 1021 pages on, finds its page in the \
         window. Every other access is a real hit that takes back what the miss before it \
         counted, and each of the misses reads 8 MiB."
            .to_string(),
    );
    notes.push(
        "Elapsed seconds are not compared: the model's are predictions from a machine profile \
         (see --format json), and the published guest's device is not known."
            .to_string(),
    );
    notes
}

/// Why the model's figures lie below, and by how much they may.
fn beside(cells: &[Measured]) -> String {
    let Beside { fixed_kib, kib_for_a_gib } = *BESIDE;
    let below: Vec<f64> = cells.iter().filter_map(Measured::below_mib).collect();
    let least = below.iter().copied().fold(f64::INFINITY, f64::min);
    let most = below.iter().copied().fold(f64::NEG_INFINITY, f64::max);
    format!(
        "Where the accesses are known, the model is {least:.1} to {most:.1} MiB below the \
         published figure, which is rounded to 1 MiB. The published figure is pgpgin, which \
         counts what the whole machine reads: also the program and its libraries, and metadata. \
         In guests that ran the published jobs this was up to {fixed_kib:.0} KiB a run, and up to \
         {kib_for_a_gib:.0} KiB more for each GiB read where memory was short \
         (data/whole-machine-6.12.toml). So a figure of known accesses holds if it is not above \
         the published one, and below it by no more than that."
    )
}

fn capacity(cells: &[Measured], slope: f64) -> String {
    let first = cells[0].cell;
    let ram = first.case.ram_gib as f64;
    let capacity = ram * CACHE_PARTS as f64 / RAM_PARTS as f64;
    format!(
        "One parameter is fitted: the page cache holds {capacity:.2} of the {ram:.0} GiB of RAM, \
         taken from one row ({} GiB, {}, {}), as what the kernel keeps for itself is not \
         published. On it depend the {} GiB random rows that read on (baseline, p1, and p2 where \
         it does): {slope:+.1} GiB for each {CAPACITY_STEP_GIB:+} GiB of page cache in that \
         row, by the model on the first seed. The strided, sequential and 4 GiB rows do not move.",
        first.case.file_gib, first.workload, first.variant, first.case.file_gib
    )
}

/// How many seeds of a cell end where.
fn modes(cell: &Measured) -> String {
    let figure = |value| format!("{} GiB", gib_text(value));
    let range = |from, to| format!("{} to {}", gib_text(from), gib_text(to));
    let outcomes = outcomes(&cell.gib.modes, figure, range);
    let published = cell.cell.published().map_or(String::new(), |row| {
        format!(" The published {} GiB is one draw.", gib_text(row.gib))
    });
    format!(
        "{} GiB, {}, {} has several outcomes, so its mean says little: of {} seeds {}.\
         {published}",
        cell.cell.case.file_gib,
        cell.cell.workload,
        cell.cell.variant,
        cell.gib.samples.len(),
        outcomes
    )
}

//! The changes to try.

use filemap_core::address::vma::ReadHint;
use filemap_job::program::{Job, Madvise, NamedMapping, ProgramStep, UsedParts};

use super::apply::{is_file_advice, is_prefetch_of, is_read_advice};
use super::{AdviceChange, AdviceTarget};

/// Maximum number of files with advice of their own.
const MAX_ADVISED_FILES: usize = 6;

/// Maximum number of mappings of a file that are advised individually.
const MAX_ADVISED_MAPPINGS: usize = 4;

/// MADV_WILLNEED is tried if at least one page in this many is used, from the first to the last.
const MIN_DENSITY: u64 = 4;

/// Readahead sizes to try, in KiB.
const READ_AHEAD_KB: [u64; 8] = [0, 16, 32, 64, 128, 512, 2048, 8192];

/// Fault-around sizes to try besides one page, in bytes.
const FAULT_AROUND: [u64; 2] = [64 << 10, 512 << 10];

const HINTS: [ReadHint; 3] = [ReadHint::Normal, ReadHint::Random, ReadHint::Sequential];

/// All changes to try for `program`, with advice for the first few of `files`.
pub fn candidate_changes(program: &Job, used: &UsedParts, files: &[usize]) -> Vec<AdviceChange> {
    let mut changes = Vec::new();
    for file in files.iter().copied().take(MAX_ADVISED_FILES) {
        let mappings = targets(program, used, file);
        for on in &mappings {
            let others = HINTS.into_iter().filter(|hint| !has_advice(program, on, *hint));
            changes.extend(others.map(|hint| AdviceChange::Madvise(on.clone(), hint)));
            changes.extend(prefetch_changes(used, on));
        }
        changes.extend(file_advice(program, file));
        if program.steps().any(|step| is_prefetch_of(program, file, step)) {
            let (name, numbers) = (program.files[file].name.clone(), Vec::new());
            changes.push(AdviceChange::OmitPrefetch(AdviceTarget { file, name, numbers }));
        }
    }
    let page_size = program.page_size();
    let whole = READ_AHEAD_KB.into_iter().filter(|kb| (kb * 1024).is_multiple_of(page_size));
    let others = whole.filter(|kb| kb * 1024 != program.machine.read_ahead.bytes(page_size));
    changes.extend(others.map(AdviceChange::ReadAhead));
    if !program.mappings.is_empty() {
        let around = [page_size].into_iter().chain(FAULT_AROUND);
        let around = around.filter(|bytes| *bytes >= page_size);
        let now = program.machine.fault_around.bytes(page_size);
        changes.extend(around.filter(|bytes| *bytes != now).map(AdviceChange::FaultAround));
    }
    let is_governed = |named_mapping: &NamedMapping| named_mapping.ungoverned(page_size).is_none();
    if !program.machine.governor && program.mappings.iter().any(is_governed) {
        changes.push(AdviceChange::Governor);
    }
    changes
}

/// The touched mappings of a file: together, and individually if there are few. Segments of
/// programs are mapped by the loader and get no advice.
fn targets(program: &Job, used: &UsedParts, file: usize) -> Vec<AdviceTarget> {
    let is_used = |number: &usize| {
        program.opens[program.mappings[*number].open].file == file
            && program.mappings[*number].segments.is_empty()
            && used.mappings[*number].pages > 0
    };
    let numbers: Vec<usize> = (0..program.mappings.len()).filter(is_used).collect();
    let one = |number: &usize| AdviceTarget {
        file,
        name: format!("mapping '{}'", program.mappings[*number].name),
        numbers: vec![*number],
    };
    let single: Vec<AdviceTarget> = match numbers.len() {
        2..=MAX_ADVISED_MAPPINGS => numbers.iter().map(one).collect(),
        _ => Vec::new(),
    };
    let whole = AdviceTarget { file, name: program.files[file].name.clone(), numbers };
    let is_mapped = !whole.numbers.is_empty();
    is_mapped.then_some(whole).into_iter().chain(single).collect()
}

/// Whether the mappings already have this advice throughout.
fn has_advice(program: &Job, on: &AdviceTarget, hint: ReadHint) -> bool {
    let steps = program.steps().filter_map(is_read_advice);
    let is_advised = steps.into_iter().any(|mapping| on.numbers.contains(&mapping));
    let has = |number: &usize| program.mappings[*number].mapping.advice.read == hint;
    !is_advised && on.numbers.iter().all(has)
}

/// MADV_WILLNEED and MADV_POPULATE_READ of the used part of the mappings, if its use is dense.
fn prefetch_changes(used: &UsedParts, on: &AdviceTarget) -> Vec<AdviceChange> {
    let parts = on.numbers.iter().map(|number| used.mappings[*number]);
    if !parts.clone().all(|part| part.pages * MIN_DENSITY >= part.span) {
        return Vec::new();
    }
    let parts: Vec<(u64, u64)> = parts.map(|part| (part.first, part.span)).collect();
    let asks = [Madvise::WillNeed, Madvise::PopulateRead];
    asks.map(|ask| AdviceChange::Ask(on.clone(), ask, parts.clone())).into()
}

/// Advice for the open files of a file that is only read.
fn file_advice(program: &Job, file: usize) -> Vec<AdviceChange> {
    let is_read = |number: &usize| {
        let reads =
            |step: &ProgramStep| matches!(step, ProgramStep::Read { open, .. } if open == number);
        program.opens[*number].file == file && program.steps().any(reads)
    };
    let numbers: Vec<usize> = (0..program.opens.len()).filter(is_read).collect();
    if numbers.is_empty() {
        return Vec::new();
    }
    let mut advised = program.steps().filter_map(is_file_advice);
    let is_advised = advised.any(|open| numbers.contains(&open));
    let on = AdviceTarget { file, name: program.files[file].name.clone(), numbers };
    let others = HINTS.into_iter().filter(|hint| is_advised || *hint != ReadHint::Normal);
    others.map(|hint| AdviceChange::Fadvise(on.clone(), hint)).collect()
}

#[cfg(test)]
mod tests {
    use filemap_core::units::PageCount;

    use super::super::tests::program_of;
    use super::*;

    fn labels(phases: &str, advice: &str) -> Vec<String> {
        let mut program = program_of("64m", advice, phases);
        program.machine.read_ahead = PageCount(32);
        candidate_changes(&program, &program.used_parts(), &[0])
            .iter()
            .map(AdviceChange::label)
            .collect()
    }

    const ELSEWHERE: [&str; 10] = [
        "read_ahead_kb=0",
        "read_ahead_kb=16",
        "read_ahead_kb=32",
        "read_ahead_kb=64",
        "read_ahead_kb=512",
        "read_ahead_kb=2048",
        "read_ahead_kb=8192",
        "fault_around=4k",
        "fault_around=512k",
        "filemap govern",
    ];

    #[test]
    fn tried_changes_differ_from_current_advice() {
        let sparse = labels("[[thread.phase]]\nmapping = 'm'\npages = [1, 900]\n", "");
        let own = ["MADV_RANDOM on a", "MADV_SEQUENTIAL on a"];
        assert_eq!(sparse, [&own[..], &ELSEWHERE].concat());
        let random =
            labels("[[thread.phase]]\nmapping = 'm'\npages = [1, 2, 3]\n", "advice = 'random'\n");
        assert_eq!(random[..3], ["MADV_NORMAL on a", "MADV_SEQUENTIAL on a", "MADV_WILLNEED on a"]);
        assert_eq!(random.last().map(String::as_str), Some("filemap govern"));
        let read = labels("[[thread.phase]]\nopen = 'a'\nbs = '4k'\noffsets = [0, 40960]\n", "");
        assert_eq!(read[..2], ["POSIX_FADV_RANDOM on a", "POSIX_FADV_SEQUENTIAL on a"]);
        let populated = labels(
            "[[thread.phase]]\nmapping = 'm'\nmadvise = 'populate-read'\n\
             [[thread.phase]]\nmapping = 'm'\npages = [1, 900]\n",
            "",
        );
        assert_eq!(populated[2], "no prefetch of a");
    }
}

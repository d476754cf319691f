//! Rules that give advice to mappings from outside, replacing the program's own.
//!
//! The rules of a change have to match what `apply` does to the job: the same mappings, the same
//! parts, and none of the program's own advice that they replace.

use std::path::PathBuf;

use filemap_attach::MemoryAdvice;
use filemap_core::address::vma::ReadHint;
use filemap_govern::{AdviceRule, FileExtent};
use filemap_job::program::{Job, Madvise, NamedMapping};

use super::apply::is_read_advice;
use super::{AdviceChange, AdviceTarget};

/// The rules for `changes` of `program`.
///
/// # Errors
/// Why a change cannot be made from outside, as the end of a sentence.
pub fn advice_rules(program: &Job, changes: &[AdviceChange]) -> Result<Vec<AdviceRule>, String> {
    let mut rules = Vec::new();
    for change in changes {
        match change {
            AdviceChange::Madvise(on, hint) => rules.extend(read_as(program, on, advice(*hint))?),
            // After the program's own MADV_RANDOM this would read page by page.
            AdviceChange::Ask(on, Madvise::PopulateRead, _) if is_advised(program, on) => {
                return Err("the program advises these mappings itself, so the order of advice \
                            given from outside is unknown"
                    .to_string());
            }
            AdviceChange::Ask(on, ask, parts) => {
                let advice = match ask {
                    Madvise::PopulateRead => MemoryAdvice::PopulateRead,
                    _ => MemoryAdvice::WillNeed,
                };
                rules.extend(prefetch_rules(program, on, parts, advice)?);
            }
            AdviceChange::Fadvise(..) => return Err(OF_FILES.to_string()),
            AdviceChange::OmitPrefetch(_) => {
                return Err("the program's own calls cannot be taken away from outside".to_string());
            }
            // The caller applies these by other means.
            AdviceChange::ReadAhead(_) | AdviceChange::FaultAround(_) | AdviceChange::Governor => {}
        }
    }
    Ok(rules)
}

/// Why advice for open files is not checked, as the end of a sentence.
pub const OF_FILES: &str = "advice on an open file cannot be given from outside of the program";

fn advice(hint: ReadHint) -> MemoryAdvice {
    match hint {
        ReadHint::Normal => MemoryAdvice::Normal,
        ReadHint::Random => MemoryAdvice::Random,
        ReadHint::Sequential => MemoryAdvice::Sequential,
    }
}

/// Rules that give `advice` to each mapping of `on`.
fn read_as(
    program: &Job,
    on: &AdviceTarget,
    advice: MemoryAdvice,
) -> Result<Vec<AdviceRule>, String> {
    let path = path(program, on)?;
    let overrides_program = is_advised(program, on);
    let rule =
        |mapping| AdviceRule { advice, mapping, part: None, path: path.clone(), overrides_program };
    Ok(mappings(program, on)?.into_iter().map(rule).collect())
}

/// Whether the program itself advises the read pattern of mappings of `on`.
fn is_advised(program: &Job, on: &AdviceTarget) -> bool {
    let is_own = |number: usize| on.numbers.contains(&number);
    let is_kept =
        |number: &usize| program.mappings[*number].mapping.advice.read != ReadHint::Normal;
    program.steps().filter_map(is_read_advice).any(is_own) || on.numbers.iter().any(is_kept)
}

fn path(program: &Job, on: &AdviceTarget) -> Result<PathBuf, String> {
    let path = program.files[on.file].file.path.as_ref();
    path.map(|path| path.clone().into())
        .ok_or_else(|| format!("'{}' is not there as it was recorded", program.files[on.file].name))
}

/// The part of the file that identifies a mapping.
fn extent(program: &Job, named_mapping: &NamedMapping) -> FileExtent {
    FileExtent {
        offset_bytes: named_mapping.mapping.offset.0 * program.page_size(),
        length_bytes: named_mapping.mapping.pages.bytes(program.page_size()),
    }
}

/// The mappings of `on`; `None` stands for all mappings of the file.
fn mappings(program: &Job, on: &AdviceTarget) -> Result<Vec<Option<FileExtent>>, String> {
    let others = other_mappings(program, on);
    if others.is_empty() {
        return Ok(vec![None]);
    }
    let mut own = Vec::new();
    for number in &on.numbers {
        let extent = extent(program, &program.mappings[*number]);
        if others.contains(&extent) {
            return Err("another mapping of the file is of the same part, so that they cannot be \
                        told apart"
                .to_string());
        }
        if !own.contains(&Some(extent)) {
            own.push(Some(extent));
        }
    }
    Ok(own)
}

/// Touched mappings of the same file outside `on`.
fn other_mappings(program: &Job, on: &AdviceTarget) -> Vec<FileExtent> {
    let mut touched = vec![false; program.mappings.len()];
    program.steps().filter_map(|step| step.touched_mapping()).for_each(|step| touched[step] = true);
    let is_other = |number: &usize| {
        let mapping = &program.mappings[*number];
        touched[*number]
            && program.opens[mapping.open].file == on.file
            && !on.numbers.contains(number)
    };
    let numbers = (0..program.mappings.len()).filter(is_other);
    numbers.map(|number| extent(program, &program.mappings[number])).collect()
}

/// Rules that prefetch the used part of each mapping. Mappings of the same part of a file are
/// indistinguishable, so the union of their used parts is prefetched.
fn prefetch_rules(
    program: &Job,
    on: &AdviceTarget,
    parts: &[(u64, u64)],
    advice: MemoryAdvice,
) -> Result<Vec<AdviceRule>, String> {
    let mut rules: Vec<AdviceRule> = Vec::new();
    for (number, (first, pages)) in on.numbers.iter().zip(parts) {
        let own_extent = extent(program, &program.mappings[*number]);
        let part = FileExtent {
            offset_bytes: own_extent.offset_bytes + first * program.page_size(),
            length_bytes: pages * program.page_size(),
        };
        match rules.iter_mut().find(|rule| rule.mapping == Some(own_extent)) {
            Some(rule) => rule.part = rule.part.map(|known| around(known, part)),
            None => {
                let path = path(program, on)?;
                let (mapping, part) = (Some(own_extent), Some(part));
                rules.push(AdviceRule { advice, mapping, part, path, overrides_program: false });
            }
        }
    }
    Ok(rules)
}

/// The smallest extent that contains both.
fn around(one: FileExtent, other: FileExtent) -> FileExtent {
    let end = |extent: FileExtent| extent.offset_bytes + extent.length_bytes;
    let offset_bytes = one.offset_bytes.min(other.offset_bytes);
    FileExtent { offset_bytes, length_bytes: end(one).max(end(other)) - offset_bytes }
}

#[cfg(test)]
mod tests {
    use super::super::tests::{self, target};
    use super::*;

    /// A program with a mapping of the whole file and optionally another.
    fn program(second: &str) -> Job {
        let touch =
            if second.is_empty() { "" } else { "[[thread.phase]]\nmapping = 'n'\npages = [2]\n" };
        tests::program(second, &format!("[[thread.phase]]\nmapping = 'm'\npages = [1]\n{touch}"))
    }

    const HALF: &str = "[[mapping]]\nname = 'n'\nopen = 'a'\noffset = '512k'\n";
    const SAME: &str = "[[mapping]]\nname = 'n'\nopen = 'a'\n";

    fn text(program: &Job, change: AdviceChange) -> Result<String, String> {
        let extent = |extent: Option<FileExtent>| {
            let text =
                |extent: FileExtent| format!("{}+{}", extent.offset_bytes, extent.length_bytes);
            extent.map_or("*".to_string(), text)
        };
        let line = |rule: &AdviceRule| {
            let AdviceRule { advice, mapping, part, path, .. } = rule;
            let [mapping, part] = [mapping, part].map(|mapping| extent(*mapping));
            format!("{advice:?} {mapping} {part} {}\n", path.display())
        };
        Ok(advice_rules(program, &[change])?.iter().map(line).collect())
    }

    #[test]
    fn all_mappings_of_a_file_or_one_of_them() {
        let random = |numbers: &[usize]| AdviceChange::Madvise(target(numbers), ReadHint::Random);
        let ranges_text = |program: &Job, numbers: &[usize]| text(program, random(numbers));
        assert_eq!(ranges_text(&program(""), &[0]).unwrap(), "Random * * /data/a\n");
        assert_eq!(ranges_text(&program(HALF), &[0, 1]).unwrap(), "Random * * /data/a\n");
        assert_eq!(ranges_text(&program(HALF), &[1]).unwrap(), "Random 524288+524288 * /data/a\n");
        assert!(ranges_text(&program(SAME), &[1]).unwrap_err().contains("told apart"));
        let mut gone = program("");
        gone.files[0].file.path = None;
        assert!(ranges_text(&gone, &[0]).unwrap_err().contains("'a' is not there"));
    }

    #[test]
    fn parts_are_parts_of_the_file() {
        let needed = AdviceChange::Ask(target(&[0, 1]), Madvise::WillNeed, vec![(1, 2), (3, 4)]);
        let expected = "WillNeed 0+1048576 4096+8192 /data/a\n\
                        WillNeed 524288+524288 536576+16384 /data/a\n";
        assert_eq!(text(&program(HALF), needed).unwrap(), expected);
        // Two mappings of the same part are indistinguishable.
        let needed =
            AdviceChange::Ask(target(&[0, 1]), Madvise::PopulateRead, vec![(1, 2), (3, 4)]);
        let expected = "PopulateRead 0+1048576 4096+24576 /data/a\n";
        assert_eq!(text(&program(SAME), needed).unwrap(), expected);
    }

    #[test]
    fn other_changes_have_no_rule() {
        let read = AdviceChange::Fadvise(target(&[0]), ReadHint::Sequential);
        assert_eq!(text(&program(""), read).unwrap_err(), OF_FILES);
        for other in
            [AdviceChange::Governor, AdviceChange::ReadAhead(64), AdviceChange::FaultAround(4096)]
        {
            assert_eq!(text(&program(""), other).unwrap(), "");
        }
    }

    #[test]
    fn program_advice_is_recognized() {
        let is_over_own = |program: &Job| {
            let random = AdviceChange::Madvise(target(&[0]), ReadHint::Random);
            advice_rules(program, &[random]).unwrap()[0].overrides_program
        };
        let mut own = program("");
        assert!(!is_over_own(&own));
        own.mappings[0].mapping.advice.read = ReadHint::Sequential;
        assert!(is_over_own(&own));
    }
}

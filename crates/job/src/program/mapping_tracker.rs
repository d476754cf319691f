//! Tracks which pages of mappings are mapped after each step.

use std::ops::Range;

use super::error::ProgramError;
use super::names::Names;
use super::spec::{ThreadPhaseSpec, ThreadSpec};
use super::{Job, ProgramStep};
use crate::Error;
use crate::parts::Pattern;
use crate::size::shorten;

/// The mapped pages of a mapping: sorted ranges that do not touch.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(super) struct PageRanges(Vec<Range<u64>>);

impl PageRanges {
    fn all(pages: u64) -> PageRanges {
        PageRanges(std::iter::once(0..pages).collect())
    }

    /// Whether any page is mapped.
    pub(super) fn is_mapped(&self) -> bool {
        !self.0.is_empty()
    }

    /// The first of `pages` that is not mapped.
    fn first_unmapped(&self, pages: Range<u64>) -> Option<u64> {
        let part = self.0.iter().find(|part| part.contains(&pages.start));
        let end = part.map_or(pages.start, |part| part.end);
        (end < pages.end).then_some(end)
    }

    /// Removes `pages`, which are mapped.
    fn unmap(&mut self, pages: Range<u64>) {
        let cut = |part: &Range<u64>| {
            [part.start..pages.start.min(part.end), pages.end.max(part.start)..part.end]
        };
        let left = self.0.iter().flat_map(cut).filter(|part| !part.is_empty());
        self.0 = left.collect();
    }
}

/// Which mappings are mapped at the current step.
pub(super) struct MappingTracker<'n> {
    pub(super) mapped: Vec<PageRanges>,
    /// The thread that maps or unmaps a mapping, and is therefore the only one that may use it: the
    /// order of steps of different threads is not known in advance.
    owners: Vec<Option<usize>>,
    threads: &'n [String],
}

impl<'n> MappingTracker<'n> {
    /// The state before the first step: mappings that a step creates do not exist yet.
    pub(super) fn new(
        threads: &[ThreadSpec],
        names: &'n [String],
        mappings: &Names<'_>,
        program: &mut Job,
    ) -> MappingTracker<'n> {
        let mut owners = vec![None; program.mappings.len()];
        for (number, thread) in threads.iter().enumerate() {
            for phase in &thread.phase {
                let changed = phase.map.as_deref().or(phase.unmap.as_deref());
                let Some(Ok(mapping)) = changed.map(|name| mappings.find(name)) else { continue };
                owners[mapping].get_or_insert(number);
                program.mappings[mapping].at_start &= phase.map.is_none();
            }
        }
        let at_start = program.mappings.iter().map(|mapping| {
            if mapping.at_start {
                PageRanges::all(mapping.mapping.pages.0)
            } else {
                PageRanges::default()
            }
        });
        MappingTracker { mapped: at_start.collect(), owners, threads: names }
    }

    /// Rejects a round that does not end with the mappings it started with.
    pub(super) fn check_round(&self, before: &[PageRanges], program: &Job) -> Result<(), Error> {
        let both = self.mapped.iter().zip(before);
        let Some(mapping) = both.into_iter().position(|(now, before)| now != before) else {
            return Ok(());
        };
        let name = shorten(&program.mappings[mapping].name);
        let (how, remedy) = match (before[mapping].is_mapped(), self.mapped[mapping].is_mapped()) {
            (true, true) => return Err(ProgramError::PartAtRoundsEnd { name }.into()),
            (true, false) => ("gone", "map"),
            (false, _) => ("there", "unmap"),
        };
        Err(ProgramError::OtherRound { name, how, remedy }.into())
    }

    pub(super) fn check_owner(
        &self,
        thread: usize,
        phase: &ThreadPhaseSpec,
        mappings: &Names<'_>,
    ) -> Result<(), Error> {
        let used = [&phase.mapping, &phase.map, &phase.unmap];
        for name in used.into_iter().flatten() {
            if let Ok(mapping) = mappings.find(name)
                && let Some(owner) = self.owners[mapping].filter(|&owner| owner != thread)
            {
                let (name, by) = (shorten(name), shorten(&self.threads[owner]));
                return Err(ProgramError::MappedByAnother { name, by }.into());
            }
        }
        Ok(())
    }

    /// Applies `step`, which is valid except for unmapped pages.
    ///
    /// # Errors
    /// A step that uses unmapped pages.
    pub(super) fn apply_step(&mut self, step: &ProgramStep, program: &Job) -> Result<(), Error> {
        let Some(mapping) = step.mapping() else { return Ok(()) };
        let (named, mapped) = (&program.mappings[mapping], &mut self.mapped[mapping]);
        let all = named.mapping.pages.0;
        let gone = |page: Option<u64>| -> Result<(), Error> {
            let Some(page) = page else { return Ok(()) };
            Err(ProgramError::PartGone { page, name: shorten(&named.name) }.into())
        };
        match step {
            ProgramStep::Map { .. } => *mapped = PageRanges::all(all),
            ProgramStep::Unmap { first, pages, .. } if (first.0, pages.0) == (0, all) => {
                *mapped = PageRanges::default();
            }
            ProgramStep::Unmap { first, pages, .. } => {
                let part = first.0..first.0 + pages.0;
                gone(mapped.first_unmapped(part.clone()))?;
                mapped.unmap(part);
                if !mapped.is_mapped() {
                    return Err(ProgramError::LastPart { name: shorten(&named.name) }.into());
                }
            }
            ProgramStep::Madvise { first, pages, .. }
            | ProgramStep::Mprotect { first, pages, .. } => {
                gone(mapped.first_unmapped(first.0..first.0 + pages.0))?;
            }
            ProgramStep::Touch { accesses, .. } => match &accesses.pattern {
                Pattern::Generated(_) => gone(mapped.first_unmapped(0..all))?,
                Pattern::Listed(list) if mapped.first_unmapped(0..all).is_some() => {
                    let mut pages = list.pages.iter();
                    gone(pages.find_map(|page| mapped.first_unmapped(*page..page + 1)))?;
                }
                Pattern::Listed(_) => {}
            },
            _ => {}
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn unmaps_parts_one_by_one() {
        let mut parts = PageRanges::all(10);
        assert_eq!((parts.first_unmapped(0..10), parts.first_unmapped(9..11)), (None, Some(10)));
        parts.unmap(4..6);
        assert_eq!(parts.first_unmapped(0..10), Some(4));
        assert_eq!((parts.first_unmapped(0..4), parts.first_unmapped(5..8)), (None, Some(5)));
        assert_eq!(parts.first_unmapped(6..10), None);
        parts.unmap(0..4);
        parts.unmap(8..10);
        assert_eq!(parts, PageRanges(std::iter::once(6..8).collect()));
        parts.unmap(6..8);
        assert!(!parts.is_mapped());
    }
}

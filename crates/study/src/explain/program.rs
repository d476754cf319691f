//! Where the bytes of a program came from: of each file, and through each mapping and open file.
//!
//! The model tells which access decisions belong to, so that the accesses of a program of one
//! thread are made one by one as its log goes on. In which order several threads make theirs the
//! log does not say: then pages count by what brought them in, accessed or not.

use std::collections::BTreeSet;

use filemap_core::decision::{Cause, Decision, Log};
use filemap_core::units::{PageCount, PageIndex};
use filemap_job::program::{Job, NamedMapping, ProgramStep};

use super::origin::{Amount, Brought, Origin, PerOrigin};
use super::pages::Pages;
use super::parts::Parts;
use super::window::{LastWindow, origins};

/// What a decision log says of a program.
#[derive(Clone, Debug, PartialEq)]
pub struct ProgramExplanation {
    /// Pages of each file that entered the cache, by origin; a page counts each time.
    pub files: Vec<PerOrigin<Amount>>,
    /// What was brought in by touches of each mapping; of a program of one thread.
    pub mappings: Vec<PerOrigin<Brought>>,
    /// What was brought in by reads of each open file; of a program of one thread.
    pub opens: Vec<PerOrigin<Brought>>,
    /// Whether accesses are known, so that pages that were accessed are told from others.
    pub knows_accesses: bool,
}

impl ProgramExplanation {
    /// Pages that entered the cache.
    pub fn pages_read(&self) -> u64 {
        let amounts = self.files.iter().flat_map(PerOrigin::iter);
        amounts.map(|(_, amount)| amount.pages).sum()
    }
}

/// Reads the decision log of a program; [`ProgramExplainer::finish`] has the explanation.
pub struct ProgramExplainer<'a> {
    program: &'a Job,
    files: Vec<OfFile>,
    /// The file that decisions are about.
    file: usize,
    /// Accesses that are still to come, of a program of one thread.
    left: Option<Box<dyn Iterator<Item = Made> + 'a>>,
    /// The access at hand.
    made: Option<Made>,
    /// How many accesses have begun.
    begun: u64,
    /// Pages of the file that the program has copies of, by mapping.
    copied: Vec<BTreeSet<u64>>,
    mappings: Vec<PerOrigin<Brought>>,
    opens: Vec<PerOrigin<Brought>>,
}

/// What is known of one file.
struct OfFile {
    pages: Pages,
    window: Option<LastWindow>,
}

/// An access.
#[derive(Clone, Copy, Debug)]
struct Made {
    file: usize,
    through: Through,
    first: PageIndex,
    end: PageIndex,
    /// The first since its mapping was made anew, without the copies that it had.
    is_new: bool,
}

impl Made {
    /// Whether it is to page `index` of its file.
    fn is_to(&self, index: PageIndex) -> bool {
        self.first <= index && index < self.end
    }
}

/// What an access goes through.
#[derive(Clone, Copy, Debug)]
enum Through {
    Mapping(usize),
    Open(usize),
}

impl<'a> ProgramExplainer<'a> {
    /// An explainer of a run of `program` that has not begun.
    pub fn new(program: &'a Job) -> Self {
        let of_file =
            |file| OfFile { pages: Pages::new(reached(program, file), None), window: None };
        let left = match program.threads.as_slice() {
            [thread] => {
                let steps = thread.steps.iter().enumerate();
                let all = steps.flat_map(move |(number, step)| {
                    let is_new = is_mapped_anew(&thread.steps[..number], step);
                    let made = accesses(program, step).enumerate();
                    made.map(move |(at, made)| Made { is_new: is_new && at == 0, ..made })
                });
                Some(Box::new(all) as Box<dyn Iterator<Item = Made>>)
            }
            _ => None,
        };
        ProgramExplainer {
            program,
            files: (0..program.files.len()).map(of_file).collect(),
            file: 0,
            left,
            made: None,
            begun: 0,
            copied: vec![BTreeSet::new(); program.mappings.len()],
            mappings: vec![PerOrigin::default(); program.mappings.len()],
            opens: vec![PerOrigin::default(); program.opens.len()],
        }
    }

    /// The explanation, once the log has ended.
    pub fn finish(mut self) -> ProgramExplanation {
        self.end_access();
        let knows_accesses = self.left.is_some();
        let amounts = |mut of: OfFile| {
            of.pages.settle_rest();
            match knows_accesses {
                true => of.pages.amounts,
                false => brought_alone(&of.pages.brought),
            }
        };
        ProgramExplanation {
            files: self.files.into_iter().map(amounts).collect(),
            mappings: self.mappings,
            opens: self.opens,
            knows_accesses,
        }
    }

    /// Makes the access at hand: all that it decided is known.
    fn end_access(&mut self) {
        let Some(Made { file, through, first, end, .. }) = self.made.take() else { return };
        let pages = &mut self.files[file].pages;
        for page in first.0..end.0 {
            let is_copied = match through {
                Through::Mapping(mapping) => self.copied[mapping].contains(&page),
                Through::Open(_) => false,
            };
            if !is_copied {
                pages.touch(PageIndex(page));
            }
        }
    }

    /// What the access at hand brings in is counted here too.
    fn through(&mut self) -> Option<&mut PerOrigin<Brought>> {
        match self.made?.through {
            Through::Mapping(mapping) => self.mappings.get_mut(mapping),
            Through::Open(open) => self.opens.get_mut(open),
        }
    }

    fn call(&mut self, origin: Origin) {
        self.files[self.file].pages.brought.get_mut(origin).calls += 1;
        if let Some(through) = self.through() {
            through.get_mut(origin).calls += 1;
        }
    }

    fn add(&mut self, start: PageIndex, end: PageIndex, folio_pages: u64) {
        let read_ahead = self.program.machine.read_ahead;
        let window = self.files[self.file].window;
        for (start, end, origin) in origins(window, (start, end), folio_pages, read_ahead) {
            self.files[self.file].pages.add(start, end, origin);
            if let Some(through) = self.through() {
                through.get_mut(origin).pages += (end - start).0;
            }
        }
    }
}

impl Log for ProgramExplainer<'_> {
    fn record(&mut self, decision: Decision) {
        match decision {
            Decision::File(file) => self.file = file.number(),
            Decision::Readahead { cause, index, start, size, .. } => {
                if matches!(cause, Cause::WillNeed | Cause::Governor) {
                    // Advice is no access.
                    self.end_access();
                }
                let end = start + size;
                self.files[self.file].window = Some(LastWindow { cause, index, start, end });
                self.call(Origin::of(cause));
            }
            Decision::BasePages { start, size, .. } => {
                if let Some(window) = &mut self.files[self.file].window {
                    window.reach(start, size);
                }
            }
            Decision::NoReadahead { .. } => {
                self.files[self.file].window = None;
                self.call(Origin::Single);
            }
            Decision::Added { start, order, folios, .. } => {
                self.add(start, start + PageCount(folios << order.0), order.pages());
            }
            // Advice has faults of its own.
            Decision::Served { index, .. } if self.made.is_some_and(|made| made.is_to(index)) => {
                self.end_access();
            }
            Decision::Copied { index } => {
                self.files[self.file].pages.touch(index);
                if let Some(Made { through: Through::Mapping(mapping), .. }) = self.made {
                    self.copied[mapping].insert(index.0);
                }
            }
            Decision::Evicted { start, pages } => {
                self.files[self.file].pages.evict(start, start + pages);
            }
            _ => {}
        }
    }

    fn access(&mut self, number: u64) {
        // The one at hand goes on.
        if number < self.begun {
            return;
        }
        self.end_access();
        while self.begun <= number {
            self.begun += 1;
            let Some(made) = self.left.as_mut().and_then(Iterator::next) else { break };
            if let (Through::Mapping(mapping), true) = (made.through, made.is_new) {
                self.copied[mapping].clear();
            }
            self.made = Some(made);
        }
    }
}

/// By what brought them in, all pages.
fn brought_alone(brought: &PerOrigin<Brought>) -> PerOrigin<Amount> {
    let mut amounts = PerOrigin::default();
    for (origin, brought) in brought.iter() {
        *amounts.get_mut(origin) = Amount { pages: brought.pages, again: 0 };
    }
    amounts
}

/// The pages of a file that the program reaches, through a mapping or by reading.
pub(super) fn reached(program: &Job, file: usize) -> Parts {
    let mapped = program.mappings.iter().filter(|of| program.opens[of.open].file == file);
    let mapped = mapped.flat_map(NamedMapping::parts);
    let size = program.page_size();
    let read = program.steps().filter_map(|step| match step {
        ProgramStep::Read { open, offset_bytes, len_bytes, .. }
            if program.opens[*open].file == file =>
        {
            let (first, end) = (offset_bytes / size, (offset_bytes + len_bytes).div_ceil(size));
            Some((PageIndex(first), PageCount(end - first)))
        }
        _ => None,
    });
    Parts::merged(mapped.chain(read).collect())
}

/// Whether all of the mapping that `step` touches was taken away after its last touch in `before`:
/// it is there again only if it was mapped again.
fn is_mapped_anew(before: &[ProgramStep], step: &ProgramStep) -> bool {
    let Some(number) = step.touched() else { return false };
    let last = before.iter().rev().find(|earlier| match earlier {
        ProgramStep::Map { mapping } => *mapping == number,
        earlier => earlier.touched() == Some(number),
    });
    matches!(last, Some(ProgramStep::Map { .. }))
}

fn accesses<'a>(program: &'a Job, step: &'a ProgramStep) -> Box<dyn Iterator<Item = Made> + 'a> {
    let Some(file) = program.file_of(step) else { return Box::new(std::iter::empty()) };
    match step {
        ProgramStep::Touch { mapping, accesses, .. } => {
            let (number, in_file) = (*mapping, program.mappings[*mapping].in_file());
            Box::new(program.touches(number, accesses).map(move |page| {
                let first = in_file(page);
                let through = Through::Mapping(number);
                Made { file, through, first, end: first + PageCount(1), is_new: false }
            }))
        }
        ProgramStep::Read { open, offset_bytes, len_bytes, accesses, .. } => {
            let (through, size) = (Through::Open(*open), program.page_size());
            let is_direct = program.opens[*open].direct;
            Box::new(program.reads(*len_bytes, accesses).map(move |block| {
                let start = offset_bytes + block.offset_bytes;
                let first = PageIndex(start / size);
                // What goes past the page cache uses no page of it.
                let last = PageIndex((start + block.len_bytes).div_ceil(size));
                let end = if is_direct { first } else { last };
                Made { file, through, first, end, is_new: false }
            }))
        }
        _ => Box::new(std::iter::empty()),
    }
}

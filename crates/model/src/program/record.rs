//! The record of a program: sums over what its threads did.

use filemap_core::cache::FileCache;
use filemap_core::decision::Log;
use filemap_core::page_cache::PageCache;
use filemap_core::units::{FileId, PageIndex};
use filemap_job::Counters;
use filemap_job::program::{
    FileRun, MappingRun, PhaseRun, Program, ProgramRun, ProgramStep, ThreadRun,
};

use super::Running;
use crate::tally::Tally;
use crate::world::Timing;

/// What a step did.
#[derive(Clone, Copy, Debug)]
pub struct Done {
    pub tally: Tally,
    pub began_ns: u64,
    pub ended_ns: u64,
}

/// The record of a program whose threads have `done` their steps.
pub fn of<C: PageCache, L: Log>(
    running: &mut Running<'_, '_, C, L>,
    done: &[Vec<Done>],
) -> ProgramRun {
    let program = running.program;
    let timed = running.world.timing == Timing::Device;
    let sums = Sums { program, done, timed };
    let files = (0..program.files.len()).map(|number| {
        let tally = sums.of(|step| program.opens[program.open_of(step)].file == number).0;
        let (file, end) = (FileId::new(number as u32), PageIndex(program.file_pages(number).0));
        let cached = running.world.memory.cache.file(file).cached(PageIndex(0), end);
        FileRun {
            name: program.files[number].name.clone(),
            data_pages_read: Some(tally.pages_read),
            major_faults: Some(tally.major_faults),
            // What was read leaves by eviction only.
            evicted_pages: Some(tally.pages_read - cached.0),
            cached: Some(cached.0),
        }
    });
    let files = files.collect();
    let mappings = program.mappings.iter().enumerate().map(|(number, mapping)| {
        let touches = |step: &ProgramStep| step.touched() == Some(number);
        MappingRun { name: mapping.name.clone(), counters: counters(sums.of(touches)) }
    });
    let ended_ns = done.iter().flatten().map(|done| done.ended_ns).max();
    ProgramRun {
        elapsed_ns: ended_ns.filter(|_| timed),
        counters: counters(sums.of(|_| true)),
        files,
        mappings: mappings.collect(),
        threads: sums.threads(),
        phases: sums.phases(),
    }
}

/// A tally and the bytes that the device read, as the counters of a record.
fn counters((tally, bytes_read): (Tally, u64)) -> Counters {
    Counters { bytes_read: Some(bytes_read), ..tally.counters() }
}

/// What the steps did, to be summed.
struct Sums<'p, 'd> {
    program: &'p Program,
    /// By thread.
    done: &'d [Vec<Done>],
    timed: bool,
}

impl Sums<'_, '_> {
    /// What the chosen steps counted, and the bytes that the device read for them.
    fn of(&self, chosen: impl Fn(&ProgramStep) -> bool) -> (Tally, u64) {
        let steps = self.program.steps().zip(self.done.iter().flatten());
        self.sum(steps.filter(|(step, _)| chosen(step)))
    }

    fn sum<'s>(&self, steps: impl Iterator<Item = (&'s ProgramStep, &'s Done)>) -> (Tally, u64) {
        steps.fold((Tally::default(), 0), |(sum, bytes), (step, done)| {
            let file = self.program.opens[self.program.open_of(step)].file;
            // Holes are filled without the device.
            let is_read = !self.program.files[file].file.sparse;
            let read = if is_read { done.tally.pages_read * self.program.page_size() } else { 0 };
            (sum.with(&done.tally), bytes + read)
        })
    }

    fn threads(&self) -> Vec<ThreadRun> {
        let threads = self.program.threads.iter().zip(self.done).map(|(thread, done)| ThreadRun {
            name: thread.name.clone(),
            elapsed_ns: done.last().map(|last| last.ended_ns).filter(|_| self.timed),
            counters: counters(self.sum(thread.steps.iter().zip(done))),
        });
        threads.collect()
    }

    fn phases(&self) -> Vec<PhaseRun> {
        let mut phases = Vec::with_capacity(self.program.steps().count());
        for (thread, done) in self.program.threads.iter().zip(self.done) {
            for (step, done) in thread.steps.iter().zip(done) {
                phases.push(PhaseRun {
                    thread: thread.name.clone(),
                    does: self.program.shown(step),
                    elapsed_ns: self.timed.then_some(done.ended_ns - done.began_ns),
                    counters: counters(self.sum([(step, done)].into_iter())),
                });
            }
        }
        phases
    }
}

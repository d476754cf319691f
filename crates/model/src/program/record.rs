//! The record of a program: sums over what its threads did.

use filemap_core::cache::FileCache;
use filemap_core::decision::Log;
use filemap_core::page_cache::PageCache;
use filemap_core::units::{FileId, PageIndex};
use filemap_job::Counters;
use filemap_job::program::{
    FileRun, MappingRun, PhaseRun, Program, ProgramRun, ProgramStep, ThreadRun,
};

use super::running::Running;
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
    let mut in_all = Sum::default();
    let mut by_file = vec![Sum::default(); program.files.len()];
    let mut by_mapping = vec![Sum::default(); program.mappings.len()];
    let mut threads = Vec::with_capacity(program.threads.len());
    let mut phases = Vec::with_capacity(program.steps().count());
    for (thread, done) in program.threads.iter().zip(done) {
        let mut by_thread = Sum::default();
        for (step, done) in thread.steps.iter().zip(done) {
            let sum = Sum::of(program, step, done);
            by_thread.add(&sum);
            by_file[program.file_of(step)].add(&sum);
            if let Some(mapping) = step.touched() {
                by_mapping[mapping].add(&sum);
            }
            phases.push(PhaseRun {
                thread: thread.name.clone(),
                does: program.shown(step),
                elapsed_ns: timed.then_some(done.ended_ns - done.began_ns),
                counters: sum.counters(),
            });
        }
        in_all.add(&by_thread);
        threads.push(ThreadRun {
            name: thread.name.clone(),
            elapsed_ns: done.last().map(|last| last.ended_ns).filter(|_| timed),
            counters: by_thread.counters(),
        });
    }
    let files = program.files.iter().zip(&by_file).enumerate().map(|(number, (named, sum))| {
        let (file, end) = (FileId::new(number as u32), PageIndex(program.file_pages(number).0));
        let cached = running.world.memory.cache.file(file).cached(PageIndex(0), end);
        let Tally { pages_read, major_faults, .. } = sum.tally;
        FileRun {
            name: named.name.clone(),
            data_pages_read: Some(pages_read),
            major_faults: Some(major_faults),
            // What was read and is not there was reclaimed, or dropped on advice.
            evicted_pages: Some(pages_read - cached.0),
            cached: Some(cached.0),
        }
    });
    let files = files.collect();
    let mappings = program
        .mappings
        .iter()
        .zip(&by_mapping)
        .map(|(mapping, sum)| MappingRun { name: mapping.name.clone(), counters: sum.counters() });
    ProgramRun {
        elapsed_ns: threads.iter().filter_map(|thread| thread.elapsed_ns).max(),
        counters: in_all.counters(),
        files,
        mappings: mappings.collect(),
        threads,
        phases,
    }
}

/// What steps counted together.
#[derive(Clone, Copy, Debug, Default)]
struct Sum {
    tally: Tally,
    /// What the device read for them.
    bytes_read: u64,
}

impl Sum {
    fn of(program: &Program, step: &ProgramStep, done: &Done) -> Sum {
        // Holes are filled without the device.
        let is_read = !program.files[program.file_of(step)].file.sparse;
        let bytes_read = if is_read { done.tally.pages_read * program.page_size() } else { 0 };
        Sum { tally: done.tally, bytes_read }
    }

    fn add(&mut self, other: &Sum) {
        self.tally = self.tally.with(&other.tally);
        self.bytes_read += other.bytes_read;
    }

    /// As the counters of a record.
    fn counters(&self) -> Counters {
        Counters { bytes_read: Some(self.bytes_read), ..self.tally.counters() }
    }
}

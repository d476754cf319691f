//! Shrinks jobs with tables: programs of one thread.

use std::sync::Arc;

use filemap_job::JobSpec;
use filemap_job::program::ThreadPhaseSpec;

use super::{JobVariations, Shrinks, fewer_accesses, smaller_files, without_one};

/// Keys that are never dropped: their values are shrunk instead, or the table has another meaning
/// without them.
const KEPT: [&str; 18] = [
    "accesses", "barrier", "fadvise", "file", "fork", "madvise", "map", "mapping", "mprotect",
    "name", "offsets", "open", "pages", "phase", "size", "thread", "unmap", "workload",
];

impl Shrinks for JobSpec {
    fn smaller(&self, last: Option<u64>) -> Vec<JobSpec> {
        let mut smaller = JobVariations { of: self, jobs: Vec::new() };
        for (number, thread) in self.thread.iter().enumerate() {
            let needed = last.map_or(thread.phase.len(), |last| phases_up_to(&thread.phase, last));
            smaller.with(|job| job.thread[number].phase.truncate(needed));
            for phase in 0..thread.phase.len() {
                if thread.phase.len() > 1 {
                    smaller.with(|job| drop(job.thread[number].phase.remove(phase)));
                }
            }
        }
        for (number, mapping) in self.mapping.iter().enumerate() {
            let of_mapping = |phase: &ThreadPhaseSpec| {
                [&phase.mapping, &phase.map, &phase.unmap]
                    .into_iter()
                    .flatten()
                    .any(|name| *name == mapping.name)
            };
            if !self.thread.iter().flat_map(|thread| &thread.phase).any(of_mapping) {
                smaller.with(|job| drop(job.mapping.remove(number)));
            }
        }
        for (number, thread) in self.thread.iter().enumerate() {
            for (at, phase) in thread.phase.iter().enumerate() {
                for fewer in shorter(phase) {
                    smaller.with(|job| job.thread[number].phase[at] = fewer);
                }
            }
        }
        smaller.without_a_key();
        for (number, file) in self.file.iter().enumerate() {
            for size in smaller_files(file.size.as_ref()) {
                smaller.with(|job| job.file[number].size = size);
            }
        }
        smaller.jobs
    }

    fn without_a_key(&self) -> Vec<JobSpec> {
        let numbered = |table: &str, count: usize| -> Vec<String> {
            (0..count).map(|number| format!("{table}/{number}")).collect()
        };
        let mut places = vec![String::new()];
        places.extend(numbered("/mapping", self.mapping.len()));
        for (number, thread) in self.thread.iter().enumerate() {
            places.extend(numbered(&format!("/thread/{number}/phase"), thread.phase.len()));
        }
        without_one(self, &places, &KEPT)
    }
}

/// Number of phases up to and including the one that makes access number `access`, from 0.
fn phases_up_to(phases: &[ThreadPhaseSpec], access: u64) -> usize {
    let mut before = 0;
    let is_before = |phase: &&ThreadPhaseSpec| {
        before += accesses(phase);
        before <= access
    };
    phases.iter().take_while(is_before).count() + 1
}

/// Number of accesses of a phase; 0 if the phase does not state it.
fn accesses(phase: &ThreadPhaseSpec) -> u64 {
    let listed = phase.pages.as_ref().or(phase.offsets.as_ref());
    phase.accesses.or(listed.map(|list| list.len() as u64)).unwrap_or(0)
}

/// Versions of a phase with fewer accesses.
fn shorter(phase: &ThreadPhaseSpec) -> Vec<ThreadPhaseSpec> {
    let mut all = Vec::new();
    if let Some(accesses) = phase.accesses {
        let fewer = |accesses| ThreadPhaseSpec { accesses: Some(accesses), ..phase.clone() };
        all.extend(fewer_accesses(accesses).map(fewer));
    }
    if let Some(pages) = phase.pages.as_ref().filter(|pages| pages.len() > 1) {
        let (first, rest) = pages.split_at(pages.len() / 2);
        for part in [first, rest, &pages[..pages.len() - 1], &pages[1..]] {
            all.push(ThreadPhaseSpec { pages: Some(Arc::new(part.to_vec())), ..phase.clone() });
        }
    }
    all
}

#[cfg(test)]
mod tests {
    use super::super::shrink;
    use super::*;

    const PROGRAM: &str = "seed = 5\nread_ahead_kb = 16\n[[file]]\nname = 'f'\nsize = '4m'\n\
        [[open]]\nname = 'o'\nfile = 'f'\n[[mapping]]\nname = 'm'\nopen = 'o'\nshift = 3\n\
        [[mapping]]\nname = 'other'\nopen = 'o'\n[[thread]]\nname = 't'\nphase = [\n\
        { mapping = 'm', workload = 'random', accesses = 40 },\n\
        { mapping = 'm', madvise = 'pageout', offset = '8k', len = '4k' },\n\
        { mapping = 'other', pages = [1, 2, 3, 4, 5] },\n\
        { open = 'o', workload = 'read-random', accesses = 9, bs = '8k' }]\n";

    /// A property that needs the advice and one page of the other mapping shrinks to exactly these.
    #[test]
    fn finds_smallest_differing_program() {
        let spec = JobSpec::from_toml(PROGRAM).unwrap();
        let needs = |spec: &JobSpec| {
            let phases = &spec.thread[0].phase;
            phases.iter().any(|phase| phase.madvise.is_some())
                && phases
                    .iter()
                    .any(|phase| phase.pages.as_ref().is_some_and(|pages| pages.contains(&4)))
        };
        let found = |specs: &[JobSpec]| Ok(specs.iter().position(needs).map(|at| (at, ())));
        let (smallest, ()) = shrink(&spec, (), 400, |()| None, found).unwrap();
        let phases = &smallest.thread[0].phase;
        assert_eq!(phases.len(), 2, "{phases:?}");
        assert_eq!(phases[1].pages.as_deref(), Some(&vec![4]));
        assert!(phases[0].offset.is_none() && phases[0].len.is_none(), "{phases:?}");
        assert!(smallest.seed.is_none() && smallest.mapping[0].shift.is_none(), "{smallest:?}");
        assert_eq!(smallest.file[0].size.as_ref().unwrap().0, "4096");
    }

    #[test]
    fn cuts_program_after_access() {
        let spec = JobSpec::from_toml(PROGRAM).unwrap();
        let phases = &spec.thread[0].phase;
        for (access, needed) in [(0, 1), (39, 1), (40, 3), (44, 3), (45, 4)] {
            assert_eq!(phases_up_to(phases, access), needed, "{access}");
        }
    }
}

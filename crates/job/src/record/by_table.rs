//! Sums of files, mappings and threads declared by the same table.

use std::collections::BTreeMap;

use super::counters::Counters;
use super::run::{FileRun, MappingRun, PhaseRun, Run, ThreadRun};
use crate::job::{Job, SourceTables};

impl Run {
    /// The run with the files, mappings and threads of each table summed.
    pub(super) fn by_table(self, job: &Job) -> Run {
        let SourceTables { files, mappings, threads, .. } = &job.tables;
        let steps = threads
            .iter()
            .zip(&job.threads)
            .flat_map(|(table, thread)| (0..thread.steps.len()).map(move |step| (*table, step)));
        let steps: Vec<(usize, usize)> = steps.collect();
        let name = |table: usize| job.spec.thread[table].called(table);
        Run {
            files: group_by_key(files, self.files, |table, all: &[FileRun]| FileRun {
                name: job.spec.file[*table].name.clone(),
                data_pages_read: all.iter().map(|file| file.data_pages_read).sum(),
                hole_pages: all.iter().map(|file| file.hole_pages).sum(),
                major_faults: all.iter().map(|file| file.major_faults).sum(),
                evicted_pages: all.iter().map(|file| file.evicted_pages).sum(),
                cached: all.iter().map(|file| file.cached).sum(),
                cached_parts: all[0].cached_parts.filter(|_| all.len() == 1),
            }),
            mappings: group_by_key(mappings, self.mappings, |table, all: &[MappingRun]| {
                MappingRun {
                    name: job.spec.mapping[*table].name.clone(),
                    counters: sum(all.iter().map(|mapping| &mapping.counters)),
                }
            }),
            threads: group_by_key(threads, self.threads, |table, all: &[ThreadRun]| ThreadRun {
                name: name(*table),
                elapsed_ns: all.iter().map(|thread| thread.elapsed_ns).max().flatten(),
                counters: sum(all.iter().map(|thread| &thread.counters)),
            }),
            phases: group_by_key(&steps, self.phases, |(table, _), all: &[PhaseRun]| PhaseRun {
                thread: name(*table),
                does: all[0].does.clone(),
                elapsed_ns: all.iter().map(|phase| phase.elapsed_ns).sum(),
                counters: sum(all.iter().map(|phase| &phase.counters)),
            }),
            ..self
        }
    }
}

/// Groups `all` by key, in the order of first occurrence, and combines each group with `make`.
fn group_by_key<K: Ord, T>(keys: &[K], all: Vec<T>, make: impl Fn(&K, &[T]) -> T) -> Vec<T> {
    let mut by_key: BTreeMap<&K, Vec<T>> = BTreeMap::new();
    keys.iter().zip(all).for_each(|(key, one)| by_key.entry(key).or_default().push(one));
    by_key.iter().map(|(key, all)| make(key, all)).collect()
}

fn sum<'a>(counters: impl Iterator<Item = &'a Counters>) -> Counters {
    counters.copied().reduce(|sum, other| sum.and(&other)).unwrap_or_default()
}

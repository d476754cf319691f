//! The counters of misses of a job with several open files.

use std::collections::BTreeMap;

use filemap_job::Job;

use super::counter_course::CounterCourse;

/// Open file descriptions whose counters are kept.
const MOST_OPENS: usize = 64;

/// What is seen of the counter of each open file description.
pub(super) struct OpenCounters {
    accesses: u64,
    /// The one that decisions go through.
    pub(super) open: u32,
    of: BTreeMap<u32, OpenCounter>,
}

struct OpenCounter {
    value: u16,
    changes: u64,
    course: CounterCourse,
}

impl OpenCounters {
    /// Of a run of so many accesses.
    pub(super) fn new(accesses: u64) -> Self {
        OpenCounters { accesses, open: 0, of: BTreeMap::new() }
    }

    /// The counter of the one at hand was seen, after so many accesses.
    pub(super) fn count(&mut self, done: u64, value: impl FnOnce(u16) -> u16) {
        if self.of.len() >= MOST_OPENS && !self.of.contains_key(&self.open) {
            return;
        }
        let new =
            || OpenCounter { value: 0, changes: 0, course: CounterCourse::new(self.accesses) };
        let counter = self.of.entry(self.open).or_insert_with(new);
        let value = value(counter.value);
        if value != counter.value {
            counter.value = value;
            counter.changes += 1;
            counter.course.put(done, value);
        }
    }

    /// That of `file` whose counter changes most, and how it does; none where none changes.
    pub(super) fn of_file(&self, job: &Job, file: usize) -> Option<(usize, &CounterCourse)> {
        let own = self.of.iter().filter(|(open, _)| job.opens[**open as usize].file == file);
        let most = own.max_by_key(|(open, counter)| (counter.changes, u32::MAX - **open));
        let changing = most.filter(|(_, counter)| counter.changes > 0);
        changing.map(|(open, counter)| (*open as usize, &counter.course))
    }
}

//! Shrinks a job to the smallest one that still reproduces something.

use std::ops::Range;
use std::sync::Arc;

use filemap_job::program::{FileSpec, ThreadPhaseSpec, ThreadSpec};
use filemap_job::{JobSpec, SizeText};
use serde::Serialize;
use serde::de::DeserializeOwned;

use super::{accesses, pages, remove_phases, remove_unused_tables, size};
use crate::error::Error;

/// Keys that are never dropped: their values are shrunk instead, or the job is another one without
/// them.
const KEPT: [&str; 28] = [
    "accesses",
    "accesses_file",
    "arch",
    "barrier",
    "count",
    "fadvise",
    "file",
    "fork",
    "fraction",
    "kernel",
    "machine",
    "madvise",
    "map",
    "mapping",
    "mprotect",
    "name",
    "offsets",
    "open",
    "page_size",
    "pages",
    "path",
    "phase",
    "process",
    "size",
    "thread",
    "unmap",
    "with",
    "workload",
];

/// Maximum number of keys that are tried to be dropped after the attempts ran out.
const MAX_IDLE_KEYS: usize = 200;

/// Number of jobs that are made and passed on together.
const BATCH: usize = 32;

/// Number of phases above which whole ranges of them are dropped.
const MANY_PHASES: usize = 6;

/// A change that makes a job simpler.
type Change<'a> = Box<dyn Fn(&mut JobSpec) + 'a>;
type Changes<'a> = Box<dyn Iterator<Item = Change<'a>> + 'a>;

/// Shrinks `spec` in at most `most` tries and returns the smallest job found with what it shows. If
/// the tries run out, each key is still tried once. `shows` returns the index of the first of
/// several jobs that reproduces it, and what that job shows; `last` returns the number of the last
/// access that matters, if known.
///
/// # Errors
/// Errors of `shows`.
pub fn shrink<T>(
    spec: &JobSpec,
    found: T,
    most: usize,
    last: impl Fn(&T) -> Option<u64>,
    mut shows: impl FnMut(&[JobSpec]) -> Result<Option<(usize, T)>, Error>,
) -> Result<(JobSpec, T), Error> {
    let mut best = (spec.clone(), found);
    let mut left = most;
    while left > 0 {
        let Some(smaller) = first_of(smaller(&best.0, last(&best.1)), &mut left, &mut shows)?
        else {
            if left > 0 {
                return Ok(best);
            }
            break;
        };
        best = smaller;
    }
    drop_idle_keys(&mut best, shows)?;
    Ok(best)
}

/// The first of `jobs` that reproduces it, among the first `left`, which decreases.
fn first_of<T>(
    mut jobs: impl Iterator<Item = JobSpec>,
    left: &mut usize,
    shows: &mut impl FnMut(&[JobSpec]) -> Result<Option<(usize, T)>, Error>,
) -> Result<Option<(JobSpec, T)>, Error> {
    while *left > 0 {
        let mut batch: Vec<JobSpec> = jobs.by_ref().take(BATCH.min(*left)).collect();
        if batch.is_empty() {
            break;
        }
        if let Some((at, found)) = shows(&batch)? {
            *left -= at + 1;
            return Ok(Some((batch.swap_remove(at), found)));
        }
        *left -= batch.len();
    }
    Ok(None)
}

/// Drops every key of `best` that is not needed, trying each once: readers take the remaining keys
/// for part of the cause.
fn drop_idle_keys<T>(
    best: &mut (JobSpec, T),
    mut shows: impl FnMut(&[JobSpec]) -> Result<Option<(usize, T)>, Error>,
) -> Result<(), Error> {
    let mut needed = 0;
    for _ in 0..MAX_IDLE_KEYS {
        let less = changed(&best.0, without_a_key(&best.0)).nth(needed);
        let Some(less) = less else { break };
        match shows(std::slice::from_ref(&less))? {
            Some((_, found)) => *best = (less, found),
            None => needed += 1,
        }
    }
    Ok(())
}

/// `job` after each of `changes` that changes it.
fn changed<'a>(
    job: &'a JobSpec,
    changes: impl Iterator<Item = Change<'a>> + 'a,
) -> impl Iterator<Item = JobSpec> + 'a {
    changes.map(|change| job.changed(change)).filter(move |less| less != job)
}

/// Simpler jobs, the simplest first. If `last` is known, the first candidates are truncated after
/// access number `last`, since nothing later matters.
fn smaller(job: &JobSpec, last: Option<u64>) -> impl Iterator<Item = JobSpec> + '_ {
    let groups: [Changes; 7] = [
        Box::new(fewer_threads(job)),
        Box::new(fewer_phases(job, last)),
        Box::new(std::iter::once(Box::new(remove_unused_tables) as Change)),
        Box::new(fewer_accesses(job)),
        Box::new(whole_mappings(job)),
        Box::new(without_a_key(job)),
        Box::new(smaller_files(job)),
    ];
    changed(job, groups.into_iter().flatten())
}

fn fewer_threads(job: &JobSpec) -> impl Iterator<Item = Change<'_>> {
    let all = job.thread.len();
    let remove = move |number: usize| -> Change {
        Box::new(move |job| {
            // Threads without a name are called by their number.
            for (number, thread) in job.thread.iter_mut().enumerate() {
                thread.name.get_or_insert((number + 1).to_string());
            }
            let removed = job.thread.remove(number).name;
            for phase in job.thread.iter_mut().flat_map(|thread| &mut thread.phase) {
                phase.after.retain(|after| Some(&after.thread) != removed.as_ref());
            }
            for (number, thread) in job.thread.iter_mut().enumerate() {
                thread.name = thread.name.take().filter(|name| *name != (number + 1).to_string());
            }
        })
    };
    let fewer = job.thread.iter().enumerate().filter_map(|(number, thread)| {
        let count = thread.count.filter(|count| *count > 1)?;
        let change = move |job: &mut JobSpec| {
            job.thread[number].count = Some(count / 2);
            let same = |own: &&mut Option<u64>| **own == Some(count);
            let files = job.file.iter_mut().map(|file| &mut file.count);
            files.filter(same).for_each(|own| *own = Some(count / 2));
        };
        Some(Box::new(change) as Change)
    });
    (0..all).filter(move |_| all > 1).map(remove).chain(fewer)
}

fn fewer_phases(job: &JobSpec, last: Option<u64>) -> impl Iterator<Item = Change<'_>> {
    job.thread.iter().enumerate().flat_map(move |(number, thread)| {
        let all = thread.phase.len();
        let truncated = last.map(|last| -> Change {
            Box::new(move |job| {
                let (needed, accesses) = phases_up_to(&thread.phase, last);
                remove_phases(job, number, needed..all);
                let last = job.thread[number].phase.last_mut();
                if let Some(phase) = last.filter(|_| thread.phase.len() >= needed) {
                    phase.accesses = phase.accesses.map(|own| own.min(accesses));
                }
            })
        });
        let remove = move |range: Range<usize>| -> Change {
            Box::new(move |job| remove_phases(job, number, range.clone()))
        };
        let parts = [2, 4, 8].into_iter().flat_map(move |parts| {
            let size = all.div_ceil(parts);
            (0..parts).map(move |part| part * size..((part + 1) * size).min(all))
        });
        let parts = parts.filter(move |range| all > MANY_PHASES && !range.is_empty());
        let single = (0..all).filter(move |_| all > 1).map(|phase| phase..phase + 1);
        truncated.into_iter().chain(parts.chain(single).map(remove))
    })
}

/// Number of phases up to and including the one that makes access number `access`, from 0, and how
/// many of the accesses of that phase are needed.
fn phases_up_to(phases: &[ThreadPhaseSpec], access: u64) -> (usize, u64) {
    let mut before = 0;
    for (number, phase) in phases.iter().enumerate() {
        let own = accesses(phase).unwrap_or(0);
        if before + own > access {
            return (number + 1, access - before + 1);
        }
        before += own;
    }
    (phases.len(), u64::MAX)
}

fn fewer_accesses(job: &JobSpec) -> impl Iterator<Item = Change<'_>> {
    let fewer = |number: usize, at: usize, phase: ThreadPhaseSpec| -> Change {
        Box::new(move |job| job.thread[number].phase[at] = phase.clone())
    };
    job.thread.iter().enumerate().flat_map(move |(number, thread)| {
        thread.phase.iter().enumerate().flat_map(move |(at, phase)| {
            shorter_phases(phase).into_iter().map(move |phase| fewer(number, at, phase))
        })
    })
}

/// Versions of a phase with fewer accesses.
fn shorter_phases(phase: &ThreadPhaseSpec) -> Vec<ThreadPhaseSpec> {
    let mut all = Vec::new();
    if let Some(own) = phase.accesses {
        for fewer in [own / 8, own / 2, own - own / 8, own.saturating_sub(1)] {
            all.push(ThreadPhaseSpec { accesses: Some(fewer.max(1)), ..phase.clone() });
        }
    }
    let parts = |list: &Vec<u64>| {
        let (first, rest) = list.split_at(list.len() / 2);
        let parts = [first, rest, &list[..list.len() - 1], &list[1..]];
        parts.map(|part| Some(Arc::new(part.to_vec())))
    };
    if let Some(pages) = phase.pages.as_ref().filter(|pages| pages.len() > 1) {
        all.extend(parts(pages).map(|pages| ThreadPhaseSpec { pages, ..phase.clone() }));
    }
    if let Some(offsets) = phase.offsets.as_ref().filter(|offsets| offsets.len() > 1) {
        all.extend(parts(offsets).map(|offsets| ThreadPhaseSpec { offsets, ..phase.clone() }));
    }
    all
}

/// Mappings of a whole file, and in one piece: two keys each.
fn whole_mappings(job: &JobSpec) -> impl Iterator<Item = Change<'_>> {
    (0..job.mapping.len()).flat_map(|at| {
        let in_one_piece: Change = Box::new(move |job| {
            (job.mapping[at].split, job.mapping[at].split_prot) = (None, None);
        });
        let whole: Change = Box::new(move |job| {
            (job.mapping[at].offset, job.mapping[at].len) = (None, None);
        });
        let fewer_pieces: Change = Box::new(move |job| {
            let split = &mut job.mapping[at].split;
            *split = split.map(|pages| (pages / 2).max(1));
        });
        [in_one_piece, whole, fewer_pieces]
    })
}

fn smaller_files(job: &JobSpec) -> impl Iterator<Item = Change<'_>> {
    job.file.iter().enumerate().filter(|(_, file)| file.path.is_none()).flat_map(|(at, file)| {
        let pages = pages(file.size.as_ref());
        let sizes = [pages / 8, pages / 2, pages - pages / 8, pages];
        sizes.map(|fewer| -> Change {
            let size: Option<SizeText> = size(fewer.max(1));
            Box::new(move |job| job.file[at].size.clone_from(&size))
        })
    })
}

/// Changes that each drop one key, which then has its default.
fn without_a_key(job: &JobSpec) -> impl Iterator<Item = Change<'_>> {
    let bare = JobSpec {
        file: Vec::new(),
        open: Vec::new(),
        mapping: Vec::new(),
        thread: Vec::new(),
        ..job.clone()
    };
    let shared = without_one(&bare).map(|less| -> Change {
        Box::new(move |job| {
            let JobSpec { file, open, mapping, thread, origins, .. } = std::mem::take(job);
            *job = JobSpec { file, open, mapping, thread, origins, ..less.clone() };
        })
    });
    let mappings = job.mapping.iter().enumerate().flat_map(|(at, own)| {
        without_one(own)
            .map(move |less| -> Change { Box::new(move |job| job.mapping[at] = less.clone()) })
    });
    let opens = job.open.iter().enumerate().flat_map(|(at, own)| {
        without_one(own)
            .map(move |less| -> Change { Box::new(move |job| job.open[at] = less.clone()) })
    });
    let files = job.file.iter().enumerate().flat_map(|(at, own)| {
        without_one(own).map(move |less| -> Change {
            Box::new(move |job| {
                let found = job.file[at].found.take();
                job.file[at] = FileSpec { found, ..less.clone() };
            })
        })
    });
    let threads = job.thread.iter().enumerate().flat_map(|(number, own)| {
        let bare = ThreadSpec { phase: Vec::new(), ..own.clone() };
        without_one(&bare).map(move |less| -> Change {
            Box::new(move |job| {
                let phase = std::mem::take(&mut job.thread[number].phase);
                job.thread[number] = ThreadSpec { phase, ..less.clone() };
            })
        })
    });
    let phases = job.thread.iter().enumerate().flat_map(|(number, thread)| {
        thread.phase.iter().enumerate().flat_map(move |(at, own)| {
            let bare =
                ThreadPhaseSpec { pages: None, offsets: None, accesses_text: None, ..own.clone() };
            without_one(&bare).map(move |less| -> Change {
                Box::new(move |job| {
                    job.thread[number].phase[at] = ThreadPhaseSpec {
                        pages: own.pages.clone(),
                        offsets: own.offsets.clone(),
                        accesses_text: own.accesses_text.clone(),
                        ..less.clone()
                    }
                })
            })
        })
    });
    shared.chain(mappings).chain(files).chain(opens).chain(threads).chain(phases)
}

/// Copies of `table` that each lack one key, except for those in [`KEPT`].
fn without_one<T: Serialize + DeserializeOwned>(table: &T) -> impl Iterator<Item = T> + use<T> {
    let value = serde_json::to_value(table).expect("its keys are texts");
    let keys = value.as_object().into_iter().flat_map(|keys| keys.keys().cloned());
    let keys: Vec<String> = keys.filter(|key| !KEPT.contains(&key.as_str())).collect();
    keys.into_iter().filter_map(move |key| {
        let mut less = value.clone();
        less.as_object_mut().and_then(|keys| keys.remove(&key));
        serde_json::from_value::<T>(less).ok()
    })
}

#[cfg(test)]
mod tests {
    use filemap_job::JobFlags;

    use super::*;

    const PROGRAM: &str = "seed = 5\nread_ahead_kb = 16\n[[file]]\nname = 'f'\nsize = '4m'\n\
        [[open]]\nname = 'o'\nfile = 'f'\n[[mapping]]\nname = 'm'\nopen = 'o'\nshift = 3\n\
        [[mapping]]\nname = 'other'\nopen = 'o'\n[[thread]]\nname = 't'\nphase = [\n\
        { mapping = 'm', workload = 'random', accesses = 40 },\n\
        { mapping = 'm', madvise = 'pageout', offset = '8k', len = '4k' },\n\
        { mapping = 'other', pages = [1, 2, 3, 4, 5] },\n\
        { open = 'o', workload = 'read-random', accesses = 9, bs = '8k' }]\n";

    fn job(text: &str) -> JobSpec {
        JobSpec::read(text).unwrap()
    }

    /// The smallest job that `needs` holds for, in at most `most` tries.
    fn smallest(spec: &JobSpec, most: usize, needs: impl Fn(&JobSpec) -> bool) -> JobSpec {
        let found = |specs: &[JobSpec]| Ok(specs.iter().position(&needs).map(|at| (at, ())));
        shrink(spec, (), most, |()| None, found).unwrap().0
    }

    /// A property that needs a phase with at least 3 reverse accesses shrinks to exactly that.
    #[test]
    fn finds_smallest_job_of_flags() {
        let text = "file_size = '1m'\nprivate = true\nphase = [\n\
            { workload = 'random', accesses = 40 }, { workload = 'reverse', accesses = 60 },\n\
            { workload = 'random', accesses = 9 }]";
        let smallest = smallest(&job(text), 150, |spec| {
            spec.thread[0].phase.iter().any(|phase| {
                phase.workload.as_deref() == Some("reverse") && phase.accesses >= Some(3)
            })
        });
        let text = "file_size = \"4096\"\nworkload = \"reverse\"\naccesses = 3\n";
        assert_eq!(smallest.to_flags(), Some(JobFlags::from_toml(text).unwrap()));
    }

    /// Drops every unneeded key of the job and of its phases, even with few tries.
    #[test]
    fn drops_keys_that_do_not_matter() {
        let text = "file_size = '1m'\nmap_offset = '0'\nmap_len = '64k'\nmap_shift = 3\n\
                    split = 2\nsplit_prot = 'write'\nread_ahead_kb = 16\nfs = 'xfs'\n\
                    fault_around = '16k'\nseed = 5\nexec = false\nadvice = 'normal'\n\
                    cache_limit = '2m'\nsparse = false\n\
                    [[phase]]\nworkload = 'read-random'\naccesses = 9\nbs = '8k'\nseed = 4\n";
        let needs =
            |spec: &JobSpec| spec.mapping[0].len.is_some() && spec.thread[0].phase[0].bs.is_some();
        for most in [1, 7, 600] {
            let kept = smallest(&job(text), most, needs).to_short_toml();
            let keys = kept.lines().filter_map(|line| line.split(" = ").next());
            let mut keys: Vec<&str> = keys.filter(|key| !key.is_empty()).collect();
            keys.sort_unstable();
            assert_eq!(keys, ["accesses", "bs", "file_size", "map_len", "workload"], "{kept}");
        }
    }

    /// A property that needs the advice and one page of the other mapping shrinks to exactly these.
    #[test]
    fn finds_smallest_job_with_tables() {
        let smallest = smallest(&job(PROGRAM), 400, |spec| {
            let phases = &spec.thread[0].phase;
            let has_page = |phase: &ThreadPhaseSpec| {
                phase.pages.as_ref().is_some_and(|pages| pages.contains(&4))
            };
            phases.iter().any(|phase| phase.madvise.is_some()) && phases.iter().any(has_page)
        });
        let phases = &smallest.thread[0].phase;
        assert_eq!(phases.len(), 2, "{phases:?}");
        assert_eq!(phases[1].pages.as_deref(), Some(&vec![4]));
        assert!(phases[0].offset.is_none() && phases[0].len.is_none(), "{phases:?}");
        assert!(smallest.seed.is_none() && smallest.mapping[0].shift.is_none(), "{smallest:?}");
        assert_eq!(smallest.file[0].size.as_ref().unwrap().0, "4096");
    }

    /// Drops threads, long lists of phases and unused tables. A phase that waits for another one
    /// still waits for it after phases before it were removed.
    #[test]
    fn drops_threads_and_unused_tables() {
        let touch = "{ mapping = 'm', pages = [1] }";
        let all = vec![touch; 40].join(", ");
        let text = format!(
            "[[file]]\nname = 'f'\nsize = '4m'\n[[file]]\nname = 'g'\nsize = '4m'\n\
             [[open]]\nname = 'o'\nfile = 'f'\n[[open]]\nname = 'p'\nfile = 'g'\n\
             [[mapping]]\nname = 'm'\nopen = 'o'\n[[mapping]]\nname = 'n'\nopen = 'p'\n\
             [[thread]]\nphase = [{{ mapping = 'n', pages = [1] }}]\n\
             [[thread]]\nphase = [{all}, {{ mapping = 'm', pages = [7] }}]\n\
             [[thread]]\nphase = [{{ mapping = 'm', pages = [8], \
             after = [{{ thread = '2', phase = 41 }}] }}]"
        );
        let mut tried = 0;
        let needs = |spec: &JobSpec| {
            let phases = spec.thread.iter().flat_map(|thread| &thread.phase);
            let lists: Vec<_> = phases.filter_map(|phase| phase.pages.as_ref()).collect();
            spec.validate(None).is_ok()
                && [7, 8].iter().all(|page| lists.iter().any(|list| list.contains(page)))
                && spec.thread.iter().any(|thread| !thread.phase[0].after.is_empty())
        };
        let spec = job(&text);
        let found = |specs: &[JobSpec]| {
            tried += specs.len();
            Ok(specs.iter().position(needs).map(|at| (at, ())))
        };
        let (smallest, ()) = shrink(&spec, (), 400, |()| None, found).unwrap();
        let counts = [smallest.file.len(), smallest.mapping.len(), smallest.thread.len()];
        assert_eq!(counts, [1, 1, 2], "{tried}: {smallest:?}");
        let [first, second] = [0, 1].map(|number| &smallest.thread[number]);
        assert_eq!((first.phase.len(), second.phase.len()), (1, 1));
        assert_eq!((second.phase[0].after[0].phase, first.name.as_deref()), (1, Some("2")));
    }

    #[test]
    fn truncates_after_last_access_that_matters() {
        let spec = job(PROGRAM);
        let phases = &spec.thread[0].phase;
        for (access, needed) in
            [(0, (1, 1)), (39, (1, 40)), (40, (3, 1)), (44, (3, 5)), (45, (4, 1))]
        {
            assert_eq!(phases_up_to(phases, access), needed, "{access}");
        }
    }
}

//! The smallest job that still shows something.

use filemap_job::{JobSpec, PhaseSpec};
use serde_json::{Map, Value};

use super::{PAGE, size};
use crate::error::Error;

/// The smallest job found that still shows what `spec` does, after at most `most` tries, and what
/// it shows. Where these are not enough, each key is tried once more. `shows` gives the first of
/// several jobs that does, by its position, and what it shows; `last` is the number of the access
/// after which a job shows nothing more, where that is known.
///
/// # Errors
/// Those of `shows`.
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
        let mut specs = smaller(&best.0, last(&best.1));
        let is_all = specs.len() <= left;
        specs.truncate(left);
        let Some((at, found)) = shows(&specs)? else {
            if is_all {
                return Ok(best);
            }
            break;
        };
        left -= at + 1;
        best = (specs.swap_remove(at), found);
    }
    without_idle_keys(&mut best, shows)?;
    Ok(best)
}

/// Drops each key of `best` that does not matter, trying each once: whoever reads the job takes all
/// that are left for a part of what it shows.
fn without_idle_keys<T>(
    best: &mut (JobSpec, T),
    mut shows: impl FnMut(&[JobSpec]) -> Result<Option<(usize, T)>, Error>,
) -> Result<(), Error> {
    let mut needed = 0;
    while let Some(less) = without_a_key(&best.0).into_iter().nth(needed) {
        match shows(std::slice::from_ref(&less))? {
            Some((_, found)) => *best = (less, found),
            None => needed += 1,
        }
    }
    Ok(())
}

/// `phases` without what comes after the access of this number.
fn up_to(phases: &[PhaseSpec], access: u64) -> Vec<PhaseSpec> {
    let mut left = access.saturating_add(1);
    let mut kept = Vec::new();
    for phase in phases {
        let accesses = phase.accesses.unwrap_or(1).min(left);
        kept.extend((left > 0).then(|| PhaseSpec { accesses: Some(accesses), ..phase.clone() }));
        left -= accesses;
    }
    kept
}

/// Jobs that are simpler than `spec`, the simplest first. Of one in which nothing matters after
/// the access of number `last`, first what comes before.
fn smaller(spec: &JobSpec, last: Option<u64>) -> Vec<JobSpec> {
    let mut jobs = Vec::new();
    let mut with = |change: &dyn Fn(&mut JobSpec)| {
        let mut job = spec.clone();
        change(&mut job);
        if job != *spec {
            jobs.push(job);
        }
    };
    if let Some(access) = last {
        with(&|job| job.phase = up_to(&spec.phase, access));
    }
    for phase in 0..spec.phase.len() {
        if spec.phase.len() > 1 {
            with(&|job| drop(job.phase.remove(phase)));
        }
    }
    for phase in 0..spec.phase.len() {
        let accesses = spec.phase[phase].accesses.unwrap_or(1);
        for fewer in [accesses / 8, accesses / 2, accesses - accesses / 8, accesses - 1] {
            with(&|job| job.phase[phase].accesses = Some(fewer.max(1)));
        }
    }
    with(&|job| (job.split, job.split_prot) = (None, None));
    with(&|job| (job.map_offset, job.map_len) = (None, None));
    without_a_key(spec).into_iter().for_each(|less| with(&|job| job.clone_from(&less)));
    // Fewer pages, and no part of one.
    let bytes = spec.file_size.as_ref().and_then(|size| size.bytes().ok()).unwrap_or(0);
    let pages = bytes.div_ceil(PAGE);
    for fewer in [pages / 8, pages / 2, pages - pages / 8, pages] {
        with(&|job| job.file_size = size(fewer.max(1)));
    }
    if let Some(split) = spec.split {
        with(&|job| job.split = Some((split / 2).max(1)));
    }
    jobs
}

/// Keys of jobs and of phases that are made smaller and not dropped: what they are by default is
/// more, or another job.
const KEPT: [&str; 5] = ["workload", "accesses", "fraction", "file_size", "phase"];

/// `spec` without one of its keys, or one of a phase: as it is by default.
fn without_a_key(spec: &JobSpec) -> Vec<JobSpec> {
    let value = serde_json::to_value(spec).expect("its keys are texts");
    let keys = |object: &Value| -> Vec<String> {
        let keys = object.as_object().into_iter().flat_map(Map::keys);
        keys.filter(|key| !KEPT.contains(&key.as_str())).cloned().collect()
    };
    let mut less = Vec::new();
    let mut without = |place: &str, key: &str| {
        let mut value = value.clone();
        let of = value.pointer_mut(place).and_then(Value::as_object_mut);
        of.expect("it is there").remove(key);
        // What cannot be left out is no job.
        less.extend(serde_json::from_value::<JobSpec>(value));
    };
    keys(&value).iter().for_each(|key| without("", key));
    for phase in 0..spec.phase.len() {
        let place = format!("/phase/{phase}");
        let of_phase = value.pointer(&place).map_or(Vec::new(), keys);
        of_phase.iter().for_each(|key| without(&place, key));
    }
    less
}

#[cfg(test)]
mod tests {
    use filemap_job::SizeText;

    use super::*;

    fn phases(workload: &str, accesses: &[u64]) -> Vec<PhaseSpec> {
        let phase = |accesses: &u64| PhaseSpec {
            workload: Some(workload.to_string()),
            accesses: Some(*accesses),
            ..PhaseSpec::default()
        };
        accesses.iter().map(phase).collect()
    }

    #[test]
    fn what_comes_behind_an_access_is_cut_off() {
        let all = phases("random", &[3, 4, 5]);
        for (access, left) in
            [(0, vec![1]), (2, vec![3]), (3, vec![3, 1]), (11, vec![3, 4, 5]), (99, vec![3, 4, 5])]
        {
            assert_eq!(up_to(&all, access), phases("random", &left), "{access}");
        }
    }

    /// A job that shows something whenever a phase has at least 3 accesses in reverse comes down
    /// to that.
    #[test]
    fn the_smallest_job_that_shows_it_is_found() {
        let phase =
            [phases("random", &[40]), phases("reverse", &[60]), phases("random", &[9])].concat();
        let file_size = Some(SizeText("1m".to_string()));
        let spec = JobSpec { phase, file_size, private: Some(true), ..JobSpec::default() };
        let shows = |spec: &JobSpec| {
            let of = |phase: &PhaseSpec| phase.workload.as_deref() == Some("reverse");
            spec.phase.iter().any(|phase| of(phase) && phase.accesses >= Some(3))
        };
        let mut tried = 0;
        let found = |specs: &[JobSpec]| {
            tried += specs.len();
            Ok(specs.iter().position(shows).map(|at| (at, ())))
        };
        let (smallest, ()) = shrink(&spec, (), 150, |()| None, found).unwrap();
        assert_eq!(smallest.phase, phases("reverse", &[3]));
        assert!(smallest.private.is_none() && tried > 5, "{tried}");
    }

    /// Every key that may go does, of the job and of its phases, also where tries are few.
    #[test]
    fn no_key_is_left_that_does_not_matter() {
        let text = "file_size = '1m'\nmap_offset = '0'\nmap_len = '64k'\nmap_shift = 3\n\
                    split = 2\nsplit_prot = 'write'\nread_ahead_kb = 16\nfs = 'xfs'\n\
                    fault_around = '16k'\nseed = 5\nexec = false\nadvice = 'normal'\n\
                    cache_limit = '2m'\nsparse = false\n\
                    [[phase]]\nworkload = 'read-random'\naccesses = 9\nbs = '8k'\nseed = 4\n";
        let spec = JobSpec::from_toml(text).unwrap();
        let needs = |spec: &JobSpec| spec.map_len.is_some() && spec.phase[0].bs.is_some();
        for most in [1, 7, 600] {
            let found = |specs: &[JobSpec]| Ok(specs.iter().position(needs).map(|at| (at, ())));
            let (smallest, ()) = shrink(&spec, (), most, |()| None, found).unwrap();
            let kept = smallest.to_toml();
            let keys = kept.lines().filter_map(|line| line.split(" = ").next());
            let mut keys: Vec<&str> = keys.filter(|key| !key.is_empty()).collect();
            keys.retain(|key| *key != "[[phase]]");
            assert_eq!(keys, ["file_size", "map_len", "workload", "accesses", "bs"], "{kept}");
        }
    }
}

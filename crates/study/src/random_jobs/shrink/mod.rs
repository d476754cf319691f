//! Shrinks a job to the smallest one that still reproduces something.

mod flags;
mod tables;

use filemap_job::SizeText;
use serde::Serialize;
use serde::de::DeserializeOwned;
use serde_json::{Map, Value};

use super::PAGE;
use crate::error::Error;

/// A job that can be shrunk.
pub trait Shrinks: Clone + PartialEq {
    /// Simpler jobs, the simplest first. If `last` is known, the first candidate is truncated after
    /// access number `last`, since nothing later matters.
    fn smaller(&self, last: Option<u64>) -> Vec<Self>;

    /// Candidates that each drop one key, which then has its default.
    fn without_a_key(&self) -> Vec<Self>;
}

/// Shrinks `spec` in at most `most` tries and returns the smallest job found with what it shows. If
/// the tries run out, each key is still tried once. `shows` returns the index of the first of
/// several jobs that reproduces it, and what that job shows; `last` returns the number of the last
/// access that matters, if known.
///
/// # Errors
/// Errors of `shows`.
pub fn shrink<S: Shrinks, T>(
    spec: &S,
    found: T,
    most: usize,
    last: impl Fn(&T) -> Option<u64>,
    mut shows: impl FnMut(&[S]) -> Result<Option<(usize, T)>, Error>,
) -> Result<(S, T), Error> {
    let mut best = (spec.clone(), found);
    let mut left = most;
    while left > 0 {
        let mut specs = best.0.smaller(last(&best.1));
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

/// Drops every key of `best` that is not needed, trying each once: readers take the remaining keys
/// for part of the cause.
fn without_idle_keys<S: Shrinks, T>(
    best: &mut (S, T),
    mut shows: impl FnMut(&[S]) -> Result<Option<(usize, T)>, Error>,
) -> Result<(), Error> {
    let mut needed = 0;
    while let Some(less) = best.0.without_a_key().into_iter().nth(needed) {
        match shows(std::slice::from_ref(&less))? {
            Some((_, found)) => *best = (less, found),
            None => needed += 1,
        }
    }
    Ok(())
}

/// Collects variations of a job, in order.
struct JobVariations<'a, S> {
    of: &'a S,
    jobs: Vec<S>,
}

impl<S: Shrinks> JobVariations<'_, S> {
    /// Adds the job after `change`, unless it is unchanged.
    fn with(&mut self, change: impl FnOnce(&mut S)) {
        let mut job = self.of.clone();
        change(&mut job);
        if job != *self.of {
            self.jobs.push(job);
        }
    }

    /// Adds the candidates of [`Shrinks::without_a_key`].
    fn without_a_key(&mut self) {
        let less = self.of.without_a_key().into_iter();
        self.jobs.extend(less.filter(|less| less != self.of));
    }
}

/// Numbers of accesses to try instead of `accesses`, ascending; at least 1.
fn fewer_accesses(accesses: u64) -> [u64; 4] {
    [accesses / 8, accesses / 2, accesses - accesses / 8, accesses - 1].map(|fewer| fewer.max(1))
}

/// File sizes to try instead of `size`: fewer pages, and whole pages only.
fn smaller_files(size: Option<&SizeText>) -> [Option<SizeText>; 4] {
    let bytes = size.and_then(|size| size.bytes().ok()).unwrap_or(0);
    let pages = bytes.div_ceil(PAGE);
    [pages / 8, pages / 2, pages - pages / 8, pages].map(|fewer| super::size(fewer.max(1)))
}

/// Copies of `spec` that each drop one key of the JSON objects at the pointers `places`, except
/// keys in `kept`.
fn without_one<S: Serialize + DeserializeOwned>(
    spec: &S,
    places: &[String],
    kept: &[&str],
) -> Vec<S> {
    let value = serde_json::to_value(spec).expect("its keys are texts");
    let mut less = Vec::new();
    for place in places {
        let of_place = value.pointer(place).and_then(Value::as_object);
        for key in of_place.into_iter().flat_map(Map::keys) {
            if kept.contains(&key.as_str()) {
                continue;
            }
            let mut value = value.clone();
            let table = value.pointer_mut(place).and_then(Value::as_object_mut);
            table.expect("it is there").remove(key);
            // Without a required key it no longer parses.
            less.extend(serde_json::from_value::<S>(value));
        }
    }
    less
}

#[cfg(test)]
mod tests {
    use filemap_job::{JobFlags, PhaseSpec, SizeText};

    use super::*;

    fn phases(workload: &str, accesses: &[u64]) -> Vec<PhaseSpec> {
        let phase = |accesses: &u64| PhaseSpec {
            workload: Some(workload.to_string()),
            accesses: Some(*accesses),
            ..PhaseSpec::default()
        };
        accesses.iter().map(phase).collect()
    }

    /// A property that needs a phase with at least 3 reverse accesses shrinks to exactly that.
    #[test]
    fn finds_smallest_differing_job() {
        let phase =
            [phases("random", &[40]), phases("reverse", &[60]), phases("random", &[9])].concat();
        let file_size = Some(SizeText("1m".to_string()));
        let spec = JobFlags { phase, file_size, private: Some(true), ..JobFlags::default() };
        let shows = |spec: &JobFlags| {
            let is_reverse = |phase: &PhaseSpec| phase.workload.as_deref() == Some("reverse");
            spec.phase.iter().any(|phase| is_reverse(phase) && phase.accesses >= Some(3))
        };
        let mut tried = 0;
        let found = |specs: &[JobFlags]| {
            tried += specs.len();
            Ok(specs.iter().position(shows).map(|at| (at, ())))
        };
        let (smallest, ()) = shrink(&spec, (), 150, |()| None, found).unwrap();
        assert_eq!(smallest.phase, phases("reverse", &[3]));
        assert!(smallest.private.is_none() && tried > 5, "{tried}");
    }

    /// Drops every unneeded key of the job and of its phases, even with few tries.
    #[test]
    fn removes_irrelevant_keys() {
        let text = "file_size = '1m'\nmap_offset = '0'\nmap_len = '64k'\nmap_shift = 3\n\
                    split = 2\nsplit_prot = 'write'\nread_ahead_kb = 16\nfs = 'xfs'\n\
                    fault_around = '16k'\nseed = 5\nexec = false\nadvice = 'normal'\n\
                    cache_limit = '2m'\nsparse = false\n\
                    [[phase]]\nworkload = 'read-random'\naccesses = 9\nbs = '8k'\nseed = 4\n";
        let spec = JobFlags::from_toml(text).unwrap();
        let needs = |spec: &JobFlags| spec.map_len.is_some() && spec.phase[0].bs.is_some();
        for most in [1, 7, 600] {
            let found = |specs: &[JobFlags]| Ok(specs.iter().position(needs).map(|at| (at, ())));
            let (smallest, ()) = shrink(&spec, (), most, |()| None, found).unwrap();
            let kept = smallest.to_toml();
            let keys = kept.lines().filter_map(|line| line.split(" = ").next());
            let mut keys: Vec<&str> = keys.filter(|key| !key.is_empty()).collect();
            keys.retain(|key| *key != "[[phase]]");
            assert_eq!(keys, ["file_size", "map_len", "workload", "accesses", "bs"], "{kept}");
        }
    }
}

//! The search for jobs that tell two variants apart.
//!
//! Jobs have numbers, and which job a number is depends on the seed and on what the rounds before
//! have found. A round is tried on all processors, and what is found in it is looked at in the
//! order of the numbers. So the same seed finds the same, however many processors there are.

mod draw;
mod mechanism;

use std::collections::BTreeMap;
use std::time::{Duration, Instant};

use filemap_core::decision::Decision;
use filemap_job::random::Rng;
use filemap_job::{Job, JobSpec, ShownLog};
use filemap_model::{Digest, Profile, trace};
use filemap_report::search::{Case, Cost, Goal, Group, Study};

use crate::error::Error;
use crate::input;
use crate::parallel;
use crate::progress::Progress;
use crate::random_jobs::shrink;
use crate::variants::Variant;

pub use draw::Space;

/// Jobs that are tried beside each other, before what was found is varied.
const ROUND: u64 = 256;

/// Most tries to make one job smaller.
const MOST_TRIES: u32 = 600;

/// A search.
pub struct Search<'a> {
    /// The two variants.
    pub variants: [&'a Variant; 2],
    /// What is looked for.
    pub goal: Goal,
    /// The jobs to look among.
    pub space: Space,
    /// The seed of the jobs.
    pub seed: u64,
    /// Jobs to try.
    pub jobs: u64,
    /// No round begins after so long.
    pub limit: Option<Duration>,
    /// The machine of the model.
    pub profile: Profile,
}

/// A job in both variants.
#[derive(Clone)]
struct Tried {
    case: Case,
    mechanism: String,
}

/// What became of a job that was drawn.
enum Fate {
    /// It is none.
    LeftOut(Error),
    /// It does not show what is looked for.
    Same,
    /// It does.
    Found(Box<Tried>),
}

struct Found {
    jobs: u64,
    by_ratio: Tried,
    by_cost: Tried,
    /// The one with the fewest accesses.
    fewest: Tried,
}

impl Search<'_> {
    /// Looks for jobs, and makes the worst of them smaller.
    ///
    /// # Errors
    /// When no job of the space can be run, and those of the model.
    pub fn run(&self) -> Result<Study, Error> {
        let begun = Instant::now();
        let mut found: BTreeMap<String, Found> = BTreeMap::new();
        let (mut drawn, mut left_out) = (0, 0);
        let mut reason = None;
        let progress = Progress::new(self.jobs as usize);
        while drawn < self.jobs && self.limit.is_none_or(|limit| begun.elapsed() < limit) {
            let numbers = drawn..self.jobs.min(drawn + ROUND);
            drawn = numbers.end;
            let specs = numbers.map(|number| self.spec(number, &found)).collect();
            let fates = parallel::map(specs, |spec| {
                let fate = self.tried(spec);
                progress.advance();
                fate
            })?;
            for fate in fates {
                match fate {
                    Fate::LeftOut(error) => {
                        left_out += 1;
                        reason.get_or_insert(error);
                    }
                    Fate::Same => {}
                    Fate::Found(tried) => add(&mut found, *tried, self.goal),
                }
            }
        }
        drop(progress);
        if let (Some(reason), true) = (reason, drawn == left_out) {
            return Err(reason);
        }
        let groups: Vec<(String, Found)> = found.into_iter().collect();
        let mut groups = parallel::map(groups, |(mechanism, found)| self.group(mechanism, found))?;
        let ratio = |group: &Group| {
            let Case { first, second, .. } = &group.by_ratio;
            self.goal.gain(first, second).map_or(0.0, |(ratio, _)| ratio)
        };
        groups.sort_by(|a, b| ratio(b).total_cmp(&ratio(a)));
        Ok(Study {
            variants: self.variants.map(Variant::name),
            goal: self.goal,
            seed: self.seed,
            tried: drawn - left_out,
            left_out,
            groups,
        })
    }

    /// Job `number`: every second one is like one of those that were found.
    fn spec(&self, number: u64, found: &BTreeMap<String, Found>) -> JobSpec {
        if number.is_multiple_of(2) || found.is_empty() {
            return self.space.drawn(self.seed, number);
        }
        let mut rng = Rng(Rng(!self.seed).next() ^ number);
        let of = rng.below(found.len() as u64) as usize;
        let found = found.values().nth(of).expect("there are so many");
        let like = match rng.below(4) {
            0 => &found.fewest,
            1 => &found.by_cost,
            _ => &found.by_ratio,
        };
        self.space.changed(&like.case.spec, &mut rng)
    }

    fn tried(&self, spec: JobSpec) -> Result<Fate, Error> {
        let jobs = match self.jobs_of(&spec) {
            Ok(jobs) => jobs,
            Err(error) => return Ok(Fate::LeftOut(error)),
        };
        let mut digests = [Digest::default(); 2];
        let mut costs = [Cost::default(); 2];
        for ((job, digest), cost) in jobs.iter().zip(&mut digests).zip(&mut costs) {
            match trace(job, &self.profile, digest) {
                Ok(traced) => *cost = of_run(&traced.run),
                Err(error) => return Ok(Fate::LeftOut(error.into())),
            }
        }
        let [first, second] = costs;
        let differs = digests[0] != digests[1];
        if !differs || self.goal.gain(&first, &second).is_none() {
            return Ok(Fate::Same);
        }
        let Some(mechanism) = self.mechanism(&jobs)? else { return Ok(Fate::Same) };
        let job = JobSpec { with: None, ..spec.clone() };
        let job = job.validate(input::host_release().as_deref())?;
        let case = Case { spec, job, first, second };
        Ok(Fate::Found(Box::new(Tried { case, mechanism })))
    }

    fn jobs_of(&self, spec: &JobSpec) -> Result<[Job; 2], Error> {
        let release = input::host_release();
        let job = |variant: &Variant| variant.applied(spec).validate(release.as_deref());
        let [first, second] = self.variants;
        Ok([job(first)?, job(second)?])
    }

    fn mechanism(&self, jobs: &[Job; 2]) -> Result<Option<String>, Error> {
        let mut logs = [ShownLog::default(), ShownLog::default()];
        for (job, log) in jobs.iter().zip(&mut logs) {
            trace(job, &self.profile, log)?;
        }
        let [first, second] = logs.map(ShownLog::into_lines);
        if let Some(mechanism) = mechanism::of(&first, &second) {
            return Ok(Some(mechanism));
        }
        let mut all: [Vec<Decision>; 2] = Default::default();
        for (job, log) in jobs.iter().zip(&mut all) {
            trace(job, &self.profile, log)?;
        }
        Ok(mechanism::unseen(&all[0], &all[1]))
    }

    /// What was found of one mechanism, with the smallest job that still shows it.
    fn group(&self, mechanism: String, found: Found) -> Result<Group, Error> {
        let Found { jobs, by_ratio, by_cost, fewest } = found;
        let still = |spec: &JobSpec| match self.tried(spec.clone())? {
            Fate::Found(tried) if tried.mechanism == mechanism => Ok(Some(tried.case)),
            _ => Ok(None),
        };
        let (_, smallest) = shrink(&fewest.case.spec.clone(), fewest.case, MOST_TRIES, still)?;
        Ok(Group { mechanism, jobs, by_ratio: by_ratio.case, by_cost: by_cost.case, smallest })
    }
}

fn of_run(run: &filemap_job::Run) -> Cost {
    Cost {
        bytes_read: run.counters.bytes_read.unwrap_or(0),
        major_faults: run.counters.major_faults.unwrap_or(0),
        elapsed_ns: run.elapsed_ns.unwrap_or(0),
    }
}

/// Adds a job to what was found.
fn add(found: &mut BTreeMap<String, Found>, tried: Tried, goal: Goal) {
    let gain = |of: &Tried| goal.gain(&of.case.first, &of.case.second).unwrap_or((0.0, 0));
    let Some(known) = found.get_mut(&tried.mechanism) else {
        let [by_ratio, by_cost, fewest] = [(); 3].map(|()| tried.clone());
        found.insert(tried.mechanism.clone(), Found { jobs: 1, by_ratio, by_cost, fewest });
        return;
    };
    known.jobs += 1;
    let (ratio, cost) = gain(&tried);
    if ratio > gain(&known.by_ratio).0 {
        known.by_ratio = tried.clone();
    }
    if cost > gain(&known.by_cost).1 {
        known.by_cost = tried.clone();
    }
    if tried.case.accesses() < known.fewest.case.accesses() {
        known.fewest = tried;
    }
}

//! The search for jobs that tell two variants apart.
//!
//! Jobs have numbers, and which job a number is depends on the seed and on what the rounds before
//! have found. The jobs of a round are tried on all processors, and what is found in it is looked
//! at in the order of the numbers. So the same seed finds the same, however many processors there
//! are, and a search that goes on from the end of a round finds what one without a break does.

mod draw;
mod found;
mod job_files;
mod ledger;
mod mechanism;
mod state;
mod tried;

use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::{Duration, Instant};

use filemap_core::decision::Decision;
use filemap_job::random::Rng;
use filemap_job::{JobSpec, Run, shell_word};
use filemap_model::{Digest, Profile, trace};
use filemap_study::search::{Case, Goal, Group};

use crate::error::Error;
use crate::given::needs_said;
use crate::interrupt::Asked;
use crate::progress::Bar;
use crate::random_jobs::shrink;
use filemap_study::engine::Progress;
use filemap_study::input;
use filemap_study::parallel;
use filemap_study::variants::Variant;

pub use draw::Space;
pub use found::Found;
pub use job_files::JobFiles;
use ledger::{Known, Ledger};
pub use state::StateFile;
pub use tried::Tried;

/// Jobs of a round: they are tried beside each other, before what was found is varied.
const ROUND: u64 = 256;

/// Most tries to make the smallest job of a mechanism smaller, and its worst ones simpler, which
/// are longer jobs.
const MOST_TRIES: [usize; 3] = [600, 150, 150];

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
    /// Jobs to try; `None` is as many as there is time for.
    pub jobs: Option<u64>,
    /// No job begins after so long, but the first.
    pub limit: Option<Duration>,
    /// The machine of the model.
    pub profile: Profile,
}

/// What became of a job that was drawn.
enum Fate {
    /// It is none.
    LeftOut(Error),
    /// Both variants are one job.
    Alike,
    /// It does not show what is looked for.
    Same,
    /// It does, by this mechanism.
    Found(String, Box<Tried>),
}

impl Search<'_> {
    /// Looks for jobs, going on from what whole rounds have `found`, and what is `known` of the one
    /// behind them, until all are tried, time is up or the user has `asked` for what there is.
    /// `state` keeps what is found every few seconds, and at the end.
    ///
    /// # Errors
    /// When no job of the space can be run or both variants are the same, those of the model, and
    /// when the state cannot be written.
    pub fn run(
        &self,
        (mut found, mut known): (Found, Vec<Known>),
        state: Option<&StateFile>,
        asked: &Asked,
    ) -> Result<Found, Error> {
        let begun = Instant::now();
        let progress = Bar::of(self.jobs);
        progress.begin_at(found.drawn);
        let ledger = Ledger::new(state, asked);
        ledger.tell_kept(&found, &known);
        let goes_on =
            || asked.times() == 0 && self.limit.is_none_or(|limit| begun.elapsed() < limit);
        let mut reason = None;
        while self.jobs.is_none_or(|jobs| found.drawn < jobs)
            && (goes_on() || found.drawn == 0 && asked.times() == 0)
        {
            let end = self.jobs.unwrap_or(u64::MAX).min(found.drawn + ROUND);
            let specs: Vec<_> = (found.drawn..end).map(|job| self.spec(job, &found)).collect();
            let round = ledger.round(&found, specs.len(), std::mem::take(&mut known));
            // In order, whichever thread takes the next: what is left is behind what is done.
            let next = AtomicUsize::new(0);
            let fates = parallel::map(vec![(); specs.len()], |()| {
                let at = next.fetch_add(1, Ordering::Relaxed);
                let is_first = found.drawn == 0 && at == 0;
                let fate = match round.known(at) {
                    Known::Same => Some(Fate::Same),
                    // What has not begun is left for a search that goes on.
                    Known::Nothing if !is_first && !goes_on() => None,
                    Known::Tried if asked.times() > 0 => None,
                    Known::Nothing | Known::Tried => Some(self.tried(specs[at].clone())?),
                };
                fate.iter().try_for_each(|fate| round.enter(at, fate))?;
                progress.advance();
                Ok::<_, Error>((at, fate))
            })?;
            let of_round = round.into_known();
            let whole = found.clone();
            found.add_all(in_order(fates), self.goal, &mut reason);
            if found.drawn == end && found.drawn == found.left_out + found.alike {
                return Err(reason.unwrap_or_else(|| self.no_difference()));
            }
            if found.drawn - whole.drawn < ROUND {
                ledger.save(&whole, &of_round)?;
                return Ok(found);
            }
        }
        if found.drawn > 0 {
            ledger.save(&found, &known)?;
        }
        Ok(found)
    }

    fn no_difference(&self) -> Error {
        let [first, second] = self.variants.map(Variant::name);
        Error::Usage(format!(
            "--variants {first},{second}: both are the same in all jobs of this search; give two \
             that differ, such as baseline,vma-bound, or leave out flags that set what they set"
        ))
    }

    /// Job `number`: every second one is like one of those that were found.
    fn spec(&self, number: u64, found: &Found) -> JobSpec {
        if number.is_multiple_of(2) || found.mechanisms.is_empty() {
            return self.space.drawn(self.seed, number);
        }
        let mut rng = Rng(Rng(!self.seed).next() ^ number);
        let of = rng.below(found.mechanisms.len() as u64) as usize;
        let kept = found.mechanisms.values().nth(of).expect("there are so many");
        let like = rng.pick(&[&kept.smallest, &kept.by_cost, &kept.by_ratio, &kept.by_ratio]);
        self.space.changed(&like.spec, &mut rng)
    }

    fn tried(&self, spec: JobSpec) -> Result<Fate, Error> {
        let [first, second] = self.variants;
        let release = input::host_release();
        let job = |variant: &Variant| {
            variant.applied(&spec).validate(release.as_deref()).map_err(Error::from)
        };
        let jobs = match (job(first), job(second)) {
            (Ok(first), Ok(second)) => [first, second],
            (Err(error), _) => return Ok(Fate::LeftOut(first.error(error))),
            (_, Err(error)) => return Ok(Fate::LeftOut(second.error(error))),
        };
        if jobs[0] == jobs[1] {
            return Ok(Fate::Alike);
        }
        let mut digests = [Digest::default(); 2];
        let mut runs: Vec<Run> = Vec::with_capacity(2);
        for (job, digest) in jobs.iter().zip(&mut digests) {
            match trace(job, &self.profile, digest).map_err(Error::from) {
                Ok(run) => runs.push(run),
                Err(error) => return Ok(Fate::LeftOut(error)),
            }
        }
        let tried = Tried::new(spec, &jobs[0], &runs);
        if digests[0] == digests[1] || self.goal.gain(&tried.first, &tried.second).is_none() {
            return Ok(Fate::Same);
        }
        Ok(match tried::mechanism_of([&jobs[0], &jobs[1]], &self.profile)? {
            None => Fate::Same,
            Some(mechanism) => Fate::Found(mechanism, Box::new(tried)),
        })
    }

    /// What `specs`, which a state has kept, show now; `None` where one shows something else than
    /// its mechanism.
    fn again(&self, specs: Vec<(String, JobSpec)>) -> Result<Option<Vec<Tried>>, Error> {
        let tried = parallel::map(specs, |(mechanism, spec)| {
            Ok::<_, Error>(match self.tried(spec)? {
                Fate::Found(now, tried) if now == mechanism => Some(*tried),
                _ => None,
            })
        });
        Ok(tried?.into_iter().collect())
    }

    /// What was found of each mechanism, the largest ratio first, with each job as small as it
    /// can be, or as it is once the user has asked for it again.
    ///
    /// # Errors
    /// Those of the model.
    pub fn groups(&self, found: Found, asked: &Asked) -> Result<Vec<Group>, Error> {
        let before = asked.times();
        let is_enough = || asked.times() > before;
        let mut groups = Vec::new();
        let mut wanted = Vec::new();
        for (mechanism, kept) in found.mechanisms {
            groups.push((mechanism.clone(), kept.jobs));
            let cases = [kept.smallest, kept.by_ratio, kept.by_cost];
            wanted.extend(
                cases.into_iter().enumerate().map(|(of, case)| (mechanism.clone(), of, case)),
            );
        }
        let progress = Bar::of(Some(wanted.len() as u64));
        let cases = parallel::map(wanted, |(mechanism, of, case)| {
            let smaller = self.smaller(&mechanism, of, case, &is_enough);
            progress.advance();
            smaller
        })?;
        let mut cases = cases.into_iter();
        let mut next = || cases.next().expect("each mechanism has three");
        let group = |(mechanism, jobs)| Group {
            mechanism,
            jobs,
            smallest: next(),
            by_ratio: next(),
            by_cost: next(),
        };
        let mut groups: Vec<Group> = groups.into_iter().map(group).collect();
        let ratio = |group: &Group| {
            let Case { first, second, .. } = &group.by_ratio;
            self.goal.gain(first, second).map_or(0.0, |(ratio, _)| ratio)
        };
        groups.sort_by(|a, b| ratio(b).total_cmp(&ratio(a)));
        Ok(groups)
    }

    /// The smallest job that shows what `case` does: for the first `of` three any of the
    /// mechanism, for the others a ratio or a difference that is not smaller.
    fn smaller(
        &self,
        mechanism: &str,
        of: usize,
        case: Tried,
        is_enough: &(impl Fn() -> bool + Sync),
    ) -> Result<Case, Error> {
        let gain = |tried: &Tried| self.goal.gain(&tried.first, &tried.second).unwrap_or((0.0, 0));
        let (ratio, cost) = gain(&case);
        let still = |spec: &JobSpec| -> Result<Option<Tried>, Error> {
            if is_enough() || !self.space.has(spec) {
                return Ok(None);
            }
            let Fate::Found(now, tried) = self.tried(spec.clone())? else { return Ok(None) };
            let (now_ratio, now_cost) = gain(&tried);
            let holds = match of {
                0 => true,
                1 => now_ratio >= ratio,
                _ => now_cost >= cost,
            };
            Ok((now == mechanism && holds).then_some(*tried))
        };
        let first = |specs: &[JobSpec]| {
            for (at, spec) in specs.iter().enumerate() {
                if let Some(tried) = still(spec)? {
                    return Ok(Some((at, tried)));
                }
            }
            Ok(None)
        };
        let (_, tried) = shrink(&case.spec.clone(), case, MOST_TRIES[of], |_| None, first)?;
        self.case(tried)
    }

    fn case(&self, tried: Tried) -> Result<Case, Error> {
        let Tried { spec, accesses, first, second } = tried;
        let mut said = spec.clone();
        said.machine = said.machine.filter(|name| needs_said(name));
        let job = said.clone().validate(input::host_release().as_deref())?;
        let variants = self.variants_flag();
        let (command, job_file) = match job.accesses().nth(1).is_some() {
            true => (format!("filemap compare JOB.toml {variants}"), Some(said.to_toml())),
            false => {
                let command = job.command();
                let command = command.replacen("filemap run", "filemap compare", 1);
                (format!("{command} {variants}"), None)
            }
        };
        Ok(Case { spec: said, accesses, first, second, command, job_file })
    }

    /// The flag that names its variants.
    pub fn variants_flag(&self) -> String {
        let [first, second] = self.variants.map(Variant::name);
        format!("--variants {}", shell_word(&format!("{first},{second}")))
    }
}

/// The fates of the first jobs of a round, up to the first that was not tried.
fn in_order(mut fates: Vec<(usize, Option<Fate>)>) -> impl Iterator<Item = Fate> {
    fates.sort_by_key(|(at, _)| *at);
    fates.into_iter().map_while(|(_, fate)| fate)
}

/// All decisions of a job in one variant.
type Decisions = Vec<Decision>;

//! How jobs are drawn, tried and made smaller.
//!
//! Jobs have numbers, and which job a number is depends on the seed and on what the rounds before
//! have found. The jobs of a round are tried on all processors, and what is found in it is looked
//! at in the order of the numbers. So the same seed finds the same, however many processors there
//! are. What whole rounds have found is kept, and a search that goes on from there finds what one
//! without a break does. It runs the jobs that are kept again, and refuses a file whose jobs show
//! something else.
//!
//! A first SIGINT ends the drawing of jobs and a second one their being made smaller; a third one
//! ends the command.

use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::{Duration, Instant};

use filemap_job::random::Rng;
use filemap_job::record::SCHEMA;
use filemap_job::{Job, JobSpec, Record, shell_word};
use filemap_model::{Digest, Model, Profile, trace};

use super::draw::Space;
use super::found::{Fate, Found, ROUND};
use super::goal::Goal;
use super::mechanism;
use super::record::{CASES, Case, Group, Search};
use super::state::{Keeper, State};
use crate::engine::Engines;
use crate::error::Error;
use crate::footer::Footer;
use crate::input;
use crate::machine_profile;
use crate::parallel;
use crate::provenance;
use crate::random_jobs::{self, shrink};
use crate::variants::Variant;

/// Most tries to make the smallest job of a mechanism smaller, and its worst ones simpler, which
/// are longer jobs.
const MOST_TRIES: [usize; 3] = [600, 150, 150];

/// How a search can be kept.
const WITH_STATE: &str =
    "with --state FILE a search that is given again goes on where it was stopped";

/// A search.
pub struct Searching<'a, E> {
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
    /// Who shows how far it is.
    pub engines: &'a E,
    /// Who wants it.
    pub keeper: &'a dyn Keeper,
    /// The command, which does not say how long it is, and the version of filemap, whose model and
    /// jobs it depends on: what is kept of another search is of no use.
    pub name: String,
}

impl<E: Engines + Sync> Searching<'_, E> {
    /// Looks for jobs, going on from what whole rounds have `found`, until all are tried, time is
    /// up or there was asked for what there is. What each whole round has found is kept.
    ///
    /// # Errors
    /// When no job of the space can be run or both variants are the same, those of the model, and
    /// when the state cannot be written.
    pub fn run(&self, mut found: Found) -> Result<Found, Error> {
        let begun = Instant::now();
        let progress = self.engines.progress(self.jobs);
        progress.begin_at(found.drawn);
        self.tell_kept(&found);
        let goes_on =
            || self.keeper.times() == 0 && self.limit.is_none_or(|limit| begun.elapsed() < limit);
        let mut reason = None;
        while self.jobs.is_none_or(|jobs| found.drawn < jobs)
            && (goes_on() || found.drawn == 0 && self.keeper.times() == 0)
        {
            let before = found.drawn;
            let end = self.jobs.unwrap_or(u64::MAX).min(before + ROUND);
            let specs: Vec<_> = (before..end).map(|job| self.spec(job, &found)).collect();
            // In order, whichever thread takes the next: what is left is after what is done.
            let next = AtomicUsize::new(0);
            let fates = parallel::map(vec![(); specs.len()], |()| {
                let at = next.fetch_add(1, Ordering::Relaxed);
                let is_tried = before == 0 && at == 0 || goes_on();
                let fate = is_tried.then(|| self.tried(specs[at].clone())).transpose()?;
                progress.advance();
                Ok::<_, Error>((at, fate))
            })?;
            found.add_all(in_order(fates), self.goal, &mut reason);
            if found.drawn == end && found.drawn == found.left_out + found.alike {
                return Err(reason.unwrap_or_else(|| self.no_difference()));
            }
            if found.drawn - before < ROUND {
                break;
            }
            if self.keeper.path().is_some() {
                self.keeper.write(&State::of(&self.name, found.clone()).text())?;
            }
            self.tell_kept(&found);
        }
        Ok(found)
    }

    /// Leaves word of what whole rounds have `found`, for a signal that ends the command.
    fn tell_kept(&self, found: &Found) {
        self.keeper.leave_word(match (self.keeper.path(), found.drawn) {
            (None, _) => format!("nothing is kept of this search; {WITH_STATE}"),
            (Some(path), 0) => format!("nothing is kept of this search yet in '{path}'"),
            (Some(path), jobs) => {
                format!("{jobs} jobs are kept in '{path}'; the same command goes on from there")
            }
        });
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
        let [smallest, by_ratio, by_cost] = &kept.cases;
        let like = rng.pick(&[smallest, by_cost, by_ratio, by_ratio]);
        self.space.changed(&like.job, &mut rng)
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
        let run = |job: &Job| {
            let mut digest = Digest::default();
            trace(job, &self.profile, &mut digest).map(|run| (run, digest))
        };
        let [(first, of_first), (second, of_second)] = match (run(&jobs[0]), run(&jobs[1])) {
            (Ok(first), Ok(second)) => [first, second],
            (Err(error), _) | (_, Err(error)) => return Ok(Fate::LeftOut(error.into())),
        };
        let case = Case::new(spec, &jobs[0], [&first, &second]);
        if of_first == of_second || self.goal.gain(&case.first, &case.second).is_none() {
            return Ok(Fate::Same);
        }
        Ok(match mechanism::of([&jobs[0], &jobs[1]], &self.profile)? {
            None => Fate::Same,
            Some(mechanism) => Fate::Found(mechanism, Box::new(case)),
        })
    }

    /// What `state` has kept; `None` where a job shows something else now.
    ///
    /// # Errors
    /// Those of the model.
    pub fn resumed(&self, mut state: State) -> Result<Option<Found>, Error> {
        let kept = cases(state.found.mechanisms.values_mut());
        let are_so = parallel::map(kept, |(mechanism, _, case)| {
            Ok::<_, Error>(match self.tried(case.job.clone())? {
                Fate::Found(now, again) => now == mechanism && *again == *case,
                _ => false,
            })
        })?;
        Ok((state.is_whole() && are_so.into_iter().all(|is_so| is_so)).then_some(state.found))
    }

    /// The record of what was `found`. Where it was interrupted, it says how it goes on, and with
    /// another question jobs stay as large as they are.
    ///
    /// # Errors
    /// Those of the model.
    pub fn record(&self, found: Found, footer: Footer) -> Result<Search, Error> {
        let before = self.keeper.times();
        let mut notes = Vec::new();
        if before > 0 {
            notes.push(match self.keeper.path() {
                Some(_) => format!(
                    "Interrupted after {} jobs. The same command goes on from job {}.",
                    found.drawn,
                    found.drawn / ROUND * ROUND
                ),
                None => format!("Interrupted after {} jobs; {WITH_STATE}.", found.drawn),
            });
        }
        let (left_out, alike, tried) = (found.left_out, found.alike, found.tried());
        let groups = self.groups(found, before)?;
        if self.keeper.times() > u32::from(before > 0) {
            notes.push("Not all jobs were made as small as they can be.".to_string());
        }
        Ok(Search {
            schema: SCHEMA,
            footer,
            variants: self.variants.map(Variant::name),
            goal: self.goal,
            seed: self.seed,
            tried,
            left_out,
            alike,
            groups,
            notes,
        })
    }

    /// Where its jobs ran, for the record that `command` repeats.
    ///
    /// # Errors
    /// Of a place where no job runs.
    pub fn footer(&self, command: String) -> Result<Footer, Error> {
        let record = |variant: &Variant| {
            let of_variant = variant.applied(&JobSpec::default());
            // Any job: only where it runs is told.
            let place = JobSpec {
                workload: Some("first".to_string()),
                accesses: Some(1),
                file_size: random_jobs::size(1),
                ..self.space.place(of_variant.kernel)
            };
            let job = place.validate(input::host_release().as_deref())?;
            let ran = Model { profile: self.profile }.ran(&job, Vec::new());
            Ok::<_, Error>(Record::of(&job, provenance::stamped(ran)))
        };
        let [first, second] = self.variants;
        Ok(Footer::new(&[record(first)?, record(second)?], command))
    }

    /// What was found of each mechanism, the largest ratio first, with each job as small as it can
    /// be, or as it is once there was asked for what there is more than `before`.
    fn groups(&self, found: Found, before: u32) -> Result<Vec<Group>, Error> {
        let mut groups: Vec<Group> = found.mechanisms.into_values().collect();
        let wanted = cases(groups.iter_mut());
        let progress = self.engines.progress(Some(wanted.len() as u64));
        parallel::map(wanted, |(mechanism, of, case)| {
            *case = self.smaller(&mechanism, of, case.clone(), before)?;
            progress.advance();
            Ok::<_, Error>(())
        })?;
        let ratio = |Group { cases: [_, by_ratio, _], .. }: &Group| by_ratio.gain(self.goal).0;
        groups.sort_by(|a, b| ratio(b).total_cmp(&ratio(a)));
        Ok(groups)
    }

    /// The smallest job that shows what `case` does: for the first `of` three any of the
    /// mechanism, for the others a ratio or a difference that is not smaller.
    fn smaller(&self, mechanism: &str, of: usize, case: Case, before: u32) -> Result<Case, Error> {
        let (ratio, cost) = case.gain(self.goal);
        let still = |spec: &JobSpec| -> Result<Option<Case>, Error> {
            if self.keeper.times() > before || !self.space.has(spec) {
                return Ok(None);
            }
            let Fate::Found(now, case) = self.tried(spec.clone())? else { return Ok(None) };
            let (now_ratio, now_cost) = case.gain(self.goal);
            let holds = [true, now_ratio >= ratio, now_cost >= cost][of];
            Ok((now == mechanism && holds).then_some(*case))
        };
        let first = |specs: &[JobSpec]| {
            for (at, spec) in specs.iter().enumerate() {
                if let Some(case) = still(spec)? {
                    return Ok(Some((at, case)));
                }
            }
            Ok(None)
        };
        let (_, mut case) = shrink(&case.job.clone(), case, MOST_TRIES[of], |_| None, first)?;
        case.case = CASES[of].to_string();
        case.job.machine = case.job.machine.filter(|name| machine_profile::needs_said(name));
        let job = case.job.clone().validate(input::host_release().as_deref())?;
        let command = match job.accesses().nth(1) {
            Some(_) => "filemap compare JOB.toml".to_string(),
            None => job.command().replacen("filemap run", "filemap compare", 1),
        };
        case.command = format!("{command} {}", variants_flag(&self.variants.map(Variant::name)));
        Ok(case)
    }
}

/// All cases of `groups`, each with its mechanism and its number.
fn cases<'a>(groups: impl Iterator<Item = &'a mut Group>) -> Vec<(String, usize, &'a mut Case)> {
    let of_group = |Group { mechanism, cases, .. }: &'a mut Group| {
        let all = cases.iter_mut().enumerate();
        all.map(|(of, case)| (mechanism.clone(), of, case))
    };
    groups.flat_map(of_group).collect()
}

/// The flag that names `variants`.
pub fn variants_flag(variants: &[String; 2]) -> String {
    format!("--variants {}", shell_word(&variants.join(",")))
}

/// The fates of the first jobs of a round, up to the first that was not tried.
fn in_order(mut fates: Vec<(usize, Option<Fate>)>) -> impl Iterator<Item = Fate> {
    fates.sort_by_key(|(at, _)| *at);
    fates.into_iter().map_while(|(_, fate)| fate)
}

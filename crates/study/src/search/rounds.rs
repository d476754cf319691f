//! Draws, tries and shrinks jobs.
//!
//! A job's number, the seed and the findings of earlier rounds determine the job. The jobs of a
//! round run on all processors, and their findings are processed in the order of their numbers, so
//! a seed finds the same on any number of processors. The state is saved after each round, and a
//! resumed search finds what an uninterrupted one does. It reruns the saved jobs, and refuses a
//! state whose jobs now behave differently.
//!
//! The first SIGINT stops drawing, the second stops shrinking, the third ends the command.

use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::{Duration, Instant};

use filemap_job::random::Rng;
use filemap_job::record::{RecordKind, SCHEMA};
use filemap_job::{Job, JobFlags, Record, shell_word};
use filemap_model::{Digest, ModelEngine, Profile, trace};

use super::draw::JobSpace;
use super::findings::{DrawOutcome, ROUND_JOBS, SearchFindings};
use super::goal::Goal;
use super::mechanism;
use super::record::{CASES, MechanismGroup, SearchCase, SearchRecord};
use super::state::{SearchControl, SearchState};
use crate::engine::Engines;
use crate::error::Error;
use crate::footer::Footer;
use crate::input;
use crate::machine_profile;
use crate::parallel;
use crate::provenance;
use crate::random_jobs::{self, shrink};
use crate::variants::Variant;

/// Maximum number of shrinking attempts for each of [`CASES`]: the worst jobs are longer and get
/// fewer.
const MAX_SHRINK_ATTEMPTS: [usize; 3] = [600, 150, 150];

/// Hint on how to save a search.
const WITH_STATE: &str = "with --state FILE the same command continues a search where it stopped";

/// Options of a search.
pub struct SearchOptions<'a, E> {
    /// The two variants.
    pub variants: [&'a Variant; 2],
    /// The goal.
    pub goal: Goal,
    /// The jobs to search.
    pub space: JobSpace,
    /// Seed of the jobs.
    pub seed: u64,
    /// Number of jobs to try; `None` for as many as fit the time limit.
    pub jobs: Option<u64>,
    /// Time after which no further job starts; the first always does.
    pub limit: Option<Duration>,
    /// The model's machine profile.
    pub profile: Profile,
    /// Engines, which show progress.
    pub engines: &'a E,
    /// Stores its state and receives interruptions.
    pub keeper: &'a dyn SearchControl,
    /// The command without its limits, and filemap's version: saved states of other searches are
    /// refused.
    pub name: String,
}

impl<E: Engines + Sync> SearchOptions<'_, E> {
    /// Searches from the findings of earlier rounds until all jobs are tried, time is up or it is
    /// interrupted. Saves the state after each round.
    ///
    /// # Errors
    /// If no job of the space can run, if both variants are equal, errors of the model, and if the
    /// state cannot be written.
    pub fn run(&self, mut found: SearchFindings) -> Result<SearchFindings, Error> {
        let begun = Instant::now();
        let progress = self.engines.progress(self.jobs);
        progress.begin_at(found.drawn);
        self.set_signal_message(&found);
        let goes_on = || {
            self.keeper.interruptions() == 0
                && self.limit.is_none_or(|limit| begun.elapsed() < limit)
        };
        let mut reason = None;
        while self.jobs.is_none_or(|jobs| found.drawn < jobs)
            && (goes_on() || found.drawn == 0 && self.keeper.interruptions() == 0)
        {
            let before = found.drawn;
            let end = self.jobs.unwrap_or(u64::MAX).min(before + ROUND_JOBS);
            let specs: Vec<_> = (before..end).map(|job| self.spec(job, &found)).collect();
            // A shared index: jobs not taken come after all that were.
            let next = AtomicUsize::new(0);
            let fates = parallel::map(vec![(); specs.len()], |()| {
                let at = next.fetch_add(1, Ordering::Relaxed);
                let is_tried = before == 0 && at == 0 || goes_on();
                let fate = is_tried.then(|| self.try_job(specs[at].clone())).transpose()?;
                progress.advance();
                Ok::<_, Error>((at, fate))
            })?;
            found.add_all(drain_in_order(fates), self.goal, &mut reason);
            if found.drawn == end && found.drawn == found.left_out + found.alike {
                return Err(reason.unwrap_or_else(|| self.no_difference()));
            }
            if found.drawn - before < ROUND_JOBS {
                break;
            }
            if self.keeper.path().is_some() {
                self.keeper.write(&SearchState::new(&self.name, found.clone()).text())?;
            }
            self.set_signal_message(&found);
        }
        Ok(found)
    }

    /// Prepares the message about the saved rounds, for a signal that ends the command.
    fn set_signal_message(&self, found: &SearchFindings) {
        self.keeper.set_signal_message(match (self.keeper.path(), found.drawn) {
            (None, _) => format!("nothing is kept of this search; {WITH_STATE}"),
            (Some(path), 0) => format!("nothing is kept of this search yet in '{path}'"),
            (Some(path), jobs) => {
                format!("{jobs} jobs are kept in '{path}'; the same command continues from there")
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

    /// Job `number`: every second one is a variation of a finding.
    fn spec(&self, number: u64, found: &SearchFindings) -> JobFlags {
        if number.is_multiple_of(2) || found.mechanisms.is_empty() {
            return self.space.random_job(self.seed, number);
        }
        let mut rng = Rng(Rng(!self.seed).next() ^ number);
        let number = rng.below(found.mechanisms.len() as u64) as usize;
        let kept = found.mechanisms.values().nth(number).expect("there are so many");
        let [smallest, by_ratio, by_cost] = &kept.cases;
        let like = rng.pick(&[smallest, by_cost, by_ratio, by_ratio]);
        self.space.vary_job(&like.job, &mut rng)
    }

    fn try_job(&self, spec: JobFlags) -> Result<DrawOutcome, Error> {
        let [first, second] = self.variants;
        let release = input::host_release();
        let job = |variant: &Variant| {
            variant.apply_to(&spec).validate(release.as_deref()).map_err(Error::from)
        };
        let jobs = match (job(first), job(second)) {
            (Ok(first), Ok(second)) => [first, second],
            (Err(error), _) => return Ok(DrawOutcome::LeftOut(first.error(error))),
            (_, Err(error)) => return Ok(DrawOutcome::LeftOut(second.error(error))),
        };
        if jobs[0] == jobs[1] {
            return Ok(DrawOutcome::Alike);
        }
        let run = |job: &Job| {
            let mut digest = Digest::default();
            trace(job, &self.profile, &mut digest).map(|run| (run, digest))
        };
        let [(first, of_first), (second, of_second)] = match (run(&jobs[0]), run(&jobs[1])) {
            (Ok(first), Ok(second)) => [first, second],
            (Err(error), _) | (_, Err(error)) => return Ok(DrawOutcome::LeftOut(error.into())),
        };
        let case = SearchCase::new(spec, &jobs[0], [&first, &second]);
        if of_first == of_second || self.goal.gain(&case.first, &case.second).is_none() {
            return Ok(DrawOutcome::Same);
        }
        Ok(match mechanism::find_mechanism([&jobs[0], &jobs[1]], &self.profile)? {
            None => DrawOutcome::Same,
            Some(mechanism) => DrawOutcome::Found(mechanism, Box::new(case)),
        })
    }

    /// Restores the findings of `state`; `None` if a job now behaves differently.
    ///
    /// # Errors
    /// Errors of the model.
    pub fn restore(&self, mut state: SearchState) -> Result<Option<SearchFindings>, Error> {
        let kept = cases(state.found.mechanisms.values_mut());
        let are_so = parallel::map(kept, |(mechanism, _, case)| {
            Ok::<_, Error>(match self.try_job(case.job.clone())? {
                DrawOutcome::Found(now, again) => now == mechanism && *again == *case,
                _ => false,
            })
        })?;
        Ok((state.is_whole() && are_so.into_iter().all(|is_so| is_so)).then_some(state.found))
    }

    /// Shrinks the findings and makes the record. If interrupted, it says how to resume; a further
    /// interruption stops shrinking.
    ///
    /// # Errors
    /// Errors of the model.
    pub fn record(&self, found: SearchFindings, footer: Footer) -> Result<SearchRecord, Error> {
        let before = self.keeper.interruptions();
        let mut notes = Vec::new();
        if before > 0 {
            notes.push(match self.keeper.path() {
                Some(_) => format!(
                    "Interrupted after {} jobs. The same command continues from job {}.",
                    found.drawn,
                    found.drawn / ROUND_JOBS * ROUND_JOBS
                ),
                None => format!("Interrupted after {} jobs; {WITH_STATE}.", found.drawn),
            });
        }
        let (left_out, alike, tried) = (found.left_out, found.alike, found.tried_jobs());
        let groups = self.groups(found, before)?;
        if self.keeper.interruptions() > u32::from(before > 0) {
            notes.push("Not all jobs were fully shrunk.".to_string());
        }
        Ok(SearchRecord {
            schema: SCHEMA,
            kind: RecordKind::Search,
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

    /// The footer of the record that `command` repeats.
    ///
    /// # Errors
    /// If no job can run with these machine keys.
    pub fn footer(&self, command: String) -> Result<Footer, Error> {
        let record = |variant: &Variant| {
            let of_variant = variant.apply_to(&JobFlags::default());
            // Any job: the footer only depends on the engine and machine.
            let place = JobFlags {
                workload: Some("first".to_string()),
                accesses: Some(1),
                file_size: random_jobs::size(1),
                ..self.space.machine_keys(of_variant.kernel)
            };
            let job = place.validate(input::host_release().as_deref())?;
            let ran = ModelEngine { profile: self.profile }.job_runs(&job, Vec::new());
            Ok::<_, Error>(Record::from_job_runs(&job, provenance::stamped(ran)))
        };
        let [first, second] = self.variants;
        Ok(Footer::new(&[record(first)?, record(second)?], command))
    }

    /// Findings by mechanism, the largest ratio first, each job shrunk unless there were more than
    /// `before` interruptions.
    fn groups(&self, found: SearchFindings, before: u32) -> Result<Vec<MechanismGroup>, Error> {
        let mut groups: Vec<MechanismGroup> = found.mechanisms.into_values().collect();
        let wanted = cases(groups.iter_mut());
        let progress = self.engines.progress(Some(wanted.len() as u64));
        parallel::map(wanted, |(mechanism, drawn, case)| {
            *case = self.shrink_case(&mechanism, drawn, case.clone(), before)?;
            progress.advance();
            Ok::<_, Error>(())
        })?;
        let ratio = |MechanismGroup { cases: [_, by_ratio, _], .. }: &MechanismGroup| {
            by_ratio.gain(self.goal).0
        };
        groups.sort_by(|a, b| ratio(b).total_cmp(&ratio(a)));
        Ok(groups)
    }

    /// Shrinks `case`, number `of` of [`CASES`]: the smallest job keeps the mechanism, the other
    /// two also at least their ratio or difference.
    fn shrink_case(
        &self,
        mechanism: &str,
        of: usize,
        case: SearchCase,
        before: u32,
    ) -> Result<SearchCase, Error> {
        let (ratio, cost) = case.gain(self.goal);
        let still = |spec: &JobFlags| -> Result<Option<SearchCase>, Error> {
            if self.keeper.interruptions() > before || !self.space.has(spec) {
                return Ok(None);
            }
            let DrawOutcome::Found(now, case) = self.try_job(spec.clone())? else {
                return Ok(None);
            };
            let (now_ratio, now_cost) = case.gain(self.goal);
            let holds = [true, now_ratio >= ratio, now_cost >= cost][of];
            Ok((now == mechanism && holds).then_some(*case))
        };
        let first = |specs: &[JobFlags]| {
            for (at, spec) in specs.iter().enumerate() {
                if let Some(case) = still(spec)? {
                    return Ok(Some((at, case)));
                }
            }
            Ok(None)
        };
        let (_, mut case) =
            shrink(&case.job.clone(), case, MAX_SHRINK_ATTEMPTS[of], |_| None, first)?;
        case.case = CASES[of].to_string();
        case.job.machine = case.job.machine.filter(|name| machine_profile::needs_flag(name));
        let job = case.job.validate(input::host_release().as_deref())?;
        let kernel = job.rules.kernel.name().to_string();
        let flags = into_flags(JobFlags { kernel: Some(kernel), ..case.job.clone() });
        let command = match flags.phase.as_slice() {
            [] => format!("filemap compare {}", flags.flags().join(" ")),
            _ => "filemap compare JOB.toml".to_string(),
        };
        case.command = format!("{command} {}", variants_flag(&self.variants.map(Variant::name)));
        Ok(case)
    }
}

/// `job` with its only phase as flags, if flags can express it: a phase with a seed of its own
/// stays in a job file.
fn into_flags(mut job: JobFlags) -> JobFlags {
    match job.phase.pop() {
        Some(only) if job.phase.is_empty() && only.seed.is_none() => JobFlags {
            workload: only.workload,
            accesses: only.accesses,
            accesses_file: only.accesses_file,
            fraction: only.fraction,
            bs: only.bs,
            ..job
        },
        last => {
            job.phase.extend(last);
            job
        }
    }
}

/// All cases of `groups`, each with its mechanism and its index in [`CASES`].
fn cases<'a>(
    groups: impl Iterator<Item = &'a mut MechanismGroup>,
) -> Vec<(String, usize, &'a mut SearchCase)> {
    let of_group = |MechanismGroup { mechanism, cases, .. }: &'a mut MechanismGroup| {
        let all = cases.iter_mut().enumerate();
        all.map(|(drawn, case)| (mechanism.clone(), drawn, case))
    };
    groups.flat_map(of_group).collect()
}

/// The `--variants` flag of `variants`.
pub fn variants_flag(variants: &[String; 2]) -> String {
    format!("--variants {}", shell_word(&variants.join(",")))
}

/// Outcomes of the jobs of a round in order, up to the first that was not tried.
fn drain_in_order(
    mut fates: Vec<(usize, Option<DrawOutcome>)>,
) -> impl Iterator<Item = DrawOutcome> {
    fates.sort_by_key(|(at, _)| *at);
    fates.into_iter().map_while(|(_, fate)| fate)
}

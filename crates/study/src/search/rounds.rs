//! Draws, tries and shrinks jobs.
//!
//! A job's number, the seed and the findings of earlier rounds determine the job. The jobs of a
//! round run on all processors, and their findings are processed in the order of their numbers, so
//! a seed finds the same on any number of processors. The state is saved after each round, and a
//! resumed search finds what an uninterrupted one does. It reruns the saved jobs, and refuses a
//! state whose jobs now behave differently.
//!
//! The first SIGINT stops drawing, the second stops shrinking, the third ends the command.

use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::time::{Duration, Instant};

use filemap_job::random::Rng;
use filemap_job::record::{RecordKind, SCHEMA};
use filemap_job::{Job, JobFlags, JobSpec, Record, shell_word};
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
use crate::job_input::{JobInput, JobSource};
use crate::machine_profile;
use crate::parallel;
use crate::provenance;
use crate::random_jobs::shrink;
use crate::variants::Variant;

/// Maximum number of shrinking attempts for each of [`CASES`]: the worst jobs are longer and get
/// fewer.
const MAX_SHRINK_ATTEMPTS: [usize; 3] = [600, 150, 150];

/// Stands for a file with the job in commands of cases.
pub(super) const JOB_FILE: &str = "JOB.toml";

/// Hint on how to save a search.
const WITH_STATE: &str = "with --state FILE the same command continues a search where it stopped";

/// The share of the time in which jobs are drawn; shrinking has the rest.
const DRAWING_PERCENT: u32 = 60;

/// When a search has to end.
#[derive(Clone, Copy, Debug)]
pub struct TimeLimit {
    begun: Instant,
    limit: Duration,
}

impl TimeLimit {
    /// A limit of `limit` from now on.
    pub fn from_now(limit: Duration) -> TimeLimit {
        TimeLimit { begun: Instant::now(), limit }
    }

    /// Whether a further job may be drawn; the first always is.
    fn has_time_to_draw(&self) -> bool {
        self.begun.elapsed() < self.limit * DRAWING_PERCENT / 100
    }

    fn has_time_to_shrink(&self) -> bool {
        self.begun.elapsed() < self.limit
    }
}

/// Options of a search.
pub struct SearchOptions<'a, E> {
    /// The two variants.
    pub variants: [&'a Variant; 2],
    /// The goal.
    pub goal: Goal,
    /// The job that the search begins with, or what its jobs have in common.
    pub input: &'a JobInput,
    /// The jobs to search.
    pub space: JobSpace,
    /// Seed of the jobs.
    pub seed: u64,
    /// Number of jobs to try; `None` for as many as fit the time limit.
    pub jobs: Option<u64>,
    /// The time that the search may take; `None` if only the number of jobs ends it.
    pub time: Option<TimeLimit>,
    /// The model's machine profile.
    pub profile: Profile,
    /// Engines, which show progress.
    pub engines: &'a E,
    /// Stores its state and receives interruptions.
    pub keeper: &'a dyn SearchControl,
    /// The command without its limits, and filemap's version: saved states of other searches are
    /// refused.
    pub name: String,
    /// Warnings for the reader of the report.
    pub warnings: Vec<String>,
}

impl<E: Engines + Sync> SearchOptions<'_, E> {
    /// Searches from the findings of earlier rounds until all jobs are tried, time is up or it is
    /// interrupted. Saves the state after each round.
    ///
    /// # Errors
    /// If no job of the space can run, if both variants are equal, errors of the model, and if the
    /// state cannot be written.
    pub fn run(&self, mut found: SearchFindings) -> Result<SearchFindings, Error> {
        let progress = self.engines.progress(self.jobs);
        progress.begin_at(found.drawn);
        self.set_signal_message(&found);
        let goes_on = || {
            self.keeper.interruptions() == 0 && self.time.is_none_or(|time| time.has_time_to_draw())
        };
        let mut reason = None;
        while self.jobs.is_none_or(|jobs| found.drawn < jobs)
            && (goes_on() || found.drawn == 0 && self.keeper.interruptions() == 0)
        {
            let before = found.drawn;
            let end = self.jobs.unwrap_or(u64::MAX).min(before + ROUND_JOBS);
            let jobs: Vec<_> = (before..end).map(|job| self.draw_job(job, &found)).collect();
            // A shared index: jobs not taken come after all that were.
            let next = AtomicUsize::new(0);
            let fates = parallel::map(vec![(); jobs.len()], |()| {
                let at = next.fetch_add(1, Ordering::Relaxed);
                let is_tried = before == 0 && at == 0 || goes_on();
                let fate = is_tried.then(|| self.try_drawn(jobs[at].clone())).transpose()?;
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
    fn draw_job(&self, number: u64, found: &SearchFindings) -> Result<JobSpec, filemap_job::Error> {
        if number.is_multiple_of(2) || found.mechanisms.is_empty() {
            return self.space.job(self.seed, number);
        }
        let mut rng = Rng(Rng(!self.seed).next() ^ number);
        let number = rng.below(found.mechanisms.len() as u64) as usize;
        let kept = found.mechanisms.values().nth(number).expect("there are so many");
        let [smallest, by_ratio, by_cost] = &kept.cases;
        let like = rng.pick(&[smallest, by_cost, by_ratio, by_ratio]);
        self.space.vary_job(&like.job, &mut rng)
    }

    fn try_drawn(&self, spec: Result<JobSpec, filemap_job::Error>) -> Result<DrawOutcome, Error> {
        match spec {
            Ok(spec) => self.try_job(spec),
            Err(error) => Ok(DrawOutcome::LeftOut(error.into())),
        }
    }

    fn try_job(&self, spec: JobSpec) -> Result<DrawOutcome, Error> {
        let jobs = self.variants.map(|variant| self.input.validate_variant(&spec, variant));
        let jobs = match jobs {
            [Ok(first), Ok(second)] => [first, second],
            [Err(error), _] | [_, Err(error)] => return Ok(DrawOutcome::LeftOut(error)),
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
        let is_same =
            of_first == of_second && (self.goal == Goal::Differ || case.first == case.second);
        if is_same || self.goal.gain(&case.first, &case.second).is_none() {
            return Ok(DrawOutcome::Same);
        }
        if of_first == of_second {
            let mechanism = "the same decisions take another time".to_string();
            return Ok(DrawOutcome::Found(mechanism, Box::new(case)));
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
        for group in state.found.mechanisms.values_mut() {
            group.cases.iter_mut().for_each(|case| self.space.restore_files(&mut case.job));
        }
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
        let mut notes: Vec<String> = self.warnings.iter().map(|text| format!("{text}.")).collect();
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
        let (groups, is_time_up) = self.groups(found, before)?;
        if self.keeper.interruptions() > u32::from(before > 0) {
            notes.push("Not all jobs were fully shrunk.".to_string());
        } else if is_time_up {
            notes.push(
                "Time was up before all jobs were shrunk: give more --duration, or --jobs."
                    .to_string(),
            );
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

    /// The footer of the record, without the command that repeats it.
    ///
    /// # Errors
    /// If no job can run with these machine keys.
    pub fn footer(&self) -> Result<Footer, Error> {
        let record = |variant: &Variant| {
            let kernel = variant.value("kernel").map(String::from);
            // Any job: the footer only depends on the engine and machine.
            let job = self.input.validate(&self.space.machine_job(kernel)?)?;
            let ran = ModelEngine { profile: self.profile }.job_runs(&job, Vec::new());
            Ok::<_, Error>(Record::from_job_runs(&job, provenance::stamped(ran)))
        };
        let [first, second] = self.variants;
        Ok(Footer::new(&[record(first)?, record(second)?], String::new()))
    }

    /// Findings by mechanism, the largest ratio first, each job shrunk unless time is up or there
    /// were more than `before` interruptions; and whether time was up.
    fn groups(
        &self,
        found: SearchFindings,
        before: u32,
    ) -> Result<(Vec<MechanismGroup>, bool), Error> {
        let is_time_up = AtomicBool::new(false);
        let mut groups: Vec<MechanismGroup> = found.mechanisms.into_values().collect();
        let wanted = cases(groups.iter_mut());
        let progress = self.engines.progress(Some(wanted.len() as u64));
        parallel::map(wanted, |(mechanism, drawn, case)| {
            *case = self.shrink_case(&mechanism, drawn, case.clone(), before, &is_time_up)?;
            progress.advance();
            Ok::<_, Error>(())
        })?;
        let ratio = |MechanismGroup { cases: [_, by_ratio, _], .. }: &MechanismGroup| {
            by_ratio.gain(self.goal).0
        };
        groups.sort_by(|a, b| ratio(b).total_cmp(&ratio(a)));
        Ok((groups, is_time_up.into_inner()))
    }

    /// Shrinks `case`, number `of` of [`CASES`]: the smallest job keeps the mechanism, the other
    /// two also at least their ratio or difference.
    fn shrink_case(
        &self,
        mechanism: &str,
        of: usize,
        case: SearchCase,
        before: u32,
        is_time_up: &AtomicBool,
    ) -> Result<SearchCase, Error> {
        let (ratio, cost) = case.gain(self.goal);
        let still = |spec: &JobSpec| -> Result<Option<SearchCase>, Error> {
            if !self.time.is_none_or(|time| time.has_time_to_shrink()) {
                is_time_up.store(true, Ordering::Relaxed);
                return Ok(None);
            }
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
        let first = |specs: &[JobSpec]| {
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
        case.command = self.case_command(&case.job)?;
        Ok(case)
    }

    /// The command that compares the variants of `spec`: with flags if they describe it, else with
    /// [`JOB_FILE`].
    fn case_command(&self, spec: &JobSpec) -> Result<String, Error> {
        let flags = spec.to_flags().filter(|flags| flags.phase.is_empty());
        let input = match flags {
            Some(flags) => JobInput::new(None, JobSource::default(), flags)?,
            None => {
                let source = JobSource::Tables(Box::new(spec.clone()));
                JobInput::new(Some(JOB_FILE), source, JobFlags::default())?
            }
        };
        let job = input.validate(spec)?;
        Ok(input.command("compare", &job, &[variants_flag(&self.variants.map(Variant::name))]))
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

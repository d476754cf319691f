//! Tries changes in the model: each alone, the best in pairs, and under other conditions.

use filemap_core::units::PageCount;
use filemap_job::program::Job;
use filemap_job::record::{RecordKind, SCHEMA};
use filemap_job::{Run, format_size};
use filemap_model::{Profile, trace};

use super::access_map::AccessMapLog;
use super::answer::{Answer, LATENCIES};
use super::record::{AdviceCondition, AdviceTrial, FileAdvice, LeftOutFile, ReadAheadDevice};
use super::{AdviceChange, AdviseRecord, FileFacts, ProgramFacts, TrialOutcome, apply, candidates};
use crate::engine::Engines;
use crate::error::Error;
use crate::machine_profile;
use crate::parallel;

/// Number of changes (the best of each kind) that are tried in pairs.
const PAIRED: usize = 5;

/// Readahead sizes in KiB under which the answer is re-evaluated.
const READ_AHEAD_KB: [u64; 2] = [128, 8192];

/// Factors (numerator, denominator) of the memory limit under which the answer is re-evaluated.
const MEMORY: [(u64, u64); 2] = [(1, 2), (2, 1)];

/// A program under study.
#[allow(missing_docs, reason = "their names say it")]
pub struct AdviseBench<'a, E> {
    pub program: &'a Job,
    /// The machine profile.
    pub profile: Profile,
    /// Facts about each file.
    pub files: &'a [FileFacts],
    /// The program, if it was recorded.
    pub recorded: Option<ProgramFacts>,
    /// Engines, which show progress.
    pub engines: &'a E,
}

impl<E: Engines> AdviseBench<'_, E> {
    /// Tries everything and returns the advice and the unchanged run. Changes with which the
    /// program runs out of memory are omitted. `name` is the name of the recording, `shown` the
    /// program's command if known.
    ///
    /// # Errors
    /// If the model cannot run the unchanged program.
    pub fn advice(&self, name: &str, shown: Option<&str>) -> Result<(AdviseRecord, Run), Error> {
        let (program, page_bytes) = (self.program, self.program.page_size());
        let mut accesses = AccessMapLog::new(program);
        let run = trace(program, &self.profile, &mut accesses)?;
        let used = program.used_parts();
        let now = self.outcomes(std::slice::from_ref(program), &LATENCIES)?;
        let now = now.into_iter().flatten().next().expect("it has run before");
        let file = |number: usize| FileAdvice {
            name: program.files[number].name.clone(),
            contents: self.files[number].contents,
            pages_read: now.files[number],
            pages_used: used.files[number],
            answer: Answer::default(),
            number,
        };
        let counting = now.files_that_count();
        let answered: Vec<usize> =
            counting.iter().copied().filter(|file| self.files[*file].is_answered).collect();
        let alone = candidates::candidate_changes(program, &used, &answered)
            .into_iter()
            .map(|change| vec![change]);
        let measured = self.profile.measured.map(|date| date.to_string());
        let mut advice = AdviseRecord {
            schema: SCHEMA,
            kind: RecordKind::Advise,
            page_bytes,
            start: program.start_text(),
            program: self.recorded.clone(),
            read_ahead_kb: program.machine.read_ahead.bytes(page_bytes) / 1024,
            latency_ns: self.profile.device.latency_ns,
            machine: machine_profile::name_in_words(
                program.machine.profile.as_deref(),
                measured.as_deref(),
            ),
            known_error: machine_profile::known_error(measured.as_deref()),
            pages_used: used.files.iter().fold(0_u64, |sum, pages| sum.saturating_add(*pages)),
            files: answered.into_iter().map(file).collect(),
            accesses: accesses.into_maps(|file| self.files[file].is_answered),
            left_out: self.left_out(&now),
            read_ahead_devices: self.read_ahead_devices(&counting),
            tried: self.try_changes(alone.collect())?,
            now,
            ..AdviseRecord::default()
        };
        advice.tried.extend(self.try_changes(pairs(&advice))?);
        let mut advice = advice.with_conclusions(name, shown);
        advice.conditions = self.conditions(&advice)?;
        Ok((advice, run))
    }

    /// Files that were read but get no answer, the most read first.
    fn left_out(&self, now: &TrialOutcome) -> Vec<LeftOutFile> {
        let is_left_out = |file: &usize| now.files[*file] > 0 && !self.files[*file].is_answered;
        let mut files: Vec<usize> = (0..now.files.len()).filter(is_left_out).collect();
        files.sort_by_key(|file| std::cmp::Reverse(now.files[*file]));
        let left_out = |file: usize| LeftOutFile {
            name: self.program.files[file].name.clone(),
            contents: self.files[file].contents,
            pages_read: now.files[file],
        };
        files.into_iter().map(left_out).collect()
    }

    /// The devices of `files`.
    fn read_ahead_devices(&self, files: &[usize]) -> Vec<ReadAheadDevice> {
        let mut devices: Vec<ReadAheadDevice> = Vec::new();
        for setting in files.iter().filter_map(|file| self.files[*file].read_ahead.as_ref()) {
            let path = setting.path.display().to_string();
            match devices.iter_mut().find(|known| known.setting == path) {
                Some(known) => known.files += 1,
                None => devices.push(ReadAheadDevice {
                    device: setting.device.clone(),
                    setting: path,
                    files: 1,
                }),
            }
        }
        devices
    }

    fn try_changes(&self, changes: Vec<Vec<AdviceChange>>) -> Result<Vec<AdviceTrial>, Error> {
        let programs: Vec<Job> =
            changes.iter().map(|changes| apply::with(self.program, changes)).collect();
        let tried = changes.into_iter().zip(self.outcomes(&programs, &LATENCIES)?);
        Ok(tried
            .filter_map(|(changes, outcome)| Some(AdviceTrial::new(changes, outcome?)))
            .collect())
    }

    /// Outcome of each of `programs` at `latencies`; `None` if the model cannot run it. A single
    /// latency stands for all.
    fn outcomes(
        &self,
        programs: &[Job],
        latencies: &[f64],
    ) -> Result<Vec<Option<TrialOutcome>>, Error> {
        let each = programs.iter();
        let runs = each.flat_map(|program| latencies.iter().map(move |factor| (program, *factor)));
        let runs: Vec<(&Job, f64)> = runs.collect();
        let progress = self.engines.progress(Some(runs.len() as u64));
        let as_it_is = self.profile;
        let run =
            |(program, factor): (&Job, f64)| {
                let mut profile = as_it_is;
                let latency_ns = profile.device.latency_ns as f64 * factor;
                profile.device.latency_ns = latency_ns.round() as u64;
                let run = trace(program, &profile, &mut ()).ok();
                progress.advance();
                Ok::<_, Error>(run.map(|run| {
                    TrialOutcome::from_run(&run, program.files.len(), program.page_size())
                }))
            };
        let runs = parallel::map(runs, run)?;
        let of_program = |runs: &[Option<TrialOutcome>]| {
            let first = runs.first()?.clone()?;
            let ns = runs.iter().map(|run| Some(run.as_ref()?.elapsed_ns));
            let ns: Vec<u64> = ns.collect::<Option<_>>()?;
            Some(first.with_times(std::array::from_fn(|at| *ns.get(at).unwrap_or(&ns[0]))))
        };
        Ok(runs.chunks(latencies.len()).map(of_program).collect())
    }

    /// The answer with other readahead sizes, and with half and double the memory limit, if any.
    fn conditions(&self, advice: &AdviseRecord) -> Result<Vec<AdviceCondition>, Error> {
        let page_size = self.program.page_size();
        let mut others: Vec<(String, Job)> = Vec::new();
        for kb in READ_AHEAD_KB {
            let pages = PageCount(kb * 1024 / page_size);
            if pages != self.program.machine.read_ahead {
                let mut other = self.program.clone();
                other.machine.read_ahead = pages;
                others.push((format!("read_ahead_kb={kb}"), other));
            }
        }
        if let Some(limit) = self.program.machine.cache_limit {
            for (times, part) in MEMORY {
                let pages = PageCount((limit.0 * times / part).max(1));
                let name = format!("page cache of {}", format_size(pages.bytes(page_size)));
                others.push((name, limited(self.program, pages, times, part)));
            }
        }
        let others = others.into_iter();
        others.map(|(name, other)| self.condition(name, &other, advice)).collect()
    }

    /// The answer for `other`, the program under another condition.
    fn condition(
        &self,
        name: String,
        other: &Job,
        advice: &AdviseRecord,
    ) -> Result<AdviceCondition, Error> {
        let mut condition = AdviceCondition { name, now: None, answer: None, best: None };
        if other.machine.cache_limit.is_some_and(|limit| other.anonymous >= limit) {
            return Ok(condition);
        }
        let changed = advice.tried.iter().map(|tried| apply::with(other, &tried.does));
        let programs: Vec<Job> = [other.clone()].into_iter().chain(changed).collect();
        let mut outcomes = self.outcomes(&programs, &LATENCIES[..1])?.into_iter();
        let Some(now) = outcomes.next().flatten() else { return Ok(condition) };
        let outcomes: Vec<Option<TrialOutcome>> = outcomes.collect();
        condition.answer = advice.answer.best.and_then(|at| outcomes[at].clone());
        let tried = advice.tried.iter().zip(outcomes);
        let tried = tried
            .filter_map(|(trial, outcome)| Some(AdviceTrial::new(trial.does.clone(), outcome?)));
        let record = AdviseRecord { now, tried: tried.collect(), ..AdviseRecord::default() };
        let best = record.whole_answer().best;
        condition.best = best.map(|at| record.tried[at].label());
        condition.now = Some(record.now);
        Ok(condition)
    }
}

/// Pairs of the best changes of each kind, with one readahead size in all of them.
fn pairs(advice: &AdviseRecord) -> Vec<Vec<AdviceChange>> {
    let now = advice.now.figures();
    let best_size = advice.read_ahead_answer().best;
    let helps = |(at, tried): &(usize, &AdviceTrial)| {
        let is_other_size =
            matches!(tried.does[..], [AdviceChange::ReadAhead(_)]) && best_size != Some(*at);
        !is_other_size && tried.outcome.figures().helps(now)
    };
    let mut helping: Vec<&AdviceTrial> =
        advice.tried.iter().enumerate().filter(helps).map(|(_, tried)| tried).collect();
    helping.sort_by_key(|trial| trial.outcome.elapsed_ns);
    let mut best: Vec<&AdviceChange> = Vec::new();
    for change in helping.into_iter().map(|trial| &trial.does[0]) {
        if best.len() < PAIRED && best.iter().all(|known| known.goes_with(change)) {
            best.push(change);
        }
    }
    let pair = |number: usize| {
        let one = best[number];
        best[number + 1..].iter().map(move |other| vec![one.clone(), (*other).clone()])
    };
    (0..best.len()).flat_map(pair).collect()
}

/// `program` with a page cache of `pages`, and all limits scaled by `times`/`part`.
fn limited(program: &Job, pages: PageCount, times: u64, part: u64) -> Job {
    let mut program = program.clone();
    let machine = &mut program.machine;
    machine.cache_limit = Some(pages);
    for limit in
        [&mut machine.ram_bytes, &mut machine.memory_high_bytes, &mut machine.memory_max_bytes]
    {
        *limit = limit.map(|bytes| bytes / part * times);
    }
    program
}

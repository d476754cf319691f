//! Everything that one could do about a program, tried in the model: alone, and then in pairs, and
//! under other conditions.

use filemap_core::units::PageCount;
use filemap_job::program::{Job, NamedFile};
use filemap_job::{Run, format_size};
use filemap_model::{Profile, trace};

use super::answer::LATENCIES;
use super::record::{Condition, FileUse, Study};
use super::trial::{Outcome, Trial};
use super::{Change, Contents, apply, candidates, used_pages};
use crate::engine::Engines;
use crate::error::Error;
use crate::parallel;

/// Changes of which pairs are tried: the best of each kind, so many.
const PAIRED: usize = 5;

/// Readahead sizes under which the answer is looked at again, in KiB.
const READ_AHEAD_KB: [u64; 2] = [128, 8192];

/// What the memory limit is multiplied by and divided by where the answer is looked at again.
const MEMORY: [(u64, u64); 2] = [(1, 2), (2, 1)];

/// A program in the model, whose device has the latency of `profile`.
struct Bench<'a, E> {
    program: &'a Job,
    profile: Profile,
    engines: &'a E,
}

impl Study {
    /// Everything tried for `program`, whose files have these `contents`, and the run without any
    /// change. A change with which the model cannot run it, because the memory is too small, is
    /// left out.
    ///
    /// # Errors
    /// When the model cannot run it as it is.
    pub fn of(
        program: &Job,
        profile: Profile,
        contents: &[Contents],
        engines: &impl Engines,
    ) -> Result<(Study, Run), Error> {
        let run = trace(program, &profile, &mut ())?;
        let used = used_pages::of(program);
        let bench = Bench { program, profile, engines };
        let now = bench.outcomes(std::slice::from_ref(program), &LATENCIES)?;
        let now = now.into_iter().flatten().next().expect("it has run before");
        let alone = candidates::all(program, &used, &now).into_iter().map(|change| vec![change]);
        let trials = bench.tried(alone.collect())?;
        let file = |(number, of): (usize, &NamedFile)| FileUse {
            name: of.name.clone(),
            used_pages: used.files[number],
            contents: contents.get(number).copied().unwrap_or_default(),
        };
        let mut study = Study {
            files: program.files.iter().enumerate().map(file).collect(),
            now,
            trials,
            conditions: Vec::new(),
            page_bytes: program.page_size(),
            read_ahead_kb: program.machine.read_ahead.bytes(program.page_size()) / 1024,
            latency_ns: profile.device.latency_ns,
        };
        study.trials.extend(bench.tried(study.pairs())?);
        study.conditions = bench.conditions(&study)?;
        Ok((study, run))
    }

    /// Pairs of the changes that help most, the best of each kind.
    fn pairs(&self) -> Vec<Vec<Change>> {
        let now = self.now.figures();
        let helps = |of: &&Trial| of.is_for_users() && of.outcome.figures().helps(now);
        let mut helping: Vec<&Trial> = self.trials.iter().filter(helps).collect();
        helping.sort_by_key(|trial| trial.outcome.elapsed_ns);
        let mut best: Vec<&Change> = Vec::new();
        for trial in helping {
            let change = &trial.changes[0];
            if best.len() < PAIRED && best.iter().all(|known| known.goes_with(change)) {
                best.push(change);
            }
        }
        let mut pairs = Vec::new();
        for (number, one) in best.iter().enumerate() {
            let others = &best[number + 1..];
            pairs.extend(others.iter().map(|other| vec![(*one).clone(), (*other).clone()]));
        }
        pairs
    }
}

impl<E: Engines> Bench<'_, E> {
    fn tried(&self, changes: Vec<Vec<Change>>) -> Result<Vec<Trial>, Error> {
        let programs: Vec<Job> =
            changes.iter().map(|changes| apply::with(self.program, changes)).collect();
        let trials = changes.into_iter().zip(self.outcomes(&programs, &LATENCIES)?);
        Ok(trials.filter_map(|(changes, of)| Some(Trial { changes, outcome: of? })).collect())
    }

    /// What each of `programs` comes to with each of `latencies`; nothing for one that the model
    /// cannot run. With one latency, it stands for all.
    fn outcomes(&self, programs: &[Job], latencies: &[f64]) -> Result<Vec<Option<Outcome>>, Error> {
        let each = programs.iter();
        let runs = each.flat_map(|program| latencies.iter().map(move |factor| (program, *factor)));
        let runs: Vec<(&Job, f64)> = runs.collect();
        let progress = self.engines.progress(Some(runs.len() as u64));
        let as_it_is = self.profile;
        let run = |(program, factor): (&Job, f64)| {
            let mut profile = as_it_is;
            let latency_ns = profile.device.latency_ns as f64 * factor;
            profile.device.latency_ns = latency_ns.round() as u64;
            let run = trace(program, &profile, &mut ()).ok();
            progress.advance();
            Ok::<_, Error>(run.map(|run| Outcome::of(&run, program.files.len())))
        };
        let runs = parallel::map(runs, run)?;
        let of_program = |runs: &[Option<Outcome>]| {
            let first = runs.first()?.clone()?;
            let ns = runs.iter().map(|run| Some(run.as_ref()?.elapsed_ns));
            let ns: Vec<u64> = ns.collect::<Option<_>>()?;
            Some(first.at(std::array::from_fn(|at| *ns.get(at).unwrap_or(&ns[0]))))
        };
        Ok(runs.chunks(latencies.len()).map(of_program).collect())
    }

    /// The answer with other readahead sizes, and with half and double the memory where that is
    /// limited.
    fn conditions(&self, study: &Study) -> Result<Vec<Condition>, Error> {
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
        others.map(|(name, other)| self.condition(name, &other, study)).collect()
    }

    /// What all of the trials of `study` come to for `other`, and its answer.
    fn condition(&self, name: String, other: &Job, study: &Study) -> Result<Condition, Error> {
        let mut condition = Condition { name, now: None, answer: None, best: None };
        if other.machine.cache_limit.is_some_and(|limit| other.anonymous >= limit) {
            return Ok(condition);
        }
        let changed = study.trials.iter().map(|trial| apply::with(other, &trial.changes));
        let programs: Vec<Job> = [other.clone()].into_iter().chain(changed).collect();
        let mut outcomes = self.outcomes(&programs, &LATENCIES[..1])?.into_iter();
        let Some(now) = outcomes.next().flatten() else { return Ok(condition) };
        let outcomes: Vec<Option<Outcome>> = outcomes.collect();
        condition.answer = study.answer().best.and_then(|at| outcomes[at].clone());
        let there = study.trials.iter().zip(outcomes).filter_map(|(trial, outcome)| {
            Some(Trial { changes: trial.changes.clone(), outcome: outcome? })
        });
        let there = Study { now, trials: there.collect(), ..Study::default() };
        condition.best = there.answer().best.map(|at| there.trials[at].label());
        condition.now = Some(there.now);
        Ok(condition)
    }
}

/// `program` with a page cache of so many pages, and all limits multiplied alike.
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

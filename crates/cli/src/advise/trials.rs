//! Runs of the model with each change, and under other conditions.

use filemap_core::units::PageCount;
use filemap_job::program::Job;
use filemap_job::{Run, format_size};
use filemap_model::{Profile, trace};
use filemap_study::advise::{
    Beside, Change, Choice, Condition, Contents, FileUse, LATENCIES, Outcome, Study, Trial, Under,
    answer,
};

use super::{apply, candidates, touched_pages};
use crate::error::Error;
use crate::progress::Bar;
use filemap_study::engine::Progress;
use filemap_study::parallel;

/// Changes of which pairs are tried: the best of each kind, so many.
const PAIRED: usize = 5;

/// Readahead sizes under which the answer is looked at again, in KiB.
const READ_AHEAD_KB: [u64; 2] = [128, 8192];

/// What the memory limit is multiplied by and divided by where the answer is looked at again.
const MEMORY: [(u64, u64); 2] = [(1, 2), (2, 1)];

/// Everything tried for `program`, whose files have these `contents`, and the run without any
/// change. A change with which the model cannot run it, because the memory is too small, is left
/// out.
///
/// # Errors
/// When the model cannot run it as it is.
pub fn study(
    program: &Job,
    profile: &Profile,
    contents: &[Contents],
) -> Result<(Study, Run), Error> {
    let run = trace(program, profile, &mut ())?;
    let used = touched_pages::of(program);
    let now = outcomes(std::slice::from_ref(program), profile, &LATENCIES)?;
    let now = now.into_iter().flatten().next().expect("it has run before");
    let alone = candidates::all(program, &used, &now).into_iter().map(|change| vec![change]);
    let mut trials = tried(program, profile, alone.collect())?;
    trials.extend(tried(program, profile, pairs(&now, &trials))?);
    let file = |(number, of): (usize, &filemap_job::program::NamedFile)| FileUse {
        name: of.name.clone(),
        used_pages: used.files[number],
        contents: contents.get(number).copied().unwrap_or_default(),
    };
    let study = Study {
        name: String::new(),
        program: None,
        files: program.files.iter().enumerate().map(file).collect(),
        conditions: conditions(program, profile, &now, &trials)?,
        now,
        trials,
        page_bytes: program.page_size(),
        read_ahead_kb: program.machine.read_ahead.bytes(program.page_size()) / 1024,
        latency_ns: profile.device.latency_ns,
        warnings: Vec::new(),
        check: None,
    };
    Ok((study, run))
}

fn tried(program: &Job, profile: &Profile, changes: Vec<Vec<Change>>) -> Result<Vec<Trial>, Error> {
    let programs: Vec<Job> = changes.iter().map(|changes| apply::with(program, changes)).collect();
    let outcomes = outcomes(&programs, profile, &LATENCIES)?;
    let trials = changes.into_iter().zip(outcomes);
    Ok(trials.filter_map(|(changes, of)| Some(Trial { changes, outcome: of? })).collect())
}

/// What each of `programs` comes to with each of `latencies`; nothing for one that the model cannot
/// run. With one latency, it stands for all.
fn outcomes(
    programs: &[Job],
    profile: &Profile,
    latencies: &[f64],
) -> Result<Vec<Option<Outcome>>, Error> {
    let each = 0..programs.len();
    let runs = each.flat_map(|program| latencies.iter().map(move |factor| (program, *factor)));
    let runs: Vec<(usize, f64)> = runs.collect();
    let progress = Bar::new(runs.len());
    let run = |(number, factor): (usize, f64)| {
        let mut profile = *profile;
        let latency_ns = (profile.device.latency_ns as f64 * factor).round() as u64;
        profile.device.latency_ns = latency_ns;
        let run = trace(&programs[number], &profile, &mut ()).ok();
        progress.advance();
        Ok::<_, Error>(run.as_ref().map(|run| figures(run, programs[number].files.len())))
    };
    let runs = parallel::map(runs, run)?;
    let of_program = |runs: &[Option<Outcome>]| {
        let first = runs.first()?.clone()?;
        let ns = runs.iter().map(|run| Some(run.as_ref()?.ns[0]));
        let ns: Vec<f64> = ns.collect::<Option<_>>()?;
        let ns = std::array::from_fn(|at| *ns.get(at).unwrap_or(&ns[0]));
        Some(Outcome { ns, ..first })
    };
    Ok(runs.chunks(latencies.len()).map(of_program).collect())
}

fn figures(run: &Run, files: usize) -> Outcome {
    let pages = |file: usize| run.files.get(file).and_then(|file| file.data_pages_read);
    let ns = run.elapsed_ns.unwrap_or_default() as f64;
    Outcome {
        pages: (0..files).map(|file| pages(file).unwrap_or_default()).collect(),
        major_faults: run.counters.major_faults.unwrap_or_default(),
        ns: [ns; 3],
    }
}

/// Pairs of the changes that help most, the best of each kind.
fn pairs(now: &Outcome, alone: &[Trial]) -> Vec<Vec<Change>> {
    let helps = |trial: &&Trial| {
        trial.is_for_users() && trial.outcome.figures().verdict(now.figures()) == Beside::Better
    };
    let mut helping: Vec<&Trial> = alone.iter().filter(helps).collect();
    helping.sort_by(|a, b| a.outcome.ns[0].total_cmp(&b.outcome.ns[0]));
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

/// The answer with other readahead sizes, and with half and double the memory where that is
/// limited.
fn conditions(
    program: &Job,
    profile: &Profile,
    now: &Outcome,
    trials: &[Trial],
) -> Result<Vec<Condition>, Error> {
    let answer = match answer(now, trials) {
        Choice::Best { best, .. } => Some(best),
        Choice::Nothing => None,
    };
    let page_size = program.page_size();
    let mut others: Vec<(String, Job)> = Vec::new();
    for kb in READ_AHEAD_KB {
        let pages = PageCount(kb * 1024 / page_size);
        if pages != program.machine.read_ahead {
            let mut other = program.clone();
            other.machine.read_ahead = pages;
            others.push((format!("read_ahead_kb={kb}"), other));
        }
    }
    if let Some(limit) = program.machine.cache_limit {
        for (times, part) in MEMORY {
            let pages = PageCount((limit.0 * times / part).max(1));
            let size = format_size(pages.bytes(page_size));
            others.push((format!("page cache of {size}"), limited(program, pages, times, part)));
        }
    }
    let condition = |(name, other): (String, Job)| {
        let has_room = other.machine.cache_limit.is_none_or(|limit| other.anonymous < limit);
        let under = match has_room {
            true => under(&other, profile, trials, answer)?,
            false => None,
        };
        Ok(Condition { name, under })
    };
    others.into_iter().map(condition).collect()
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

/// What all of `trials` come to for `program`, and the one with number `answer` of them.
fn under(
    program: &Job,
    profile: &Profile,
    trials: &[Trial],
    answer: Option<usize>,
) -> Result<Option<Under>, Error> {
    let changed = trials.iter().map(|trial| apply::with(program, &trial.changes));
    let programs: Vec<Job> = [program.clone()].into_iter().chain(changed).collect();
    let mut outcomes = outcomes(&programs, profile, &LATENCIES[..1])?.into_iter();
    let Some(now) = outcomes.next().flatten() else { return Ok(None) };
    let outcomes: Vec<Option<Outcome>> = outcomes.collect();
    let there = trials.iter().zip(&outcomes).filter_map(|(trial, outcome)| {
        Some(Trial { changes: trial.changes.clone(), outcome: outcome.clone()? })
    });
    let there: Vec<Trial> = there.collect();
    let best = match filemap_study::advise::answer(&now, &there) {
        Choice::Best { best, .. } => Some(there[best].label()),
        Choice::Nothing => None,
    };
    let answer = answer.and_then(|number| outcomes[number].clone());
    Ok(Some(Under { now, answer, best }))
}

//! From the series that are asked for to their record.

use filemap_job::{FolioOps, FolioOpsRecord, Job, JobSpec, Record};
use filemap_model::Profile;

use super::cell::Cell;
use super::vma_retry::{Trial, Trials};
use super::{DEFAULT_SEEDS, NAMES, Published};
use super::{exec_order, mm_owner, mmap_miss, vma_bound, vma_retry};
use crate::engine::{self, Engines};
use crate::error::Error;
use crate::folio_ops::{self, Asked};
use crate::footer::Origin;

/// One published patch series.
pub trait Study {
    /// The jobs whose records it needs, in order. Some studies need none.
    fn jobs(&self) -> Vec<Job> {
        Vec::new()
    }

    /// Runs of threads that wait which it needs next, when `known` are run: none when these are
    /// all. Most studies need none.
    fn trials(&self, known: &Trials) -> Vec<Trial> {
        let _ = known;
        Vec::new()
    }

    /// Operations over folios that it needs the record of, in real time. Most studies need none.
    fn folio_ops(&self) -> Option<FolioOps> {
        None
    }

    /// What was run for it, beside what is published.
    fn cells(&self, ran: &Ran<'_>) -> Vec<Cell>;

    /// Where what is no job ran, if it has any.
    fn origin(&self, ran: &Ran<'_>) -> Option<Origin> {
        let _ = ran;
        None
    }
}

/// What was run for a study.
#[derive(Clone, Copy)]
pub struct Ran<'a> {
    /// One for each of [`Study::jobs`], in their order.
    pub records: &'a [Record],
    /// All of its trials.
    pub trials: &'a Trials,
    /// That of [`Study::folio_ops`].
    pub folio_ops: Option<&'a FolioOpsRecord>,
}

/// What was found of a series.
pub struct Found {
    pub series: &'static str,
    pub cells: Vec<Cell>,
    pub origin: Option<Origin>,
}

/// What the published tables are made with.
#[derive(Clone, Debug, Default)]
pub struct Options {
    /// Seeds of each random cell, 1 or more, where they are given.
    pub seeds: Option<u64>,
    /// In the published length, where that takes long.
    pub full: bool,
    /// Programs and libraries of this machine, for a report in full: jobs of the workload `elf`,
    /// with the headers of their file.
    pub programs: Vec<JobSpec>,
}

/// The series that are asked for.
pub struct Plan {
    studies: Vec<(&'static str, Box<dyn Study>)>,
    /// Who asked for operations over folios.
    asked: Asked,
}

impl Plan {
    /// Of the series named; for no name of all, of which those that take long are brief.
    ///
    /// # Errors
    /// For a name that is no series.
    pub fn of(names: &[String], options: &Options) -> Result<Plan, Error> {
        let is_named = !names.is_empty();
        let mut chosen: Vec<&'static str> = Vec::new();
        for name in names {
            let known = NAMES.into_iter().find(|known| known == name);
            let unknown = || Error::UnknownSeries { name: name.clone(), known: NAMES.join(", ") };
            let known = known.ok_or_else(unknown)?;
            if !chosen.contains(&known) {
                chosen.push(known);
            }
        }
        let chosen = if is_named { chosen } else { NAMES.to_vec() };
        let of = |name| Ok((name, study(name, is_named, options)?));
        let shorter_bytes = options.full.then(|| mm_owner::Form::of(false, is_named).job().bytes);
        Ok(Plan {
            studies: chosen.into_iter().map(of).collect::<Result<_, Error>>()?,
            asked: Asked::Published { shorter_bytes },
        })
    }

    /// Refuses operations over folios for which there is too little memory now: they are run last,
    /// and what was run before would be lost.
    ///
    /// # Errors
    /// Such operations, with a remedy.
    pub fn check(&self) -> Result<(), Error> {
        let mut jobs = self.studies.iter().filter_map(|(_, study)| study.folio_ops());
        jobs.try_for_each(|job| folio_ops::check(&job, self.asked))
    }

    /// Runs everything; `command` repeats it.
    ///
    /// # Errors
    /// When something cannot be run.
    pub fn run(&self, engines: &impl Engines, command: String) -> Result<Published, Error> {
        let per_study: Vec<Vec<Job>> = self.studies.iter().map(|(_, study)| study.jobs()).collect();
        let jobs = per_study.concat();
        let mut profiles = vec![Profile::DEFAULT; jobs.len()];
        let records = engine::run_jobs(engines, &jobs, &mut profiles, 1, false)?;
        let mut left = records.as_slice();
        let mut all = Vec::new();
        for ((series, study), jobs) in self.studies.iter().zip(&per_study) {
            let (own, rest) = left.split_at(jobs.len());
            left = rest;
            let mut known = Trials::default();
            loop {
                let next = study.trials(&known);
                if next.is_empty() {
                    break;
                }
                let progress = engines.progress(Some(next.len() as u64));
                vma_retry::run_all(next, &mut known, &*progress)?;
            }
            // After the others, and alone: it is in real time.
            let timed = study.folio_ops().map(|job| {
                folio_ops::record(&job, self.asked, |total| engines.progress(Some(total)))
            });
            let timed = timed.transpose()?;
            let ran = Ran { records: own, trials: &known, folio_ops: timed.as_ref() };
            all.push(Found { series, cells: study.cells(&ran), origin: study.origin(&ran) });
        }
        Ok(Published::new(all, &records, command))
    }
}

/// The study of one of [`NAMES`]; brief where it takes long and is not asked for by name.
fn study(name: &str, is_named: bool, options: &Options) -> Result<Box<dyn Study>, Error> {
    Ok(match name {
        mmap_miss::NAME => {
            Box::new(mmap_miss::MmapMiss::new(options.seeds.unwrap_or(DEFAULT_SEEDS)))
        }
        vma_bound::NAME => Box::new(vma_bound::VmaBound::new(&options.programs)),
        exec_order::NAME => Box::new(exec_order::ExecOrder),
        vma_retry::NAME => {
            let form = vma_retry::Form::of(options.full, is_named);
            Box::new(vma_retry::VmaRetry::new(options.seeds, form)?)
        }
        _ => Box::new(mm_owner::MmOwner(mm_owner::Form::of(options.full, is_named))),
    })
}

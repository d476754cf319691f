//! Runs of threads that wait, for the published series that has them.

use std::sync::Arc;

use filemap_core::rules::Kernel;
use filemap_core::series::Switch;
use filemap_job::program::{
    FileSpec, MappingSpec, OpenSpec, ProgramSpec, THRASH, ThreadPhaseSpec, ThreadSpec,
    change_protection,
};
use filemap_job::{JobSpec, Run as Ran, SizeText};
use filemap_model::{Profile, trace};
use serde_json::{Map, Value, json};

use super::plan::PUBLISHED_CPUS;
use super::trial::{Change, Simulation, Trial, TrialRun};
use crate::engine::Progress;
use crate::error::Error;
use crate::{machine_profile, parallel, provenance};

/// The newest modelled kernel that the series was not published before.
const KERNEL: Kernel = Kernel::V6_18;

/// The machine of all trials, whose costs are changed one at a time.
const MACHINE: &str = "server";

/// What it costs to evict a page, in nanoseconds for each CPU that does so at the same time: they
/// wait for each other. Chosen so that about as many rounds a second come out as were published.
const EVICT_NS_PER_CPU: u64 = 664;

/// Bytes of a page.
const PAGE: u64 = 4096;

/// Time in which the threads begin.
const STAGGER: &str = "100ms";

/// What the file and the mapping are called that all threads share.
const ALL: &str = "all";

/// What threads are called that read, and those that change protections.
const READER: &str = "reader";
const WRITER: &str = "writer";

const SECOND_NS: u64 = 1_000_000_000;

/// What can be changed, and what the model says of itself.
///
/// # Errors
/// A machine profile that is not to be had.
pub fn simulation() -> Result<Simulation, Error> {
    let costs = costs(&mut machine(PUBLISHED_CPUS)?);
    let named: Map<String, Value> =
        costs.iter().map(|(name, ns)| ((*name).to_string(), Value::from(*ns))).collect();
    let environment = json!({
        "scope": "classic LRU; threads that wait: base pages; no NUMA, writeback, truncation or \
                  swap",
        "elapsed": "predicted from assumed costs",
        "costs_ns": named,
    });
    let Value::Object(mut environment) = environment else { unreachable!("an object literal") };
    provenance::stamp(&mut environment, "model");
    Ok(Simulation { costs, kernel: KERNEL.name().to_string(), environment })
}

/// Runs trials: what came of each, in their order.
pub type Run<'a> = dyn Fn(&[Trial]) -> Result<Vec<TrialRun>, Error> + 'a;

/// Runs `trials` beside each other.
///
/// # Errors
/// When a trial cannot be run.
pub fn beside(trials: &[Trial], progress: &dyn Progress) -> Result<Vec<TrialRun>, Error> {
    parallel::map(trials.iter().collect(), |trial| {
        let run = run(trial)?;
        progress.advance();
        Ok(run)
    })
}

/// The costs that are not 0, by name.
fn costs(profile: &mut Profile) -> Vec<(&'static str, u64)> {
    let named = profile.cost.named().map(|(name, ns)| (name, *ns));
    named.filter(|(_, ns)| *ns > 0).collect()
}

/// The machine of trials with so many CPUs.
fn machine(cpus: u64) -> Result<Profile, Error> {
    let mut profile = machine_profile::named(Some(MACHINE))?;
    profile.cost.evict_page_ns = EVICT_NS_PER_CPU.saturating_mul(cpus);
    Ok(profile)
}

fn run(trial: &Trial) -> Result<TrialRun, Error> {
    let mut profile = machine(trial.cpus)?;
    if let Change::Cost(name, percent) = trial.change {
        let found = profile.cost.named().find(|(known, _)| *known == name);
        let (_, ns) = found.expect("only costs that there are are changed");
        *ns = *ns * percent / 100;
    }
    let program = spec(trial)?.validate(None)?;
    match trace(&program, &profile, &mut ()) {
        Ok(run) => Ok(told(trial, &run)),
        // It jams: nothing was completed.
        Err(error @ filemap_model::Error::ProgramOutOfMemory { .. }) => Ok(TrialRun {
            elapsed_ns: trial.seconds * SECOND_NS,
            ended_early: Some(error.to_string()),
            ..TrialRun::default()
        }),
        Err(error) => Err(error.into()),
    }
}

/// The program of a trial.
fn spec(trial: &Trial) -> Result<ProgramSpec, Error> {
    let size = |pages: u64| Some(SizeText::of(pages * PAGE));
    let flags = JobSpec {
        workload: Some(THRASH.to_string()),
        kernel: Some(KERNEL.name().to_string()),
        with: trial.with_series.then(|| Switch::VmaRetry.name().to_string()),
        seed: Some(trial.seed),
        threads: Some(trial.threads),
        writers: Some(trial.writers),
        cpus: Some(trial.cpus),
        file_size: size(trial.file_pages),
        sparse: Some(true),
        read_ahead_kb: Some(trial.read_ahead_pages * PAGE / 1024),
        memory_high: size(trial.high_pages),
        memory_max: size(trial.max_pages),
        fs: Some("base-pages".to_string()),
        duration: Some(format!("{}s", trial.seconds)),
        stagger: Some(STAGGER.to_string()),
        ..JobSpec::default()
    };
    let spec = flags.thrash()?;
    Ok(if trial.one_vma { in_one_vma(trial, spec) } else { spec })
}

/// The same where all threads read parts of one mapping, which the writers write to. Each drops its
/// part from the mapping instead of unmapping it.
fn in_one_vma(trial: &Trial, spec: ProgramSpec) -> ProgramSpec {
    let of_all =
        || ThreadPhaseSpec { mapping: Some(ALL.to_string()), ..ThreadPhaseSpec::default() };
    let lasts = spec.thread[0].lasts.clone();
    let part_bytes = trial.file_pages * PAGE;
    let reader = |number: u64| {
        let first = number * trial.file_pages;
        let pages = Some(Arc::new((first..first + trial.file_pages).collect()));
        let drop = ThreadPhaseSpec {
            madvise: Some("dontneed".to_string()),
            offset: Some(SizeText::of(number * part_bytes)),
            len: Some(SizeText::of(part_bytes)),
            ..of_all()
        };
        ThreadSpec {
            name: Some(format!("{READER}-{number}")),
            lasts: lasts.clone(),
            stagger: Some(STAGGER.to_string()),
            phase: vec![ThreadPhaseSpec { pages, ..of_all() }, drop],
            ..ThreadSpec::default()
        }
    };
    let writer = |number: u64| ThreadSpec {
        name: Some(format!("{WRITER}-{number}")),
        lasts: lasts.clone(),
        phase: change_protection(ALL),
        ..ThreadSpec::default()
    };
    let file = FileSpec {
        name: ALL.to_string(),
        size: Some(SizeText::of(trial.threads * part_bytes)),
        sparse: true,
        ..FileSpec::default()
    };
    let (name, open) = (ALL.to_string(), ALL.to_string());
    ProgramSpec {
        file: vec![file],
        open: vec![OpenSpec { name: name.clone(), file: name.clone(), direct: false }],
        mapping: vec![MappingSpec { name, open, ..MappingSpec::default() }],
        thread: (0..trial.threads).map(reader).chain((0..trial.writers).map(writer)).collect(),
        ..spec
    }
}

fn told(trial: &Trial, run: &Ran) -> TrialRun {
    let counters = &run.counters;
    let rounds = |of: &str| -> u64 {
        let threads = run.threads.iter().filter(|thread| thread.name.starts_with(of));
        threads.filter_map(|thread| thread.counters.rounds).sum()
    };
    TrialRun {
        elapsed_ns: trial.seconds * SECOND_NS,
        rounds: rounds(READER),
        drops: counters.retry_mmap_drop.unwrap_or(0),
        retries: counters.retry_arrival.unwrap_or(0),
        misses: counters.retry_io_miss.unwrap_or(0),
        refused: counters.vma_lock_refused.unwrap_or(0),
        protections: 2 * rounds(WRITER),
        throttled: counters.throttled.unwrap_or(0),
        waits: run.waits.clone(),
        ended_early: None,
    }
}

#[cfg(test)]
mod tests {
    use filemap_report::{Format, Report};

    use std::cell::RefCell;

    use super::super::super::{Found, Published};
    use super::super::{Form, VmaRetry};
    use crate::engine::Engines;
    use crate::engine::mock::Mock;

    use super::*;

    fn study(full: bool, seeds: u64) -> VmaRetry {
        VmaRetry::new(Some(seeds), Form::of(full, true)).unwrap()
    }

    /// A job like `trial`, but so small that all of them take seconds.
    fn small(trial: &Trial) -> Trial {
        let threads = trial.threads.div_ceil(50);
        Trial {
            threads,
            cpus: trial.cpus.div_ceil(20),
            file_pages: 1024,
            read_ahead_pages: trial.read_ahead_pages / 4,
            high_pages: trial.high_pages / 50 + 200,
            max_pages: trial.max_pages / 50 + 300,
            seconds: 1,
            ..trial.clone()
        }
    }

    /// What is found by small trials, and those that were asked for.
    fn played(study: &VmaRetry) -> (Found, Vec<Trial>) {
        let asked: RefCell<Vec<Trial>> = RefCell::default();
        let found = study.found_by(&|trials| {
            asked.borrow_mut().extend_from_slice(trials);
            let small: Vec<Trial> = trials.iter().map(small).collect();
            beside(&small, &*Mock::default().progress(None))
        });
        (found.unwrap(), asked.into_inner())
    }

    fn report(study: &VmaRetry) -> Report {
        let found = vec![played(study).0];
        Published::new(found, &[], "filemap published vma-retry".to_string()).report()
    }

    #[test]
    fn a_report_is_a_page_wide_and_of_its_schema() {
        let schema = crate::schema::all().into_iter();
        let schema = schema.into_iter().find(|(name, _)| *name == "published").unwrap().1;
        let validator = jsonschema::validator_for(schema.as_value()).unwrap();
        // Two rows by three figures, and two by two; nothing is judged with few seeds.
        for (full, seeds, judged) in [(false, 5, 10), (true, 2, 0)] {
            let report = report(&study(full, seeds));
            let text = report.render(Format::Table);
            for line in text.lines().filter(|line| !line.starts_with("Command:")) {
                assert!(line.chars().count() <= 75, "{line}");
            }
            for words in ["series A", "model, vma-retry", "run queue", "* is"] {
                assert!(text.contains(words), "{words}: {text}");
            }
            assert_eq!(text.contains("Each assumed cost at half"), full);
            assert!(report.render(Format::Markdown).contains("| series B |"));
            let json: Value = serde_json::from_str(&report.json).unwrap();
            let faults: Vec<_> = validator.iter_errors(&json).map(|e| e.to_string()).collect();
            assert!(faults.is_empty(), "{faults:#?}");
            let cells = json["cells"].as_array().unwrap();
            let decided = cells.iter().filter(|cell| cell["ok"].is_boolean());
            assert_eq!(decided.count(), judged, "with {seeds} seeds");
            let costs = simulation().unwrap().costs.len();
            let of_costs = cells.iter().filter(|cell| cell["experiment"] == "sensitivity");
            assert_eq!(of_costs.count(), if full { costs * 2 * 2 } else { 0 });
        }
    }

    /// Which trial ends first is the machine's affair.
    #[test]
    fn a_report_is_the_same_again() {
        let study = study(false, 1);
        let one = report(&study);
        assert_eq!(one.json, report(&study).json);
        let text = one.render(Format::Table).replace('\n', " ");
        assert!(text.contains("with one seed") && !text.contains("1 seeds"), "{text}");
        assert!(text.contains("evicting a page (170 us) is assumed"), "{text}");
    }

    #[test]
    fn the_published_job_is_what_was_published() {
        let (_, asked) = played(&study(true, 5));
        let first = asked[0].clone();
        let program = spec(&first).unwrap().validate(None).unwrap();
        assert_eq!((program.threads.len(), program.file_pages(499).0), (500, 4096));
        assert_eq!(program.cpus, Some(256));
        let (high, max) = (program.machine.memory_high_bytes, program.machine.memory_max_bytes);
        assert_eq!(high, Some(1 << 30));
        assert_eq!(max.unwrap() / PAGE, (1.2 * f64::from(1 << 30) / 4096.0) as u64);
        let longest = Trial { seconds: 600, ..first };
        let pages = [32, 128, 256, 384, 480, 576, 640, 704, 768, 896, 1024];
        let run = pages.iter().filter(|&&read_ahead_pages| {
            asked.contains(&Trial { read_ahead_pages, ..longest.clone() })
        });
        assert_eq!(run.count(), 1, "600 s at the size that is inferred");
    }

    #[test]
    fn threads_of_one_vma_read_parts_of_one_file() {
        let base = small(&played(&study(false, 1)).1[0]);
        let trial = Trial { one_vma: true, writers: 2, ..base };
        let program = spec(&trial).unwrap().validate(None).unwrap();
        assert_eq!((program.files.len(), program.mappings.len()), (1, 1));
        assert_eq!(program.threads.len() as u64, trial.threads + 2);
        let run = run(&trial).unwrap();
        assert!(run.rounds > 0 && run.protections > 0, "{run:?}");
    }
}

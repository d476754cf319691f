//! Runs of threads that wait, for the published series that has them.

use filemap_core::rules::{Arch, Family, Kernel, Rules};
use filemap_core::series::{Series, Switch};
use filemap_core::units::PageCount;
use filemap_model::Profile;
use filemap_model::thrash::costs::Costs;
use filemap_model::thrash::mechanisms::Mechanisms;
use filemap_model::thrash::{Cause, Ending, Outcome, Thrash, Until, run};
use filemap_report::published::{Change, Simulation, Span, Trial, TrialRun, Trials};
use serde_json::{Map, Value, json};

use crate::error::Error;
use crate::parallel;
use crate::progress::Progress;
use crate::provenance;

/// The newest modelled kernel that the series was not published before.
const KERNEL: Kernel = Kernel::V6_18;

/// The costs of all trials, which are changed one at a time.
const COSTS: Costs = Costs::SERVER;

/// Time in which the threads begin, one after the other.
const STAGGER_NS: u64 = 100_000_000;

const SECOND_NS: u64 = 1_000_000_000;

/// What can be left out and changed, and what the model says of itself.
pub fn simulation() -> Simulation {
    let costs = costs();
    let named: Map<String, Value> =
        costs.iter().map(|(name, ns)| ((*name).to_string(), Value::from(*ns))).collect();
    let environment = json!({
        "scope": "classic LRU; threads that wait: one run queue, base pages; no NUMA, writeback, \
                  truncation or swap",
        "elapsed": "predicted from assumed costs",
        "costs_ns": named,
    });
    let Value::Object(mut environment) = environment else { unreachable!("an object literal") };
    provenance::stamp(&mut environment, "model");
    Simulation {
        mechanisms: Mechanisms::ablations().map(|(name, _)| name).to_vec(),
        costs,
        kernel: KERNEL.name().to_string(),
        environment,
    }
}

/// Runs `trials` beside each other, and adds them to `known` in their order.
pub fn run_all(trials: Vec<Trial>, known: &mut Trials) -> Result<(), Error> {
    let progress = Progress::new(trials.len());
    let done = parallel::map(trials, |trial| {
        let outcome = run(&job(&trial), &mut ());
        progress.advance();
        let outcome = outcome.map_err(|error| Error::CannotRun(error.to_string()))?;
        Ok::<_, Error>((trial, told(&outcome)))
    })?;
    done.into_iter().for_each(|(trial, run)| known.add(trial, run));
    Ok(())
}

/// The costs that are not 0, by name.
fn costs() -> Vec<(&'static str, u64)> {
    let mut costs = COSTS;
    let named = costs.named().into_iter().map(|(name, ns)| (name, *ns));
    named.filter(|(_, ns)| *ns > 0).collect()
}

fn job(trial: &Trial) -> Thrash {
    let series = Series::BASELINE;
    let series = if trial.with_series { series.with(Switch::VmaRetry) } else { series };
    let (mut mechanisms, mut costs) = (Mechanisms::ALL, COSTS);
    match trial.change {
        Change::None => {}
        Change::Without(name) => {
            let found = Mechanisms::ablations().into_iter().find(|(known, _)| *known == name);
            mechanisms = found.expect("only mechanisms that there are are left out").1;
        }
        Change::Cost(name, percent) => {
            let found = costs.named().into_iter().find(|(known, _)| *known == name);
            let ns = found.expect("only costs that there are are changed").1;
            *ns = *ns * percent / 100;
        }
    }
    let (seconds, warm_up) = trial.seconds;
    Thrash {
        rules: Rules::new(KERNEL, series),
        arch: Arch::new(Family::X86_64, 4096).expect("x86-64 has pages of 4 KiB"),
        threads: trial.threads as usize,
        cpus: trial.cpus as usize,
        file_pages: PageCount(trial.file_pages),
        sparse: true,
        read_ahead: PageCount(trial.read_ahead_pages),
        fault_around: PageCount(16),
        max_folio: None,
        high: Some(PageCount(trial.high_pages)),
        max: Some(PageCount(trial.max_pages)),
        writers: trial.writers as usize,
        one_vma: trial.one_vma,
        noise_threads: 0,
        until: Until::Elapsed(seconds * SECOND_NS),
        warm_up_ns: warm_up * SECOND_NS,
        stagger_ns: STAGGER_NS,
        seed: trial.seed,
        mechanisms,
        costs,
        device: Profile::DEFAULT.device,
    }
}

fn told(outcome: &Outcome) -> TrialRun {
    let counts = &outcome.counts;
    let span = |cause: Cause| {
        let of = outcome.waits.of(cause);
        Span {
            cause: cause.name(),
            sum_ns: of.sum_ns,
            count: of.count,
            p50_ns: of.percentile_ns(50),
            p99_ns: of.percentile_ns(99),
            max_ns: of.max_ns,
        }
    };
    let is_shown = |cause: &Cause| *cause != Cause::Idle;
    TrialRun {
        elapsed_ns: outcome.elapsed_ns,
        rounds: counts.rounds,
        drops: counts.lock_drops,
        retries: counts.retries,
        misses: counts.retry_misses,
        refused: counts.refused,
        protections: counts.protections,
        throttled: counts.throttled,
        spans: Cause::ALL.into_iter().filter(is_shown).map(span).collect(),
        ended_early: match &outcome.ending {
            Ending::Complete => None,
            ending => Some(ending.to_string()),
        },
    }
}

#[cfg(test)]
mod tests {
    use filemap_report::published::{self, Options, Study};
    use filemap_report::{Format, Report};

    use super::*;

    fn study(full: bool, seeds: u64) -> Box<dyn Study> {
        let options =
            Options { seeds: Some(seeds), full, simulation: simulation(), ..Options::default() };
        published::studies(&["vma-retry".to_string()], &options).unwrap().remove(0)
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
            seconds: (1, 0),
            ..trial.clone()
        }
    }

    /// The trials of `study`, with what small ones came to.
    fn played(study: &dyn Study) -> Trials {
        let mut known = Trials::default();
        loop {
            let next = study.trials(&known);
            if next.is_empty() {
                return known;
            }
            let mut of_small = Trials::default();
            run_all(next.iter().map(small).collect(), &mut of_small).unwrap();
            for trial in next {
                let run = of_small.find(&small(&trial)).unwrap().clone();
                known.add(trial, run);
            }
        }
    }

    fn report(study: &dyn Study) -> Report {
        let trials = played(study);
        let ran = published::Ran { records: &[], trials: &trials, folio_ops: None };
        let findings = study.findings(&ran);
        published::report(vec![findings], &[], "filemap published vma-retry".to_string())
    }

    #[test]
    fn a_report_is_a_page_wide_and_of_its_schema() {
        let schema = filemap_report::schema::all().into_iter();
        let schema = schema.into_iter().find(|(name, _)| *name == "published").unwrap().1;
        let validator = jsonschema::validator_for(schema.as_value()).unwrap();
        // Two rows by two figures, and two by one; nothing is judged with few seeds.
        for (full, seeds, judged) in [(false, 5, 6), (true, 2, 0)] {
            let report = report(&*study(full, seeds));
            let text = report.render(Format::Table);
            for line in text.lines().filter(|line| !line.starts_with("Command:")) {
                assert!(line.chars().count() <= 75, "{line}");
            }
            for words in ["series A", "model, vma-retry", "run queue", "left out", "* is"] {
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
            let costs = simulation().costs.len();
            let of_costs = cells.iter().filter(|cell| cell["experiment"] == "sensitivity");
            assert_eq!(of_costs.count(), if full { costs * 2 * 2 } else { 0 });
            let ablated = cells.iter().filter(|cell| cell["experiment"] == "ablation");
            assert_eq!(ablated.count(), 1 + Mechanisms::ablations().len());
        }
    }

    /// Which trial ends first is the machine's affair.
    #[test]
    fn a_report_is_the_same_again() {
        let study = study(false, 1);
        let one = report(&*study);
        assert_eq!(one.json, report(&*study).json);
        let text = one.render(Format::Table).replace('\n', " ");
        assert!(text.contains("with one seed") && !text.contains("1 seeds"), "{text}");
        assert!(text.contains("evicting a page (14 us) are assumed"), "{text}");
    }

    #[test]
    fn the_published_job_is_what_was_published() {
        let study = study(true, 5);
        let first = study.trials(&Trials::default()).remove(0);
        let job = job(&first);
        assert_eq!((job.threads, job.file_pages), (500, PageCount(4096)));
        assert_eq!(job.cpus, 50, "these are assumed: the machine has 256");
        assert_eq!(job.high, Some(PageCount((1 << 30) / 4096)));
        assert_eq!(job.max.unwrap().0, (1.2 * f64::from(1 << 30) / 4096.0) as u64);
        let known = played(&*study);
        let longest = Trial { seconds: (600, 0), ..first };
        let pages = [32, 128, 256, 384, 512, 576, 640, 704, 768, 896, 1024];
        let run = pages.iter().filter(|&&read_ahead_pages| {
            known.find(&Trial { read_ahead_pages, ..longest.clone() }).is_some()
        });
        assert_eq!(run.count(), 1, "600 s at the size that is inferred");
    }

    /// A change is of what it names, and of nothing else.
    #[test]
    fn changes_change_one_thing() {
        let study = study(true, 1);
        let base = study.trials(&Trials::default()).remove(0);
        let plain = job(&base);
        for (name, ns) in costs() {
            let mut changed = job(&Trial { change: Change::Cost(name, 200), ..base.clone() });
            let mut own = changed.costs.named();
            let found = own.iter_mut().find(|(known, _)| *known == name).unwrap();
            assert_eq!(*found.1, ns * 2, "{name}");
            *found.1 = ns;
            assert_eq!(changed, plain, "{name}");
        }
        for (name, mechanisms) in Mechanisms::ablations() {
            let changed = job(&Trial { change: Change::Without(name), ..base.clone() });
            assert_eq!(changed, Thrash { mechanisms, ..plain.clone() }, "{name}");
        }
    }
}

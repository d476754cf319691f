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

//! The tables of the series.

use super::figures::{Beside, Variant, VariantPair};
use super::plan::{COST_PERCENTS, Experiment, Kind, SMALLER};
use super::trial::{TrialRun, Trials};
use crate::published::data::PUBLISHED;
use crate::stats::Sample;
use filemap_report::{Head, Table};

/// An experiment with what its trials came to.
#[derive(Clone, Copy)]
pub(super) struct Tried<'a> {
    pub experiment: &'a Experiment,
    pub before: &'a TrialRun,
    pub after: Option<&'a TrialRun>,
}

impl<'a> Tried<'a> {
    pub(super) fn new(experiment: &'a Experiment, known: &'a Trials) -> Tried<'a> {
        let mut runs = experiment.trials.iter().map(|trial| known.of(trial));
        let before = runs.next().expect("an experiment has a trial");
        Tried { experiment, before, after: runs.next() }
    }

    /// Without the series and with it.
    pub(super) fn both(&self) -> [&'a TrialRun; 2] {
        [self.before, self.after.expect("it was run with the series")]
    }

    /// Rounds with the series for each without it.
    pub(super) fn ratio(&self) -> Option<f64> {
        let after = self.after.filter(|_| self.before.rounds > 0)?;
        Some(after.rounds_s() / self.before.rounds_s())
    }
}

/// The published rows and the model's two, as ranges over seeds.
pub(super) fn rows(pair: &VariantPair) -> [Table; 2] {
    let range = |sample: Option<Sample>, digits: usize| {
        sample.map_or("-".to_string(), |sample| span(&sample, digits))
    };
    let model = |variant: &Variant| {
        let name = format!("model, {}", variant.trial.variant());
        let figures = vec![
            name.clone(),
            range(Some(variant.sample(|run| run.rounds as f64)), 0),
            range(Some(variant.sample(TrialRun::rounds_s)), 1),
            range(Some(variant.sample(TrialRun::miss_percent)), 2),
            range(variant.drops_per_round(), 1),
        ];
        let counters = vec![
            name,
            range(Some(variant.sample(|run| run.drops as f64)), 0),
            range(Some(variant.sample(|run| run.a_second(run.drops))), 0),
            range(Some(variant.sample(|run| run.misses as f64)), 0),
            range(Some(variant.sample(|run| run.a_second(run.misses))), 0),
        ];
        [figures, counters]
    };
    let mut tables = [Vec::new(), Vec::new()];
    for row in &PUBLISHED.vma_retry.rows {
        let a_second =
            |count: u64| format!("{:.0}", count as f64 * row.rounds_s / row.rounds as f64);
        let [drops, misses] = [row.retry_mmap_drop, row.retry_io_miss];
        tables[0].push(vec![
            row.case.clone(),
            row.rounds.to_string(),
            format!("{:.1}", row.rounds_s),
            format!("{:.2}", row.miss_drop_pct),
            format!("{:.1}", row.drops_per_round()),
        ]);
        let counters = [drops.to_string(), a_second(drops), misses.to_string(), a_second(misses)];
        tables[1].push([row.case.clone()].into_iter().chain(counters).collect());
    }
    for variant in &pair.variants {
        let [figures, counters] = model(variant);
        tables[0].push(figures);
        tables[1].push(counters);
    }
    let figures = ["rounds", "rounds/s", "misses of\n100 drops", "drops\na round"];
    let counters = ["retry_mmap_\ndrop", "a\nsecond", "retry_io_\nmiss", "a\nsecond"];
    let [first, second] = tables;
    let of = |title: &str, names: [&str; 4], rows| {
        let columns = names.into_iter().map(Head::right);
        let columns = [Head::left("")].into_iter().chain(columns).collect();
        Table { title: title.to_string(), columns, rows }
    };
    [
        of("Published rows, and the model's as ranges over seeds", figures, first),
        of("Their counters", counters, second),
    ]
}

/// What is judged of that.
pub(super) fn judged(all: &[Beside]) -> Table {
    let row = |beside: &Beside| {
        let model = beside.model.as_ref();
        vec![
            beside.row.case.clone(),
            beside.unit().to_string(),
            format!("{:.2}", beside.published),
            model.map_or("-".to_string(), |model| format!("{:.2}", model.median)),
            match (beside.ok(), beside.tolerance()) {
                (Some(false), Some(tolerance)) => format!("FAIL: not {tolerance}"),
                (Some(true), Some(tolerance)) => format!("ok: {tolerance}"),
                _ => beside.verdict().to_string(),
            },
        ]
    };
    Table {
        title: "The medians of the model beside the published figures".to_string(),
        columns: vec![
            Head::left("row"),
            Head::left("figure"),
            Head::right("published"),
            Head::right("model"),
            Head::left("verdict"),
        ],
        rows: all.iter().map(row).collect(),
    }
}

/// Experiments of one kind, without the series and with it.
pub(super) fn pairs(kind: Kind, tried: &[Tried], judged_pages: u64) -> Table {
    let row = |tried: &Tried| {
        let trial = &tried.experiment.trials[0];
        let is_judged = kind == Kind::ReadAhead && trial.read_ahead_pages == judged_pages;
        let both = tried.both();
        let mut row = vec![
            format!("{}{}", tried.experiment.name, if is_judged { "*" } else { "" }),
            format!("{:.2}", trial.pressure()),
        ];
        row.extend(both.map(misses));
        row.extend(both.map(drops));
        row.extend(both.map(rounds));
        row.push(ratio(tried));
        row
    };
    let (title, first) = match kind {
        Kind::ReadAhead => ("Over readahead sizes; x = threads x readahead / high", "pages"),
        Kind::Cpus => ("Over CPUs", "CPUs"),
        _ => ("Over threads, with as much memory for each", "threads"),
    };
    let names = [
        first,
        "x",
        "misses %\nbefore",
        "after",
        "drops/\nround\nbefore",
        "after",
        "rounds/s\nbefore",
        "after",
        "ratio",
    ];
    let columns = names.into_iter().map(Head::right).collect();
    Table { title: title.to_string(), columns, rows: tried.iter().map(row).collect() }
}

/// Threads in one large VMA, and those that write to it.
pub(super) fn one_vma(tried: &[Tried]) -> Table {
    let row = |tried: &Tried| {
        let both = tried.both();
        let mut row = vec![tried.experiment.name.clone()];
        row.extend(both.map(misses));
        row.extend(both.map(rounds));
        row.push(ratio(tried));
        row.extend(both.map(|run| format!("{:.0}", run.a_second(run.protections))));
        row
    };
    let names = [
        "writers",
        "misses %\nbefore",
        "after",
        "rounds/s\nbefore",
        "after",
        "ratio",
        "mprotect/s\nbefore",
        "after",
    ];
    Table {
        title: format!("One large VMA under writers, a job {SMALLER} times smaller"),
        columns: names.into_iter().map(Head::right).collect(),
        rows: tried.iter().map(row).collect(),
    }
}

/// What each assumed cost does at half and twice its value.
pub(super) fn sensitivity(tried: &[Tried], costs: &[(&'static str, u64)]) -> Table {
    let row = |(&(name, ns), tried): (&(&'static str, u64), &[Tried])| {
        let mut row = vec![name.trim_end_matches("_ns").to_string(), ns.to_string()];
        row.extend(tried.iter().map(|tried| misses(tried.before)));
        row.extend(tried.iter().map(|tried| drops(tried.before)));
        row.extend(tried.iter().map(ratio));
        row
    };
    let names = [
        "ns",
        "misses %\nx 0.5",
        "x 2",
        "drops/\nround\nx 0.5",
        "x 2",
        "rounds/s,\nafter/before\nx 0.5",
        "x 2",
    ];
    Table {
        title: "Each assumed cost at half and at twice its value".to_string(),
        columns: [Head::left("cost")].into_iter().chain(names.map(Head::right)).collect(),
        rows: costs.iter().zip(tried.chunks(COST_PERCENTS.len())).map(row).collect(),
    }
}

/// The smallest and the largest, or the one that there is.
pub(super) fn span(sample: &Sample, digits: usize) -> String {
    let text = |value: f64| format!("{value:.digits$}");
    match text(sample.min) == text(sample.max) {
        true => text(sample.min),
        false => format!("{}-{}", text(sample.min), text(sample.max)),
    }
}

fn misses(run: &TrialRun) -> String {
    let mark = if run.jams() { "!" } else { "" };
    format!("{:.2}{mark}", run.miss_percent())
}

fn drops(run: &TrialRun) -> String {
    run.drops_per_round().map_or("-".to_string(), |drops| format!("{drops:.1}"))
}

fn rounds(run: &TrialRun) -> String {
    format!("{:.1}", run.rounds_s())
}

fn ratio(tried: &Tried) -> String {
    tried.ratio().map_or("-".to_string(), |ratio| format!("{ratio:.2}"))
}

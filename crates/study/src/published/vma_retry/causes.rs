//! Where the time of the threads went.

use serde_json::{Value, json};

use super::figures::{Variant, VariantPair};
use super::trial::Span;
use filemap_report::units::time;
use filemap_report::{Head, Table};

/// Less than this share of all time is not worth a row, in percent.
const LEAST_PERCENT: f64 = 0.1;

/// The time of one cause over all seeds.
struct Total {
    cause: &'static str,
    percent: f64,
    /// The largest of the seeds.
    p50_ns: u64,
    p99_ns: u64,
    max_ns: u64,
}

fn totals(variant: &Variant) -> Vec<Total> {
    let all: u64 = variant.runs.iter().flat_map(|run| &run.spans).map(|span| span.sum_ns).sum();
    let causes = variant.runs.first().into_iter().flat_map(|run| &run.spans);
    let total = |of: &Span| {
        let spans = variant.runs.iter().flat_map(|run| &run.spans);
        let spans: Vec<&Span> = spans.filter(|span| span.cause == of.cause).collect();
        let sum: u64 = spans.iter().map(|span| span.sum_ns).sum();
        let most = |of: fn(&Span) -> u64| spans.iter().map(|span| of(span)).max().unwrap_or(0);
        Total {
            cause: of.cause,
            percent: sum as f64 * 100.0 / all.max(1) as f64,
            p50_ns: most(|span| span.p50_ns),
            p99_ns: most(|span| span.p99_ns),
            max_ns: most(|span| span.max_ns),
        }
    };
    causes.map(total).collect()
}

/// What 100 seconds of a thread went into, before and after.
pub(super) fn table(pair: &VariantPair) -> Table {
    let [before, after] = [0, 1].map(|of| totals(&pair.variants[of]));
    let is_shown =
        |(before, after): &(&Total, &Total)| before.percent.max(after.percent) >= LEAST_PERCENT;
    let row = |(before, after): (&Total, &Total)| {
        let percent = |total: &Total| format!("{:.1}", total.percent);
        let both = |of: fn(&Total) -> u64| [before, after].map(|total| time(of(total) as f64));
        let mut row = vec![before.cause.to_string(), percent(before), percent(after)];
        row.extend(both(|total| total.p99_ns));
        row.extend(both(|total| total.max_ns));
        row
    };
    let names = ["before\n%", "after\n%", "before\np99", "after\np99", "before\nmax", "after\nmax"];
    let mut columns = vec![Head::left("cause")];
    columns.extend(names.map(Head::right));
    Table {
        title: "Where the threads' time went, before and after the series".to_string(),
        columns,
        rows: before.iter().zip(&after).filter(is_shown).map(row).collect(),
    }
}

/// The same for JSON, by cause.
pub(super) fn json(variant: &Variant) -> Value {
    let entry = |total: Total| {
        let figures = json!({
            "percent": total.percent,
            "p50_ns": total.p50_ns,
            "p99_ns": total.p99_ns,
            "max_ns": total.max_ns,
        });
        (total.cause.to_string(), figures)
    };
    Value::Object(totals(variant).into_iter().map(entry).collect())
}

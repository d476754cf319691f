//! The report on one record.

use filemap_core::address::mapping::SplitProt;
use filemap_job::{EngineKind, Record, Run, Spread};
use serde::Serialize;

use crate::footer::Footer;
use crate::report::{Part, Report, to_json};
use crate::significance;
use crate::table::{Column, Table};

/// The report on `record`, which `command` repeats.
pub fn report(record: &Record, command: String) -> Report {
    #[derive(Serialize)]
    struct Json<'a> {
        #[serde(flatten)]
        record: &'a Record,
        scope: &'a str,
        command: &'a str,
    }
    let footer = Footer::new(std::slice::from_ref(record), command);
    let json = to_json(&Json { record, scope: &footer.scope, command: &footer.command });
    let mut parts = vec![Part::Heading(title(record)), Part::Table(summary(record))];
    parts.extend(outlier_note(record).map(Part::Paragraph));
    parts.extend(reclaim_note(record).map(Part::Paragraph));
    parts.extend(elapsed_note(record).map(Part::Paragraph));
    Report { parts, rows: rows(record), footer, json }
}

/// What one run says, by name, in the order of the record: counters, pages cached, time.
pub fn values(run: &Run) -> impl Iterator<Item = (&'static str, Option<u64>)> + use<> {
    let counters: Vec<_> = run.counters.iter().map(|(name, value)| (name, *value)).collect();
    let cached = [
        ("cached_inside", run.cached.inside),
        ("cached_before", run.cached.before),
        ("cached_after", run.cached.after),
        ("cached_between", run.cached.between),
        ("elapsed_ns", run.elapsed_ns),
    ];
    counters.into_iter().chain(cached)
}

/// The spread of each of [`values`] over the runs of `record`; `None` = no run saw it.
pub fn spreads(record: &Record) -> Vec<(&'static str, Option<Spread>)> {
    let names = values(&Run::default()).map(|(name, _)| name);
    let per_run: Vec<Vec<_>> =
        record.runs.iter().map(|run| values(run).map(|(_, value)| value).collect()).collect();
    let spread = |(index, name)| {
        (name, Spread::of(per_run.iter().filter_map(|values: &Vec<Option<u64>>| values[index])))
    };
    names.enumerate().map(spread).collect()
}

/// A number of things with its thousands apart; medians may be halves.
pub fn number(value: f64) -> String {
    let whole = format!("{:.0}", value.trunc());
    let mut text = String::new();
    for (position, digit) in whole.chars().enumerate() {
        if position > 0 && (whole.len() - position).is_multiple_of(3) {
            text.push(' ');
        }
        text.push(digit);
    }
    if value.fract() != 0.0 { text + ".5" } else { text }
}

/// What `record` is of: `random of 1g, baseline, on the model`.
pub(crate) fn title(record: &Record) -> String {
    let series = record.job.with.as_deref().unwrap_or("baseline");
    // A kernel is what it is.
    let rules = match record.engine == EngineKind::Model.name() {
        true => format!(", {series}"),
        false => String::new(),
    };
    format!("{}{rules}, on the {}", record.job.heading(), record.engine)
}

fn summary(record: &Record) -> Table {
    let several = record.runs.len() > 1;
    let heads: &[&str] = if several { &["median", "MAD", "min", "max"] } else { &["value"] };
    let row = |(name, spread): (&str, Option<Spread>)| {
        let spread = spread?;
        let values = [spread.median, spread.mad, spread.min as f64, spread.max as f64];
        let cells = values.into_iter().take(heads.len()).map(number);
        Some([name.to_string()].into_iter().chain(cells).collect())
    };
    let heads = heads.iter().copied().map(Column::right);
    Table {
        title: String::new(),
        columns: [Column::left("counter")].into_iter().chain(heads).collect(),
        rows: spreads(record).into_iter().filter_map(row).collect(),
    }
}

/// One row for each run.
fn rows(record: &Record) -> Table {
    let row = |run: &Run| {
        let cells = values(run).map(|(_, value)| value.map_or(String::new(), |v| v.to_string()));
        [record.engine.clone(), run.seed.to_string()].into_iter().chain(cells).collect()
    };
    let names = ["engine", "seed"].into_iter().chain(values(&Run::default()).map(|(name, _)| name));
    Table {
        title: String::new(),
        columns: names.map(Column::left).collect(),
        rows: record.runs.iter().map(row).collect(),
    }
}

/// Times of a real kernel, in nanoseconds, one for each run that was timed.
pub(crate) fn measured_ns(record: &Record) -> Vec<u64> {
    let measured = record.engine == EngineKind::Kernel.name();
    record.runs.iter().filter(|_| measured).filter_map(|run| run.elapsed_ns).collect()
}

/// Names the runs of a real kernel that took much longer or shorter than the others.
pub(crate) fn outlier_note(record: &Record) -> Option<String> {
    let times = measured_ns(record);
    let name = |&position: &usize| {
        format!("run {} ({:.3} ms)", position + 1, times[position] as f64 / 1e6)
    };
    let named: Vec<String> = significance::outliers(&times).iter().map(name).collect();
    (!named.is_empty()).then(|| format!("Outliers in time: {}.", named.join(", ")))
}

/// What is to be said of counts where memory was short: what the model evicts follows its time.
pub(crate) fn reclaim_note(record: &Record) -> Option<String> {
    let job = &record.job;
    let evicts = record.runs.iter().any(|run| run.counters.evicted_pages > Some(0));
    if record.engine != EngineKind::Model.name() || !evicts {
        return None;
    }
    let executable = job.exec == Some(true)
        || job.maps_elf()
        || job.split_prot.as_deref() == Some(SplitProt::Exec.name());
    let advice = match job.machine {
        Some(_) => "",
        None => ": give --machine a profile of the machine in question (filemap calibrate)",
    };
    Some(match executable {
        true => format!(
            "Warning: memory was short. Of executable mappings a kernel may read half as much or \
             several times as much (docs/MODEL.md); it depends on the time{advice}."
        ),
        false => format!(
            "Memory was short. If pages are used again, what stays of them depends on the \
             predicted time too{advice}."
        ),
    })
}

/// What is to be said of the time.
pub(crate) fn elapsed_note(record: &Record) -> Option<String> {
    (record.engine == EngineKind::Model.name()).then(|| {
        "elapsed_ns of the model is predicted from the machine profile, not measured.".to_string()
    })
}

#[cfg(test)]
mod tests {
    use filemap_job::Counters;

    use super::*;

    #[test]
    fn numbers_have_their_thousands_apart() {
        for (value, text) in [
            (0.0, "0"),
            (999.0, "999"),
            (1000.0, "1 000"),
            (1234567.0, "1 234 567"),
            (2.5, "2.5"),
            (1000.5, "1 000.5"),
        ] {
            assert_eq!(number(value), text);
        }
    }

    #[test]
    fn values_are_the_counters_and_more() {
        let run = Run::default();
        assert_eq!(values(&run).count(), Counters::NAMES.len() + 5);
    }
}

//! The report on one record.

mod by_table;
mod phases;

use filemap_core::address::mapping::SplitProt;
use filemap_job::program::MappingSpec;
use filemap_job::{EngineKind, Job, JobSpec, ProgramSpec, Record, Run, Spread};
use serde::Serialize;
use serde_json::Value;

pub(crate) use by_table::{MAX_ROWS, of_runs};
pub(crate) use phases::shortened;

use crate::explain::{History, ProgramHistory};
use crate::figures::{self, FIGURES};
use crate::footer::Footer;
use crate::json::{in_one_line, to_json};
use crate::setup;
use crate::spread;
use crate::stats::{MAD, Sample};
use crate::verdict;
use filemap_report::units::{number, time};
use filemap_report::{Head, Table};
use filemap_report::{Part, Report};

/// Most characters of a machine profile's path in a report.
const PATH_COLUMNS: usize = 24;

/// The report as JSON.
#[derive(Serialize, schemars::JsonSchema)]
pub(crate) struct Json<'a> {
    #[serde(flatten)]
    record: &'a Record,
    used_pages: Option<u64>,
    /// The course of the first run in the model; null of a kernel's.
    #[serde(serialize_with = "in_one_line")]
    #[schemars(with = "Option<Courses>")]
    history: Option<&'a Courses>,
    scope: &'a str,
    command: &'a str,
}

/// The course of a run.
#[derive(Clone, Debug, PartialEq, Serialize, schemars::JsonSchema)]
#[serde(untagged)]
pub enum Courses {
    /// Of a job of flags: that of its file.
    OneFile(Box<History>),
    /// Of a job with tables: those of its files.
    Files(Box<ProgramHistory>),
}

/// The report on `record`, of `job` where it is at hand; `command` repeats it. With `verbose`,
/// every counter under its own name too. `history` is that of its first run.
pub fn report(
    record: &Record,
    job: Option<&Job>,
    history: Option<&Courses>,
    verbose: bool,
    command: String,
) -> Report {
    let footer = Footer::new(std::slice::from_ref(record), command);
    let json = to_json(&Json {
        record,
        used_pages: job.and_then(Job::used_pages),
        history,
        scope: &footer.scope,
        command: &footer.command,
    });
    let mut parts = vec![
        Part::Heading(title(record)),
        setup::of_record(record),
        Part::Table(figures_table(record, job)),
    ];
    parts.extend(by_table::parts(record));
    parts.extend(phases::part(record));
    let of_threads = record.job.tables().map_or(&[][..], |program| &program.thread);
    if of_threads.iter().any(|thread| thread.count > Some(1)) {
        let text = "Of a table that stands for several threads, phases have the time of all of \
                    them together.";
        parts.push(Part::Paragraph(text.to_string()));
    }
    parts.extend(by_table::waited(record));
    let read = Sample::of(spread::bytes_read(record));
    if spread::seeds(record) > 1 {
        let note = read.as_ref().and_then(|read| spread::note("The job", read));
        parts.extend(note.map(Part::Paragraph));
    }
    parts.extend(Part::warnings(&record.warnings));
    if verbose {
        parts.push(Part::Table(summary(record)));
        parts.extend((record.runs.len() > 1).then(|| Part::Paragraph(MAD.to_string())));
    }
    parts.extend(outlier_note(record).map(Part::Paragraph));
    parts.extend(reclaim_note(record).map(Part::Paragraph));
    parts.extend(foreign_note(record).map(Part::Paragraph));
    parts.extend(elapsed_note(record).map(Part::Paragraph));
    let rows = if record.job.tables().is_some() { phases::rows(record) } else { rows(record) };
    Report { parts, rows, footer: footer.footer(), json }
}

/// The figures that matter first.
fn figures_table(record: &Record, job: Option<&Job>) -> Table {
    let several = record.runs.len() > 1;
    let heads: &[&str] = if several { &["median", "min", "max"] } else { &["value"] };
    let rows = FIGURES.iter().zip(figures::samples(record, job)).filter_map(|(figure, sample)| {
        let shown = figures::is_shown(figure, [&sample]);
        let sample = sample.filter(|_| shown)?;
        let values = [sample.median, sample.min, sample.max].into_iter().take(heads.len());
        let name = figures::row_name(figure, [record.engine.as_str()]);
        Some([name].into_iter().chain(values.map(|value| figure.unit.text(value))).collect())
    });
    let first = match (several, spread::seeds(record)) {
        (false, _) => "figure".to_string(),
        (true, 1) => format!("{} runs", record.runs.len()),
        (true, seeds) => format!("{seeds} seeds"),
    };
    let heads = heads.iter().copied().map(Head::right);
    Table {
        title: String::new(),
        columns: [Head::left(first)].into_iter().chain(heads).collect(),
        rows: rows.collect(),
    }
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

/// What `record` is of: `random of 1g, baseline, on the model`.
pub(crate) fn title(record: &Record) -> String {
    let flags = record.job.flags();
    let series = flags.with.as_deref().unwrap_or("baseline");
    // A kernel has the patches that it was built with.
    let rules = match record.engine == EngineKind::Model.name() {
        true => format!(", {series}"),
        false => String::new(),
    };
    format!("{}{rules}, on the {}", heading(record), record.engine)
}

/// What was run: `random of 1g`, `program of 2 files`.
pub(crate) fn heading(record: &Record) -> String {
    match record.job.tables() {
        None => record.job.flags().heading(),
        Some(program) => format!("program of {}", setup::files_of(program)),
    }
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
    let heads = heads.iter().copied().map(Head::right);
    Table {
        title: String::new(),
        columns: [Head::left("counter")].into_iter().chain(heads).collect(),
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
        columns: names.map(Head::left).collect(),
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
    let name =
        |&position: &usize| format!("run {} ({})", position + 1, time(times[position] as f64));
    let named: Vec<String> = verdict::outliers(&times).iter().map(name).collect();
    (!named.is_empty()).then(|| format!("Outliers in time: {}.", named.join(", ")))
}

/// What is to be said of counts where memory was short: what the model evicts follows its time.
pub(crate) fn reclaim_note(record: &Record) -> Option<String> {
    let job = record.job.flags();
    let limits = [&job.ram, &job.cache_limit, &job.memory_high, &job.memory_max];
    let is_limited = limits.into_iter().any(Option::is_some);
    let evicts = record.runs.iter().any(|run| run.counters.evicted_pages > Some(0));
    // Without a limit nothing is evicted but what advice drops.
    if record.engine != EngineKind::Model.name() || !(is_limited && evicts) {
        return None;
    }
    let executable = match record.job.tables() {
        None => maps_code(&job),
        Some(program) => tables_map_code(program),
    };
    let advice = match job.machine.as_deref() {
        Some(name) if name != "default" => "",
        _ => ": give --machine a profile of the machine in question (filemap calibrate)",
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

/// Whether a job of these flags maps something executable.
fn maps_code(job: &JobSpec) -> bool {
    job.exec == Some(true)
        || job.maps_elf()
        || job.split_prot.as_deref() == Some(SplitProt::Exec.name())
}

/// Whether a job with these tables maps something executable.
fn tables_map_code(program: &ProgramSpec) -> bool {
    let is_exec = |protection: &Option<String>| protection.as_deref() == Some("exec");
    let mut steps = program.thread.iter().flat_map(|thread| &thread.phase);
    let maps = |of: &MappingSpec| of.exec || of.elf || is_exec(&of.split_prot);
    program.mapping.iter().any(maps) || steps.any(|step| is_exec(&step.mprotect))
}

/// What is to be said of runs of a real kernel that somebody else's eviction has disturbed.
pub(crate) fn foreign_note(record: &Record) -> Option<String> {
    let kept = record.environment.get("runs_kept_with_foreign_eviction").and_then(Value::as_u64);
    kept.filter(|&kept| kept > 0).map(|kept| {
        let of = record.runs.len();
        format!(
            "Warning: in {kept} of {of} runs somebody else took pages of the file from the cache."
        )
    })
}

/// What is to be said of the time, in one line.
pub(crate) fn elapsed_note(record: &Record) -> Option<String> {
    if record.engine != EngineKind::Model.name() {
        return None;
    }
    let profile = match record.job.flags().machine.as_deref() {
        Some(path) => format!("machine profile '{}'", shortened(path, PATH_COLUMNS)),
        None => "the default machine profile".to_string(),
    };
    let device = record.environment.get("profile")?.get("device")?;
    let figure = |key: &str| device.get(key).and_then(Value::as_u64).map(|value| value as f64);
    let (latency_ns, bandwidth) = (figure("latency_ns")?, figure("bandwidth_bytes")?);
    Some(format!(
        "Times are predicted by {profile} ({}, {:.1} GB/s).",
        time(latency_ns),
        bandwidth / 1e9
    ))
}

#[cfg(test)]
mod tests {
    use filemap_job::Counters;

    use super::*;

    #[test]
    fn values_are_the_counters_and_more() {
        let run = Run::default();
        assert_eq!(values(&run).count(), Counters::NAMES.len() + 5);
    }
}

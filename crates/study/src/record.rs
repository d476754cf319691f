//! Titles, notes and values of a record that reports share.

use filemap_core::address::mapping::SplitProt;
use filemap_job::program::MappingSpec;
use filemap_job::{EngineKind, JobSpec, Record, Run, Spread, Summary};
use serde_json::Value;

use crate::compare::emulated::is_emulated;
use crate::figures;
use crate::machine_profile;
use crate::setup;
use crate::spread;
use crate::verdict;
use filemap_report::SpreadRow;
use filemap_report::units::{number, time};

/// Maximum number of rows of a table in a report; CSV and JSON have all.
pub(crate) const MAX_ROWS: usize = 40;

/// A median, with its range unless that is a single value.
pub(crate) fn with_range(median: f64, [min, max]: [f64; 2]) -> String {
    if min == max {
        return number(median);
    }
    format!("{} ({} to {})", number(median), number(min), number(max))
}

/// Truncates a long name from the left, since the end of a path says most.
pub(crate) fn shorten_name(name: &str, columns: usize) -> String {
    let length = name.chars().count();
    if length <= columns {
        return name.to_string();
    }
    let end: String = name.chars().skip(length - (columns - 3)).collect();
    format!("...{end}")
}

/// The values of one run by name, in the order of the record: counters, cached pages, time.
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

/// The spread of each of [`values`] over the runs of `record`; `None` if no run has the value.
pub fn spreads(record: &Record) -> Vec<(&'static str, Option<Spread>)> {
    let Summary { counters, cached, elapsed_ns, .. } = &record.summary;
    let cached = [cached.inside, cached.before, cached.after, cached.between];
    let own = counters.iter().map(|(_, spread)| *spread).chain(cached).chain([*elapsed_ns]);
    values(&Run::default()).map(|(name, _)| name).zip(own).collect()
}

/// The title of a record: `random of 1g, baseline, on the model`.
pub(crate) fn title(record: &Record) -> String {
    let series = record.job.with.as_deref().unwrap_or("baseline");
    // A kernel contains the series that it was built with.
    let is_model = record.engine == EngineKind::Model.name();
    let rules = if is_model { format!(", {series}") } else { String::new() };
    format!("{}{rules}, on the {}", record_heading(record), record.engine)
}

/// Short name of the job: `random of 1g`, `program of 2 files`.
pub(crate) fn record_heading(record: &Record) -> String {
    let job = &record.job;
    let heading = job.heading().filter(|_| job.is_single_mapping() || has_only_phase(job));
    heading.unwrap_or_else(|| format!("program of {}", setup::files_text(job)))
}

/// Whether the job has one file, and one thread with a single phase.
fn has_only_phase(job: &JobSpec) -> bool {
    let ([file], [thread]) = (&job.file[..], &job.thread[..]) else { return false };
    let [phase] = &thread.phase[..] else { return false };
    let is_one = file.count.unwrap_or(1) == 1 && thread.count.unwrap_or(1) == 1;
    is_one && phase.workload.is_some()
}

/// Elapsed times in nanoseconds of the timed runs on a real kernel.
pub(crate) fn measured_ns(record: &Record) -> Vec<u64> {
    let measured = record.engine == EngineKind::Kernel.name() && !is_emulated(record);
    record.runs.iter().filter(|_| measured).filter_map(|run| run.elapsed_ns).collect()
}

/// Names outliers: runs on a real kernel that took much longer or shorter than the others.
pub(crate) fn outlier_note(record: &Record) -> Option<String> {
    let times = measured_ns(record);
    let name =
        |&position: &usize| format!("run {} ({})", position + 1, time(times[position] as f64));
    let named: Vec<String> = verdict::outliers(&times).iter().map(name).collect();
    (!named.is_empty()).then(|| format!("Outliers in time: {}.", named.join(", ")))
}

/// A note on the model's counts under memory pressure: its evictions depend on its predicted times.
pub(crate) fn reclaim_note(record: &Record) -> Option<String> {
    let job = &record.job;
    let limits = [&job.ram, &job.cache_limit, &job.memory_high, &job.memory_max];
    let is_limited = limits.into_iter().any(Option::is_some);
    let evicts = record.runs.iter().any(|run| run.counters.evicted_pages > Some(0));
    // Without a limit only advice evicts pages.
    if record.engine != EngineKind::Model.name() || !(is_limited && evicts) {
        return None;
    }
    let executable = maps_code(job);
    let advice = match job.machine.as_deref() {
        Some(name) if name != "default" => "",
        _ => ": give --machine a profile of the machine in question (filemap calibrate)",
    };
    Some(if executable {
        format!(
            "Warning: memory was short. For executable mappings a kernel may read half as much or \
             several times as much (docs/MODEL.md); it depends on the time{advice}."
        )
    } else {
        format!(
            "Memory was short. If pages are used again, which of them stay depends on the \
             predicted time too{advice}."
        )
    })
}

/// Whether `job` has an executable mapping at any time.
fn maps_code(job: &JobSpec) -> bool {
    let is_exec =
        |protection: &Option<String>| protection.as_deref() == Some(SplitProt::Exec.name());
    let mut steps = job.thread.iter().flat_map(|thread| &thread.phase);
    let maps = |mapping_spec: &MappingSpec| {
        mapping_spec.exec || mapping_spec.elf || is_exec(&mapping_spec.split_prot)
    };
    job.mapping.iter().any(maps) || steps.any(|step| is_exec(&step.mprotect))
}

/// A warning about runs on a real kernel in which another process caused evictions.
pub(crate) fn foreign_note(record: &Record) -> Option<String> {
    let kept = record.environment.get("runs_kept_with_foreign_eviction").and_then(Value::as_u64);
    kept.filter(|&kept| kept > 0).map(|kept| {
        let total = record.runs.len();
        format!(
            "Warning: in {kept} of {total} runs something else removed pages of the file from the \
             cache."
        )
    })
}

/// The noun that runs are numbered by: `seed` if there are several seeds, otherwise `run`.
pub(crate) fn runs_word(record: &Record) -> &'static str {
    if spread::seeds(record) > 1 { "seed" } else { "run" }
}

/// Bytes read by each run of `record`, as a chart row called `name`.
pub(crate) fn outcomes(name: String, record: &Record) -> SpreadRow {
    let is_seed = runs_word(record) == "seed";
    let runs = record.runs.iter().zip(figures::figure_inputs(record, None)).enumerate();
    let runs = runs.filter_map(|(at, (run, seen))| {
        let name = if is_seed { run.seed.to_string() } else { (at + 1).to_string() };
        Some((format!("{} {name}", runs_word(record)), seen.read_bytes()?))
    });
    SpreadRow { name, runs: runs.collect() }
}

/// A one-line note about the elapsed time.
pub(crate) fn elapsed_note(record: &Record) -> Option<String> {
    if record.engine != EngineKind::Model.name() {
        return None;
    }
    let used = record.environment.get("profile")?;
    let measured = used.get("measured").and_then(Value::as_str);
    let profile = machine_profile::name_in_words(record.job.machine.as_deref(), measured);
    let device = used.get("device")?;
    let figure = |key: &str| device.get(key).and_then(Value::as_u64).map(|value| value as f64);
    let (latency_ns, bandwidth) = (figure("latency_ns")?, figure("bandwidth_bytes")?);
    Some(format!(
        "Times are predicted by {profile} ({}, {:.1} GB/s).{}",
        time(latency_ns),
        bandwidth / 1e9,
        machine_profile::known_error(measured)
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

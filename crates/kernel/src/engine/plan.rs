//! From a job to what the probe does.

use std::path::Path;

use filemap_core::rules::{Family, Rules};
use filemap_core::series::Series;
use filemap_core::units::{PageCount, PageIndex};
use filemap_job::{Job, Machine, Phase};

use super::needs::Needs;
use crate::probe::{Access, MAX_READ_BYTES, Mapping, Plan, Segment, cpus};
use crate::{Error, page_size};

/// Most accesses of one run: they are all in memory before it begins.
pub const MAX_RUN_ACCESSES: u64 = 1 << 22;

/// What the probe does for `job` on the file at `path`.
///
/// # Errors
/// What no probe can do: [`Error::cannot_run_here`].
pub fn plan(job: &Job, path: &Path) -> Result<Plan, Error> {
    check_accesses(&Needs::from(job))?;
    let mapping = &job.mapping;
    let segments = job.segments();
    let ends = segments.iter().map(|segment| segment.start + segment.pages);
    Ok(Plan {
        path: path.to_owned(),
        mapping: Mapping {
            offset: mapping.offset,
            pages: ends.max().unwrap_or(mapping.pages),
            shift: mapping.shift,
            advice: mapping.advice,
            executable: mapping.exec,
            private: mapping.private,
            split: mapping.split,
        },
        phases: job.phases.iter().map(|phase| accesses(job, phase, &segments)).collect(),
        segments,
        settle: false,
        report_mapped: false,
        is_governed: job.machine.governor,
    })
}

fn accesses(job: &Job, phase: &Phase, segments: &[Segment]) -> Vec<Access> {
    if phase.is_read() {
        let base = job.mapping.offset.0 * job.page_size();
        let blocks = job.reads(phase);
        return blocks
            .map(|block| Access::Read { offset: base + block.offset_bytes, bytes: block.len_bytes })
            .collect();
    }
    let access = match () {
        () if phase.is_exec() => Access::Call,
        () if job.mapping.private => Access::Store,
        () => Access::Touch,
    };
    let place = place(segments);
    job.accesses(phase).map(|page| access(place(page))).collect()
}

/// Where in the mapping a page lies that is counted through all segments, one behind the other;
/// without segments the mapping has no gaps.
fn place(segments: &[Segment]) -> impl Fn(u64) -> PageIndex {
    let mut pages = 0;
    let first = segments.iter().map(|segment| {
        pages += segment.pages.0;
        (pages - segment.pages.0, segment.start)
    });
    let first: Vec<(u64, PageCount)> = first.collect();
    move |page| match first[..first.partition_point(|first| first.0 <= page)].last() {
        Some((before, start)) => PageIndex(start.0 + page - before),
        None => PageIndex(page),
    }
}

pub(super) fn check_accesses(needs: &Needs) -> Result<(), Error> {
    let (accesses, bytes) = (needs.accesses, needs.longest_read_bytes);
    let of_program = needs.is_program();
    if accesses > MAX_RUN_ACCESSES {
        let how = if of_program { "in all phases" } else { "with --accesses" };
        return Err(Error::unavailable(
            format!("a run of {accesses} accesses"),
            format!("give at most {MAX_RUN_ACCESSES} {how}, or --on model"),
        ));
    }
    if bytes > MAX_READ_BYTES {
        let key = if of_program { "bs =" } else { "--bs" };
        return Err(Error::unavailable(
            format!("a read of {bytes} bytes"),
            format!("give {key} {}m or less, or --on model", MAX_READ_BYTES >> 20),
        ));
    }
    Ok(())
}

/// Refuses what is not this kernel's or this machine's, whatever its settings are.
pub(super) fn check_machine(needs: &Needs) -> Result<(), Error> {
    check_series(&needs.rules)?;
    check_architecture(&needs.machine)?;
    check_accesses(needs)?;
    if needs.files.iter().any(|needed| !needed.called.is_empty() && needed.file.sparse) {
        return Err(Error::unavailable(
            "a call of code in a --sparse file",
            "leave --sparse out, or give --on model",
        ));
    }
    check_cpus(needs, cpus::allowed())?;
    if needs.machine.ram_bytes.is_some() {
        return Err(Error::unavailable(
            "another size of RAM",
            "give --memory-max, boot a machine of that size with --image, or give --on model",
        ));
    }
    Ok(())
}

/// Refuses more CPUs than the `allowed` ones.
pub(super) fn check_cpus(needs: &Needs, allowed: u64) -> Result<(), Error> {
    let key = if needs.is_program() { "cpus =" } else { "--cpus" };
    match needs.cpus.filter(|&cpus| cpus > allowed) {
        None => Ok(()),
        Some(cpus) => Err(Error::unavailable(
            format!("a machine with {cpus} CPUs"),
            format!("give {key} {allowed} or less, or --on model"),
        )),
    }
}

/// Refuses series: the running kernel is as it is.
fn check_series(rules: &Rules) -> Result<(), Error> {
    if rules.series == Series::BASELINE {
        return Ok(());
    }
    Err(Error::unavailable(
        format!("the series {} on a kernel that is as it is", rules.series),
        "leave it out, give a patched kernel to --image, or give --on model",
    ))
}

/// Refuses what no kernel on a machine such as this can do.
pub(super) fn check_architecture(machine: &Machine) -> Result<(), Error> {
    let refuse = |what: String, remedy: &str| Err(Error::unavailable(what, remedy));
    let family = if cfg!(target_arch = "aarch64") { Family::Arm64 } else { Family::X86_64 };
    let arch = machine.arch;
    if arch.family != family || arch.page_size != page_size() {
        return refuse(
            format!("{} with pages of {} bytes", arch.family.name(), arch.page_size),
            "leave out --arch and --page-size, or give --on model",
        );
    }
    if machine.implied_cache_limit() != machine.cache_limit {
        return refuse(
            "a limit of the page cache alone".into(),
            "give --memory-max instead of --cache-limit, or --on model",
        );
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn pages_of_segments_are_placed_with_gaps_between() {
        let segment = |pages, start| Segment {
            offset: PageIndex(0),
            pages: PageCount(pages),
            start: PageCount(start),
            executable: false,
            writable: false,
        };
        let segments = [segment(3, 10), segment(1, 0), segment(2, 20)];
        let places: Vec<u64> = (0..6).map(|page| place(&segments)(page).0).collect();
        assert_eq!(places, [10, 11, 12, 0, 20, 21]);
        assert_eq!(place(&[])(7), PageIndex(7));
    }
}

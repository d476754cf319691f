//! From a job to what the probe does.

use std::path::Path;

use filemap_core::rules::Family;
use filemap_core::series::Series;
use filemap_core::units::PageIndex;
use filemap_job::{Job, Phase};

use crate::probe::{Access, MAX_READ_BYTES, Mapping, Plan};
use crate::{Error, page_size};

/// Most accesses of one run: they are all in memory before it begins.
pub const MAX_RUN_ACCESSES: u64 = 1 << 22;

/// What the probe does for `job` on the file at `path`.
///
/// # Errors
/// What no probe can do: [`Error::cannot_run_here`].
pub fn plan(job: &Job, path: &Path) -> Result<Plan, Error> {
    check_accesses(job)?;
    let mapping = &job.mapping;
    Ok(Plan {
        path: path.to_owned(),
        mapping: Mapping {
            offset: mapping.offset,
            pages: mapping.pages,
            shift: mapping.shift,
            advice: mapping.advice,
            executable: mapping.exec,
            private: mapping.private,
            split: mapping.split,
        },
        phases: job.phases.iter().map(|phase| accesses(job, phase)).collect(),
        settle: false,
        report_mapped: false,
    })
}

fn accesses(job: &Job, phase: &Phase) -> Vec<Access> {
    if phase.is_read() {
        let base = job.mapping.offset.0 * job.page_size();
        let blocks = job.reads(phase);
        return blocks
            .map(|block| Access::Read { offset: base + block.offset_bytes, bytes: block.len_bytes })
            .collect();
    }
    let access = if job.mapping.private { Access::Store } else { Access::Touch };
    job.accesses(phase).map(|page| access(PageIndex(page))).collect()
}

pub(super) fn check_accesses(job: &Job) -> Result<(), Error> {
    let accesses = job.phases.iter().fold(0, |sum: u64, phase| sum.saturating_add(phase.accesses));
    if accesses > MAX_RUN_ACCESSES {
        return Err(Error::unavailable(
            format!("a run of {accesses} accesses"),
            format!("give at most {MAX_RUN_ACCESSES} with --accesses, or --on model"),
        ));
    }
    let longest = job.phases.iter().filter(|phase| phase.is_read()).map(|phase| phase.bs_bytes);
    match longest.max() {
        Some(bytes) if bytes > MAX_READ_BYTES => Err(Error::unavailable(
            format!("a read of {bytes} bytes"),
            format!("give --bs {}m or less, or --on model", MAX_READ_BYTES >> 20),
        )),
        _ => Ok(()),
    }
}

/// Refuses what is not this kernel's or this machine's, whatever its settings are.
pub(super) fn check_machine(job: &Job) -> Result<(), Error> {
    check_rules(job)?;
    check_accesses(job)?;
    if job.machine.ram_bytes.is_some() {
        return Err(Error::unavailable(
            "another size of RAM",
            "give --memory-max, boot a machine of that size with --image, or give --on model",
        ));
    }
    Ok(())
}

/// Refuses what no kernel on a machine such as this can do.
pub(super) fn check_rules(job: &Job) -> Result<(), Error> {
    let refuse = |what: String, remedy: &str| Err(Error::unavailable(what, remedy));
    if job.rules.series != Series::BASELINE {
        return refuse(
            format!("the series {} on a kernel that is as it is", job.rules.series),
            "give a patched kernel to --image without --with, or give --on model",
        );
    }
    let family = if cfg!(target_arch = "aarch64") { Family::Arm64 } else { Family::X86_64 };
    let arch = job.machine.arch;
    if arch.family != family || arch.page_size != page_size() {
        return refuse(
            format!("{} with pages of {} bytes", arch.family.name(), arch.page_size),
            "leave out --arch and --page-size, or give --on model",
        );
    }
    if job.machine.implied_cache_limit() != job.machine.cache_limit {
        return refuse(
            "a limit of the page cache alone".into(),
            "give --memory-max instead of --cache-limit, or --on model",
        );
    }
    Ok(())
}

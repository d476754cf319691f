//! What no run on this machine can do.

use filemap_core::rules::{Family, Rules};
use filemap_core::series::Series;
use filemap_job::Machine;

use super::needs::JobNeeds;
use crate::probe::{MAX_READ_BYTES, cpus};
use crate::{Error, page_size};

/// Most accesses of one run: they are all in memory before it begins.
pub const MAX_RUN_ACCESSES: u64 = 1 << 22;

pub(super) fn check_accesses(needs: &JobNeeds) -> Result<(), Error> {
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
pub(super) fn check_machine(needs: &JobNeeds) -> Result<(), Error> {
    check_series(&needs.rules)?;
    check_architecture(&needs.machine)?;
    check_accesses(needs)?;
    if needs.files.iter().any(|needed| !needed.called.is_empty() && needed.file.sparse) {
        return Err(Error::unavailable(
            "a call of code in a sparse file",
            "leave out --sparse, or sparse = true in a job file, or give --on model",
        ));
    }
    check_cpus(needs, cpus::allowed_cpus())?;
    if needs.machine.ram_bytes.is_some() {
        return Err(Error::unavailable(
            "another size of RAM",
            "give --memory-max, boot a machine of that size with --image, or give --on model",
        ));
    }
    Ok(())
}

/// Refuses more CPUs than the `allowed` ones.
pub(super) fn check_cpus(needs: &JobNeeds, allowed: u64) -> Result<(), Error> {
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
        format!("{} in the running kernel", rules.series),
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

//! Checks that the rules of a job match the kernel that it runs on or is compared with.

use filemap_core::rules::{Kernel, Nearest};
use filemap_job::{EngineKind, Job};

use crate::error::Error;
use crate::{host, input};

/// Warnings about rules of `jobs` that are not their kernel's. `kernel` is the value of `--kernel`.
///
/// # Errors
/// When a kernel image cannot be read.
pub fn warnings(kernel: Option<&str>, jobs: &[&Job]) -> Result<Vec<String>, Error> {
    let mut warnings = Vec::new();
    let mut add = |warning: String| {
        if !warnings.contains(&warning) {
            warnings.push(warning);
        }
    };
    let models = || jobs.iter().filter(|job| job.engine == EngineKind::Model);
    for job in jobs {
        let Some((release, nearest)) = kernel_and_rules(job)? else { continue };
        nearest_kernel_warning(&release, nearest).into_iter().for_each(&mut add);
        let others = models().filter(|model| model.rules.kernel != nearest.kernel);
        others.for_each(|model| {
            let rules = model.rules.kernel.name();
            add(format!(
                "the model goes by the rules of Linux {rules}, and the kernel beside it is \
                 {release}; leave --kernel out to give both the same"
            ));
        });
    }
    let release = input::host_release().unwrap_or_default();
    let here = Kernel::nearest(&release);
    if let (Some(nearest), true) = (here, jobs.len() == models().count()) {
        let warning = match kernel {
            Some("host") => nearest_kernel_warning(&release, nearest),
            None => jobs.iter().find_map(|job| other_rules_warning(job, &release, nearest)),
            Some(_) => None,
        };
        warning.into_iter().for_each(add);
    }
    Ok(warnings)
}

/// Refuses a kernel job that names other rules than the ones nearest to its kernel.
///
/// # Errors
/// On such a job, or when its kernel image cannot be read.
pub fn check(job: &Job) -> Result<(), Error> {
    let Some((release, nearest)) = kernel_and_rules(job)? else { return Ok(()) };
    if nearest.kernel == job.rules.kernel {
        return Ok(());
    }
    let which = if job.image.is_some() { "booted" } else { "running" };
    Err(Error::CannotRun(format!(
        "--kernel {}: the {which} kernel, {release}, has rules of its own; leave it out, or give \
         --on model",
        job.rules.kernel.name()
    )))
}

/// Refuses to check the kernel `release` against rules of another version, unless `kernel`, the
/// value of `--kernel`, names them explicitly. `is_booted` tells a booted kernel from the running
/// one.
///
/// # Errors
/// When the release is not modelled and `--kernel` does not choose rules.
pub fn check_conform(kernel: Option<&str>, release: &str, is_booted: bool) -> Result<(), Error> {
    let Some(nearest) = Kernel::nearest(release).filter(|nearest| !nearest.is_exact) else {
        return Ok(());
    };
    let which = if is_booted { "booted" } else { "running" };
    match kernel {
        None | Some("host") => Err(Error::CannotRun(format!(
            "the {which} kernel, {release}, is none of those that are modelled; give --kernel {} \
             to compare it with the nearest",
            nearest.names()
        ))),
        Some(_) => Ok(()),
    }
}

/// The release of the kernel that `job` runs on, and the rules nearest to it. `None` for jobs of
/// the model, and for releases without a version.
fn kernel_and_rules(job: &Job) -> Result<Option<(String, Nearest)>, Error> {
    if job.engine == EngineKind::Model {
        return Ok(None);
    }
    let release = match &job.image {
        Some(image) => host::image_release(&image.path)?,
        None => input::host_release().unwrap_or_default(),
    };
    Ok(Kernel::nearest(&release).map(|nearest| (release, nearest)))
}

fn nearest_kernel_warning(release: &str, nearest: Nearest) -> Option<String> {
    (!nearest.is_exact).then(|| {
        format!(
            "Linux {release} is none of the kernels that are modelled; the rules are those of {}, \
             the nearest",
            nearest.kernel.name()
        )
    })
}

/// Warns about a job on a file of this machine whose rules are not the nearest to its kernel.
fn other_rules_warning(job: &Job, release: &str, nearest: Nearest) -> Option<String> {
    let rules = job.rules.kernel;
    (job.has_file() && rules != nearest.kernel).then(|| {
        format!(
            "the file is this machine's, which runs Linux {release}, and the rules are those of \
             {}; give --kernel host for the nearest to it",
            rules.name()
        )
    })
}

#[cfg(test)]
mod tests {
    use filemap_job::JobFlags;

    use super::*;

    #[test]
    fn warns_of_unmodelled_kernels() {
        let warning =
            |release: &str| nearest_kernel_warning(release, Kernel::nearest(release).unwrap());
        assert_eq!(warning("6.12.117+deb12-cloud-amd64"), None);
        assert_eq!(warning("6.18.3"), None);
        let text = warning("6.2.0-39-generic").unwrap();
        assert!(text.contains("Linux 6.2.0-39-generic") && text.contains("6.1, the nearest"));
        assert!(warning("7.9.1").unwrap().contains("7.3, the nearest"));
    }

    #[test]
    fn a_comparison_by_the_line_needs_the_rules_or_their_name() {
        for release in ["6.1.0-18-amd64", "6.12.3", "6.18.44-fc-v669", "no version"] {
            assert!(check_conform(None, release, false).is_ok(), "{release}");
        }
        for kernel in [None, Some("host")] {
            let error = check_conform(kernel, "6.2.0-39-generic", false).unwrap_err();
            assert_eq!(error.exit_code(), 4);
            let message = error.to_string();
            assert!(
                message.contains("6.2.0-39-generic") && message.contains("--kernel 6.1 or 6.6")
            );
        }
        assert!(check_conform(Some("6.12"), "6.2.0-39-generic", false).is_ok());
    }

    #[test]
    fn warns_of_file_on_another_kernel() {
        let job = |keys: &str| {
            let spec =
                JobFlags::from_toml(&format!("workload = 'first'\nfile_size = '1m'\n{keys}"));
            spec.unwrap().validate(None).unwrap()
        };
        let warning = |job: &Job, release| {
            other_rules_warning(job, release, Kernel::nearest(release).unwrap())
        };
        assert_eq!(warning(&job(""), "6.12.3"), None);
        assert_eq!(warning(&job("file = 'f'"), "6.18.3"), None);
        let text = warning(&job("file = 'f'"), "6.12.3").unwrap();
        assert!(text.contains("Linux 6.12.3") && text.contains("those of 6.18"), "{text}");
    }
}

//! The kernel that `conform` compares with the model, and the rules and series to compare it by.

use filemap_core::rules::Rules;
use filemap_job::{EngineKind, JobFlags, JobSpec};
use filemap_kernel::journal::Journal;

use super::bench::ConformBench;
use crate::engine::Engines;
use crate::error::Error;
use crate::job_input::repeat_command;
use crate::{host, input, kernel_match, seeds};

/// The kernel that is compared with the model.
#[derive(Clone)]
pub struct ComparedKernel {
    /// Release of the kernel.
    pub release: String,
    /// The image that it is booted from, and its module directory; `None` for the running kernel.
    pub image: Option<(String, Option<String>)>,
    /// Kernel whose rules apply, if not the nearest to its release.
    pub rules: Option<String>,
    /// Series that the kernel is said to have, which the model switches on.
    pub with: Option<String>,
}

impl ComparedKernel {
    /// Takes kernel, image, rules and series out of `spec`, which patterns are made from.
    ///
    /// # Errors
    /// Keys that a single comparison cannot honour; a kernel that is not modelled, unless
    /// `--kernel` names rules; an image that cannot be booted.
    pub fn take(spec: &mut JobSpec) -> Result<Self, Error> {
        check(spec)?;
        // A job file may ask for several runs, but each job is compared once.
        spec.runs = None;
        let image = spec.image.take().map(|path| (path, spec.modules.take()));
        let release = match &image {
            Some((path, _)) => host::image_release(path)?,
            None => input::host_release().unwrap_or_default(),
        };
        let (rules, with) = (spec.kernel.take(), spec.with.take());
        let is_of_host = image.is_some() && rules.as_deref() == Some("host");
        let rules = rules.filter(|_| !is_of_host);
        kernel_match::check_conform(rules.as_deref(), &release, image.is_some())?;
        Ok(ComparedKernel { release, image, rules, with })
    }

    /// The pattern `spec` on this kernel.
    pub fn on_kernel(&self, spec: &JobSpec) -> JobSpec {
        let rules = self.rules.clone().unwrap_or("host".to_string());
        let mut spec =
            JobSpec { with: self.with.clone(), kernel: Some(rules), runs: None, ..spec.clone() };
        if let Some((path, modules)) = self.image.clone() {
            (spec.image, spec.modules) = (Some(path), modules);
            spec.on = Some(EngineKind::Kernel.to_string());
        }
        spec
    }

    /// The bench that runs jobs on it.
    ///
    /// # Errors
    /// The running kernel cannot be traced.
    pub(super) fn bench(
        &self,
        journal: &Journal,
        engines: &impl Engines,
    ) -> Result<ConformBench, Error> {
        match self.image {
            Some(_) => Ok(ConformBench::booting(engines.message_sink())),
            None => ConformBench::open(journal),
        }
    }

    /// Commands that show more about a printed job file, saved as `job.toml`.
    pub(super) fn commands(&self, rules: &Rules) -> Vec<String> {
        let model = JobFlags {
            kernel: Some(rules.kernel.name().to_string()),
            with: self.with.clone(),
            ..JobFlags::default()
        };
        let kernel = match &self.image {
            Some(_) => JobFlags { kernel: None, with: None, ..self.flags() },
            None => JobFlags { on: Some("kernel".to_string()), ..JobFlags::default() },
        };
        let command = |name: &str, flags: &JobFlags, words: &[String]| {
            repeat_command(name, &["job.toml".to_string()], flags, words)
        };
        vec![
            command("conform", &self.flags(), &[]),
            command("run", &model, &["--log -".to_string()]),
            command("explain", &model, &[]),
            command("explain", &kernel, &[]),
        ]
    }

    /// The flags that select this kernel.
    pub fn flags(&self) -> JobFlags {
        let (image, modules) = self.image.clone().unzip();
        JobFlags {
            kernel: self.rules.clone(),
            with: self.with.clone(),
            image,
            modules: modules.flatten(),
            ..JobFlags::default()
        }
    }
}

/// `spec` as a job file without engine, kernel and series, so that commands can choose them.
pub fn job_file(spec: &JobSpec) -> String {
    let spec = JobSpec {
        on: None,
        kernel: None,
        image: None,
        modules: None,
        with: None,
        runs: None,
        ..spec.clone()
    };
    spec.to_short_toml()
}

/// Refuses combinations that cannot be honoured.
fn check(spec: &JobSpec) -> Result<(), Error> {
    seeds::check(spec.seed)?;
    if spec.modules.is_some() && spec.image.is_none() {
        let message = "--modules is for a kernel to boot; give that with --image, or remove it";
        return Err(Error::Usage(message.to_string()));
    }
    Ok(())
}

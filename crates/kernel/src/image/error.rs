//! Errors of booting a kernel image.

use std::io;
use std::path::{Path, PathBuf};
use std::process::ExitStatus;
use std::time::Duration;

use super::console::Incident;

/// Why a kernel image gave no record. Each message is one line.
#[derive(Debug, thiserror::Error)]
pub enum Error {
    /// The kernel file cannot be booted.
    #[error("cannot boot {path}: {reason}; --image takes an x86-64 bzImage (a vmlinuz)")]
    Kernel {
        /// The kernel, as given by the user.
        path: PathBuf,
        /// The reason.
        reason: String,
    },
    /// The module directory does not fit this kernel.
    #[error(
        "no modules for the kernel in {dir}: {reason}; --modules takes a directory that holds \
             lib/modules/RELEASE"
    )]
    Modules {
        /// The directory, as given by the user.
        dir: PathBuf,
        /// The reason.
        reason: String,
    },
    /// A kernel without modules lacks built-in drivers that a guest needs.
    #[error(
        "{path} does not have built in the drivers that it needs to boot here, {names}; give \
         --modules {dir}, a directory that holds lib/modules/{release}"
    )]
    NeedsModules {
        /// The kernel, as given by the user.
        path: PathBuf,
        /// The missing modules.
        names: String,
        /// Their directory, or `DIR`.
        dir: String,
        /// Release of the kernel.
        release: String,
    },
    /// A required program is not installed.
    #[error("{program} is not installed; install the package {package}")]
    Missing {
        /// Name of the program.
        program: &'static str,
        /// Debian package that contains it.
        package: &'static str,
    },
    /// A tool that prepares the boot failed.
    #[error("{program} failed: {line}")]
    Tool {
        /// Name of the program.
        program: &'static str,
        /// The last line of its output.
        line: String,
    },
    /// A scratch file could not be created or written.
    #[error("cannot write a scratch file in {dir}: {source}; name a directory with room in TMPDIR")]
    Scratch {
        /// The directory.
        dir: PathBuf,
        /// The system error.
        source: io::Error,
    },
    /// Any other system error.
    #[error("cannot {action}: {source}")]
    Io {
        /// The action.
        action: String,
        /// The system error.
        source: io::Error,
    },
    /// QEMU failed or was killed.
    #[error(
        "QEMU ended ({status}) without a result; if nobody killed it, give another --ram: a smaller \
         one leaves QEMU more memory, a larger one has room for what is booted; last of its \
         console: {line}"
    )]
    QemuExited {
        /// Its exit status.
        status: ExitStatus,
        /// The last line of its stderr, or the last lines of the guest's console.
        line: String,
    },
    /// KVM failed; QEMU then stops the guest for good.
    #[error("KVM cannot run the guest: {line}")]
    Kvm {
        /// QEMU's message.
        line: String,
    },
    /// The machine did not boot in time, and was killed.
    #[error(
        "the kernel did not boot within {} s and was killed; boot it by hand to see why, give fewer \
         --cpus, or the --modules of its release; last of its console: {line}",
        limit.as_secs_f64()
    )]
    BootTimeout {
        /// The time limit.
        limit: Duration,
        /// The last lines of the guest's console.
        line: String,
    },
    /// The machine exceeded the time limit of a job, and was killed.
    #[error(
        "the guest did not finish within {} s and was killed; give fewer accesses or --runs; last \
         of its console: {line}",
        limit.as_secs_f64()
    )]
    JobTimeout {
        /// The time limit.
        limit: Duration,
        /// The last lines of the guest's console.
        line: String,
    },
    /// The machine shut down without a result.
    #[error(
        "the guest stopped without a result; if it ran out of memory, give a larger --ram; if its \
         console says nothing, the image may be damaged; last of its console: {line}"
    )]
    NoResult {
        /// The most informative lines of the guest's console.
        line: String,
    },
    /// The result is incomplete or corrupted.
    #[error("the guest's result is damaged: {reason}; run the job again")]
    Damaged {
        /// What is inconsistent.
        reason: String,
    },
    /// The kernel crashed or hangs.
    #[error("the kernel crashed: {line}")]
    KernelCrash {
        /// The summary of the incident.
        line: String,
    },
    /// The kernel printed a warning before a job failed.
    #[error("the kernel warned: {line}; then the job failed: {source}")]
    KernelWarning {
        /// The summary of the incident.
        line: String,
        /// Why the job failed.
        source: Box<crate::Error>,
    },
    /// The guest's kernel lacks something that any job needs.
    #[error("in the guest: {0}")]
    MissingInGuest(String),
    /// The guest could not run the job.
    #[error("in the guest: {0}")]
    Guest(String),
}

impl Error {
    /// Whether this machine or the request lacks something (exit code 4), as opposed to a run that
    /// failed.
    pub fn cannot_run_here(&self) -> bool {
        matches!(
            self,
            Self::Kernel { .. }
                | Self::Modules { .. }
                | Self::NeedsModules { .. }
                | Self::Missing { .. }
                | Self::MissingInGuest(_)
        )
    }

    /// Whether the kernel reported a failure of its own (exit code 3).
    pub fn is_kernel_failure(&self) -> bool {
        matches!(self, Self::KernelCrash { .. } | Self::KernelWarning { .. })
    }

    /// Whether the message names the kernel.
    pub(crate) fn names_kernel(&self) -> bool {
        matches!(self, Self::Kernel { .. } | Self::NeedsModules { .. })
    }

    /// Whether this machine lacks something to boot any kernel.
    pub(crate) fn is_host_problem(&self) -> bool {
        matches!(
            self,
            Self::Missing { .. } | Self::Tool { .. } | Self::Scratch { .. } | Self::Io { .. }
        )
    }

    /// This error of a job whose kernel had printed `warnings` before.
    pub(crate) fn with_warnings(self, warnings: &[Incident]) -> Self {
        match warnings.first() {
            Some(first) => {
                Self::KernelWarning { line: first.summary(), source: Box::new(self.into()) }
            }
            None => self,
        }
    }

    pub(super) fn io(action: impl Into<String>, source: io::Error) -> Self {
        Self::Io { action: action.into(), source }
    }

    pub(super) fn scratch(dir: &Path, source: io::Error) -> Self {
        Self::Scratch { dir: dir.to_owned(), source }
    }

    /// Distinguishes a program that is not installed from one that could not be started.
    pub(super) fn from_spawn(
        program: &'static str,
        package: &'static str,
        source: io::Error,
    ) -> Self {
        match source.kind() {
            io::ErrorKind::NotFound => Self::Missing { program, package },
            _ => Self::io(format!("start {program}"), source),
        }
    }
}

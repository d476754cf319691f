//! Runs a job on a kernel image of the user's choice, booted under QEMU with this program as init.
//!
//! The host side is [`KernelImage::start`]: it packs an initramfs (this program and the kernel
//! modules that it needs), creates a scratch disk and one for the list of jobs, boots, and waits
//! for the answers. The guest side is [`guest::main`]. Every file is an unlinked temporary one and
//! the machine dies with its parent, so that nothing is left behind, also after SIGKILL.

use std::path::Path;
use std::time::{Duration, Instant};

mod boot_image;
mod channel;
mod console;
mod disk;
mod elf;
mod error;
mod frame;
pub mod guest;
mod initramfs;
mod kernel_file;
mod machine;
mod modules;
mod qemu;
mod watch;

pub use boot_image::KernelImage;
pub(crate) use boot_image::QUIET_TIMEOUT;
pub use console::{Incident, IncidentKind};
pub use disk::DiskFilesystem;
pub use error::Error;
pub(crate) use frame::{FNV_BASIS, fnv1a};
pub use kernel_file::{configuration, sha256};
pub use machine::{GuestJob, GuestMachine, JobAnswer};
pub use qemu::{Accelerator, kvm_works, version};

/// Maximum request size of a guest's disk, in bytes: the default of Linux 6.12 for a disk that
/// reports no limit. It bounds a `read(2)` that is longer than the readahead.
pub const IO_BYTES: u64 = 1280 << 10;

/// The release (`uname -r`) of the kernel at `path`, from its header.
///
/// # Errors
/// [`Error::Kernel`] if it is not a bzImage.
pub fn release(path: &Path) -> Result<String, Error> {
    kernel_file::release(path)
}

/// The result of a boot with one job.
#[derive(Clone, Debug)]
pub struct ImageRun {
    /// The text that the guest's job returned.
    pub record: String,
    /// The release of the kernel (`uname -r`).
    pub release: String,
    /// How instructions were executed; times are meaningless under [`Accelerator::Tcg`].
    pub accelerator: Accelerator,
    /// Wall time of the machine, boot included.
    pub elapsed: Duration,
}

impl KernelImage {
    /// Boots the image, passes `payload` to its [`guest::main`] and returns the answer.
    ///
    /// # Errors
    /// See [`Error`]; [`Error::cannot_run_here`] distinguishes a missing requirement from a failed
    /// run.
    pub fn run(&self, payload: &str) -> Result<ImageRun, Error> {
        let started = Instant::now();
        let (payload, time_limit) = (payload.to_owned(), self.job_timeout);
        let quiet_limit = QUIET_TIMEOUT;
        let mut guest =
            self.start(&[GuestJob { payload, quiet_timeout: quiet_limit, timeout: time_limit }])?;
        Ok(ImageRun {
            record: guest.next_answer()?.text,
            release: guest.release().to_owned(),
            accelerator: guest.accelerator(),
            elapsed: started.elapsed(),
        })
    }
}

//! Runs a job on a kernel image of the user's choice, booted under QEMU with this program as init.
//!
//! The host side is [`Image::run`]: it packs an initramfs (this program, the kernel modules that
//! it needs, the job), makes a scratch disk, boots, and waits for the answer. The guest side is
//! [`guest::main`]. Every file is an unlinked temporary one and the machine dies with its parent,
//! so that nothing is left behind, also after SIGKILL.

use std::path::Path;
use std::time::{Duration, Instant};

mod accelerator;
mod boot_image;
mod built_in;
mod bzimage;
mod disk;
mod elf;
mod error;
mod frame;
pub mod guest;
mod initramfs;
mod modules;
mod program;
mod qemu;
mod release_dir;
mod settings;
mod unnamed;

pub use accelerator::kvm_works;
pub use boot_image::Image;
pub use disk::Filesystem;
pub use error::Error;
pub use qemu::Accelerator;

use settings::Settings;

/// The most that a guest's disk takes in one request, in bytes: what Linux 6.12 gives a disk that
/// says nothing of its own. It bounds a `read(2)` that is longer than the readahead.
pub const IO_BYTES: u64 = 1280 << 10;

/// The release (`uname -r`) of the kernel at `path`, from its header.
///
/// # Errors
/// [`Error::Kernel`] for what is no bzImage.
pub fn release(path: &Path) -> Result<String, Error> {
    bzimage::release(path)
}

/// What came back from a machine.
#[derive(Clone, Debug)]
pub struct Outcome {
    /// The text that the guest's job returned.
    pub record: String,
    /// The release of the kernel, as `uname -r` has it.
    pub release: String,
    /// How instructions were run; times mean nothing under [`Accelerator::Tcg`].
    pub accelerator: Accelerator,
    /// Wall time of the machine, boot and shutdown included.
    pub elapsed: Duration,
}

impl Image {
    /// Boots the image, gives `payload` to its [`guest::main`] and returns what that answered.
    ///
    /// # Errors
    /// See [`Error`]; [`Error::cannot_run_here`] tells a missing piece from a failed run.
    pub fn run(&self, payload: &str) -> Result<Outcome, Error> {
        let (release, modules) = self.with_modules()?;
        let disk = disk::create(&self.scratch_dir, self.disk_bytes, self.filesystem)?;
        let settings = Settings {
            payload: Some(payload.to_owned()),
            modules: modules.iter().map(|module| module.name.clone()).collect(),
            read_ahead_kb: self.read_ahead_kb,
            filesystem: self.filesystem,
        };
        let initramfs = self.initramfs(&settings, &modules)?;
        let accelerator = accelerator::choose(self)?;
        let started = Instant::now();
        let record = qemu::Machine {
            image: self,
            accelerator,
            initramfs: &initramfs,
            disk: Some(&disk),
            time_limit: self.time_limit,
        }
        .run()?;
        Ok(Outcome { record, release, accelerator, elapsed: started.elapsed() })
    }
}

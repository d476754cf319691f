//! Runs a job on a kernel image of the user's choice, booted under QEMU with this program as init.
//!
//! The host side is [`Image::run`]: it packs an initramfs (this program, the kernel modules that
//! it needs, the job), makes a scratch disk, boots, and waits for the answer. The guest side is
//! [`guest::main`]. Every file is an unlinked temporary one and the machine dies with its parent,
//! so that nothing is left behind, also after SIGKILL.

use std::io;
use std::path::{Path, PathBuf};
use std::time::{Duration, Instant};

mod accelerator;
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
mod settings;

pub use accelerator::{Accelerator, kvm_works};
pub use disk::Filesystem;
pub use error::Error;

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

/// A kernel image and the virtual machine to run it in.
#[derive(Clone, Debug)]
pub struct Image {
    /// The kernel: an x86-64 bzImage (a distribution's `vmlinuz`).
    pub kernel: PathBuf,
    /// Where its modules are: a root that holds `lib/modules/RELEASE`, or that directory itself.
    /// `None` for a kernel with virtio-blk and the filesystem built in.
    pub modules: Option<PathBuf>,
    /// The program that becomes init and calls [`guest::main`]: normally
    /// [`std::env::current_exe`]. A dynamically linked one brings its libraries along.
    pub init: PathBuf,
    /// Memory of the machine in bytes; rounded down to a multiple of 1 MiB.
    pub ram_bytes: u64,
    /// Virtual CPUs.
    pub cpus: u32,
    /// Whether the CPUs of an emulated machine take turns, in a time that counts instructions.
    pub takes_turns: bool,
    /// Readahead of the scratch disk in KiB; `None` leaves the kernel's default.
    pub read_ahead_kb: Option<u64>,
    /// Size of the scratch disk in bytes. The file behind it is sparse.
    pub disk_bytes: u64,
    /// Filesystem of the scratch disk.
    pub filesystem: Filesystem,
    /// Directory on the host for the (unlinked) scratch files; needs room for what a job writes.
    pub scratch_dir: PathBuf,
    /// The machine is killed after this time, boot included.
    pub time_limit: Duration,
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
    /// The image at `kernel` on 1 CPU, 1 GiB of memory, a 4 GiB ext4 disk, ten minutes at most.
    ///
    /// # Errors
    /// When the path of the running executable cannot be found.
    pub fn new(kernel: impl Into<PathBuf>) -> Result<Self, Error> {
        let init = std::env::current_exe()
            .map_err(|source| Error::io("find the running executable", source))?;
        Ok(Self {
            kernel: kernel.into(),
            modules: None,
            init,
            ram_bytes: 1 << 30,
            cpus: 1,
            takes_turns: false,
            read_ahead_kb: None,
            disk_bytes: 4 << 30,
            filesystem: Filesystem::Ext4,
            scratch_dir: std::env::temp_dir(),
            time_limit: Duration::from_secs(600),
        })
    }

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

    /// Looks whether the kernel can boot with the modules that it is given, without booting it.
    ///
    /// # Errors
    /// What is no kernel, and what is missing, all of it by name.
    pub fn check(&self) -> Result<(), Error> {
        self.with_modules().map(|_| ())
    }

    /// The release of the kernel, and the modules that it needs.
    fn with_modules(&self) -> Result<(String, Vec<modules::Module>), Error> {
        let release = bzimage::release(&self.kernel)?;
        let required = self.filesystem.required_modules();
        let modules = match &self.modules {
            Some(dir) => modules::collect(dir, &release, self.filesystem.modules(), &required)?,
            None => {
                built_in::check(&self.kernel, &release, &required)?;
                Vec::new()
            }
        };
        Ok((release, modules))
    }

    fn initramfs(
        &self,
        settings: &Settings,
        modules: &[modules::Module],
    ) -> Result<std::fs::File, Error> {
        let program = program::Program::load(&self.init)?;
        scratch_file(&self.scratch_dir).and_then(|file| {
            initramfs::write(file, &program, modules, settings)
                .map_err(|source| Error::scratch(&self.scratch_dir, source))
        })
    }
}

/// An unlinked temporary file in `dir`.
fn scratch_file(dir: &Path) -> Result<std::fs::File, Error> {
    tempfile::tempfile_in(dir).map_err(|source| Error::scratch(dir, source))
}

/// A name by which a child process can open `file`, which has none of its own.
fn name_for_child(file: &std::fs::File) -> String {
    use std::os::fd::AsRawFd;
    format!("/proc/{}/fd/{}", std::process::id(), file.as_raw_fd())
}

/// Tells a program that is not installed from one that could not be started.
fn start_error(program: &'static str, package: &'static str, source: io::Error) -> Error {
    match source.kind() {
        io::ErrorKind::NotFound => Error::Missing { program, package },
        _ => Error::io(format!("start {program}"), source),
    }
}

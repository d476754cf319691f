//! A kernel image with everything needed to boot it.

use std::fs::File;
use std::path::PathBuf;
use std::time::Duration;

use super::disk::{DiskFilesystem, scratch_file};
use super::initramfs::{GuestSettings, InitProgram};
use super::modules::{self, Module};
use super::{Error, initramfs, kernel_file};

/// A kernel image and the virtual machine to run it in.
#[derive(Clone, Debug)]
pub struct KernelImage {
    /// The kernel: an x86-64 bzImage, such as a distribution's `vmlinuz`.
    pub kernel: PathBuf,
    /// Directory of its modules: a root that contains `lib/modules/RELEASE`, or that directory
    /// itself. `None` for a kernel with virtio-blk or NVMe and the filesystem built in.
    pub modules: Option<PathBuf>,
    /// The program that becomes init and calls [`guest::main`](super::guest::main): normally
    /// [`std::env::current_exe`]. A dynamically linked program is packed with its libraries.
    pub init: PathBuf,
    /// Memory of the machine in bytes; rounded down to a multiple of 1 MiB.
    pub ram_bytes: u64,
    /// Virtual CPUs.
    pub cpus: u32,
    /// Whether the CPUs of an emulated machine take turns, with a clock that counts instructions
    /// (`-icount`).
    pub uses_icount: bool,
    /// Readahead of the scratch disk in KiB; `None` leaves the kernel's default.
    pub read_ahead_kb: Option<u64>,
    /// Size of the scratch disk in bytes. The file that backs it is sparse.
    pub disk_bytes: u64,
    /// Filesystem of the scratch disk.
    pub filesystem: DiskFilesystem,
    /// Directory on the host for the unlinked scratch files; it needs space for what a job writes.
    pub scratch_dir: PathBuf,
    /// A machine that has not begun its first job after this time is killed.
    pub boot_timeout: Duration,
    /// Time without a first job after which [`notify`](Self::notify) is called.
    pub quiet_timeout: Duration,
    /// A machine that has not answered the job of [`KernelImage::run`] after this time is killed.
    pub job_timeout: Duration,
    /// Called with a line for the user: a kernel warning, or a slow machine.
    pub notify: Option<fn(&str)>,
}

/// A boot takes about 4 s on an emulated machine, and 20 s on a busy host.
const BOOT_TIMEOUT: Duration = Duration::from_secs(120);

/// A boot that takes longer is unusual.
pub(crate) const QUIET_TIMEOUT: Duration = Duration::from_secs(30);

impl KernelImage {
    /// The image at `kernel` with 1 CPU, 1 GiB of memory and a 4 GiB ext4 disk; timeouts are two
    /// minutes for the boot and ten for a job.
    ///
    /// # Errors
    /// The path of the running executable is unknown.
    pub fn new(kernel: impl Into<PathBuf>) -> Result<Self, Error> {
        let init = std::env::current_exe()
            .map_err(|source| Error::io("find the running executable", source))?;
        Ok(Self {
            kernel: kernel.into(),
            modules: None,
            init,
            ram_bytes: 1 << 30,
            cpus: 1,
            uses_icount: false,
            read_ahead_kb: None,
            disk_bytes: 4 << 30,
            filesystem: DiskFilesystem::Ext4,
            scratch_dir: std::env::temp_dir(),
            boot_timeout: BOOT_TIMEOUT,
            quiet_timeout: QUIET_TIMEOUT,
            job_timeout: Duration::from_secs(600),
            notify: None,
        })
    }

    /// Whether `other` boots with the same kernel, modules and filesystem.
    pub(crate) fn boots_like(&self, other: &KernelImage) -> bool {
        let identity =
            |image: &KernelImage| (image.kernel.clone(), image.modules.clone(), image.filesystem);
        identity(self) == identity(other)
    }

    /// Whether RAM and disk are at least those of `other`.
    pub(crate) fn is_at_least(&self, other: &KernelImage) -> bool {
        self.ram_bytes >= other.ram_bytes && self.disk_bytes >= other.disk_bytes
    }

    /// Enlarges RAM and disk to those of `other`.
    pub(crate) fn grow_to(&mut self, other: &KernelImage) {
        self.ram_bytes = self.ram_bytes.max(other.ram_bytes);
        self.disk_bytes = self.disk_bytes.max(other.disk_bytes);
    }

    /// Checks, without booting, that the kernel can boot with its modules.
    ///
    /// # Errors
    /// An invalid kernel, or missing modules: the error names all of them.
    pub fn check(&self) -> Result<(), Error> {
        self.resolve_modules().map(|_| ())
    }

    /// The release of the kernel, and the modules to load.
    pub(super) fn resolve_modules(&self) -> Result<(String, Vec<Module>), Error> {
        let release = kernel_file::release(&self.kernel)?;
        let modules = match &self.modules {
            Some(dir) => modules::collect(dir, &release, self.filesystem)?,
            None => {
                modules::check_built_in(&self.kernel, &release, self.filesystem)?;
                Vec::new()
            }
        };
        Ok((release, modules))
    }

    pub(super) fn initramfs(
        &self,
        settings: &GuestSettings,
        modules: &[Module],
    ) -> Result<File, Error> {
        let program = InitProgram::load(&self.init)?;
        scratch_file(&self.scratch_dir).and_then(|file| {
            initramfs::write(file, &program, modules, settings)
                .map_err(|source| Error::scratch(&self.scratch_dir, source))
        })
    }
}

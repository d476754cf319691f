//! KVM or emulation: decided by a guest that is really run.
//!
//! `/dev/kvm` says little: in a machine that is itself virtual, KVM may be there and its guests
//! die in their first instructions. So the image itself is booted once as a probe.

use std::fs::File;
use std::sync::OnceLock;
use std::time::Duration;

use super::Error;
use super::boot_image::KernelImage;
use super::qemu::{self, Accelerator};
use super::settings::GuestSettings;

/// A guest under a KVM that works is done in about a second.
const PROBE_TIMEOUT: Duration = Duration::from_secs(5);

/// Whether KVM runs a guest here: boots `image`, which does nothing and reports back.
///
/// # Errors
/// The inner one says why not, in one line; the outer one that no guest could be tried at all.
pub fn kvm_works(image: &KernelImage) -> Result<Result<(), String>, Error> {
    if let Err(error) = File::options().read(true).write(true).open("/dev/kvm") {
        return Ok(Err(format!("/dev/kvm: {error}")));
    }
    let settings = GuestSettings {
        answers_at: None,
        modules: Vec::new(),
        read_ahead_kb: None,
        filesystem: image.filesystem,
    };
    let initramfs = image.initramfs(&settings, &[])?;
    let machine =
        qemu::Vm { image, accelerator: Accelerator::Kvm, initramfs: &initramfs, disks: None };
    match machine.start().and_then(|started| started.wait_until_end(PROBE_TIMEOUT)) {
        Ok(()) => Ok(Ok(())),
        Err(error @ Error::Missing { .. }) => Err(error),
        Err(error) => Ok(Err(error.to_string())),
    }
}

/// The accelerator for `image`; the probe is run once in a process.
pub(super) fn choose(image: &KernelImage) -> Result<Accelerator, Error> {
    static CHOICE: OnceLock<Accelerator> = OnceLock::new();
    if let Some(&choice) = CHOICE.get() {
        return Ok(choice);
    }
    let choice = if kvm_works(image)?.is_ok() { Accelerator::Kvm } else { Accelerator::Tcg };
    Ok(*CHOICE.get_or_init(|| choice))
}

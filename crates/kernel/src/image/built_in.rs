//! What a kernel has built in, as far as files beside it say.

use std::collections::BTreeSet;
use std::path::{Path, PathBuf};

use super::{DiskFilesystem, Error, release_dir};

/// Options of a kernel's configuration, and the modules that they become where they are `m`.
const OPTIONS: [(&str, &str); 5] = [
    ("CONFIG_VIRTIO_PCI", "virtio_pci"),
    ("CONFIG_VIRTIO_BLK", "virtio_blk"),
    ("CONFIG_BLK_DEV_NVME", "nvme"),
    ("CONFIG_EXT4_FS", "ext4"),
    ("CONFIG_XFS_FS", "xfs"),
];

/// Refuses the kernel at `path`, which is to boot without modules, where it has not built in all
/// that it needs for a disk with `filesystem`. Where no file beside it, or of this machine's for
/// the same release, says what it has, it is given a try.
///
/// # Errors
/// Names what is missing, and where it is if that was found.
pub(super) fn check(path: &Path, release: &str, filesystem: DiskFilesystem) -> Result<(), Error> {
    let beside = path.parent().unwrap_or(Path::new(""));
    let roots = [beside.join(".."), PathBuf::from("/")];
    let with_list = roots.iter().find_map(|root| {
        Some((Some(root), release_dir::built_in(&release_dir::find(root, release)?)?))
    });
    let known = with_list.or_else(|| Some((None, configured(beside, release)?)));
    let Some((root, built_in)) = known else { return Ok(()) };
    let mut missing = filesystem.required_modules(&built_in);
    missing.retain(|&name| !built_in.contains(name));
    if missing.is_empty() {
        return Ok(());
    }
    let dir = root.map(|root| root.canonicalize().unwrap_or_else(|_| root.clone()));
    Err(Error::NeedsModules {
        path: path.to_owned(),
        names: missing.join(", "),
        dir: dir.map_or("DIR".to_owned(), |dir| dir.display().to_string()),
        release: release.to_owned(),
    })
}

/// What the configuration in the directory of the kernel says.
fn configured(beside: &Path, release: &str) -> Option<BTreeSet<String>> {
    let text = std::fs::read_to_string(beside.join(format!("config-{release}"))).ok()?;
    let is_set = |option: &str| text.lines().any(|line| line == format!("{option}=y"));
    let set = OPTIONS.iter().filter(|(option, _)| is_set(option));
    Some(set.map(|(_, name)| (*name).to_owned()).collect())
}

#[cfg(test)]
mod tests {
    use std::fs;

    use super::*;

    #[test]
    fn a_kernel_that_nothing_is_known_of_is_tried() {
        let dir = tempfile::tempdir().unwrap();
        for path in [&dir.path().join("boot/vmlinuz"), Path::new("vmlinuz")] {
            assert!(check(path, "0.0.1-none", DiskFilesystem::Ext4).is_ok());
        }
    }

    #[test]
    fn what_is_not_built_in_is_named() {
        let dir = tempfile::tempdir().unwrap();
        let boot = dir.path().join("boot");
        fs::create_dir_all(&boot).unwrap();
        let config = boot.join("config-0.0.1-none");
        let refused = || {
            let refused = check(&boot.join("vmlinuz"), "0.0.1-none", DiskFilesystem::Ext4);
            refused.err().map_or(String::new(), |error| {
                assert!(error.cannot_run_here());
                error.to_string()
            })
        };
        fs::write(&config, "CONFIG_VIRTIO_PCI=y\nCONFIG_VIRTIO_BLK=m\nCONFIG_EXT4_FS=m\n").unwrap();
        let message = refused();
        assert!(message.contains("virtio_blk, ext4") && message.contains("--modules DIR"));
        fs::write(&config, "CONFIG_BLK_DEV_NVME=y\nCONFIG_EXT4_FS=m\n").unwrap();
        let message = refused();
        assert!(message.contains(", ext4;") && !message.contains("virtio"), "{message}");
        fs::write(&config, "CONFIG_BLK_DEV_NVME=y\nCONFIG_EXT4_FS=y\n").unwrap();
        assert_eq!(refused(), "");
        // A list of the release says more than a configuration, and where its modules are.
        let modules = dir.path().join("lib/modules/0.0.1-none");
        fs::create_dir_all(&modules).unwrap();
        let listed = "kernel/drivers/virtio/virtio_pci.ko\nkernel/drivers/block/virtio-blk.ko\n";
        fs::write(modules.join("modules.builtin"), listed).unwrap();
        let message = refused();
        let root = dir.path().canonicalize().unwrap();
        assert!(
            message.contains(", ext4;") && message.contains(root.to_str().unwrap()),
            "{message}"
        );
        fs::write(modules.join("modules.builtin"), format!("{listed}kernel/fs/ext4/ext4.ko"))
            .unwrap();
        assert_eq!(refused(), "");
    }
}

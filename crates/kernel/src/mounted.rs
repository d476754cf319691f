//! A filesystem of the kernel's own, such as tracefs: the machine's, or one of ours.

use std::fs;
use std::path::{Path, PathBuf};

use rustix::mount::{MountFlags, mount};

use crate::Error;
use crate::journal::{Guard, Journal, Undo};

/// How our own mount points begin. Another process's goes when it ends.
const PRIVATE: &str = "filemap-";

/// A filesystem that is mounted: by the machine, or by this process as long as this lives.
#[derive(Debug)]
pub(crate) struct KernelMount {
    root: PathBuf,
    // Undone from the first to the last.
    _mount: Option<Guard>,
    _mount_point: Option<Guard>,
}

impl KernelMount {
    /// Uses the filesystem of this `kind` that is mounted, or mounts one beside the journal.
    ///
    /// # Errors
    /// A kernel without it, which `remedy` is about; one locked down.
    pub(crate) fn open(journal: &Journal, kind: &'static str, remedy: &str) -> Result<Self, Error> {
        let mounts = Path::new("/proc/self/mounts");
        let text = fs::read_to_string(mounts).map_err(|error| Error::os("read", mounts, error))?;
        if let Some(root) = mounted(&text, kind) {
            return Ok(KernelMount { root, _mount: None, _mount_point: None });
        }
        let stem = format!("{PRIVATE}{kind}");
        let (root, mount_point) =
            journal.directory_in(journal.directory(), &stem, Undo::RemoveDir)?;
        let ((), mounted) = journal.change(Undo::Unmount(root.clone()), || {
            mount(kind, &root, kind, MountFlags::empty(), None)
                .map_err(|errno| Error::unavailable(kind, format!("{remedy} ({errno})")))
        })?;
        Ok(KernelMount { root, _mount: Some(mounted), _mount_point: Some(mount_point) })
    }

    /// A mount at `root` that is not ours.
    #[cfg(test)]
    pub(crate) fn at(root: &Path) -> Self {
        KernelMount { root: root.to_owned(), _mount: None, _mount_point: None }
    }

    /// Its mount point.
    pub(crate) fn root(&self) -> &Path {
        &self.root
    }
}

/// Mount point of the first filesystem of this `kind` that is not some process's own.
fn mounted(mounts: &str, kind: &str) -> Option<PathBuf> {
    let private = format!("{PRIVATE}{kind}");
    mounts.lines().find_map(|line| match line.split(' ').collect::<Vec<_>>()[..] {
        [_, point, found, ..]
            if found == kind && !point.contains('\\') && !point.contains(&private) =>
        {
            Some(point.into())
        }
        _ => None,
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn finds_mounted_tracefs() {
        let mounted = |mounts| mounted(mounts, "tracefs");
        let mounts = "sysfs /sys sysfs rw 0 0\ntracefs /sys/kernel/tracing tracefs rw 0 0\n";
        assert_eq!(mounted(mounts), Some("/sys/kernel/tracing".into()));
        assert_eq!(mounted("sysfs /sys sysfs rw 0 0\n"), None);
        assert_eq!(mounted("tracefs /var/tmp/j/filemap-tracefs-7-0 tracefs rw 0 0\n"), None);
    }
}

//! A kernel filesystem such as tracefs: the machine's mount, or our own.

use std::fs;
use std::path::{Path, PathBuf};

use rustix::mount::{MountFlags, mount};

use crate::Error;
use crate::journal::{Guard, Journal, Undo};

/// Prefix of our own mount points. One of another process is unmounted when that process ends.
const PRIVATE: &str = "filemap-";

/// A mounted filesystem: the machine's, or our own, unmounted on drop.
#[derive(Debug)]
pub(crate) struct KernelMount {
    root: PathBuf,
    // Undone from the first to the last.
    _mount: Option<Guard>,
    _mount_point: Option<Guard>,
}

impl KernelMount {
    /// Uses the machine's mount of this `kind`, or mounts one next to the journal.
    ///
    /// # Errors
    /// The kernel does not have it, for which `remedy` is shown; kernel lockdown.
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

    /// An existing mount at `root`.
    #[cfg(test)]
    pub(crate) fn at(root: &Path) -> Self {
        KernelMount { root: root.to_owned(), _mount: None, _mount_point: None }
    }

    /// Its mount point.
    pub(crate) fn root(&self) -> &Path {
        &self.root
    }
}

/// Mount point of the first filesystem of this `kind` that is not a process's private mount.
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

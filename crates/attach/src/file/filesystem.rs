//! Which filesystems respond without depending on a server or a user's process.

use crate::process::read;
use crate::{Error, FileId, MappedFile};

/// Filesystems on local block storage. Mounting them requires root.
const LOCAL_FILESYSTEMS: [&str; 16] = [
    "ext2", "ext3", "ext4", "xfs", "btrfs", "f2fs", "bcachefs", "zfs", "jfs", "nilfs2", "erofs",
    "squashfs", "vfat", "exfat", "ntfs3", "iso9660",
];

/// An unprivileged user can mount an overlay over a filesystem that never responds, so only
/// overlays in our own mount namespace are trusted.
const OVERLAY: &str = "overlay";

/// Memory-backed and pseudo filesystems: safe to traverse, but none of their files are opened.
const MEMORY_FILESYSTEMS: [&str; 10] = [
    "tmpfs", "ramfs", "rootfs", "devtmpfs", "proc", "sysfs", "cgroup", "cgroup2", "devpts",
    "mqueue",
];

/// Mounts in the mount namespaces of a process and of this process.
#[derive(Debug)]
pub struct Filesystems {
    process_mounts: Vec<Mount>,
    own_mounts: Vec<Mount>,
}

impl Filesystems {
    pub fn for_process(pid: u32) -> Result<Filesystems, String> {
        let own = mounts(std::process::id()).map_err(|error| error.to_string())?;
        let of_process = mounts(pid).map_err(|error| error.to_string())?;
        Ok(Filesystems { process_mounts: of_process, own_mounts: own })
    }

    /// Refuses a file unless its filesystem is known to respond.
    pub fn check(&self, id: FileId) -> Result<(), String> {
        let on_device = |mount: &&Mount| (mount.major, mount.minor) == (id.major, id.minor);
        let own = self.own_mounts.iter().find(on_device);
        match own.or_else(|| self.process_mounts.iter().find(on_device)) {
            // Lower layers of an overlay and lazily unmounted filesystems appear in no mount table.
            None => Err(format!("no mount shows its device {}:{}", id.major, id.minor)),
            Some(mount) if self.is_trusted(mount) => Ok(()),
            Some(mount) => Err(format!("{} is no filesystem of local storage", mount.filesystem)),
        }
    }

    fn is_trusted(&self, mount: &Mount) -> bool {
        let name = &*mount.filesystem;
        let is_same = |own: &Mount| (own.major, own.minor) == (mount.major, mount.minor);
        LOCAL_FILESYSTEMS.contains(&name)
            || (name == OVERLAY && self.own_mounts.iter().any(is_same))
    }

    /// Whether every mount point on the path to `file`, in the process's root directory, is safe to
    /// traverse.
    pub fn is_safe_path(&self, file: &MappedFile) -> bool {
        let path = file.path.as_os_str().as_encoded_bytes();
        let is_on_way = |mount: &&Mount| {
            let point = unescape_octal(&mount.point);
            let rest = path.strip_prefix(point.strip_suffix(b"/").unwrap_or(&point));
            rest.is_some_and(|rest| rest.first() == Some(&b'/'))
        };
        let answers = |mount: &Mount| {
            self.is_trusted(mount) || MEMORY_FILESYSTEMS.contains(&&*mount.filesystem)
        };
        self.process_mounts.iter().filter(is_on_way).all(answers)
    }

    /// Device of the filesystem mounted under mount ID `id`.
    pub fn device_of_mount(&self, id: u64) -> Option<(u32, u32)> {
        let mounts = [&self.process_mounts, &self.own_mounts];
        let mut mounts = mounts.into_iter().flatten();
        mounts.find(|mount| mount.id == id).map(|mount| (mount.major, mount.minor))
    }
}

/// One line of `/proc/PID/mountinfo`.
#[derive(Clone, Debug, PartialEq, Eq)]
struct Mount {
    id: u64,
    major: u32,
    minor: u32,
    /// Mount point, with the octal escapes of `mountinfo`.
    point: Vec<u8>,
    filesystem: String,
}

fn mounts(pid: u32) -> Result<Vec<Mount>, Error> {
    Ok(read(pid, "mountinfo")?.split(|byte| *byte == b'\n').filter_map(parse_mount).collect())
}

/// Parses a line such as `36 35 98:0 /dir /mnt rw,noatime master:1 - ext4 /dev/root rw`.
fn parse_mount(line: &[u8]) -> Option<Mount> {
    let mut words = line.split(|byte| *byte == b' ');
    let text = |word: Option<&[u8]>| Some(std::str::from_utf8(word?).ok()?.to_owned());
    let id = text(words.next())?.parse().ok()?;
    let device = text(words.nth(1))?;
    let (major, minor) = device.split_once(':')?;
    let point = words.nth(1)?.to_owned();
    words.by_ref().find(|word| *word == b"-")?;
    Some(Mount {
        id,
        major: major.parse().ok()?,
        minor: minor.parse().ok()?,
        point,
        filesystem: text(words.next())?,
    })
}

/// Decodes the escapes in `mountinfo` paths: `\ooo`, a byte as three octal digits.
fn unescape_octal(text: &[u8]) -> Vec<u8> {
    let mut plain = Vec::with_capacity(text.len());
    let mut rest = text;
    while let [first, behind @ ..] = rest {
        let digits = behind.get(..3).filter(|_| *first == b'\\');
        let byte =
            digits.and_then(|digits| u8::from_str_radix(std::str::from_utf8(digits).ok()?, 8).ok());
        plain.push(byte.unwrap_or(*first));
        rest = if byte.is_some() { &behind[3..] } else { behind };
    }
    plain
}

#[cfg(test)]
mod tests {
    use super::*;

    fn mount_at(id: u64, minor: u32, point: &[u8], filesystem: &str) -> Mount {
        Mount { id, major: 0, minor, point: point.to_vec(), filesystem: filesystem.into() }
    }

    fn file(minor: u32, path: &str) -> MappedFile {
        MappedFile { id: FileId { major: 0, minor, inode: 5 }, path: path.into() }
    }

    #[test]
    fn walks_only_responsive_filesystems() {
        let own = vec![mount_at(1, 1, b"/", "ext4"), mount_at(2, 2, b"/merged", "overlay")];
        let of_process = vec![
            mount_at(11, 1, b"/", "ext4"),
            mount_at(12, 2, b"/a\\040b", "overlay"),
            mount_at(13, 3, b"/own", "overlay"),
            mount_at(14, 4, b"/slow", "fuse.x"),
            mount_at(15, 1, b"/slow/disk", "ext4"),
            mount_at(16, 5, b"/tmp", "tmpfs"),
            mount_at(17, 1, b"/tmp/disk", "ext4"),
        ];
        let all = Filesystems { own_mounts: own, process_mounts: of_process };
        let is_trusted = |minor| all.check(file(minor, "/x").id).is_ok();
        assert_eq!([1, 2, 3, 4, 5, 6].map(is_trusted), [true, true, false, false, false, false]);
        let is_safe = |path| all.is_safe_path(&file(1, path));
        assert!(is_safe("/x") && is_safe("/a b/x") && is_safe("/slower/x"));
        assert!(is_safe("/tmp/disk/x"));
        assert!(!is_safe("/slow/disk/x") && !is_safe("/own/x"));
        assert_eq!((all.device_of_mount(12), all.device_of_mount(3)), (Some((0, 2)), None));
    }

    #[test]
    fn escapes_are_undone() {
        assert_eq!(unescape_octal(b"/a\\040b\\134"), b"/a b\\");
        assert_eq!(unescape_octal(b"/\\04"), b"/\\04");
        assert_eq!(unescape_octal(b"\\777"), b"\\777");
    }

    #[test]
    fn parses_mountinfo_line() {
        let line =
            b"36 35 259:1 / /mnt/a\\040b rw,noatime master:1 - ext4 /dev/x rw,errors=continue";
        let found = parse_mount(line).expect("a mount");
        assert_eq!((found.id, found.major, found.minor), (36, 259, 1));
        assert_eq!((found.point.as_slice(), &*found.filesystem), (&b"/mnt/a\\040b"[..], "ext4"));
        let without_tags = b"21 1 0:20 / /proc rw - proc proc rw";
        assert_eq!(parse_mount(without_tags).map(|mount| mount.filesystem), Some("proc".into()));
        assert_eq!(parse_mount(b""), None);
        assert_eq!(parse_mount(b"21 1 0:20 / /proc rw"), None);
    }
}

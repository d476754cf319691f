//! The mounts that a process sees, as `/proc/PID/mountinfo` lists them.

use super::read;
use crate::Error;

/// A mount.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Mount {
    pub(crate) id: u64,
    pub(crate) major: u32,
    pub(crate) minor: u32,
    /// Where it is, with the octal escapes of `mountinfo`.
    pub(crate) point: Vec<u8>,
    pub(crate) filesystem: String,
}

/// The type of the filesystem of a device, as the mounts that the process sees name it.
pub fn filesystem_type(pid: u32, major: u32, minor: u32) -> Result<Option<String>, Error> {
    let mounts = mounts(pid)?;
    let mut named = mounts.into_iter().filter(|mount| (mount.major, mount.minor) == (major, minor));
    Ok(named.next().map(|mount| mount.filesystem))
}

pub(crate) fn mounts(pid: u32) -> Result<Vec<Mount>, Error> {
    Ok(read(pid, "mountinfo")?.split(|byte| *byte == b'\n').filter_map(mount).collect())
}

/// What a line such as `36 35 98:0 /dir /mnt rw,noatime master:1 - ext4 /dev/root rw` says.
fn mount(line: &[u8]) -> Option<Mount> {
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

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_line_says_where_a_filesystem_is() {
        let line = b"36 35 259:1 / /mnt/a\\040b rw,noatime master:1 - ext4 /dev/x rw,errors=continue";
        let found = mount(line).expect("a mount");
        assert_eq!((found.id, found.major, found.minor), (36, 259, 1));
        assert_eq!((found.point.as_slice(), &*found.filesystem), (&b"/mnt/a\\040b"[..], "ext4"));
        let without_tags = b"21 1 0:20 / /proc rw - proc proc rw";
        assert_eq!(mount(without_tags).map(|mount| mount.filesystem), Some("proc".into()));
        assert_eq!(mount(b""), None);
        assert_eq!(mount(b"21 1 0:20 / /proc rw"), None);
    }
}

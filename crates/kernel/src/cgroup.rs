//! A memory cgroup for one run, version 1 or 2.

use std::path::{Path, PathBuf};
use std::{fs, io};

use crate::Error;
use crate::error::require_root;
use crate::journal::{Guard, Journal, Undo};
use crate::procstat::VmStat;

/// Memory limits of the cgroup, in bytes.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct CgroupLimits {
    /// The hard limit (`memory.max`): a charge that exceeds it reclaims first.
    pub max_bytes: Option<u64>,
    /// The soft limit of version 2 (`memory.high`).
    pub high_bytes: Option<u64>,
}

/// The cgroup version that the machine mounts.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Version {
    /// `memory.limit_in_bytes`; it has no `memory.high`.
    V1,
    /// `memory.max` and `memory.high`.
    V2,
}

impl Version {
    fn max_file(self) -> &'static str {
        match self {
            Version::V1 => "memory.limit_in_bytes",
            Version::V2 => "memory.max",
        }
    }

    fn usage_file(self) -> &'static str {
        match self {
            Version::V1 => "memory.usage_in_bytes",
            Version::V2 => "memory.current",
        }
    }
}

/// A memory cgroup; it is removed when this drops.
#[derive(Debug)]
pub struct MemoryCgroup {
    path: PathBuf,
    version: Version,
    _guard: Guard,
}

impl MemoryCgroup {
    /// Creates a cgroup below the root of the memory hierarchy.
    ///
    /// # Errors
    /// Not root; no writable memory controller; a high limit on version 1.
    pub fn create(journal: &Journal, limits: CgroupLimits) -> Result<Self, Error> {
        let (root, version) = check(limits)?;
        let made = journal.directory_in(&root, "filemap", Undo::RemoveCgroup);
        let (path, guard) = made.map_err(|error| match error {
            Error::Os { source, .. } if is_forbidden(&source) => {
                Error::unavailable("a memory cgroup", format!("{}: {source}", root.display()))
            }
            error => error,
        })?;
        let cgroup = MemoryCgroup { path, version, _guard: guard };
        if let Some(bytes) = limits.high_bytes {
            cgroup.write("memory.high", bytes)?;
        }
        if let Some(bytes) = limits.max_bytes {
            cgroup.write(version.max_file(), bytes)?;
        }
        Ok(cgroup)
    }

    /// Moves a process into the cgroup, which is charged for its later allocations.
    pub fn add(&self, pid: u32) -> Result<(), Error> {
        self.write("cgroup.procs", u64::from(pid))
    }

    /// Its directory.
    pub fn path(&self) -> &Path {
        &self.path
    }

    /// The cgroup version.
    pub fn version(&self) -> Version {
        self.version
    }

    /// Its event and page counters (`memory.stat`).
    pub fn stat(&self) -> Result<VmStat, Error> {
        VmStat::read(&self.path.join("memory.stat"))
    }

    /// Bytes currently charged to it.
    pub fn usage_bytes(&self) -> Result<u64, Error> {
        number_in(&self.path.join(self.version.usage_file()))
    }

    /// Whether the OOM killer killed a process in it.
    pub fn has_killed(&self) -> bool {
        let name = match self.version {
            Version::V1 => "memory.oom_control",
            Version::V2 => "memory.events",
        };
        let text = fs::read_to_string(self.path.join(name)).unwrap_or_default();
        let mut kills = text.lines().filter_map(|line| line.strip_prefix("oom_kill "));
        kills.any(|number| number.trim() != "0")
    }

    fn write(&self, name: &str, value: u64) -> Result<(), Error> {
        let path = self.path.join(name);
        fs::write(&path, value.to_string()).map_err(|error| Error::os("write", &path, error))
    }
}

/// Bytes that this process may still allocate in its memory cgroups, reclaimable file pages
/// included; `None` without a limit, or if unreadable.
pub(crate) fn room_bytes() -> Option<u64> {
    let (root, version) = memory_hierarchy().ok()?;
    let own = fs::read_to_string("/proc/self/cgroup").ok()?;
    let own = root.join(own_path(&own, version)?.trim_start_matches('/'));
    let cgroups = own.ancestors().take_while(|path| path.starts_with(&root));
    cgroups.filter_map(|path| free_bytes(path, version)).min()
}

/// The path of a process's memory cgroup below the root, from its `/proc/PID/cgroup`.
fn own_path(cgroups: &str, version: Version) -> Option<&str> {
    cgroups.lines().find_map(|line| {
        let (controllers, path) = line.split_once(':')?.1.split_once(':')?;
        let is_memory = match version {
            Version::V1 => controllers.split(',').any(|controller| controller == "memory"),
            Version::V2 => controllers.is_empty(),
        };
        is_memory.then_some(path)
    })
}

fn free_bytes(path: &Path, version: Version) -> Option<u64> {
    let limit = number_in(&path.join(version.max_file())).ok()?;
    let stat = VmStat::read(&path.join("memory.stat")).ok()?;
    let prefix = match version {
        Version::V1 => "total_",
        Version::V2 => "",
    };
    let of_files = ["active_file", "inactive_file"];
    let of_files = of_files.iter().filter_map(|name| stat.get(&format!("{prefix}{name}")));
    let of_files: u64 = of_files.filter_map(|bytes| u64::try_from(bytes).ok()).sum();
    let used = number_in(&path.join(version.usage_file())).ok()?.saturating_sub(of_files);
    Some(limit.saturating_sub(used))
}

fn number_in(path: &Path) -> Result<u64, Error> {
    let text = fs::read_to_string(path).map_err(|error| Error::os("read", path, error))?;
    text.trim().parse().map_err(|_| {
        Error::os("read a number from", path, io::Error::from(io::ErrorKind::InvalidData))
    })
}

/// Checks whether a cgroup with `limits` can be created. Returns the root of its hierarchy.
///
/// # Errors
/// As for [`MemoryCgroup::create`].
pub(crate) fn check(limits: CgroupLimits) -> Result<(PathBuf, Version), Error> {
    require_root("a memory cgroup")?;
    let (root, version) = memory_hierarchy()?;
    if version == Version::V1 && limits.high_bytes.is_some() {
        return Err(Error::unavailable(
            "a memory high limit",
            "cgroup version 1 has none: use a max limit, or boot with cgroup version 2",
        ));
    }
    Ok((root, version))
}

/// The root of the hierarchy that has the memory controller.
pub fn memory_hierarchy() -> Result<(PathBuf, Version), Error> {
    let mounts = Path::new("/proc/self/mounts");
    let text = fs::read_to_string(mounts).map_err(|error| Error::os("read", mounts, error))?;
    let (v1, v2) = hierarchies(&text);
    if let Some(root) = v1 {
        return Ok((root, Version::V1));
    }
    let remedy = "mount a cgroup hierarchy that has the memory controller";
    let root = v2.ok_or_else(|| Error::unavailable("a memory cgroup", remedy))?;
    let control = root.join("cgroup.subtree_control");
    match fs::read_to_string(&control) {
        Ok(enabled) if enabled.split_whitespace().any(|name| name == "memory") => {
            Ok((root, Version::V2))
        }
        _ => Err(Error::unavailable(
            "a memory cgroup",
            format!("echo +memory > {}", control.display()),
        )),
    }
}

/// Mount points of the version 1 memory hierarchy and of version 2.
fn hierarchies(mounts: &str) -> (Option<PathBuf>, Option<PathBuf>) {
    let (mut v1, mut v2) = (None, None);
    for line in mounts.lines() {
        let fields: Vec<&str> = line.split(' ').collect();
        if let [_, point, kind, options, ..] = fields[..] {
            match kind {
                "cgroup" if options.split(',').any(|option| option == "memory") => {
                    v1 = Some(point.into());
                }
                "cgroup2" => v2 = Some(point.into()),
                _ => {}
            }
        }
    }
    (v1, v2)
}

fn is_forbidden(error: &io::Error) -> bool {
    matches!(error.kind(), io::ErrorKind::ReadOnlyFilesystem | io::ErrorKind::PermissionDenied)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn finds_own_memory_cgroup() {
        let v1 = "9:cpu,cpuacct:/a\n4:memory:/b/c\n0::/d\n";
        assert_eq!(own_path(v1, Version::V1), Some("/b/c"));
        assert_eq!(own_path(v1, Version::V2), Some("/d"));
        assert_eq!(own_path("1:cpu:/a\n", Version::V1), None);
    }

    #[test]
    fn finds_memory_hierarchies() {
        let mounts = "tmpfs /sys/fs/cgroup tmpfs rw 0 0\n\
                      cgroup /sys/fs/cgroup/cpu cgroup rw,cpu 0 0\n\
                      cgroup /sys/fs/cgroup/memory cgroup rw,relatime,memory 0 0\n\
                      cgroup2 /sys/fs/cgroup/unified cgroup2 rw 0 0\n";
        let (v1, v2) = hierarchies(mounts);
        assert_eq!(v1, Some("/sys/fs/cgroup/memory".into()));
        assert_eq!(v2, Some("/sys/fs/cgroup/unified".into()));
        assert_eq!(hierarchies("proc /proc proc rw 0 0\n"), (None, None));
    }
}

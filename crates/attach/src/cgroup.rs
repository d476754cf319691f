//! Lists the processes of a cgroup, version 1 or 2.

use std::collections::BTreeSet;
use std::fs;
use std::path::{Component, Path, PathBuf};

use crate::Error;

const ROOT: &str = "/sys/fs/cgroup";

/// File present in every cgroup; lists its member processes, excluding descendant cgroups.
const PROCESSES: &str = "cgroup.procs";

/// Returns the processes of a cgroup and its descendants. `name` is an absolute path, a path
/// relative to a hierarchy under `/sys/fs/cgroup`, or a systemd unit such as `x.service`.
pub fn processes(name: &str) -> Result<Vec<u32>, Error> {
    processes_below(Path::new(ROOT), name)
}

fn processes_below(root: &Path, name: &str) -> Result<Vec<u32>, Error> {
    let missing = || Error::NoCgroup { name: name.to_owned() };
    let cgroup = find(root, name).ok_or_else(missing)?;
    let mut found = BTreeSet::new();
    let mut left = vec![cgroup];
    while let Some(cgroup) = left.pop() {
        // The cgroup may have been removed meanwhile; reading cgroup.procs of a threaded v2 cgroup
        // fails with EOPNOTSUPP.
        let listed = fs::read_to_string(cgroup.join(PROCESSES)).unwrap_or_default();
        // Processes outside of our PID namespace are listed as 0.
        let pids = listed.lines().filter_map(|pid| pid.parse().ok()).filter(|pid: &u32| *pid != 0);
        found.extend(pids);
        left.extend(directories(&cgroup));
    }
    Ok(found.into_iter().collect())
}

fn find(root: &Path, name: &str) -> Option<PathBuf> {
    let path = Path::new(name);
    if path.components().any(|part| part == Component::ParentDir) {
        return None;
    }
    let is_cgroup = |path: &PathBuf| path.join(PROCESSES).is_file();
    if path.starts_with(root) {
        return Some(path.to_owned()).filter(is_cgroup);
    }
    let below: PathBuf = path.components().filter(|part| *part != Component::RootDir).collect();
    let hierarchies = || [root.to_owned()].into_iter().chain(directories(root));
    let is_named = !below.as_os_str().is_empty();
    let mut places = hierarchies().map(|hierarchy| hierarchy.join(&below));
    let found = places.find(is_cgroup).filter(|_| is_named);
    found.or_else(|| {
        let is_unit = path.components().count() == 1 && path.extension().is_some();
        if is_unit {
            hierarchies().find_map(|hierarchy| find_unit(hierarchy, &below))
        } else {
            None
        }
    })
}

/// Finds a cgroup of this name anywhere in a hierarchy, breadth first: the one closest to the root
/// wins.
fn find_unit(hierarchy: PathBuf, name: &Path) -> Option<PathBuf> {
    let mut level = vec![hierarchy];
    while !level.is_empty() {
        let next: Vec<_> = level.iter().flat_map(|cgroup| directories(cgroup)).collect();
        if let Some(found) = next.iter().find(|path| path.ends_with(name)) {
            return Some(found.clone());
        }
        level = next;
    }
    None
}

/// Subdirectories of `path`; symbolic links are not followed.
fn directories(path: &Path) -> Vec<PathBuf> {
    let entries = fs::read_dir(path).into_iter().flatten().flatten();
    let is_directory = |entry: &fs::DirEntry| entry.file_type().is_ok_and(|kind| kind.is_dir());
    entries.filter(is_directory).map(|entry| entry.path()).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Creates a mock hierarchy of `(cgroup, contents of cgroup.procs)`.
    fn hierarchy(cgroups: &[(&str, &str)]) -> tempfile::TempDir {
        let root = tempfile::tempdir().expect("a directory");
        for (path, pids) in cgroups {
            fs::create_dir_all(root.path().join(path)).expect("a cgroup");
            fs::write(root.path().join(path).join(PROCESSES), pids).expect("processes");
        }
        root
    }

    #[test]
    fn cgroups_are_found_by_path_and_by_unit() {
        let root = hierarchy(&[
            ("", "1\n"),
            ("system.slice", ""),
            ("system.slice/db.service", "7\n9\n0\n"),
            ("system.slice/db.service/worker", "8\n"),
            ("memory/jobs", "5\n"),
        ]);
        let processes = |name: &str| processes_below(root.path(), name).ok();
        let expected = Some(vec![7, 8, 9]);
        assert_eq!(processes("db.service"), expected);
        assert_eq!(processes("system.slice/db.service"), expected);
        assert_eq!(processes("/system.slice/db.service"), expected);
        let whole = root.path().join("system.slice/db.service");
        assert_eq!(processes(whole.to_str().unwrap()), expected);
        assert_eq!(processes("jobs"), Some(vec![5]));
        assert_eq!(processes("system.slice/db.service/worker"), Some(vec![8]));
        for none in ["", "/", "x.service", "../etc", "system.slice/../db", "worker"] {
            assert_eq!(processes(none), None, "{none}");
        }
    }
}

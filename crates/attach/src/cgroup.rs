//! The processes of a cgroup, version 1 or 2.

use std::collections::BTreeSet;
use std::fs;
use std::path::{Component, Path, PathBuf};

use crate::Error;

const ROOT: &str = "/sys/fs/cgroup";

/// What every cgroup has: the processes in it, but not those in cgroups within it.
const PROCESSES: &str = "cgroup.procs";

/// The processes of a cgroup and of those within it. It is named by its path, by its path in a
/// hierarchy below `/sys/fs/cgroup`, or as a systemd unit, such as `x.service`.
pub fn processes(name: &str) -> Result<Vec<u32>, Error> {
    processes_below(Path::new(ROOT), name)
}

fn processes_below(root: &Path, name: &str) -> Result<Vec<u32>, Error> {
    let missing = || Error::NoCgroup { name: name.to_owned() };
    let cgroup = find(root, name).ok_or_else(missing)?;
    let mut found = BTreeSet::new();
    let mut left = vec![cgroup];
    while let Some(cgroup) = left.pop() {
        // It may be gone meanwhile; one of version 2 with threads of its own lists no processes.
        let listed = fs::read_to_string(cgroup.join(PROCESSES)).unwrap_or_default();
        // Processes of other namespaces have the number 0.
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
        if is_unit { hierarchies().find_map(|hierarchy| find_unit(hierarchy, &below)) } else { None }
    })
}

/// The cgroup of this name anywhere in a hierarchy, those that are nearer to its root first.
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

/// The directories in a directory, without symbolic links to others.
fn directories(path: &Path) -> Vec<PathBuf> {
    let entries = fs::read_dir(path).into_iter().flatten().flatten();
    let is_directory = |entry: &fs::DirEntry| entry.file_type().is_ok_and(|kind| kind.is_dir());
    entries.filter(is_directory).map(|entry| entry.path()).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    /// A hierarchy of directories with these processes.
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

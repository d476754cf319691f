//! What this machine allows, what is missing, and the remedy.

use std::fs;
use std::os::unix::fs::PermissionsExt;
use std::path::Path;

use filemap_core::rules::Kernel;

use crate::Error;
use crate::cgroup::{Version, memory_hierarchy};
use crate::engine::{LruGen, lru_gen, temporary_directory};
use crate::error::require_root;
use crate::interference::damon_pageout;
use crate::journal::Journal;
use crate::place::Place;
use crate::residency::CacheStat;
use crate::tracefs::TraceFs;

/// One thing that commands need, and whether it is here.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Check {
    /// What it is.
    pub name: &'static str,
    /// What it is for.
    pub used_by: &'static str,
    /// How it is here; or why it is not.
    pub state: Result<String, String>,
    /// What to do where it is missing, or to be told with it.
    pub note: Option<String>,
}

/// Looks at everything that commands need. Nothing that is changed for it stays.
pub fn checks(journal: &Journal) -> Vec<Check> {
    vec![
        rules(),
        root(),
        temporary(),
        residency(),
        io_accounting(),
        lru(),
        memory_cgroup(),
        scratch(),
        tracepoints(journal),
        qemu(),
        kvm(),
        interference(),
    ]
}

fn check(name: &'static str, used_by: &'static str, found: Result<String, Error>) -> Check {
    match found {
        Ok(found) => Check { name, used_by, state: Ok(found), note: None },
        Err(Error::Unavailable { what, remedy }) => {
            Check { name, used_by, state: Err(format!("no {what}")), note: Some(remedy) }
        }
        Err(Error::NeedsRoot { .. }) => {
            Check { name, used_by, state: Err("only for root".to_owned()), note: None }
        }
        Err(error) => Check { name, used_by, state: Err(error.to_string()), note: None },
    }
}

fn rules() -> Check {
    let release = rustix::system::uname().release().to_string_lossy().into_owned();
    let inexact = Kernel::nearest(&release).filter(|nearest| !nearest.is_exact);
    let note = inexact.map(|nearest| {
        format!("the nearest rules that are modelled are those of {}", nearest.kernel.name())
    });
    Check { note, ..check("kernel", "--kernel host, compare, conform", Ok(release)) }
}

fn root() -> Check {
    let found = require_root("changing the machine").map(|()| "yes".to_owned());
    let note = found.is_err().then(|| {
        "run as root for another readahead size, memory limits and conform; the rest needs none"
            .to_owned()
    });
    Check { note, ..check("root", "--read-ahead-kb, --memory-max, conform", found) }
}

fn temporary() -> Check {
    let found = temporary_directory().and_then(|directory| {
        let place = Place::of(&directory)?;
        let free = rustix::fs::statvfs(&directory)
            .map_err(|errno| Error::os("find the free space of", &directory, errno))?;
        let free_gib = (free.f_bavail.saturating_mul(free.f_frsize)) >> 30;
        let read_ahead = place.read_ahead_kb.map_or("no".to_owned(), |kib| format!("{kib} KiB"));
        Ok(format!(
            "{}: {}, {free_gib} GiB free, {read_ahead} readahead",
            directory.display(),
            place.filesystem
        ))
    });
    check("temporary files", "--on kernel", found)
}

fn residency() -> Check {
    let found = std::env::current_exe().ok().and_then(|path| fs::File::open(path).ok());
    let lacks = |what: &str| {
        let remedy =
            "use Linux 6.5 or newer, and files that you own: without it evictions are not seen";
        Error::unavailable(what, remedy)
    };
    let found = found.ok_or_else(|| lacks("file to look at"));
    let refused = |_| lacks("cachestat of this program's file");
    let found = found.and_then(|file| CacheStat::of(&file, ..).map_err(refused));
    check("cachestat", "cached and evicted pages", found.map(|_| "yes".to_owned()))
}

fn io_accounting() -> Check {
    let text = fs::read_to_string("/proc/self/io").unwrap_or_default();
    let found = crate::procstat::read_bytes(&text).map(|_| "yes".to_owned());
    check(
        "I/O accounting",
        "bytes read",
        found.ok_or_else(|| {
            Error::unavailable("/proc/self/io", "use a kernel with CONFIG_TASK_IO_ACCOUNTING")
        }),
    )
}

fn lru() -> Check {
    let state = match lru_gen() {
        LruGen::Off => Ok("two lists".to_owned()),
        LruGen::On => Err(Error::unavailable(
            "rules for the multi-generational LRU",
            "echo 0 > /sys/kernel/mm/lru_gen/enabled, or keep to files that fit into memory",
        )),
    };
    check("reclaim", "files larger than memory", state)
}

fn memory_cgroup() -> Check {
    let found = require_root("a memory cgroup").and_then(|()| memory_hierarchy());
    let found = found.map(|(root, version)| {
        let version = match version {
            Version::V1 => "version 1, no --memory-high",
            Version::V2 => "version 2",
        };
        format!("{}: {version}", root.display())
    });
    check("memory cgroups", "--memory-max, --memory-high", found)
}

fn scratch() -> Check {
    let found = require_root("a scratch filesystem").and_then(|()| {
        if !Path::new("/dev/loop-control").exists() {
            return Err(Error::unavailable("loop devices", "load the module loop"));
        }
        let makers = ["mkfs.ext4", "mkfs.xfs"].map(|name| (name, installed(name)));
        let found: Vec<&str> = makers.iter().filter(|maker| maker.1).map(|maker| maker.0).collect();
        if found.is_empty() {
            return Err(Error::unavailable("mkfs.ext4", "install e2fsprogs, and xfsprogs for XFS"));
        }
        Ok(format!("loop devices, {}", found.join(", ")))
    });
    check("scratch filesystems", "--read-ahead-kb, --fs, conform", found)
}

fn tracepoints(journal: &Journal) -> Check {
    let found = TraceFs::open(journal).map(|tracefs| {
        match tracefs.root().starts_with(journal.directory()) {
            true => "tracefs can be mounted".to_owned(),
            false => format!("tracefs at {}", tracefs.root().display()),
        }
    });
    check("tracepoints", "conform, explain --on kernel", found)
}

fn qemu() -> Check {
    let name = "qemu-system-x86_64";
    let found = match installed(name) {
        true => Ok(name.to_owned()),
        false => Err(Error::unavailable(name, "install the package qemu-system-x86")),
    };
    check("QEMU", "--image", found)
}

fn kvm() -> Check {
    let found = match fs::File::options().read(true).write(true).open("/dev/kvm") {
        Ok(_) => Ok("/dev/kvm; --image tries whether it runs a guest".to_owned()),
        Err(error) => Err(Error::unavailable(
            format!("/dev/kvm ({error})"),
            "images run emulated: their counters are right, their times are left out",
        )),
    };
    check("KVM", "times with --image", found)
}

fn interference() -> Check {
    let note = damon_pageout().map(|_| {
        "DAMON evicts pages that no process maps, every few seconds: runs that it meets are \
         repeated, so keep runs short"
            .to_owned()
    });
    let state = match note {
        Some(_) => Err("DAMON pages out".to_owned()),
        None => Ok("no other reclaim".to_owned()),
    };
    Check { name: "quiet page cache", used_by: "--on kernel, conform", state, note }
}

/// Whether a program can be started by its name, administrators' ones included.
fn installed(program: &str) -> bool {
    let path = std::env::var("PATH").unwrap_or_default() + ":/usr/sbin:/sbin";
    std::env::split_paths(&path).any(|directory| {
        let file = fs::metadata(directory.join(program));
        file.is_ok_and(|data| data.is_file() && data.permissions().mode() & 0o111 != 0)
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_missing_comes_with_a_remedy() {
        let missing = check("x", "y", Err(Error::unavailable("thing", "buy one")));
        assert_eq!(missing.state, Err("no thing".to_owned()));
        assert_eq!(missing.note.as_deref(), Some("buy one"));
        for check in [rules(), root(), residency(), io_accounting(), lru(), qemu(), kvm()] {
            assert!(check.state.is_ok() || check.note.is_some(), "{check:?}");
        }
    }

    #[test]
    fn programs_are_found_by_name() {
        assert!(installed("sh"));
        assert!(!installed("no-such-program-here"));
    }
}

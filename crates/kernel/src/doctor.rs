//! Checks what commands need on this machine, with a remedy for each missing requirement.

use std::fs;
use std::os::unix::fs::PermissionsExt;
use std::path::Path;

use filemap_core::rules::Kernel;

use crate::cgroup::{Version, memory_hierarchy};
use crate::engine::{FAULT_AROUND_FILE, LruGen, lru_gen, temporary_directory};
use crate::error::require_root;
use crate::interference::damon_pageout;
use crate::journal::Journal;
use crate::residency::CacheStat;
use crate::scratch::ScratchFilesystem;
use crate::storage::Storage;
use crate::temporary_file::available_bytes;
use crate::trace::TraceFs;
use crate::{Error, page_size};

/// A requirement of commands, and whether this machine meets it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct MachineCheck {
    /// Name of the requirement.
    pub name: &'static str,
    /// The commands and flags that need it, separated by commas; each is one of [`COMMANDS`].
    pub used_by: &'static str,
    /// How the requirement is met, or why it is not.
    pub state: Result<String, String>,
    /// The remedy, or a remark.
    pub note: Option<String>,
}

/// The commands and flags that need more than a file and a CPU.
pub const COMMANDS: [&str; 15] = [
    "run --on kernel",
    "compare --on kernel",
    "explain --on kernel",
    "conform",
    "calibrate",
    "published --full",
    "record",
    "record --change-settings",
    "advise --check",
    "govern",
    "--kernel host",
    "--read-ahead-kb",
    "--memory-max",
    "--image",
    "--change-settings",
];

/// Commands that count reads on the running kernel.
const MEASURED: &str = "run --on kernel, compare --on kernel, explain --on kernel, conform, \
                        advise --check";

/// Commands that report cached pages.
const CACHE_COUNTS: &str = "run --on kernel, compare --on kernel, conform, published --full";

/// Commands that create files.
const TEMPORARY: &str = "run --on kernel, compare --on kernel, explain --on kernel, conform, \
                         calibrate, published --full, --image";

/// Commands that create scratch filesystems, some of them only with a flag.
const SCRATCH: &str = "--read-ahead-kb, explain --on kernel, conform";

/// Commands that create filesystems, including those on a guest's disk.
const FILESYSTEM: &str = "--read-ahead-kb, explain --on kernel, conform, --image";

/// Checks all requirements. Changes made for a check are undone.
pub fn checks(journal: &Journal) -> Vec<MachineCheck> {
    vec![
        rules(),
        root(),
        temporary(),
        residency(),
        io_accounting(),
        lru(),
        memory_cgroup(),
        loop_devices(),
        mkfs("mkfs.ext4", ScratchFilesystem::Ext4),
        mkfs("mkfs.xfs", ScratchFilesystem::Xfs { block_bytes: page_size() }),
        tracepoints(journal),
        debugfs(),
        qemu(),
        kvm(),
        interference(),
    ]
}

fn check(name: &'static str, used_by: &'static str, found: Result<String, Error>) -> MachineCheck {
    match found {
        Ok(found) => MachineCheck { name, used_by, state: Ok(found), note: None },
        Err(Error::Unavailable { what, remedy }) => {
            MachineCheck { name, used_by, state: Err(format!("no {what}")), note: Some(remedy) }
        }
        Err(Error::NeedsRoot { .. }) => {
            MachineCheck { name, used_by, state: Err("only for root".to_owned()), note: None }
        }
        Err(error) => MachineCheck { name, used_by, state: Err(error.to_string()), note: None },
    }
}

fn rules() -> MachineCheck {
    let release = rustix::system::uname().release().to_string_lossy().into_owned();
    let inexact = Kernel::nearest(&release).filter(|nearest| !nearest.is_exact);
    let note = inexact.map(|nearest| {
        format!("the nearest rules that are modelled are those of {}", nearest.kernel.name())
    });
    MachineCheck {
        note,
        ..check("kernel", "--kernel host, compare --on kernel, conform", Ok(release))
    }
}

fn root() -> MachineCheck {
    let found = require_root("changing the machine").map(|()| "yes".to_owned());
    let note = found.is_err().then(|| {
        "run as root for another readahead size, memory limits and conform; the rest needs none"
            .to_owned()
    });
    MachineCheck {
        note,
        ..check(
            "root",
            "--read-ahead-kb, --memory-max, --change-settings, explain --on kernel, conform, \
             record --change-settings",
            found,
        )
    }
}

fn temporary() -> MachineCheck {
    let found = temporary_directory().and_then(|directory| {
        let storage = Storage::find(&directory)?;
        let available_gib = available_bytes(&directory)? >> 30;
        let read_ahead = storage.read_ahead_kb.map_or("no".to_owned(), |kib| format!("{kib} KiB"));
        Ok(format!(
            "{}: {}, {available_gib} GiB available, {read_ahead} readahead",
            directory.display(),
            storage.filesystem
        ))
    });
    check("temporary files", TEMPORARY, found)
}

fn residency() -> MachineCheck {
    let found = std::env::current_exe().ok().and_then(|path| fs::File::open(path).ok());
    let unavailable = |feature: &str| {
        let remedy =
            "use Linux 6.5 or newer, and files that you own: without it evictions are not seen";
        Error::unavailable(feature, remedy)
    };
    let found = found.ok_or_else(|| unavailable("file to look at"));
    let refused = |_| unavailable("cachestat of this program's file");
    let found = found.and_then(|file| CacheStat::query(&file, ..).map_err(refused));
    check("cachestat", CACHE_COUNTS, found.map(|_| "yes".to_owned()))
}

fn io_accounting() -> MachineCheck {
    let text = fs::read_to_string("/proc/self/io").unwrap_or_default();
    let found = crate::procstat::read_bytes(&text).map(|_| "yes".to_owned());
    check(
        "I/O accounting",
        MEASURED,
        found.ok_or_else(|| {
            Error::unavailable("/proc/self/io", "use a kernel with CONFIG_TASK_IO_ACCOUNTING")
        }),
    )
}

fn lru() -> MachineCheck {
    let state = match lru_gen() {
        LruGen::Off => Ok("two lists".to_owned()),
        LruGen::On => Err(Error::unavailable(
            "rules for the multi-generational LRU",
            "echo 0 > /sys/kernel/mm/lru_gen/enabled, or keep to files that fit into memory",
        )),
    };
    check("reclaim", "run --on kernel, compare --on kernel, --memory-max", state)
}

fn memory_cgroup() -> MachineCheck {
    let found = require_root("a memory cgroup").and_then(|()| memory_hierarchy());
    let found = found.map(|(root, version)| {
        let version = match version {
            Version::V1 => "version 1, no --memory-high",
            Version::V2 => "version 2",
        };
        format!("{}: {version}", root.display())
    });
    check("memory cgroups", "--memory-max", found)
}

fn loop_devices() -> MachineCheck {
    let found = require_root("a scratch filesystem").and_then(|()| {
        if Path::new("/dev/loop-control").exists() {
            Ok("/dev/loop-control".to_owned())
        } else {
            Err(Error::unavailable("loop devices", "load the module loop"))
        }
    });
    check("loop devices", SCRATCH, found)
}

fn mkfs(name: &'static str, filesystem: ScratchFilesystem) -> MachineCheck {
    let found = if installed(name) {
        Ok(name.to_owned())
    } else {
        Err(Error::unavailable(
            name,
            format!(
                "install {}: without it no scratch filesystem and no disk of --image is {}, and \
                 conform leaves such patterns out",
                filesystem.package(),
                filesystem.name()
            ),
        ))
    };
    check(name, FILESYSTEM, found)
}

fn debugfs() -> MachineCheck {
    // Under kernel lockdown the file is visible, but cannot be opened.
    let opened = fs::File::options().read(true).write(true).open(FAULT_AROUND_FILE);
    let found = match opened.map_err(|error| error.raw_os_error()) {
        Ok(_) => Ok(FAULT_AROUND_FILE.to_owned()),
        Err(Some(libc::EPERM)) => Err(Error::unavailable(
            "access: the kernel is locked down",
            "boot with lockdown=none, or leave out --fault-around",
        )),
        Err(Some(libc::EACCES)) => Err(Error::NeedsRoot { what: "the fault-around size" }),
        Err(_) => Err(Error::unavailable(
            FAULT_AROUND_FILE,
            "mount -t debugfs debugfs /sys/kernel/debug as root, or leave out --fault-around",
        )),
    };
    check("fault-around size", "--change-settings, record --change-settings", found)
}

fn tracepoints(journal: &Journal) -> MachineCheck {
    let found = TraceFs::open(journal).map(|tracefs| {
        if tracefs.root().starts_with(journal.directory()) {
            "tracefs can be mounted".to_owned()
        } else {
            format!("tracefs at {}", tracefs.root().display())
        }
    });
    check("tracepoints", "explain --on kernel, conform, record", found)
}

fn qemu() -> MachineCheck {
    let name = "qemu-system-x86_64";
    let found = if installed(name) {
        Ok(name.to_owned())
    } else {
        Err(Error::unavailable(name, "install the package qemu-system-x86"))
    };
    check("QEMU", "--image", found)
}

fn kvm() -> MachineCheck {
    let found = match fs::File::options().read(true).write(true).open("/dev/kvm") {
        Ok(_) => Ok("/dev/kvm; --image tries whether it runs a guest".to_owned()),
        Err(error) => Err(Error::unavailable(
            format!("/dev/kvm ({error})"),
            "images run emulated: their counters are right, their times are left out",
        )),
    };
    check("KVM", "--image", found)
}

fn interference() -> MachineCheck {
    let note = damon_pageout().map(|_| {
        "DAMON evicts pages that no process maps, every few seconds: affected runs are repeated, \
         so keep runs short"
            .to_owned()
    });
    let state = match note {
        Some(_) => Err("DAMON pages out".to_owned()),
        None => Ok("no other reclaim".to_owned()),
    };
    MachineCheck { name: "quiet page cache", used_by: MEASURED, state, note }
}

/// Whether `program` is found in PATH.
fn installed(program: &str) -> bool {
    let path = std::env::var("PATH").unwrap_or_default();
    std::env::split_paths(&path).any(|directory| {
        let file = fs::metadata(directory.join(program));
        file.is_ok_and(|data| data.is_file() && data.permissions().mode() & 0o111 != 0)
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn missing_things_have_remedies() {
        let missing = check("x", "y", Err(Error::unavailable("thing", "buy one")));
        assert_eq!(missing.state, Err("no thing".to_owned()));
        assert_eq!(missing.note.as_deref(), Some("buy one"));
        let used =
            |check: &MachineCheck| check.used_by.split(", ").all(|name| COMMANDS.contains(&name));
        for check in [
            loop_devices(),
            mkfs("mkfs.xfs", ScratchFilesystem::Xfs { block_bytes: page_size() }),
            debugfs(),
        ] {
            assert!(used(&check), "{check:?}");
        }
        for check in [rules(), root(), residency(), io_accounting(), lru(), qemu(), kvm()] {
            assert!(check.state.is_ok() || check.note.is_some(), "{check:?}");
            assert!(used(&check), "{check:?}");
        }
    }

    #[test]
    fn finds_programs_on_path() {
        assert!(installed("sh"));
        assert!(!installed("no-such-program-here"));
    }
}

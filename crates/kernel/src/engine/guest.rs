//! The engine inside a kernel that was booted for a job.

use std::fs;
use std::path::Path;

use filemap_job::program::Program;
use filemap_job::{Engine, Job, Machine, Thrash};
use rustix::mount::{MountFlags, mount};
use serde_json::Value;

use super::sent::{Bootable, answer, refused, sent_switches};
use super::{Kernel, settings, switches};
use crate::image::guest;
use crate::journal::Journal;
use crate::{Error, page_size};

/// In the guest, which has no other place for it.
const GUEST_JOURNAL: &str = "/tmp/filemap-journal";

/// Runs the job of `payload` on the kernel that was booted for it: for [`guest::main`].
///
/// # Errors
/// In one line, for the host.
pub fn in_guest(payload: &str) -> Result<String, String> {
    let wrong = |what: &str| format!("the host's job makes no sense: {what}");
    let sent: Value = serde_json::from_str(payload).map_err(|error| wrong(&error.to_string()))?;
    let release = rustix::system::uname().release().to_string_lossy().into_owned();
    if let Err(error) = set_switches(&sent) {
        return refused(error);
    }
    if let Some(asked) = super::Asked::received(&sent["observed"]) {
        let hex = |bytes: Vec<u8>| bytes.iter().map(|b| format!("{b:02x}")).collect::<String>();
        let go = |bytes: Result<Vec<u8>, Error>| bytes.map(hex).map_err(|error| error.to_string());
        if let Some(job) = Job::received(&sent, &release) {
            return go(observed(&job.map_err(|error| wrong(&error))?, asked));
        }
        if let Some(job) = Program::received(&sent, &release) {
            return go(observed(&job.map_err(|error| wrong(&error))?, asked));
        }
    }
    if let Some(job) = Job::received(&sent, &release) {
        return answer::<Job>(run(&job.map_err(|error| wrong(&error))?));
    }
    if let Some(program) = Program::received(&sent, &release) {
        return answer::<Program>(run(&program.map_err(|error| wrong(&error))?));
    }
    match Thrash::received(&sent, &release) {
        Some(thrash) => answer::<Thrash>(run(&thrash.map_err(|error| wrong(&error))?)),
        None => Err(wrong("it is of no known form")),
    }
}

/// Switches series of this kernel on and off, as the host's message says.
fn set_switches(sent: &Value) -> Result<(), Error> {
    let (named, on) = sent_switches(sent);
    switches::set(named, on)
}

fn observed<W: Bootable<Process = crate::probe::Process>>(
    job: &W,
    asked: super::Asked,
) -> Result<Vec<u8>, Error> {
    prepare(&job.needs().machine)?;
    let journal = Journal::open_in(Path::new(GUEST_JOURNAL))?;
    super::observed::observe(job, &journal, guest::DATA_DIR.as_ref(), asked)
}

fn run<W: Bootable>(job: &W) -> Result<W::Record, Error> {
    prepare(&job.needs().machine)?;
    let journal = Journal::open_in(Path::new(GUEST_JOURNAL))?;
    Kernel::in_directory(journal, guest::DATA_DIR.into()).run(job)
}

/// Sets the machine up as the job wants it. It is the job's own, so nothing is undone.
fn prepare(machine: &Machine) -> Result<(), Error> {
    if machine.memory_max_bytes.or(machine.memory_high_bytes).is_some() {
        mount_memory_cgroups(Path::new("/sys/fs/cgroup"))?;
    }
    let fault_around = machine.fault_around.bytes(page_size());
    if fault_around != settings::fault_around_bytes() {
        mount_at("debugfs", Path::new("/sys/kernel/debug"))?;
        let path = Path::new(settings::FAULT_AROUND_FILE);
        fs::write(path, fault_around.to_string())
            .map_err(|error| Error::os("write", path, error))?;
    }
    Ok(())
}

/// Mounts the cgroups of a machine that has none, with the memory controller.
///
/// # Errors
/// When the kernel has none.
pub fn mount_memory_cgroups(root: &Path) -> Result<(), Error> {
    mount_at("cgroup2", root)?;
    let control = root.join("cgroup.subtree_control");
    fs::write(&control, "+memory").map_err(|error| Error::os("write", &control, error))
}

fn mount_at(kind: &str, target: &Path) -> Result<(), Error> {
    mount(kind, target, kind, MountFlags::empty(), None)
        .map_err(|errno| Error::os("mount", target, errno))
}

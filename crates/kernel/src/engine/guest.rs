//! The engine inside a kernel that was booted for a job.

use std::fs;
use std::path::Path;

use filemap_job::program::Program;
use filemap_job::{Engine, Job, Machine, Thrash};
use rustix::mount::{MountFlags, mount};
use serde_json::Value;

use super::sent::{Bootable, Message, answer, refused};
use super::switches::Switched;
use super::{Kernel, settings};
use crate::image::guest::{self, Log};
use crate::journal::Journal;
use crate::{Error, page_size};

/// In the guest, which has no other place for it.
const GUEST_JOURNAL: &str = "/tmp/filemap-journal";

/// Runs the job of `payload` on the kernel that was booted for it and others: for [`guest::main`].
///
/// # Errors
/// In one line, for the host.
pub fn in_guest(payload: &str, log: &mut Log) -> Result<String, String> {
    let wrong = |what: &str| format!("the host's job makes no sense: {what}");
    let message = Message::from_json(payload).map_err(|error| wrong(&error))?;
    let release = rustix::system::uname().release().to_string_lossy().into_owned();
    guest::set_read_ahead(message.read_ahead_kb)?;
    // Other jobs may come that want them as they were.
    let _switched = match Switched::set(message.named, message.on) {
        Ok(switched) => switched,
        Err(error) => return refused(error),
    };
    let (sent, observed) = (&message.job, message.observed.as_ref());
    if let Some(job) = Job::received(sent, &release) {
        return answer::<Job>(run(&job.map_err(|error| wrong(&error))?, observed, log));
    }
    if let Some(program) = Program::received(sent, &release) {
        return answer::<Program>(run(&program.map_err(|error| wrong(&error))?, observed, log));
    }
    match Thrash::received(sent, &release) {
        Some(thrash) => {
            answer::<Thrash>(run(&thrash.map_err(|error| wrong(&error))?, observed, log))
        }
        None => Err(wrong("it is of no known form")),
    }
}

fn run<W: Bootable>(job: &W, how: Option<&Value>, log: &mut Log) -> Result<W::Record, Error> {
    prepare(&job.needs().machine)?;
    let journal = Journal::open_in(Path::new(GUEST_JOURNAL))?;
    match how {
        Some(how) => observed(job, journal, log, how),
        None => Kernel::in_directory(journal, guest::DATA_DIR.into()).run(job),
    }
}

/// Runs `job` while its kernel tells what it decides, which goes to `log`.
fn observed<W: Bootable>(
    _job: &W,
    _journal: Journal,
    _log: &mut Log,
    _how: &Value,
) -> Result<W::Record, Error> {
    Err(Error::unavailable("a decision log of a booted kernel", "leave it out"))
}

/// Sets the machine up as the job wants it. What is mounted stays for the jobs behind it, each of
/// which says how it wants the settings.
fn prepare(machine: &Machine) -> Result<(), Error> {
    let cgroups = Path::new("/sys/fs/cgroup");
    let is_limited = machine.memory_max_bytes.or(machine.memory_high_bytes).is_some();
    if is_limited && !cgroups.join("cgroup.procs").exists() {
        mount_memory_cgroups(cgroups)?;
    }
    let fault_around = machine.fault_around.bytes(page_size());
    if fault_around != settings::fault_around_bytes() {
        let path = Path::new(settings::FAULT_AROUND_FILE);
        if !path.exists() {
            mount_at("debugfs", Path::new("/sys/kernel/debug"))?;
        }
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

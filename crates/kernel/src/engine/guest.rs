//! The engine inside a booted kernel.

use std::fs;
use std::io::Write;
use std::path::Path;

use filemap_job::program::Job;
use filemap_job::{Engine, JobRuns, Machine};
use rustix::mount::{MountFlags, mount};
use serde_json::{Map, Value};

use super::guest_protocol::{Message, answer, answer_observed, received, refusal};
use super::observe::{self, ObserveOptions};
use super::settings::SwitchGuard;
use super::{HostKernel, environment, settings};
use crate::image::guest::{self, JobLog};
use crate::journal::Journal;
use crate::{Error, page_size};

/// Inside the guest, which has only this filesystem for it.
const GUEST_JOURNAL: &str = "/tmp/filemap-journal";

/// Runs the job of `payload` on the booted kernel: for [`guest::main`].
///
/// # Errors
/// One line for the host.
pub fn run_in_guest(payload: &str, log: &mut JobLog) -> Result<String, String> {
    let wrong = |reason: &str| format!("the host's job is invalid: {reason}");
    let message = Message::from_json(payload).map_err(|error| wrong(&error))?;
    let release = rustix::system::uname().release().to_string_lossy().into_owned();
    guest::set_read_ahead(message.read_ahead_kb)?;
    // Later jobs need the original settings.
    let options = match &message.observed {
        Some(how) => {
            Some(ObserveOptions::from_json(how).ok_or_else(|| wrong("nobody observes so"))?)
        }
        None => None,
    };
    let named = if options.is_some_and(|options| options.may_lack_switches) {
        settings::supported_switches(message.named)
    } else {
        message.named
    };
    let _switched = match SwitchGuard::set(named, message.on) {
        Ok(switched) => switched,
        Err(error) => return refusal(error),
    };
    let program = received(&message.job, &release).map_err(|error| wrong(&error))?;
    guest::grow_active_list(message.active_list_bytes)?;
    match options {
        Some(options) => match observed(&program, options, log) {
            Ok(environment) => Ok(answer_observed(environment)),
            Err(error) => refusal(error),
        },
        None => answer(run(&program)),
    }
}

fn run(program: &Job) -> Result<JobRuns, Error> {
    prepare(&program.machine)?;
    let journal = Journal::open_in(Path::new(GUEST_JOURNAL))?;
    HostKernel::in_directory(journal, guest::DATA_DIR.into()).run(program)
}

/// Runs `program` under a trace, and writes the recording to `log`. Returns the environment.
fn observed(
    program: &Job,
    options: ObserveOptions,
    log: &mut JobLog,
) -> Result<Map<String, Value>, Error> {
    prepare(&program.machine)?;
    let journal = Journal::open_in(Path::new(GUEST_JOURNAL))?;
    let recording = observe::record(program, &journal, Path::new(guest::DATA_DIR), options)?;
    let sent = log.write_all(&recording.encode());
    sent.map_err(|error| Error::call("send what was observed", error))?;
    Ok(environment::host_environment())
}

/// Sets the machine up as the job requires. Mounts stay for later jobs, each of which sets what it
/// needs.
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

/// Mounts the memory cgroup hierarchy if the machine has none.
///
/// # Errors
/// The kernel lacks the memory controller.
pub fn mount_memory_cgroups(root: &Path) -> Result<(), Error> {
    mount_at("cgroup2", root)?;
    let control = root.join("cgroup.subtree_control");
    fs::write(&control, "+memory").map_err(|error| Error::os("write", &control, error))
}

fn mount_at(kind: &str, target: &Path) -> Result<(), Error> {
    mount(kind, target, kind, MountFlags::empty(), None)
        .map_err(|errno| Error::os("mount", target, errno))
}

//! Jobs on a kernel that is booted for them: the same engine, inside the virtual machine.

use std::fs;
use std::path::Path;

use filemap_job::program::Program;
use filemap_job::{
    Engine, EngineKind, Filesystem, Image as JobImage, Job, JobSpec, Pattern, Ready, Record, Run,
};
use rustix::mount::{MountFlags, mount};
use serde_json::{Map, Value, json};

use super::limits::{MemoryLimits, available_bytes};
use super::needs::Needs;
use super::{Kernel, Prepared, plan, settings, temporary_directory};
use crate::image::{self, Accelerator, Image, Outcome, guest};
use crate::journal::Journal;
use crate::temporary::require_space;
use crate::{Error, page_size};

/// RAM beside what the file takes.
const OWN_RAM_BYTES: u64 = 768 << 20;

/// Space on the scratch disk beside what the file takes, and one byte in so many of the file for
/// what the filesystem keeps free. The file behind the disk is sparse.
const OWN_DISK_BYTES: u64 = 256 << 20;
const UNUSED_ONE_IN: u64 = 4;

/// What a machine writes beside the file: its filesystem's own blocks, and what it boots from.
const OWN_WRITTEN_BYTES: u64 = 128 << 20;

/// In the guest, which has no other place for it.
const GUEST_JOURNAL: &str = "/tmp/filemap-journal";

/// How much of the file a slow machine writes or reads in a second.
const SLOW_BYTES_A_SECOND: u64 = 4 << 20;

/// Kernels that are booted, each for one seed of a job that names its image.
#[derive(Clone, Copy, Debug, Default)]
pub struct Boot;

impl Engine<Job> for Boot {
    type Error = Error;
    type Ready = BootedJob;

    /// Looks whether a boot can begin: that the images are kernels, that the modules they need are
    /// there, and that there is room.
    ///
    /// # Errors
    /// See [`Error`]; [`Error::cannot_run_here`] tells what is missing from what failed.
    ///
    /// # Panics
    /// When a job names no image.
    fn prepare_all(&self, jobs: &[&Job]) -> Result<Vec<BootedJob>, Error> {
        let ready = |job: &&Job| {
            let named = job.image.clone().expect("the caller has jobs with an image");
            check(job)?;
            machine(job, &named)?.check()?;
            Ok(BootedJob { job: (*job).clone(), image: named, environment: None })
        };
        jobs.iter().map(ready).collect()
    }
}

impl Engine<Program> for Boot {
    type Error = Error;
    type Ready = Prepared<Program>;

    /// No program names an image.
    fn prepare_all(&self, programs: &[&Program]) -> Result<Vec<Prepared<Program>>, Error> {
        match programs {
            [] => Ok(Vec::new()),
            _ => Err(Error::unavailable(
                "a program on a kernel that is booted",
                "leave --image out, or give --on model",
            )),
        }
    }
}

/// A job on a kernel that is booted for each seed, and makes all runs of that seed.
#[derive(Clone, Debug)]
pub struct BootedJob {
    job: Job,
    image: JobImage,
    /// What the first boot said of itself.
    environment: Option<Map<String, Value>>,
}

impl Ready for BootedJob {
    type Error = Error;
    type Run = Run;
    type Record = Record;

    fn seed(&self) -> u64 {
        self.job.seed
    }

    fn take_turn(&mut self, seed: u64) -> Result<Vec<Run>, Error> {
        let record = boot(&self.job.with_seed(seed), &self.image)?;
        self.environment.get_or_insert(record.environment);
        Ok(record.runs)
    }

    fn record(self, runs: Vec<Run>) -> Record {
        let environment = self.environment.unwrap_or_default();
        Record::new(&self.job, EngineKind::Kernel.name(), environment, runs)
    }
}

/// Boots `named` and runs all runs of `job` there.
fn boot(job: &Job, named: &JobImage) -> Result<Record, Error> {
    let image = machine(job, named)?;
    let outcome = image.run(&payload(job)).map_err(|error| of_guest(job, error))?;
    let mut record: Record = serde_json::from_str(&outcome.record)
        .map_err(|error| image::Error::Damaged { reason: format!("it is no record ({error})") })?;
    describe(&mut record.environment, &image, &outcome);
    if outcome.accelerator == Accelerator::Tcg {
        // What an emulator takes says nothing of any machine.
        for run in &mut record.runs {
            run.elapsed_ns = None;
            run.phases.iter_mut().for_each(|phase| phase.elapsed_ns = None);
        }
    }
    Ok(record)
}

/// `error`, or what the guest means by it where the job's memory is too small.
fn of_guest(job: &Job, error: image::Error) -> Error {
    match (&error, MemoryLimits::of(&job.machine).exceeded()) {
        (image::Error::Guest(text), Some(exceeded)) if *text == exceeded.to_string() => exceeded,
        _ => error.into(),
    }
}

/// Refuses what the machine to be booted cannot be.
fn check(job: &Job) -> Result<(), Error> {
    plan::check_rules(&job.rules, &job.machine)?;
    plan::check_accesses(&Needs::from(job))?;
    if cfg!(not(target_arch = "x86_64")) {
        let remedy = "boot x86-64 images on an x86-64 machine, or give --on model";
        return Err(Error::unavailable("--image", remedy));
    }
    if job.file.path.is_some() {
        let remedy = match job.elf {
            Some(_) => "give --on kernel without --image, or --on model",
            None => "leave it out: the booted kernel makes a file on its own disk",
        };
        return Err(Error::unavailable("a --file of this machine on another kernel", remedy));
    }
    if job.machine.fs == Filesystem::BasePages {
        let remedy = "give --fs ext4 or xfs, or --on model";
        return Err(Error::unavailable("a scratch disk without large folios", remedy));
    }
    Ok(())
}

fn machine(job: &Job, named: &JobImage) -> Result<Image, Error> {
    let directory = temporary_directory()?;
    let bytes = job.file.size_bytes;
    let written = if job.file.sparse { 0 } else { bytes };
    require_space(&directory, written.saturating_add(OWN_WRITTEN_BYTES))?;
    let needed = bytes.saturating_add(bytes / 8).saturating_add(OWN_RAM_BYTES);
    let ram_bytes = job.machine.ram_bytes.unwrap_or(needed);
    if available_bytes().is_some_and(|available| ram_bytes > available) {
        return Err(Error::unavailable(
            format!("a machine with {} MiB of RAM", ram_bytes >> 20),
            "give a smaller --ram or --file-size",
        ));
    }
    let mut image = Image::new(&named.path)?;
    image.modules = named.modules.as_ref().map(Into::into);
    image.ram_bytes = ram_bytes;
    image.read_ahead_kb = Some(job.machine.read_ahead.bytes(page_size()) >> 10);
    image.disk_bytes = bytes.saturating_add(bytes / UNUSED_ONE_IN).saturating_add(OWN_DISK_BYTES);
    image.filesystem = match job.machine.fs {
        Filesystem::Xfs => image::Filesystem::Xfs,
        Filesystem::Ext4 | Filesystem::BasePages => image::Filesystem::Ext4,
    };
    image.disk_bytes = image.disk_bytes.max(image.filesystem.smallest_bytes());
    image.scratch_dir = directory;
    image.time_limit += std::time::Duration::from_secs(bytes / SLOW_BYTES_A_SECOND);
    Ok(image)
}

/// The job as the guest is given it: with the lists that it names, without the machine around it.
fn payload(job: &Job) -> String {
    let mut spec = job.to_spec();
    (spec.image, spec.modules, spec.ram, spec.machine) = (None, None, None, None);
    spec.kernel = Some("host".into());
    let list = |phase: &filemap_job::Phase| match &phase.pattern {
        Pattern::Listed(list) => {
            Some(list.pages.iter().map(|page| format!("{page}\n")).collect::<String>())
        }
        Pattern::Generated(_) => None,
    };
    let lists: Vec<String> = job.phases.iter().filter_map(list).collect();
    json!({ "job": spec, "lists": lists }).to_string()
}

fn describe(environment: &mut Map<String, Value>, image: &Image, outcome: &Outcome) {
    let words: Vec<String> = std::env::args().collect();
    environment.insert("command_line".into(), words.join(" ").into());
    environment.insert("image".into(), image.kernel.display().to_string().into());
    environment.insert("emulator".into(), format!("QEMU, {}", outcome.accelerator.name()).into());
    let scope =
        format!("Linux {} booted under QEMU, one child process, its file cold", outcome.release);
    environment.insert("scope".into(), scope.into());
}

/// Runs the job of `payload` on the kernel that was booted for it: for [`guest::main`].
///
/// # Errors
/// In one line, for the host.
pub fn in_guest(payload: &str) -> Result<String, String> {
    let wrong = |what: &str| format!("the host's job makes no sense: {what}");
    let value: Value = serde_json::from_str(payload).map_err(|error| wrong(&error.to_string()))?;
    let spec = serde_json::from_value(value["job"].clone());
    let mut spec: JobSpec = spec.map_err(|error| wrong(&error.to_string()))?;
    let mut lists = value["lists"].as_array().into_iter().flatten();
    for (_, text) in spec.accesses_files() {
        *text = lists.next().and_then(Value::as_str).map(str::to_owned);
    }
    let release = rustix::system::uname().release().to_string_lossy().into_owned();
    let job = spec.validate(Some(&release)).map_err(|error| error.to_string())?;
    prepare(&job).map_err(|error| error.to_string())?;
    let journal = Journal::open_in(Path::new(GUEST_JOURNAL)).map_err(|error| error.to_string())?;
    let kernel = Kernel::in_directory(journal, guest::DATA_DIR.into());
    let record = kernel.run(&job).map_err(|error| error.to_string())?;
    serde_json::to_string(&record).map_err(|error| error.to_string())
}

/// Sets the machine up as the job wants it. It is the job's own, so nothing is undone.
fn prepare(job: &Job) -> Result<(), Error> {
    if job.machine.memory_max_bytes.or(job.machine.memory_high_bytes).is_some() {
        mount_memory_cgroups(Path::new("/sys/fs/cgroup"))?;
    }
    let fault_around = job.machine.fault_around.bytes(page_size());
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

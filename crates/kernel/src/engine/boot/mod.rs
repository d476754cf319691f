//! Runs jobs on a booted kernel: the same engine, inside the virtual machine.

mod machines;

use std::cell::RefCell;
use std::fs::File;
use std::rc::Rc;
use std::time::Duration;

use filemap_job::program::Job;
use filemap_job::{Engine, EngineKind, Filesystem, Image as JobImage, JobRuns, ReadyJob, Run};
use serde_json::{Map, Value};

use super::environment::{command_line, cpu_model};
use super::guest_protocol::{self, Message, Returned, opened};
use super::limits::{MemoryLimits, available_bytes};
use super::needs::{JobNeeds, NeededFile};
use super::stage::MAX_FLUSH_WAIT;
use super::{needs, temporary_directory};
use crate::image::{self, Accelerator, GuestJob, Incident, KernelImage, QUIET_TIMEOUT};
use crate::temporary_file::{FileContents, require_space};
use crate::{Error, page_size};

use machines::{BootResult, MachinePool, QueuePosition, QueuedJob};

/// Key of the kernel's warnings in a run's environment.
pub const CONSOLE_KEY: &str = "console";

/// RAM in addition to the files.
const OWN_RAM_BYTES: u64 = 768 << 20;

/// Space on the scratch disk in addition to the files: a constant, and a fraction of the file size
/// that the filesystem reserves. The backing file is sparse.
const OWN_DISK_BYTES: u64 = 256 << 20;
const DISK_RESERVE_DIVISOR: u64 = 4;

/// Host disk space in addition to the files: filesystem metadata and the initramfs.
const OWN_WRITTEN_BYTES: u64 = 128 << 20;

/// Throughput and access latency of a slow machine.
const SLOW_BYTES_PER_SECOND: u64 = 4 << 20;
const SLOW_ACCESS: Duration = Duration::from_millis(2);

/// How much faster a typical machine is than the slow one assumed for timeouts.
const SLOW_FACTOR: u32 = 10;

/// Base timeout of any job, on a heavily loaded machine.
const BASE_JOB_TIMEOUT: Duration = Duration::from_secs(300);

/// Boots kernels for jobs that name an image. Jobs share a boot if that does not affect their
/// results. A few machines stay up for further jobs, until this, its clones and the jobs that they
/// prepared are dropped.
#[derive(Clone, Debug, Default)]
pub struct BootedKernels {
    machines: Rc<RefCell<MachinePool>>,
    /// How jobs are observed, if at all.
    observed: Option<Value>,
    /// See [`KernelImage::notify`].
    notify: Option<fn(&str)>,
}

impl BootedKernels {
    /// Starts without machines. `tell` is called with warnings, and when a machine is slow.
    pub fn with_notify(tell: fn(&str)) -> Self {
        BootedKernels { notify: Some(tell), ..BootedKernels::default() }
    }

    /// Uses the same machines, and traces the jobs prepared from now on as `how` says;
    /// [`BootedJob::take_log`] returns the trace. Its `ram_bytes` are added to the memory of the
    /// machine, and its `seconds` to the time limit of each job.
    pub fn with_observation(self, how: Value) -> Self {
        BootedKernels { observed: Some(how), ..self }
    }

    /// The queue entry to run `job` on the kernel image `named`.
    fn entry(&self, job: &Job, named: &JobImage) -> Result<QueuedJob, Error> {
        let needs = JobNeeds::from(job);
        check(job, &needs)?;
        let mut image = image_for_job(job, &needs, named)?;
        image.notify = self.notify;
        let held = self.machines.borrow().held_bytes();
        if available_bytes().is_some_and(|free| image.ram_bytes > free.saturating_add(held)) {
            let files = if needs.is_program() { "smaller files" } else { "a smaller --file-size" };
            return Err(Error::unavailable(
                format!("a machine with {} MiB of RAM", image.ram_bytes >> 20),
                format!("give a smaller --ram, or {files}"),
            ));
        }
        let is_alone = image.ram_bytes < default_ram_bytes(&needs);
        let observation_extra =
            |key: &str| self.observed.as_ref().and_then(|how| how[key].as_u64()).unwrap_or(0);
        image.ram_bytes = image.ram_bytes.saturating_add(observation_extra("ram_bytes"));
        let series = job.rules.series;
        let message = Message {
            job: guest_protocol::job(job),
            named: named.switches.union(series),
            on: series,
            read_ahead_kb: needs.machine.read_ahead.bytes(page_size()) >> 10,
            active_list_bytes: guest_protocol::active_list_bytes(job),
            observed: self.observed.clone(),
        };
        let slow = max_job_time(job, &needs);
        let slow = slow.saturating_add(Duration::from_secs(observation_extra("seconds")));
        Ok(QueuedJob {
            is_alone,
            names_ram: needs.machine.ram_bytes.is_some(),
            image,
            task: GuestJob {
                payload: message.to_json(),
                quiet_timeout: QUIET_TIMEOUT.saturating_add(slow / SLOW_FACTOR),
                timeout: BASE_JOB_TIMEOUT.saturating_add(slow),
            },
            name: guest_protocol::words(job),
        })
    }
}

impl Engine for BootedKernels {
    type Error = Error;
    type Ready = BootedJob;

    /// Checks that images are kernels, that their modules exist, and that there is enough memory. A
    /// machine is booted when its first job runs.
    ///
    /// # Errors
    /// See [`Error`]; [`Error::cannot_run_here`] distinguishes a missing requirement from a failed
    /// run.
    ///
    /// # Panics
    /// A job names no image.
    fn prepare_all(&self, jobs: &[&Job]) -> Result<Vec<BootedJob>, Error> {
        let image = |job: &Job| job.image.clone().expect("the caller has jobs with an image");
        let entries = jobs.iter().map(|job| self.entry(job, &image(job)));
        let entries = entries.collect::<Result<Vec<_>, _>>()?;
        entries.iter().try_for_each(|entry| self.machines.borrow_mut().check(&entry.image))?;
        let ready = |(job, entry): (&&Job, QueuedJob)| {
            let place = QueuePosition::enqueue(&self.machines, entry);
            BootedJob {
                job: (*job).clone(),
                image: image(job),
                boot: self.clone(),
                batch: place.list,
                place: Some(place),
                environment: None,
                log: None,
                incidents: Vec::new(),
            }
        };
        Ok(jobs.iter().zip(entries).map(ready).collect())
    }
}

/// A job on a booted kernel. It makes all runs of one seed.
#[derive(Debug)]
pub struct BootedJob {
    job: Job,
    image: JobImage,
    boot: BootedKernels,
    batch: usize,
    /// Position of the job in the queues, until it has run.
    place: Option<QueuePosition>,
    /// Environment of the first boot.
    environment: Option<Map<String, Value>>,
    log: Option<File>,
    /// Kernel warnings.
    incidents: Vec<Incident>,
}

impl BootedJob {
    /// Takes the kernel warnings since the last call.
    pub fn take_incidents(&mut self) -> Vec<Incident> {
        std::mem::take(&mut self.incidents)
    }

    /// Takes the log of the last run, an unnamed file positioned at its start; `None` if the job
    /// was not observed.
    pub fn take_log(&mut self) -> Option<File> {
        self.log.take()
    }
}

impl ReadyJob for BootedJob {
    type Error = Error;

    fn seed(&self) -> u64 {
        self.job.seed
    }

    fn batch(&self) -> usize {
        self.batch
    }

    /// Each further seed, or repetition of the job's own seed, is a separate job.
    fn take_turn(&mut self, seed: u64) -> Result<Vec<Run>, Error> {
        let planned = self.place.take_if(|_| seed == self.job.seed);
        let job = self.job.with_seed(seed);
        let place = match planned {
            Some(place) => place,
            None => {
                let entry = self.boot.entry(&job, &self.image)?;
                QueuePosition::enqueue(&self.boot.machines, entry)
            }
        };
        let mut result = place.wait_answer()?;
        let warnings = std::mem::take(&mut result.answer.warnings);
        let returned = opened(&result.answer.text).map_err(|error| error.with_warnings(&warnings));
        let kernel = &result.image.kernel;
        let mut returned =
            returned.map_err(|error| result.label.label_error(error).on_image(kernel))?;
        describe_boot(&mut returned.environment, &result, job.files.len());
        if result.accelerator == Accelerator::Tcg && !result.image.uses_icount {
            // Times under emulation are meaningless, except those of `-icount`.
            returned.runs.iter_mut().for_each(guest_protocol::forget_times);
        }
        self.log = result.answer.log.take();
        self.incidents.extend(warnings);
        let Returned { environment, runs } = returned;
        self.environment.get_or_insert(environment);
        Ok(runs)
    }

    fn into_job_runs(self, runs: Vec<Run>) -> JobRuns {
        let mut environment = self.environment.unwrap_or_default();
        if !self.incidents.is_empty() {
            let incidents = self.incidents.iter().map(Incident::to_json).collect();
            environment.insert(CONSOLE_KEY.into(), Value::Array(incidents));
        }
        JobRuns { engine: EngineKind::Kernel, environment, runs }
    }
}

/// Refuses jobs that no booted machine can run.
fn check(job: &Job, needs: &JobNeeds) -> Result<(), Error> {
    if needs.machine.governor {
        return Err(Error::unavailable(
            "a governor in a booted image",
            "leave governor out, or give --on model, or --on kernel without --image",
        ));
    }
    needs::check_architecture(&needs.machine)?;
    needs::check_accesses(needs)?;
    needs::check_cpus(needs, guest_protocol::most_cpus(job))?;
    if cfg!(not(target_arch = "x86_64")) {
        let remedy = "boot x86-64 images on an x86-64 machine, or give --on model";
        return Err(Error::unavailable("--image", remedy));
    }
    if let Some(needed) = needs.files.iter().find(|needed| needed.file.path.is_some()) {
        return Err(host_file_error(needed));
    }
    if needs.machine.fs == Filesystem::BasePages {
        let remedy = "give --fs ext4 or xfs, or --on model";
        return Err(Error::unavailable("a scratch disk without large folios", remedy));
    }
    Ok(())
}

/// The error for a file of this machine that a guest cannot see.
fn host_file_error(needed: &NeededFile) -> Error {
    match (&needed.name, &needed.contents) {
        (Some(name), FileContents::CopyOf(_)) => Error::unavailable(
            format!("the program '{name}' on another kernel"),
            "give --on kernel without --image, or --on model",
        ),
        (Some(name), _) => Error::unavailable(
            format!("the existing file '{name}' on another kernel"),
            "give its size instead of its path: the booted kernel makes a file on its own disk",
        ),
        (None, FileContents::CopyOf(_)) => Error::unavailable(
            "a --file of this machine on another kernel",
            "give --on kernel without --image, or --on model",
        ),
        (None, _) => Error::unavailable(
            "a --file of this machine on another kernel",
            "leave it out: the booted kernel makes a file on its own disk",
        ),
    }
}

/// RAM that suffices for a job, whatever ran before it.
fn default_ram_bytes(needs: &JobNeeds) -> u64 {
    let bytes = needs.made_bytes();
    let needed = bytes.saturating_add(bytes / 8).saturating_add(OWN_RAM_BYTES);
    needed.saturating_add(needs.anonymous.0.saturating_mul(page_size()))
}

/// The machine for `job` alone.
fn image_for_job(job: &Job, needs: &JobNeeds, named: &JobImage) -> Result<KernelImage, Error> {
    let directory = temporary_directory()?;
    let bytes = needs.made_bytes();
    require_space(&directory, needs.written_bytes().saturating_add(OWN_WRITTEN_BYTES)).map_err(
        |error| needs.with_remedy(error.with_space_remedy("a smaller --file-size, or --sparse")),
    )?;
    let ram_bytes = needs.machine.ram_bytes.unwrap_or(default_ram_bytes(needs));
    let mut image = KernelImage::new(&named.path)?;
    image.modules = named.modules.as_ref().map(Into::into);
    image.ram_bytes = ram_bytes;
    image.cpus = u32::try_from(guest_protocol::cpus(job)).unwrap_or(u32::MAX);
    image.uses_icount = guest_protocol::takes_turns(job);
    image.disk_bytes =
        bytes.saturating_add(bytes / DISK_RESERVE_DIVISOR).saturating_add(OWN_DISK_BYTES);
    image.filesystem = match needs.machine.fs {
        Filesystem::Xfs => image::DiskFilesystem::Xfs { block_bytes: needs.machine.block_bytes },
        Filesystem::Ext4 | Filesystem::BasePages => image::DiskFilesystem::Ext4,
    };
    image.disk_bytes = image.disk_bytes.max(image.filesystem.min_bytes());
    image.scratch_dir = directory;
    Ok(image)
}

/// Upper bound of the time that `job` reads, writes and waits on a slow, emulated machine.
fn max_job_time(job: &Job, needs: &JobNeeds) -> Duration {
    let runs = job.runs;
    let read = needs.accesses.saturating_mul(needs.longest_read_bytes.max(page_size()));
    let bytes = needs.made_bytes().max(read).saturating_mul(runs);
    let seconds = needs.made_bytes().saturating_add(bytes) / SLOW_BYTES_PER_SECOND;
    let accesses = needs.accesses.saturating_mul(runs);
    let at_least = Duration::from_nanos(guest_protocol::program_ns(job).saturating_mul(runs));
    let flushes = if MemoryLimits::from_machine(&needs.machine).is_some() {
        MAX_FLUSH_WAIT * u32::try_from(runs).unwrap_or(u32::MAX)
    } else {
        Duration::ZERO
    };
    let touches = SLOW_ACCESS.saturating_mul(u32::try_from(accesses).unwrap_or(u32::MAX));
    let takes = [Duration::from_secs(seconds), touches, at_least, flushes];
    takes.into_iter().fold(Duration::ZERO, Duration::saturating_add)
}

fn describe_boot(environment: &mut Map<String, Value>, result: &BootResult, files: usize) {
    environment.insert("command_line".into(), command_line().into());
    environment.insert("image".into(), result.image.kernel.display().to_string().into());
    let version = image::version().map_or(String::new(), |version| format!(" {version}"));
    let emulator = format!("QEMU{version}, {}", result.accelerator.name());
    environment.insert("emulator".into(), emulator.into());
    environment.insert("host_cpu".into(), cpu_model().into());
    if result.label.jobs > 1 {
        let place = format!("{} of {}", result.label.number, result.label.jobs);
        environment.insert("job_of_boot".into(), place.into());
    }
    let files = if files > 1 { "files" } else { "file" };
    let scope =
        format!("Linux {} booted under QEMU, one child process, its {files} cold", result.release);
    environment.insert("scope".into(), scope.into());
}

//! A machine that runs a list of jobs.

use std::fs::File;
use std::io::{Seek, Write};
use std::os::fd::AsFd;
use std::time::{Duration, Instant};

use super::boot_image::KernelImage;
use super::channel::HostChannel;
use super::console::{Incident, IncidentKind};
use super::disk::{self, scratch_file};
use super::frame::{ChannelFrame, FrameKind};
use super::initramfs::GuestSettings;
use super::qemu::{Accelerator, RunningVm, Vm, VmDisks};
use super::{Error, qemu};

/// A frame that stays invalid for this long is corrupt; until then it may be incomplete.
const DAMAGED_TIMEOUT: Duration = Duration::from_secs(2);

/// A job of a list.
#[derive(Clone, Debug)]
pub struct GuestJob {
    /// Argument of [`guest::main`](super::guest::main).
    pub payload: String,
    /// Time without an answer after which [`KernelImage::notify`] is called.
    pub quiet_timeout: Duration,
    /// A machine that has not answered after this time is killed.
    pub timeout: Duration,
}

/// The answer to a job.
#[derive(Debug)]
pub struct JobAnswer {
    /// The returned text.
    pub text: String,
    /// What the job wrote to its log: an unnamed file, positioned at its start. `None` if nothing.
    pub log: Option<File>,
    /// Kernel warnings before and during the job.
    pub warnings: Vec<Incident>,
}

/// A machine that runs a list of jobs; killed on drop.
#[derive(Debug)]
pub struct GuestMachine {
    image: KernelImage,
    release: String,
    accelerator: Accelerator,
    machine: RunningVm,
    exchange: HostChannel,
    limits: Vec<WaitLimits>,
    /// Number of the job whose answer is awaited.
    next: usize,
    wait: AnswerWait,
    /// Whether the guest has begun a job.
    has_begun: bool,
    /// Whether the machine has stopped.
    is_over: bool,
    /// Warnings not yet returned with an answer.
    warnings: Vec<Incident>,
    /// The crash, if there was one.
    crash: Option<Incident>,
    log: Option<File>,
    // QEMU opens them by the descriptors of this process.
    _files: [File; 2],
}

/// Time limits of a machine.
#[derive(Clone, Copy, Debug)]
struct WaitLimits {
    /// Until the user is notified.
    quiet: Duration,
    /// Until it is killed.
    end: Duration,
}

/// A wait for a machine.
#[derive(Debug)]
struct AnswerWait {
    /// Start of the wait: the boot, the job, or the previous answer.
    since: Instant,
    /// Whether the user was notified.
    is_notified: bool,
}

impl AnswerWait {
    fn begin() -> Self {
        AnswerWait { since: Instant::now(), is_notified: false }
    }
}

impl KernelImage {
    /// Boots the image for `tasks`, to which more can be [added](GuestMachine::add). Returns before
    /// the boot is complete.
    ///
    /// # Errors
    /// See [`Error`]; [`Error::cannot_run_here`] distinguishes a missing requirement from a failed
    /// run.
    pub fn start(&self, tasks: &[GuestJob]) -> Result<GuestMachine, Error> {
        let (release, modules) = self.resolve_modules()?;
        let scratch = disk::create(&self.scratch_dir, self.disk_bytes, self.filesystem)?;
        let exchange = HostChannel::new()
            .map_err(|source| Error::io("make a disk for the jobs in memory", source))?;
        let settings = GuestSettings {
            answers_at: Some(exchange.answers_at),
            modules: modules.iter().map(|module| module.name.clone()).collect(),
            read_ahead_kb: self.read_ahead_kb,
            filesystem: self.filesystem,
        };
        let initramfs = self.initramfs(&settings, &modules)?;
        let accelerator = qemu::choose_accelerator(self)?;
        let disks = Some(VmDisks { scratch: scratch.as_fd(), exchange: exchange.file.as_fd() });
        let machine = Vm { image: self, accelerator, initramfs: &initramfs, disks }.start()?;
        let mut guest = GuestMachine {
            image: self.clone(),
            release,
            accelerator,
            machine,
            exchange,
            limits: Vec::new(),
            next: 0,
            wait: AnswerWait::begin(),
            has_begun: false,
            is_over: false,
            warnings: Vec::new(),
            crash: None,
            log: None,
            _files: [scratch, initramfs],
        };
        tasks.iter().try_for_each(|task| guest.add(task))?;
        Ok(guest)
    }
}

impl GuestMachine {
    /// The release of the kernel (`uname -r`).
    pub fn release(&self) -> &str {
        &self.release
    }

    /// How instructions are executed; times are meaningless under [`Accelerator::Tcg`].
    pub fn accelerator(&self) -> Accelerator {
        self.accelerator
    }

    /// Appends a job.
    ///
    /// # Errors
    /// The jobs exceed 1 GiB together.
    pub fn add(&mut self, task: &GuestJob) -> Result<(), Error> {
        if self.next == self.limits.len() {
            self.wait = AnswerWait::begin();
        }
        self.limits.push(WaitLimits { quiet: task.quiet_timeout, end: task.timeout });
        let added = self.exchange.add(&task.payload);
        added.map_err(|source| Error::io("give a guest another job", source))
    }

    /// Waits for the answer to the next job, in the order in which they were added.
    ///
    /// # Errors
    /// The job or the machine failed. Unless the machine [`is_over`](Self::is_over), the next call
    /// continues with the next job.
    ///
    /// # Panics
    /// All jobs have been answered, or the machine has stopped.
    pub fn next_answer(&mut self) -> Result<JobAnswer, Error> {
        assert!(!self.is_over && self.next < self.limits.len(), "no other answer comes");
        self.await_answer().unwrap_or_else(|error| {
            self.is_over = true;
            Err(error)
        })
    }

    /// Whether it booted and began a job.
    pub fn has_begun(&self) -> bool {
        self.has_begun
    }

    /// Whether it has stopped answering because it panicked, hung or exited.
    pub fn is_over(&self) -> bool {
        self.is_over
    }

    /// The answer to the job, or its error. The outer error is one of the machine.
    fn await_answer(&mut self) -> Result<Result<JobAnswer, Error>, Error> {
        let mut damaged_since: Option<Instant> = None;
        loop {
            let ended = self.machine.has_ended()?;
            self.collect_incidents();
            match self.exchange.next_frame() {
                Ok(Some(frame)) => {
                    damaged_since = None;
                    if let Some(answer) = self.on_frame(frame)? {
                        return Ok(answer);
                    }
                    continue;
                }
                // Frames written before the crash are still read.
                Ok(None) | Err(_) if self.crash.is_some() => {
                    let line = self.crash.take().map(|crash| crash.summary());
                    return Err(Error::KernelCrash { line: line.unwrap_or_default() });
                }
                Err(reason) if ended || was_long_ago(&mut damaged_since) => {
                    return Err(Error::Damaged { reason: reason.to_owned() });
                }
                Ok(None) if ended => return Err(self.machine.failure()),
                Ok(None) | Err(_) => {}
            }
            let limits = self.limits();
            if self.wait.since.elapsed() >= limits.end {
                return Err(self.machine.timeout_error(limits.end, self.has_begun));
            }
            if !self.wait.is_notified && self.wait.since.elapsed() >= limits.quiet {
                self.wait.is_notified = true;
                self.notify_slow(limits);
            }
        }
    }

    /// Collects new incidents, and notifies the user of warnings immediately.
    fn collect_incidents(&mut self) {
        for incident in self.machine.incidents() {
            if incident.kind != IncidentKind::Warning {
                self.crash.get_or_insert(incident);
                continue;
            }
            if let Some(notify) = self.image.notify {
                let kernel = self.image.kernel.display();
                let job = incident.job.map_or_else(String::new, |task| {
                    format!("in job {} of {}, ", task + 1, self.limits.len())
                });
                notify(&format!("{kernel}: {job}the kernel warned: {}", incident.summary()));
            }
            self.warnings.push(incident);
        }
    }

    /// Takes the warnings of the job that was answered last, or of earlier ones.
    fn take_warnings(&mut self) -> Vec<Incident> {
        self.collect_incidents();
        let is_later = |due: &Incident| due.job.is_some_and(|task| task >= self.next);
        let (later, due) = std::mem::take(&mut self.warnings).into_iter().partition(is_later);
        self.warnings = later;
        due
    }

    /// The limits of the current wait.
    fn limits(&self) -> WaitLimits {
        if self.has_begun {
            self.limits[self.next]
        } else {
            WaitLimits { quiet: self.image.quiet_timeout, end: self.image.boot_timeout }
        }
    }

    /// Notifies the user of a long wait.
    fn notify_slow(&self, WaitLimits { quiet, end }: WaitLimits) {
        let Some(notify) = self.image.notify else { return };
        let awaited = if self.has_begun {
            format!("answered job {} of {}", self.next + 1, self.limits.len())
        } else {
            "booted".to_string()
        };
        let (quiet, end) = (quiet.as_secs_f64().ceil(), end.as_secs_f64().ceil());
        notify(&format!(
            "{}: the guest has not {awaited} after {quiet} s; it is given up after {end} s; last of \
             its console: {}",
            self.image.kernel.display(),
            self.machine.last_lines()
        ));
    }

    /// Handles `frame`. Returns the answer, if it is one.
    fn on_frame(&mut self, frame: ChannelFrame) -> Result<Option<Result<JobAnswer, Error>>, Error> {
        let damaged = |reason: &str| Error::Damaged { reason: reason.to_owned() };
        if frame.task != self.next {
            return Err(damaged("it belongs to another job"));
        }
        match frame.kind {
            FrameKind::Task | FrameKind::Lack => {
                return Err(damaged("it is a job, or comes from a machine that has not started"));
            }
            FrameKind::Begun => (self.wait, self.has_begun) = (AnswerWait::begin(), true),
            FrameKind::Log => self.append_log(&frame.bytes)?,
            FrameKind::Answer => {
                self.advance();
                let text = frame.text().map_err(damaged)?;
                let warnings = self.take_warnings();
                return Ok(Some(self.finish_log().map(|log| JobAnswer { text, log, warnings })));
            }
            FrameKind::Error | FrameKind::Panic => {
                self.advance();
                self.is_over = frame.kind == FrameKind::Panic;
                self.log = None;
                let text = frame.text().map_err(damaged)?;
                let error = Error::Guest(text.replace('\n', " "));
                return Ok(Some(Err(error.with_warnings(&self.take_warnings()))));
            }
        }
        Ok(None)
    }

    fn advance(&mut self) {
        self.next += 1;
        self.wait = AnswerWait::begin();
    }

    /// Appends `bytes` to the log of the job.
    fn append_log(&mut self, bytes: &[u8]) -> Result<(), Error> {
        let dir = &self.image.scratch_dir;
        let mut file = match self.log.take() {
            Some(file) => file,
            None => scratch_file(dir)?,
        };
        file.write_all(bytes).map_err(|source| Error::scratch(dir, source))?;
        self.log = Some(file);
        Ok(())
    }

    /// The log of the job, from its start.
    fn finish_log(&mut self) -> Result<Option<File>, Error> {
        let Some(mut file) = self.log.take() else { return Ok(None) };
        file.rewind().map_err(|source| Error::scratch(&self.image.scratch_dir, source))?;
        Ok(Some(file))
    }
}

/// Whether [`DAMAGED_TIMEOUT`] has passed since `since`, which is set to now if unset.
fn was_long_ago(since: &mut Option<Instant>) -> bool {
    since.get_or_insert_with(Instant::now).elapsed() > DAMAGED_TIMEOUT
}

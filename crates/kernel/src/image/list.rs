//! A machine that runs a list of jobs.

use std::fs::File;
use std::io::{Seek, Write};
use std::os::fd::AsFd;
use std::time::{Duration, Instant};

use super::boot_image::Image;
use super::console::{Complaint, Severity};
use super::exchange::Exchange;
use super::frame::{Frame, Kind};
use super::qemu::{Accelerator, Disks, Machine, Started};
use super::settings::Settings;
use super::{Error, accelerator, disk, unnamed};

/// A frame that is being written may look wrong; one that does after this time is.
const WRITTEN_WITHIN: Duration = Duration::from_secs(2);

/// A job of a list.
#[derive(Clone, Debug)]
pub struct Task {
    /// What [`guest::main`](super::guest::main) is given.
    pub payload: String,
    /// Of a machine that has not answered after this time, [`Image::tell`] tells.
    pub quiet_limit: Duration,
    /// The machine is killed that has not answered after this time.
    pub time_limit: Duration,
}

/// What came of a job.
#[derive(Debug)]
pub struct Answer {
    /// What it returned.
    pub text: String,
    /// What it wrote to its log, from the start: a file without a name. `None` for nothing.
    pub log: Option<File>,
    /// What the kernel said of itself before and while it ran.
    pub complaints: Vec<Complaint>,
}

/// A machine that works on a list of jobs; killed when this drops.
#[derive(Debug)]
pub struct Guest {
    image: Image,
    release: String,
    accelerator: Accelerator,
    machine: Started,
    exchange: Exchange,
    limits: Vec<Limits>,
    /// The number of the job whose answer is waited for.
    next: usize,
    wait: Wait,
    /// Whether the guest has begun a job.
    has_begun: bool,
    /// Whether it does nothing more.
    is_over: bool,
    /// What the kernel warned of in the job, or before it.
    warnings: Vec<Complaint>,
    /// How it broke down.
    crash: Option<Complaint>,
    log: Option<File>,
    // QEMU opens them by names that go with this process's descriptors.
    _files: [File; 2],
}

/// For how long a machine may say nothing.
#[derive(Clone, Copy, Debug)]
struct Limits {
    /// Until somebody is told.
    quiet: Duration,
    /// Until it is killed.
    end: Duration,
}

/// A wait for a machine.
#[derive(Debug)]
struct Wait {
    /// When it began: with the boot, with the job, or with the answer before it.
    since: Instant,
    /// Whether somebody was told that it is long.
    is_told: bool,
}

impl Wait {
    fn begin() -> Self {
        Wait { since: Instant::now(), is_told: false }
    }
}

impl Image {
    /// Boots the image for `tasks`, and others that may [come](Guest::add). Returns while it boots.
    ///
    /// # Errors
    /// See [`Error`]; [`Error::cannot_run_here`] tells a missing piece from a failed run.
    pub fn start(&self, tasks: &[Task]) -> Result<Guest, Error> {
        let (release, modules) = self.with_modules()?;
        let scratch = disk::create(&self.scratch_dir, self.disk_bytes, self.filesystem)?;
        let exchange = Exchange::new()
            .map_err(|source| Error::io("make a disk for the jobs in memory", source))?;
        let settings = Settings {
            answers_at: Some(exchange.answers_at),
            modules: modules.iter().map(|module| module.name.clone()).collect(),
            read_ahead_kb: self.read_ahead_kb,
            filesystem: self.filesystem,
        };
        let initramfs = self.initramfs(&settings, &modules)?;
        let accelerator = accelerator::choose(self)?;
        let disks = Some(Disks { scratch: scratch.as_fd(), exchange: exchange.file.as_fd() });
        let machine = Machine { image: self, accelerator, initramfs: &initramfs, disks }.start()?;
        let mut guest = Guest {
            image: self.clone(),
            release,
            accelerator,
            machine,
            exchange,
            limits: Vec::new(),
            next: 0,
            wait: Wait::begin(),
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

impl Guest {
    /// The release of the kernel, as `uname -r` has it.
    pub fn release(&self) -> &str {
        &self.release
    }

    /// How instructions are run; times mean nothing under [`Accelerator::Tcg`].
    pub fn accelerator(&self) -> Accelerator {
        self.accelerator
    }

    /// Gives it another job.
    ///
    /// # Errors
    /// When jobs have taken a GiB together.
    pub fn add(&mut self, task: &Task) -> Result<(), Error> {
        if self.next == self.limits.len() {
            self.wait = Wait::begin();
        }
        self.limits.push(Limits { quiet: task.quiet_limit, end: task.time_limit });
        let added = self.exchange.add(&task.payload);
        added.map_err(|source| Error::io("give a guest another job", source))
    }

    /// Waits for the answer of the next job: the first time for that of the first.
    ///
    /// # Errors
    /// Why the job gave none. Unless the machine [`is_over`](Self::is_over), the next call is about
    /// the job after it.
    ///
    /// # Panics
    /// When all jobs have been answered, or the machine is over.
    pub fn next_answer(&mut self) -> Result<Answer, Error> {
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

    /// Whether it answers no other job, as it panicked, hung or died.
    pub fn is_over(&self) -> bool {
        self.is_over
    }

    /// The answer of the job, or why it gave none; the error is the end of the machine.
    fn await_answer(&mut self) -> Result<Result<Answer, Error>, Error> {
        let mut damaged_since: Option<Instant> = None;
        loop {
            let ended = self.machine.has_ended()?;
            self.hear();
            match self.exchange.next_frame() {
                Ok(Some(frame)) => {
                    damaged_since = None;
                    if let Some(answer) = self.take(frame)? {
                        return Ok(answer);
                    }
                    continue;
                }
                // What it had answered before is not lost.
                Ok(None) | Err(_) if self.crash.is_some() => {
                    let line = self.crash.take().map(|crash| crash.in_one_line());
                    return Err(Error::Broken { line: line.unwrap_or_default() });
                }
                Err(reason) if ended || was_long_ago(&mut damaged_since) => {
                    return Err(Error::Damaged { reason: reason.to_owned() });
                }
                Ok(None) if ended => return Err(self.machine.failure()),
                Ok(None) | Err(_) => {}
            }
            let limits = self.limits();
            if self.wait.since.elapsed() >= limits.end {
                return Err(self.machine.too_late(limits.end, self.has_begun));
            }
            if !self.wait.is_told && self.wait.since.elapsed() >= limits.quiet {
                self.wait.is_told = true;
                self.tell(limits);
            }
        }
    }

    /// Takes what the kernel has said of itself. Warnings are told at once.
    fn hear(&mut self) {
        for complaint in self.machine.complaints() {
            if complaint.severity != Severity::Warned {
                self.crash.get_or_insert(complaint);
                continue;
            }
            if let Some(tell) = self.image.tell {
                let kernel = self.image.kernel.display();
                let job = complaint.task.map_or_else(String::new, |task| {
                    format!("in job {} of {}, ", task + 1, self.limits.len())
                });
                tell(&format!("{kernel}: {job}the kernel warned: {}", complaint.in_one_line()));
            }
            self.warnings.push(complaint);
        }
    }

    /// What the kernel warned of in the job that was answered last, or before it.
    fn warnings(&mut self) -> Vec<Complaint> {
        self.hear();
        let is_later = |own: &Complaint| own.task.is_some_and(|task| task >= self.next);
        let (later, own) = std::mem::take(&mut self.warnings).into_iter().partition(is_later);
        self.warnings = later;
        own
    }

    /// Those of what is waited for.
    fn limits(&self) -> Limits {
        if self.has_begun {
            self.limits[self.next]
        } else {
            Limits { quiet: self.image.quiet_limit, end: self.image.boot_limit }
        }
    }

    /// Tells what is waited for, and until when.
    fn tell(&self, Limits { quiet, end }: Limits) {
        let Some(tell) = self.image.tell else { return };
        let what = if self.has_begun {
            format!("answered job {} of {}", self.next + 1, self.limits.len())
        } else {
            "booted".to_string()
        };
        let (quiet, end) = (quiet.as_secs_f64().ceil(), end.as_secs_f64().ceil());
        tell(&format!(
            "{}: the guest has not {what} after {quiet} s; it is given up after {end} s; last of \
             its console: {}",
            self.image.kernel.display(),
            self.machine.last_lines()
        ));
    }

    /// What `frame` says: an answer, or something on the way to it.
    fn take(&mut self, frame: Frame) -> Result<Option<Result<Answer, Error>>, Error> {
        let damaged = |reason: &str| Error::Damaged { reason: reason.to_owned() };
        if frame.task != self.next {
            return Err(damaged("it is of another job"));
        }
        match frame.kind {
            Kind::Task | Kind::Lack => {
                return Err(damaged("it is a job, or of no machine that runs"));
            }
            Kind::Begun => (self.wait, self.has_begun) = (Wait::begin(), true),
            Kind::Log => self.keep(&frame.bytes)?,
            Kind::Answer => {
                self.answered();
                let text = frame.text().map_err(damaged)?;
                let complaints = self.warnings();
                return Ok(Some(self.rewound().map(|log| Answer { text, log, complaints })));
            }
            Kind::Error | Kind::Panic => {
                self.answered();
                self.is_over = frame.kind == Kind::Panic;
                self.log = None;
                let text = frame.text().map_err(damaged)?;
                let error = Error::Guest(text.replace('\n', " "));
                return Ok(Some(Err(error.after(&self.warnings()))));
            }
        }
        Ok(None)
    }

    fn answered(&mut self) {
        self.next += 1;
        self.wait = Wait::begin();
    }

    /// Appends `bytes` to the log of the job.
    fn keep(&mut self, bytes: &[u8]) -> Result<(), Error> {
        let dir = &self.image.scratch_dir;
        let mut file = match self.log.take() {
            Some(file) => file,
            None => unnamed::in_dir(dir)?,
        };
        file.write_all(bytes).map_err(|source| Error::scratch(dir, source))?;
        self.log = Some(file);
        Ok(())
    }

    /// The log of the job, from its start.
    fn rewound(&mut self) -> Result<Option<File>, Error> {
        let Some(mut file) = self.log.take() else { return Ok(None) };
        file.rewind().map_err(|source| Error::scratch(&self.image.scratch_dir, source))?;
        Ok(Some(file))
    }
}

/// Whether `since`, which begins now if it has not, was long ago.
fn was_long_ago(since: &mut Option<Instant>) -> bool {
    since.get_or_insert_with(Instant::now).elapsed() > WRITTEN_WITHIN
}

//! Jobs that share a boot.
//!
//! Jobs share a boot if their machines have the same image, modules, filesystem, CPUs and, if they
//! name it, memory. Jobs that do not name their memory get as much as the largest of them needs. A
//! job that names less memory than it would get by default has a boot to itself: there reclaim
//! decides, and lists left by other jobs would change its result. Between two jobs the guest syncs,
//! drops its caches, and returns the blocks of removed files to the host.

use std::cell::RefCell;
use std::collections::VecDeque;
use std::path::PathBuf;
use std::rc::Rc;

use crate::Error;
use crate::engine::limits::available_bytes;
use crate::image::{
    self, Accelerator, DiskFilesystem, GuestJob, GuestMachine, JobAnswer, KernelImage,
};

/// A queued job.
#[derive(Debug)]
pub(super) struct QueuedJob {
    /// The machine that the job needs by itself.
    pub(super) image: KernelImage,
    /// Whether the job names so little memory that leftovers of other jobs could change its result.
    pub(super) is_alone: bool,
    /// Whether the job names its memory.
    pub(super) names_ram: bool,
    pub(super) task: GuestJob,
    /// Name of the job in errors.
    pub(super) name: String,
}

/// Properties that must be equal for jobs to share a machine, so that each runs as if it had the
/// machine to itself.
#[derive(Clone, Debug, PartialEq, Eq)]
struct MachineShape {
    kernel: PathBuf,
    modules: Option<PathBuf>,
    filesystem: DiskFilesystem,
    cpus: u32,
    takes_turns: bool,
    /// RAM that the job names. Jobs that name none share a machine with the RAM of the largest.
    ram_bytes: Option<u64>,
    is_alone: bool,
}

impl MachineShape {
    fn from_job(entry: &QueuedJob) -> Self {
        let KernelImage { kernel, modules, filesystem, cpus, uses_icount: takes_turns, .. } =
            entry.image.clone();
        let ram_bytes = entry.names_ram.then_some(entry.image.ram_bytes);
        let is_alone = entry.is_alone;
        MachineShape { kernel, modules, filesystem, cpus, takes_turns, ram_bytes, is_alone }
    }

    fn is_shared(&self) -> bool {
        !self.is_alone
    }
}

/// The answer to a job, and the machine that gave it.
#[derive(Debug)]
pub(super) struct BootResult {
    pub(super) answer: JobAnswer,
    pub(super) image: KernelImage,
    pub(super) release: String,
    pub(super) accelerator: Accelerator,
    pub(super) label: JobLabel,
}

/// How error messages refer to one of several jobs.
#[derive(Clone, Debug)]
pub(super) struct JobLabel {
    /// Its number, from 1.
    pub(super) number: usize,
    /// Number of jobs of the boot.
    pub(super) jobs: usize,
    name: String,
}

impl JobLabel {
    /// Adds the job to `error` if the boot has several jobs.
    pub(super) fn label_error(&self, error: Error) -> Error {
        let JobLabel { number, jobs, name } = self.clone();
        match jobs {
            0 | 1 => error,
            _ => Error::InBatch { number, jobs, name, source: Box::new(error) },
        }
    }
}

/// Maximum number of machines that stay up; idle ones wait for further jobs.
const MAX_MACHINES: usize = 4;

/// Queues of jobs and the machines that run them. Only one machine works at a time, since a second
/// would disturb its timing.
#[derive(Debug, Default)]
pub(super) struct MachinePool {
    lists: Vec<JobQueue>,
    /// In order of use. Only the last one may have unanswered jobs.
    up: Vec<PooledMachine>,
    /// Images that passed the check, which is slow because it searches and unpacks modules.
    checked_images: Vec<KernelImage>,
}

/// The jobs of one machine, in the order of submission.
#[derive(Debug)]
struct JobQueue {
    shape: MachineShape,
    /// The machine, large enough for every job.
    image: KernelImage,
    jobs: Vec<JobSlot>,
}

#[derive(Debug)]
struct JobSlot {
    name: String,
    /// `None` once answered.
    task: Option<GuestJob>,
    /// Present until the caller takes it.
    answer: Option<Result<BootResult, Error>>,
}

/// A machine that works through a queue.
#[derive(Debug)]
struct PooledMachine {
    list: usize,
    /// The image that was booted.
    image: KernelImage,
    guest: GuestMachine,
    /// Numbers of the jobs not yet answered.
    left: VecDeque<usize>,
    /// Number of jobs of the queue that were submitted to it or answered before.
    given: usize,
}

/// The position of a job in the queues.
#[derive(Debug)]
pub(super) struct QueuePosition {
    machines: Rc<RefCell<MachinePool>>,
    /// Index of the queue.
    pub(super) list: usize,
    job: usize,
}

impl QueuePosition {
    /// Appends `entry` to its queue.
    pub(super) fn enqueue(machines: &Rc<RefCell<MachinePool>>, entry: QueuedJob) -> QueuePosition {
        let (list, job) = machines.borrow_mut().add(entry);
        QueuePosition { machines: Rc::clone(machines), list, job }
    }

    /// Waits for the answer to the job, booting its machine if none is up.
    ///
    /// # Errors
    /// The job failed, or its machine did.
    pub(super) fn wait_answer(self) -> Result<BootResult, Error> {
        self.machines.borrow_mut().wait_answer(self.list, self.job)
    }
}

impl MachinePool {
    /// Memory held by machines that can be stopped to make room.
    pub(super) fn held_bytes(&self) -> u64 {
        self.up.iter().fold(0, |sum, running| sum.saturating_add(running.image.ram_bytes))
    }

    /// Checks that `image` can boot; done once per image.
    pub(super) fn check(&mut self, image: &KernelImage) -> Result<(), Error> {
        if !self.checked_images.iter().any(|other| other.boots_like(image)) {
            image.check().map_err(|error| Error::from(error).on_image(&image.kernel))?;
            self.checked_images.push(image.clone());
        }
        Ok(())
    }

    fn add(&mut self, entry: QueuedJob) -> (usize, usize) {
        let shape = MachineShape::from_job(&entry);
        let found = self.lists.iter().position(|list| shape.is_shared() && list.shape == shape);
        let list = found.unwrap_or_else(|| {
            self.lists.push(JobQueue { shape, image: entry.image.clone(), jobs: Vec::new() });
            self.lists.len() - 1
        });
        let JobQueue { image, jobs, .. } = &mut self.lists[list];
        image.grow_to(&entry.image);
        jobs.push(JobSlot { name: entry.name, task: Some(entry.task), answer: None });
        (list, jobs.len() - 1)
    }

    fn wait_answer(&mut self, list: usize, job: usize) -> Result<BootResult, Error> {
        let answered = self.run_until_answered(list, job);
        answered.map_err(|error| error.on_image(&self.lists[list].image.kernel))
    }

    fn run_until_answered(&mut self, list: usize, job: usize) -> Result<BootResult, Error> {
        loop {
            if let Some(answer) = self.lists[list].jobs[job].answer.take() {
                return answer;
            }
            let is_other =
                |running: &PooledMachine| running.list != list && !running.left.is_empty();
            if !self.up.last().is_some_and(is_other) {
                match self.up.iter().position(|running| running.list == list) {
                    Some(up) if self.up[up].image.is_at_least(&self.lists[list].image) => {
                        let running = self.up.remove(up);
                        self.up.push(running);
                        self.submit_added()?;
                    }
                    _ => self.start(list)?,
                }
            }
            self.run_next();
        }
    }

    /// Boots a machine for the unanswered jobs of queue `list`.
    fn start(&mut self, list: usize) -> Result<(), Error> {
        self.up.retain(|running| running.list != list);
        let JobQueue { image, jobs, .. } = &self.lists[list];
        let is_short = || available_bytes().is_some_and(|free| free < image.ram_bytes);
        // The machine that has been idle longest is stopped first.
        while self.up.len() >= MAX_MACHINES || !self.up.is_empty() && is_short() {
            self.up.remove(0);
        }
        let open =
            jobs.iter().enumerate().filter_map(|(job, queued)| Some((job, queued.task.clone()?)));
        let (left, tasks): (VecDeque<usize>, Vec<GuestJob>) = open.unzip();
        let guest = image.start(&tasks)?;
        self.up.push(PooledMachine { list, image: image.clone(), guest, left, given: jobs.len() });
        Ok(())
    }

    /// Submits jobs that were queued meanwhile to the machine in use.
    fn submit_added(&mut self) -> Result<(), Error> {
        let Some(running) = self.up.last_mut() else { return Ok(()) };
        let jobs = &self.lists[running.list].jobs;
        while let Some(job) = jobs.get(running.given) {
            running.guest.add(job.task.as_ref().expect("nobody else has answered it"))?;
            running.left.push_back(running.given);
            running.given += 1;
        }
        Ok(())
    }

    /// Waits for the next answer of the machine in use. If the machine has stopped, drops it;
    /// another one is booted for its remaining jobs.
    fn run_next(&mut self) {
        let Some(running) = self.up.last_mut() else { return };
        let Some(job) = running.left.pop_front() else { return };
        let jobs = &mut self.lists[running.list].jobs;
        let label = JobLabel { number: job + 1, jobs: jobs.len(), name: jobs[job].name.clone() };
        let result = running.guest.next_answer();
        if let Err(image::Error::MissingInGuest(module)) = &result {
            // The failure affects the queue's other jobs as well.
            for other in running.left.drain(..) {
                jobs[other].task = None;
                jobs[other].answer = Some(Err(image::Error::MissingInGuest(module.clone()).into()));
            }
        }
        let result = result.map(|answer| BootResult {
            answer,
            image: running.image.clone(),
            release: running.guest.release().to_owned(),
            accelerator: running.guest.accelerator(),
            label: label.clone(),
        });
        jobs[job].task = None;
        jobs[job].answer = Some(result.map_err(|error| {
            if running.guest.has_begun() {
                label.label_error(error.into())
            } else {
                // The boot failed, which does not depend on the job.
                error.into()
            }
        }));
        if running.guest.is_over() {
            self.up.pop();
        }
    }
}

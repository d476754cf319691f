//! Jobs that share a boot.
//!
//! Jobs share a boot where their machines have the same image, modules, filesystem, CPUs and, if
//! they name it, memory. The others get as much memory as the largest of them needs. A job that
//! names less memory than it would be given has a boot of its own: there reclaim decides, and it
//! would find other lists than by itself. Between two jobs the guest syncs, drops its caches, and
//! gives the blocks of removed files back to the host.

use std::cell::RefCell;
use std::collections::VecDeque;
use std::path::PathBuf;
use std::rc::Rc;

use crate::Error;
use crate::engine::limits::available_bytes;
use crate::image::{
    self, Accelerator, DiskFilesystem, GuestJob, GuestMachine, JobAnswer, KernelImage,
};

/// A job that is to run on a machine.
#[derive(Debug)]
pub(super) struct QueuedJob {
    /// The machine, for this job alone.
    pub(super) image: KernelImage,
    /// Whether its memory, which the job names, is so small that what other jobs leave in it could
    /// change what this one finds.
    pub(super) is_alone: bool,
    /// Whether the job names its memory.
    pub(super) names_ram: bool,
    pub(super) task: GuestJob,
    /// What errors call it.
    pub(super) name: String,
}

/// Properties that jobs of one machine share, so that each behaves as on a machine of its own.
#[derive(Clone, Debug, PartialEq, Eq)]
struct MachineShape {
    kernel: PathBuf,
    modules: Option<PathBuf>,
    filesystem: DiskFilesystem,
    cpus: u32,
    takes_turns: bool,
    /// RAM that a job sets explicitly. Other jobs share a machine with the RAM of the largest.
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

/// The answer of a job, and the machine that gave it.
#[derive(Debug)]
pub(super) struct BootResult {
    pub(super) answer: JobAnswer,
    pub(super) image: KernelImage,
    pub(super) release: String,
    pub(super) accelerator: Accelerator,
    pub(super) label: JobLabel,
}

/// How error messages name one of several jobs.
#[derive(Clone, Debug)]
pub(super) struct JobLabel {
    /// Its number, from 1.
    pub(super) number: usize,
    /// How many the list has.
    pub(super) jobs: usize,
    name: String,
}

impl JobLabel {
    /// Adds the job to `error`, if the boot has several.
    pub(super) fn label_error(&self, error: Error) -> Error {
        let JobLabel { number, jobs, name } = self.clone();
        match jobs {
            0 | 1 => error,
            _ => Error::InBatch { number, jobs, name, source: Box::new(error) },
        }
    }
}

/// Maximum number of machines that stay up; idle ones wait for more jobs.
const MAX_MACHINES: usize = 4;

/// Queues of jobs and the machines that run them. Only one works at a time, as a second would
/// disturb its timing.
#[derive(Debug, Default)]
pub(super) struct MachinePool {
    lists: Vec<JobQueue>,
    /// In order of use. Only the last one may have unanswered jobs.
    up: Vec<PooledMachine>,
    /// Images that were checked: searching and unpacking modules takes long.
    checked_images: Vec<KernelImage>,
}

/// The jobs of one machine, in the order in which they were asked for.
#[derive(Debug)]
struct JobQueue {
    shape: MachineShape,
    /// Large enough for each of them.
    image: KernelImage,
    jobs: Vec<JobSlot>,
}

#[derive(Debug)]
struct JobSlot {
    name: String,
    /// `None` once it was answered.
    task: Option<GuestJob>,
    /// Until it is fetched.
    answer: Option<Result<BootResult, Error>>,
}

/// A machine that works on a list.
#[derive(Debug)]
struct PooledMachine {
    list: usize,
    /// The image that was booted.
    image: KernelImage,
    guest: GuestMachine,
    /// Numbers of the jobs that it has yet to answer.
    left: VecDeque<usize>,
    /// How many jobs of the list it was given, or had been answered before.
    given: usize,
}

/// The position of a job in the queues.
#[derive(Debug)]
pub(super) struct QueuePosition {
    machines: Rc<RefCell<MachinePool>>,
    /// The number of its list.
    pub(super) list: usize,
    job: usize,
}

impl QueuePosition {
    /// Appends `entry` to its queue.
    pub(super) fn enqueue(machines: &Rc<RefCell<MachinePool>>, entry: QueuedJob) -> QueuePosition {
        let (list, job) = machines.borrow_mut().add(entry);
        QueuePosition { machines: Rc::clone(machines), list, job }
    }

    /// Waits for the answer of the job; boots its machine if none is up.
    ///
    /// # Errors
    /// Why there is no answer.
    pub(super) fn wait_answer(self) -> Result<BootResult, Error> {
        self.machines.borrow_mut().wait_answer(self.list, self.job)
    }
}

impl MachinePool {
    /// Memory of machines that can be stopped to make room for another.
    pub(super) fn held_bytes(&self) -> u64 {
        self.up.iter().fold(0, |sum, running| sum.saturating_add(running.image.ram_bytes))
    }

    /// Checks that `image` can boot, once per image.
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

    /// Boots a machine for the unanswered jobs of `list`.
    fn start(&mut self, list: usize) -> Result<(), Error> {
        self.up.retain(|running| running.list != list);
        let JobQueue { image, jobs, .. } = &self.lists[list];
        let is_short = || available_bytes().is_some_and(|free| free < image.ram_bytes);
        // The one that was idle longest is stopped first.
        while self.up.len() >= MAX_MACHINES || !self.up.is_empty() && is_short() {
            self.up.remove(0);
        }
        let open = jobs.iter().enumerate().filter_map(|(job, of)| Some((job, of.task.clone()?)));
        let (left, tasks): (VecDeque<usize>, Vec<GuestJob>) = open.unzip();
        let guest = image.start(&tasks)?;
        self.up.push(PooledMachine { list, image: image.clone(), guest, left, given: jobs.len() });
        Ok(())
    }

    /// Submits to the machine in use the jobs that were queued since.
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

    /// Waits for the next answer of the machine in use. A machine that stopped is dropped; another
    /// is booted for its remaining jobs.
    fn run_next(&mut self) {
        let Some(running) = self.up.last_mut() else { return };
        let Some(job) = running.left.pop_front() else { return };
        let jobs = &mut self.lists[running.list].jobs;
        let label = JobLabel { number: job + 1, jobs: jobs.len(), name: jobs[job].name.clone() };
        let result = running.guest.next_answer();
        if let Err(image::Error::MissingInGuest(what)) = &result {
            // The other jobs of the list would not find it either.
            for other in running.left.drain(..) {
                jobs[other].task = None;
                jobs[other].answer = Some(Err(image::Error::MissingInGuest(what.clone()).into()));
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
                // It failed to boot, whatever the job is.
                error.into()
            }
        }));
        if running.guest.is_over() {
            self.up.pop();
        }
    }
}

//! Jobs that share a boot.

use std::cell::RefCell;
use std::collections::VecDeque;
use std::rc::Rc;

use crate::Error;
use crate::image::{Accelerator, Answer, Guest, Image, Task};

/// A job that is to run on a machine.
#[derive(Debug)]
pub(super) struct Entry {
    /// The machine, for this job alone.
    pub(super) image: Image,
    /// Whether its memory, which the job names, is so small that what other jobs leave in it could
    /// change what this one finds.
    pub(super) is_alone: bool,
    /// Whether the job names its memory.
    pub(super) names_ram: bool,
    pub(super) task: Task,
    /// What errors call it.
    pub(super) name: String,
}

impl Entry {
    /// Whether it and `other` can run on one machine, and come out as on one each.
    fn goes_with(&self, other: &Entry) -> bool {
        let of = |entry: &Entry| {
            let Image { kernel, modules, cpus, takes_turns, filesystem, .. } = entry.image.clone();
            let ram = entry.names_ram.then_some(entry.image.ram_bytes);
            (kernel, modules, cpus, takes_turns, filesystem, ram)
        };
        !self.is_alone && !other.is_alone && of(self) == of(other)
    }
}

/// What came of a job, and where.
#[derive(Debug)]
pub(super) struct Arrived {
    pub(super) answer: Answer,
    pub(super) image: Image,
    pub(super) release: String,
    pub(super) accelerator: Accelerator,
    pub(super) told: Told,
}

/// How errors tell a job from others of its list.
#[derive(Clone, Debug)]
pub(super) struct Told {
    /// Its number, from 1.
    pub(super) number: usize,
    /// How many the list has.
    pub(super) jobs: usize,
    name: String,
}

impl Told {
    /// `error`, with the job that it is about where there are several.
    pub(super) fn of(&self, error: Error) -> Error {
        let Told { number, jobs, name } = self.clone();
        match jobs {
            0 | 1 => error,
            _ => Error::InList { number, jobs, name, source: Box::new(error) },
        }
    }
}

/// The lists of jobs that are asked for together. One machine runs at a time.
#[derive(Debug)]
pub(super) struct Lists {
    lists: Vec<List>,
    running: Option<Running>,
}

/// The jobs of one machine, in the order in which they were asked for.
#[derive(Debug)]
struct List {
    image: Image,
    jobs: Vec<Listed>,
}

#[derive(Debug)]
struct Listed {
    name: String,
    /// Until it was answered.
    task: Option<Task>,
    /// Until somebody takes it.
    answer: Option<Result<Arrived, Error>>,
}

/// A machine, and the numbers of the jobs of its list that it has yet to answer.
#[derive(Debug)]
struct Running {
    list: usize,
    guest: Guest,
    left: VecDeque<usize>,
}

/// Where a job stands in lists.
#[derive(Debug)]
pub(super) struct Place {
    lists: Rc<RefCell<Lists>>,
    /// The number of its list.
    pub(super) list: usize,
    job: usize,
}

impl Place {
    /// Lists of `entries`, and where each of these stands.
    pub(super) fn of(entries: Vec<Entry>) -> Vec<Place> {
        let mut firsts: Vec<Entry> = Vec::new();
        let mut lists: Vec<List> = Vec::new();
        let mut places = Vec::new();
        for mut entry in entries {
            let (task, name) = (entry.task.clone(), std::mem::take(&mut entry.name));
            let job = Listed { name, task: Some(task), answer: None };
            let found = firsts.iter().position(|first| first.goes_with(&entry));
            let list = found.unwrap_or(lists.len());
            if found.is_none() {
                lists.push(List { image: entry.image.clone(), jobs: Vec::new() });
                firsts.push(entry);
            } else {
                lists[list].image.grow(&entry.image);
            }
            lists[list].jobs.push(job);
            places.push((list, lists[list].jobs.len() - 1));
        }
        let lists = Rc::new(RefCell::new(Lists { lists, running: None }));
        let place = |(list, job)| Place { lists: Rc::clone(&lists), list, job };
        places.into_iter().map(place).collect()
    }

    /// What came of the job. Boots its machine if that does not run, and waits.
    ///
    /// # Errors
    /// Why nothing did.
    pub(super) fn answer(self) -> Result<Arrived, Error> {
        self.lists.borrow_mut().answer(self.list, self.job)
    }
}

impl Lists {
    fn answer(&mut self, list: usize, job: usize) -> Result<Arrived, Error> {
        loop {
            if let Some(answer) = self.lists[list].jobs[job].answer.take() {
                return answer;
            }
            match &self.running {
                Some(running) if running.list == list => {}
                Some(_) => {
                    // It has begun, and the memory of this machine may not be enough for two.
                    while self.running.is_some() {
                        self.step();
                    }
                    continue;
                }
                None => self.start(list)?,
            }
            self.step();
        }
    }

    /// Boots the machine of `list` for what it has not answered.
    fn start(&mut self, list: usize) -> Result<(), Error> {
        let List { image, jobs } = &self.lists[list];
        let open = jobs.iter().enumerate().filter_map(|(job, of)| Some((job, of.task.clone()?)));
        let (left, tasks): (VecDeque<usize>, Vec<Task>) = open.unzip();
        let guest = image.start(&tasks)?;
        self.running = Some(Running { list, guest, left });
        Ok(())
    }

    /// Waits for the next answer of the machine that runs. One that has no other to give is ended:
    /// for what it has left, another is booted.
    fn step(&mut self) {
        let Some(running) = &mut self.running else { return };
        let Some(job) = running.left.pop_front() else { return self.running = None };
        let List { image, jobs } = &mut self.lists[running.list];
        let told = Told { number: job + 1, jobs: jobs.len(), name: jobs[job].name.clone() };
        let arrived = running.guest.next_answer().map(|answer| Arrived {
            answer,
            image: image.clone(),
            release: running.guest.release().to_owned(),
            accelerator: running.guest.accelerator(),
            told: told.clone(),
        });
        jobs[job].task = None;
        jobs[job].answer = Some(arrived.map_err(|error| told.of(error.into())));
        if !running.guest.answers() {
            self.running = None;
        }
    }
}

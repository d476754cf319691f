//! What a recording says, gathered from its events.

use std::collections::HashMap;
use std::path::PathBuf;

use filemap_job::bounds::MAX_READ_BYTES;

use super::advice::{self, EXECUTABLE, POPULATE, WILLNEED, WRITABLE};
use super::approximation::Said;
use super::drafts::{Draft, Drafts, Thread};
use super::mappings::{Made, Mapping};
use super::names;
use super::order::Order;
use crate::event::{Event, Pages, What};
use crate::header::Header;

/// A file, as it was recorded.
#[derive(Debug)]
pub struct File {
    pub path: PathBuf,
    /// Its last size in bytes.
    pub size_bytes: u64,
    pub first_size_bytes: u64,
    /// So many bytes of it were accessed, from its beginning.
    pub needed_bytes: u64,
}

/// What a recording says.
#[derive(Debug)]
pub struct Gathered {
    pub page_size: u64,
    pub machine: String,
    pub said: Said,
    /// The name of the program of each process.
    pub processes: Vec<String>,
    pub threads: Vec<Thread>,
    pub files: Vec<File>,
    /// Which file each file of the recording is: the same path is the same file.
    same_files: Vec<usize>,
    by_path: HashMap<PathBuf, usize>,
    /// The file of each open file description.
    pub opens: Vec<usize>,
    /// The mappings as they were made.
    pub made: Vec<Made>,
    /// The mappings of the job: of each process its own.
    pub mappings: Vec<Mapping>,
    by_process: HashMap<(u32, u32), usize>,
    /// The process that made each process.
    parents: Vec<Option<u32>>,
    order: Order,
    at_hand: Option<((u32, u32), usize)>,
}

impl Gathered {
    pub fn new(header: &Header) -> Gathered {
        let mut said = Said::default();
        said.header(header);
        Gathered {
            page_size: header.page_size,
            machine: header.machine.clone(),
            said,
            processes: Vec::new(),
            threads: Vec::new(),
            files: Vec::new(),
            same_files: Vec::new(),
            by_path: HashMap::new(),
            opens: Vec::new(),
            made: Vec::new(),
            mappings: Vec::new(),
            by_process: HashMap::new(),
            parents: Vec::new(),
            order: Order::default(),
            at_hand: None,
        }
    }

    /// Adds an event that a reader has checked.
    pub fn take(&mut self, event: Event) {
        let Event { thread, wait_ns, what } = event;
        match what {
            What::Process { program, parent, .. } => {
                self.parents.push(parent);
                return self.processes.push(names::of_path(&program));
            }
            What::Thread { process, tid } => {
                self.threads.push(Thread { process, tid, drafts: Drafts::default() });
                let (number, parent) =
                    (self.threads.len() as u32 - 1, self.parents[process as usize]);
                return self.order.begin(number, parent, &mut self.threads);
            }
            _ => self.threads[thread as usize].drafts.think(wait_ns),
        }
        match what {
            What::Touch { mapping, page, is_write } => self.touch(thread, mapping, page, is_write),
            What::File { path, size_bytes, .. } => self.add_file(path, size_bytes),
            What::Open { file } => self.opens.push(self.same_files[file as usize]),
            // Who called is not asked any more.
            What::Module { .. } => {}
            What::Map { open, length_bytes, offset_bytes, protection, flags, .. } => {
                self.made.push(Made {
                    open,
                    first: offset_bytes / self.page_size,
                    pages: length_bytes.div_ceil(self.page_size),
                    is_private: advice::is_private(flags),
                    is_writable: protection & WRITABLE != 0,
                    is_executable: protection & EXECUTABLE != 0,
                });
                let mapping = self.made.len() as u32 - 1;
                let number = self.mapping_of(thread, mapping);
                self.mappings[number].made_by = Some(thread);
                self.push(thread, Draft::Map { mapping: number });
                if advice::is_populated(flags) {
                    let pages = Pages { first: 0, pages: self.made[mapping as usize].pages };
                    let populates = Draft::Madvise { mapping: number, advice: POPULATE, pages };
                    self.advise(thread, open, populates);
                }
            }
            What::Unmap { mapping, part: None } => {
                let process = self.threads[thread as usize].process;
                if let Some(&number) = self.by_process.get(&(mapping, process)) {
                    self.mappings[number].used_by(thread);
                    self.mappings[number].is_gone = true;
                    self.push(thread, Draft::Unmap { mapping: number });
                }
            }
            What::Unmap { part: Some(_), .. } => self.said.parts += 1,
            What::Protect { mapping, protection, .. } => {
                self.made[mapping as usize].is_writable |= protection & WRITABLE != 0;
                self.said.protections += 1;
            }
            What::Move { mapping, length_bytes, .. } => {
                let made = &mut self.made[mapping as usize];
                made.pages = made.pages.max(length_bytes.div_ceil(self.page_size));
                self.said.moves += 1;
            }
            What::Madvise { mapping, pages, advice } => match advice::madvise(advice) {
                Some(advice) => {
                    let open = self.made[mapping as usize].open;
                    let mapping = self.used(thread, mapping);
                    self.advise(thread, open, Draft::Madvise { mapping, advice, pages });
                }
                None => self.said.other_advice += 1,
            },
            What::Fadvise { open, offset_bytes, length_bytes, advice } => {
                match advice::fadvise(advice) {
                    Some(advice) => {
                        let advice = Draft::Fadvise { open, advice, offset_bytes, length_bytes };
                        self.advise(thread, open, advice);
                    }
                    None => self.said.other_advice += 1,
                }
            }
            What::Readahead { open, offset_bytes, length_bytes } if length_bytes > 0 => {
                let advice = WILLNEED;
                let advice = Draft::Fadvise { open, advice, offset_bytes, length_bytes };
                self.advise(thread, open, advice);
            }
            What::Read { open, offset_bytes, length_bytes } if length_bytes > 0 => {
                let needed = offset_bytes.saturating_add(length_bytes);
                let file = self.opens[open as usize];
                self.need(file, needed);
                self.order.uses(thread, file, &mut self.threads);
                // Linux reads less than two of a job's largest blocks at once.
                let ends = length_bytes.min(2 * MAX_READ_BYTES);
                for done in (0..ends).step_by(MAX_READ_BYTES as usize) {
                    let offsets = vec![offset_bytes.saturating_add(done)];
                    let length_bytes = MAX_READ_BYTES.min(ends - done);
                    self.push(thread, Draft::Read { open, length_bytes, offsets, think_ns: 0 });
                }
            }
            What::Truncate { file, size_bytes } => {
                let file = self.same_files[file as usize];
                self.files[file].size_bytes = size_bytes;
                self.said.truncations += 1;
            }
            What::Process { .. }
            | What::Thread { .. }
            | What::Readahead { .. }
            | What::Read { .. }
            | What::Close { .. }
            | What::Exit { .. }
            | What::Lost { .. } => {}
        }
    }

    fn touch(&mut self, thread: u32, mapping: u32, page: u64, is_write: bool) {
        let number = self.used(thread, mapping);
        let made = &self.made[mapping as usize];
        self.said.shared_writes += u64::from(is_write && !made.is_private);
        let is_write = is_write && made.is_private;
        let (first, file) = (made.first, self.opens[made.open as usize]);
        let needed = first.saturating_add(page).saturating_mul(self.page_size).saturating_add(1);
        self.need(file, needed);
        self.order.uses(thread, file, &mut self.threads);
        if is_write {
            self.made[mapping as usize].is_writable = true;
        }
        self.threads[thread as usize].drafts.touch(number, is_write, page);
    }

    fn push(&mut self, thread: u32, step: Draft) {
        self.threads[thread as usize].drafts.push(step);
    }

    /// `thread` gives advice for what is open.
    fn advise(&mut self, thread: u32, open: u32, advice: Draft) {
        let file = self.opens[open as usize];
        self.order.advises(thread, file, &mut self.threads);
        self.push(thread, advice);
        self.order.advised(thread, file, &mut self.threads);
    }

    fn need(&mut self, file: usize, bytes: u64) {
        let needed = &mut self.files[file].needed_bytes;
        *needed = bytes.max(*needed);
    }

    fn add_file(&mut self, path: PathBuf, size_bytes: u64) {
        let next = self.files.len();
        let same = *self.by_path.entry(path.clone()).or_insert(next);
        self.same_files.push(same);
        if same == next {
            let (first_size_bytes, needed_bytes) = (size_bytes, 0);
            self.files.push(File { path, size_bytes, first_size_bytes, needed_bytes });
        } else {
            self.files[same].size_bytes = size_bytes;
        }
    }

    /// The job's mapping of what was recorded as `mapping`, which `thread` uses.
    fn used(&mut self, thread: u32, mapping: u32) -> usize {
        let number = self.mapping_of(thread, mapping);
        self.mappings[number].used_by(thread);
        number
    }

    /// The job's mapping of what was recorded as `mapping`, in the process of `thread`.
    fn mapping_of(&mut self, thread: u32, mapping: u32) -> usize {
        let key = (mapping, self.threads[thread as usize].process);
        if let Some((_, number)) = self.at_hand.filter(|(same, _)| *same == key) {
            return number;
        }
        let next = self.mappings.len();
        let number = *self.by_process.entry(key).or_insert(next);
        if number == next {
            self.mappings.push(Mapping::new(mapping));
        }
        self.at_hand = Some((key, number));
        number
    }
}

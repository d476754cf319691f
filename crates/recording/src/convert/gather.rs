//! Gathers the events of a recording into files, mappings and steps.

use std::collections::HashMap;
use std::path::PathBuf;

use filemap_job::bounds::MAX_READ_BYTES;

use super::UnseenPages;
use super::advice::{self, EXECUTABLE, POPULATE, WILLNEED, WRITABLE};
use super::approximation::ApproximationCounts;
use super::drafts::{DraftStep, DraftSteps, DraftThread};
use super::order::ThreadOrder;
use super::steps::file_name;
use crate::event::{Event, EventKind, MappingPages};
use crate::header::Header;

/// Maximum number of unseen pages that a job touches: with more, the lists would not fit into
/// memory.
pub const MAX_UNSEEN_PAGES: u64 = 1 << 22;

/// A recorded file.
#[derive(Debug)]
pub struct RecordedFile {
    pub path: PathBuf,
    /// Its last recorded size in bytes.
    pub size_bytes: u64,
    pub first_size_bytes: u64,
    /// The end of the furthest access, in bytes.
    pub needed_bytes: u64,
    /// Its device (`st_dev`).
    pub device: u64,
    /// The pages that were cached when it was first seen: first page and number; `None` if unknown.
    pub cached: Option<Vec<[u64; 2]>>,
}

/// The contents of a recording.
#[derive(Debug)]
pub struct RecordedProgram {
    pub page_size: u64,
    pub machine: String,
    pub approximations: ApproximationCounts,
    unseen: UnseenPages,
    /// The program name of each process.
    pub processes: Vec<String>,
    pub threads: Vec<DraftThread>,
    pub files: Vec<RecordedFile>,
    /// By file index of the recording: index into `files`. Files with the same path are joined.
    same_files: Vec<usize>,
    by_path: HashMap<PathBuf, usize>,
    /// By open file description: index into `files`.
    pub opens: Vec<usize>,
    /// The mappings as they were recorded.
    pub recorded_mappings: Vec<RecordedMapping>,
    /// The mappings of the job: one per recorded mapping and process that uses it.
    pub mappings: Vec<JobMapping>,
    by_process: HashMap<(u32, u32), usize>,
    /// The parent of each process.
    parents: Vec<Option<u32>>,
    order: ThreadOrder,
    /// The memory of the program besides the pages of files.
    pub memory: RecordedMemory,
    /// The thread with the last access.
    last_thread: Option<u32>,
    cached: Option<((u32, u32), usize)>,
}

impl RecordedProgram {
    pub fn new(header: &Header, unseen: UnseenPages) -> RecordedProgram {
        let mut counts = ApproximationCounts::default();
        counts.set_header(header);
        RecordedProgram {
            page_size: header.page_size,
            machine: header.machine.clone(),
            approximations: counts,
            unseen,
            processes: Vec::new(),
            threads: Vec::new(),
            files: Vec::new(),
            same_files: Vec::new(),
            by_path: HashMap::new(),
            opens: Vec::new(),
            recorded_mappings: Vec::new(),
            mappings: Vec::new(),
            by_process: HashMap::new(),
            parents: Vec::new(),
            order: ThreadOrder::default(),
            memory: RecordedMemory::default(),
            last_thread: None,
            cached: None,
        }
    }

    /// Adds an event whose references a reader has checked.
    pub fn add(&mut self, event: Event) {
        let Event { thread, wait_ns, kind: what } = event;
        match what {
            EventKind::Process { program, parent, .. } => {
                self.parents.push(parent);
                return self.processes.push(file_name(&program));
            }
            EventKind::Thread { process, tid } => {
                self.threads.push(DraftThread { process, tid, drafts: DraftSteps::default() });
                let (number, parent) =
                    (self.threads.len() as u32 - 1, self.parents[process as usize]);
                return self.order.on_thread(number, parent, &mut self.threads);
            }
            EventKind::Memory { process, anonymous_bytes, peak_bytes } => {
                self.memory.add_peak(process, peak_bytes);
                let pages = anonymous_bytes.div_ceil(self.page_size);
                return self.set_memory(process, pages);
            }
            EventKind::Exit { process } => self.set_memory(process, 0),
            EventKind::Cached { file, first, pages } => {
                let cached = &mut self.files[self.same_files[file as usize]].cached;
                let cached = cached.get_or_insert_default();
                return cached.extend((pages > 0).then_some([first, pages]));
            }
            EventKind::Lost { .. } => return,
            EventKind::Gap { kind, count } => return self.approximations.gaps.push((kind, count)),
            _ => {}
        }
        self.threads[thread as usize].drafts.add_think_time(wait_ns);
        match what {
            EventKind::Touch { mapping, page, is_write } => {
                self.touch(thread, mapping, page, is_write)
            }
            EventKind::Unseen { mapping, pages: MappingPages { first, pages } } => {
                let unseen = &mut self.approximations.unseen_pages;
                *unseen = unseen.saturating_add(pages);
                if self.unseen == UnseenPages::Touched && *unseen <= MAX_UNSEEN_PAGES {
                    let touched = first..first.saturating_add(pages);
                    touched.for_each(|page| self.touch(thread, mapping, page, false));
                }
            }
            EventKind::File { path, size_bytes, device, .. } => {
                self.add_file(path, size_bytes, device);
            }
            EventKind::Open { file } => self.opens.push(self.same_files[file as usize]),
            EventKind::Map { open, length_bytes, offset_bytes, protection, flags, .. } => {
                self.recorded_mappings.push(RecordedMapping {
                    open,
                    first: offset_bytes / self.page_size,
                    pages: length_bytes.div_ceil(self.page_size),
                    is_private: advice::is_private(flags),
                    is_writable: protection & WRITABLE != 0,
                    is_executable: protection & EXECUTABLE != 0,
                });
                let mapping = self.recorded_mappings.len() as u32 - 1;
                let number = self.job_mapping(thread, mapping);
                self.mappings[number].made_by = Some(thread);
                self.push(thread, DraftStep::Map { mapping: number });
                if advice::is_populated(flags) {
                    let pages = MappingPages {
                        first: 0,
                        pages: self.recorded_mappings[mapping as usize].pages,
                    };
                    let populates = DraftStep::Madvise { mapping: number, advice: POPULATE, pages };
                    self.advise(thread, open, populates);
                }
            }
            EventKind::Unmap { mapping, part: None } => {
                let process = self.threads[thread as usize].process;
                if let Some(&number) = self.by_process.get(&(mapping, process)) {
                    self.mappings[number].add_user(thread);
                    self.mappings[number].is_gone = true;
                    self.push(thread, DraftStep::Unmap { mapping: number });
                }
            }
            EventKind::Unmap { part: Some(_), .. } => self.approximations.parts += 1,
            EventKind::Protect { mapping, protection, .. } => {
                self.recorded_mappings[mapping as usize].is_writable |= protection & WRITABLE != 0;
                self.approximations.protections += 1;
            }
            EventKind::Move { mapping, length_bytes, .. } => {
                let made = &mut self.recorded_mappings[mapping as usize];
                made.pages = made.pages.max(length_bytes.div_ceil(self.page_size));
                self.approximations.moves += 1;
            }
            EventKind::Madvise { mapping, pages, advice } => match advice::madvise(advice) {
                Some(advice) => {
                    let open = self.recorded_mappings[mapping as usize].open;
                    let mapping = self.use_mapping(thread, mapping);
                    self.advise(thread, open, DraftStep::Madvise { mapping, advice, pages });
                }
                None => self.approximations.other_advice += 1,
            },
            EventKind::Fadvise { open, offset_bytes, length_bytes, advice } => {
                match advice::fadvise(advice) {
                    Some(advice) => {
                        let advice =
                            DraftStep::Fadvise { open, advice, offset_bytes, length_bytes };
                        self.advise(thread, open, advice);
                    }
                    None => self.approximations.other_advice += 1,
                }
            }
            EventKind::Readahead { open, offset_bytes, length_bytes } if length_bytes > 0 => {
                let advice = WILLNEED;
                let advice = DraftStep::Fadvise { open, advice, offset_bytes, length_bytes };
                self.advise(thread, open, advice);
            }
            EventKind::Read { open, offset_bytes, length_bytes } if length_bytes > 0 => {
                let needed = offset_bytes.saturating_add(length_bytes);
                self.approximations.used_pages += length_bytes.div_ceil(self.page_size);
                let file = self.opens[open as usize];
                self.require_bytes(file, needed);
                self.last_thread = Some(thread);
                self.order.before_use(thread, file, &mut self.threads);
                // One read(2) is limited to MAX_RW_COUNT, which is less than two of a job's largest
                // blocks.
                let ends = length_bytes.min(2 * MAX_READ_BYTES);
                for done in (0..ends).step_by(MAX_READ_BYTES as usize) {
                    let offsets = vec![offset_bytes.saturating_add(done)];
                    let length_bytes = MAX_READ_BYTES.min(ends - done);
                    self.push(thread, DraftStep::Read { open, length_bytes, offsets, think_ns: 0 });
                }
            }
            EventKind::Truncate { file, size_bytes } => {
                let file = self.same_files[file as usize];
                self.files[file].size_bytes = size_bytes;
                self.approximations.truncations += 1;
            }
            EventKind::Process { .. }
            | EventKind::Thread { .. }
            | EventKind::Readahead { .. }
            | EventKind::Read { .. }
            | EventKind::Close { .. }
            | EventKind::Memory { .. }
            | EventKind::Cached { .. }
            | EventKind::Exit { .. }
            | EventKind::Lost { .. }
            | EventKind::Gap { .. } => {}
        }
    }

    fn touch(&mut self, thread: u32, mapping: u32, page: u64, is_write: bool) {
        let number = self.use_mapping(thread, mapping);
        let made = &self.recorded_mappings[mapping as usize];
        self.approximations.shared_writes += u64::from(is_write && !made.is_private);
        self.approximations.used_pages += 1;
        let is_write = is_write && made.is_private;
        let (first, file) = (made.first, self.opens[made.open as usize]);
        let needed = first.saturating_add(page).saturating_mul(self.page_size).saturating_add(1);
        self.require_bytes(file, needed);
        self.last_thread = Some(thread);
        self.order.before_use(thread, file, &mut self.threads);
        if is_write {
            self.recorded_mappings[mapping as usize].is_writable = true;
        }
        self.threads[thread as usize].drafts.push_touch(number, is_write, page);
    }

    /// Process `process` has `pages` of memory besides the pages of files. Before the first access
    /// that is what the job begins with.
    fn set_memory(&mut self, process: u32, pages: u64) {
        let change = self.memory.set(process, pages);
        match self.last_thread {
            None => self.memory.first_pages = self.memory.pages,
            Some(_) if change == 0 => {}
            Some(thread) => self.push(thread, DraftStep::Memory { pages: change }),
        }
    }

    fn push(&mut self, thread: u32, step: DraftStep) {
        self.threads[thread as usize].drafts.push(step);
    }

    /// Adds advice of `thread` on the file of `open`, ordered between the accesses of all threads.
    fn advise(&mut self, thread: u32, open: u32, advice: DraftStep) {
        let file = self.opens[open as usize];
        self.order.before_advice(thread, file, &mut self.threads);
        self.push(thread, advice);
        self.order.after_advice(thread, file, &mut self.threads);
    }

    fn require_bytes(&mut self, file: usize, bytes: u64) {
        let needed = &mut self.files[file].needed_bytes;
        *needed = bytes.max(*needed);
    }

    fn add_file(&mut self, path: PathBuf, size_bytes: u64, device: u64) {
        let next = self.files.len();
        let same = *self.by_path.entry(path.clone()).or_insert(next);
        self.same_files.push(same);
        if same == next {
            let (first_size_bytes, needed_bytes) = (size_bytes, 0);
            self.files.push(RecordedFile {
                path,
                size_bytes,
                first_size_bytes,
                needed_bytes,
                device,
                cached: None,
            });
        } else {
            self.files[same].size_bytes = size_bytes;
        }
    }

    /// The job's mapping for the recorded `mapping`, with `thread` added to its users.
    fn use_mapping(&mut self, thread: u32, mapping: u32) -> usize {
        let number = self.job_mapping(thread, mapping);
        self.mappings[number].add_user(thread);
        number
    }

    /// The job's mapping for the recorded `mapping` in the process of `thread`.
    fn job_mapping(&mut self, thread: u32, mapping: u32) -> usize {
        let key = (mapping, self.threads[thread as usize].process);
        if let Some((_, number)) = self.cached.filter(|(same, _)| *same == key) {
            return number;
        }
        let next = self.mappings.len();
        let number = *self.by_process.entry(key).or_insert(next);
        if number == next {
            self.mappings.push(JobMapping::new(mapping));
        }
        self.cached = Some((key, number));
        number
    }
}

/// The memory of the program besides the pages of files, in pages.
#[derive(Debug, Default)]
pub struct RecordedMemory {
    /// By process.
    of_processes: HashMap<u32, u64>,
    /// The sum over all processes now, before the first access, and at most.
    pages: u64,
    pub first_pages: u64,
    pub most_pages: u64,
    /// By process: the maximum resident set in bytes.
    peaks: HashMap<u32, u64>,
}

impl RecordedMemory {
    /// Whether it was recorded.
    pub fn is_known(&self) -> bool {
        !self.peaks.is_empty()
    }

    /// The sum of the maximum resident sets of all processes, in bytes.
    pub fn peak_bytes(&self) -> u64 {
        self.peaks.values().fold(0, |sum, peak| sum.saturating_add(*peak))
    }

    fn add_peak(&mut self, process: u32, peak_bytes: u64) {
        let peak = self.peaks.entry(process).or_default();
        *peak = peak_bytes.max(*peak);
    }

    /// Sets the memory of a process. Returns by how many pages the sum changes.
    fn set(&mut self, process: u32, pages: u64) -> i64 {
        // A file can have any number here.
        let pages = pages.min(u64::MAX >> 24);
        let before = self.of_processes.insert(process, pages).unwrap_or(0);
        self.pages = (self.pages - before).saturating_add(pages);
        self.most_pages = self.most_pages.max(self.pages);
        pages.cast_signed() - before.cast_signed()
    }
}

/// A mapping as it was recorded.
#[derive(Debug)]
pub struct RecordedMapping {
    pub open: u32,
    /// Its first page in the file.
    pub first: u64,
    /// Its maximum length in pages: mremap(2) may have grown it.
    pub pages: u64,
    pub is_private: bool,
    /// It was writable at some time.
    pub is_writable: bool,
    pub is_executable: bool,
}

/// A mapping of the job.
#[derive(Debug)]
pub struct JobMapping {
    /// Index of the recorded mapping.
    pub recorded: u32,
    /// The thread that called mmap(2); `None` in a process that inherited it by fork(2).
    pub made_by: Option<u32>,
    user: Option<u32>,
    /// Used by several threads, or by another thread than the one that mapped it.
    is_shared: bool,
    /// It was unmapped.
    pub is_gone: bool,
    /// It was used after that, in the order of events.
    is_used_later: bool,
}

impl JobMapping {
    pub fn new(index: u32) -> JobMapping {
        JobMapping {
            recorded: index,
            made_by: None,
            user: None,
            is_shared: false,
            is_gone: false,
            is_used_later: false,
        }
    }

    /// Records a use by `thread`.
    pub fn add_user(&mut self, thread: u32) {
        let owner = *self.made_by.as_ref().or(self.user.as_ref()).unwrap_or(&thread);
        self.is_shared |= owner != thread || self.user.is_some_and(|user| user != thread);
        self.user = Some(thread);
        self.is_used_later |= self.is_gone;
    }

    /// Whether steps of the job map and unmap it. Other mappings exist from the beginning to the
    /// end of the job.
    pub fn is_mapped_by_steps(&self) -> bool {
        self.made_by.is_some() && self.is_gone && !self.is_shared && !self.is_used_later
    }

    /// Whether it exists throughout the job although the recording maps and unmaps it.
    pub fn is_mapped_throughout(&self) -> bool {
        self.made_by.is_some() && self.is_gone && !self.is_mapped_by_steps()
    }
}

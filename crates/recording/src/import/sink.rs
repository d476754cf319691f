//! Writes the recording of an imported trace.

use std::collections::HashMap;
use std::io::Write;
use std::path::{Path, PathBuf};

use crate::convert::ExistingFile;
use crate::error::Error;
use crate::event::{Event, EventKind};
use crate::writer::Writer;

/// `PROT_READ`.
const READABLE: u32 = 1;

/// A mapping of a trace. It is introduced in the recording at its first fault.
#[derive(Clone, Debug)]
pub struct TracedMapping {
    pub path: PathBuf,
    pub address: u64,
    pub length_bytes: u64,
    pub offset_bytes: u64,
    pub protection: u32,
    pub flags: u32,
    /// The size of the file in bytes, if the trace has it.
    pub size_bytes: Option<u64>,
    /// Its index in the recording, once it is introduced.
    pub index: Option<u32>,
}

impl TracedMapping {
    /// A shared read-only mapping.
    pub fn new(path: PathBuf, address: u64, length_bytes: u64, offset_bytes: u64) -> TracedMapping {
        let (protection, flags) = (READABLE, 1);
        TracedMapping {
            path,
            address,
            length_bytes,
            offset_bytes,
            protection,
            flags,
            size_bytes: None,
            index: None,
        }
    }
}

/// Writes a recording, introducing each object at its first use.
pub struct RecordingSink<'a, W> {
    pub writer: Writer<W>,
    existing: &'a dyn Fn(&Path) -> Option<ExistingFile>,
    processes: HashMap<u32, u32>,
    threads: HashMap<(u32, u32), u32>,
    /// Index of each file, which is also the index of its only open file description.
    files: HashMap<PathBuf, u32>,
    mappings: u32,
    process_count: u32,
    thread_count: u32,
}

impl<'a, W: Write> RecordingSink<'a, W> {
    pub fn new(writer: Writer<W>, existing: &'a dyn Fn(&Path) -> Option<ExistingFile>) -> Self {
        RecordingSink {
            writer,
            existing,
            processes: HashMap::new(),
            threads: HashMap::new(),
            files: HashMap::new(),
            mappings: 0,
            process_count: 0,
            thread_count: 0,
        }
    }

    /// Process `pid` starts, as a child of `parent` or after execve(2).
    pub fn start_process(
        &mut self,
        pid: u32,
        parent: Option<u32>,
        program: &str,
    ) -> Result<(), Error> {
        let parent = parent.and_then(|parent| self.processes.get(&parent).copied());
        self.threads.retain(|(owner, _), _| *owner != pid);
        let program = PathBuf::from(program);
        self.write_event(0, EventKind::Process { pid, parent, program })?;
        self.processes.insert(pid, self.process_count);
        self.process_count += 1;
        Ok(())
    }

    /// Writes a fault of thread `tid` of process `pid`, with program name `program`, on `page` of
    /// `mapping`.
    pub fn write_fault(
        &mut self,
        (pid, tid, program): (u32, u32, &str),
        mapping: &mut TracedMapping,
        page: u64,
        is_write: bool,
    ) -> Result<(), Error> {
        let thread = self.thread(pid, tid, program)?;
        let mapping = match mapping.index {
            Some(index) => index,
            None => self.map(thread, mapping)?,
        };
        self.write_event(thread, EventKind::Touch { mapping, page, is_write })
    }

    fn thread(&mut self, pid: u32, tid: u32, program: &str) -> Result<u32, Error> {
        if let Some(thread) = self.threads.get(&(pid, tid)) {
            return Ok(*thread);
        }
        if !self.processes.contains_key(&pid) {
            self.start_process(pid, None, program)?;
        }
        let process = self.processes[&pid];
        self.write_event(0, EventKind::Thread { process, tid })?;
        self.threads.insert((pid, tid), self.thread_count);
        self.thread_count += 1;
        Ok(self.thread_count - 1)
    }

    fn map(&mut self, thread: u32, mapping: &mut TracedMapping) -> Result<u32, Error> {
        let TracedMapping { address, length_bytes, offset_bytes, protection, flags, .. } = *mapping;
        let open = match self.files.get(&mapping.path) {
            Some(open) => *open,
            None => {
                let found = (self.existing)(&mapping.path);
                let found_bytes = found.as_ref().map(|found| found.size_bytes);
                let mapped = offset_bytes.saturating_add(length_bytes);
                let size_bytes = found_bytes.or(mapping.size_bytes).unwrap_or(mapped);
                let (device, inode) = found.map_or((0, 0), |found| found.identity);
                let path = mapping.path.clone();
                self.write_event(thread, EventKind::File { path, size_bytes, device, inode })?;
                let file = self.files.len() as u32;
                self.write_event(thread, EventKind::Open { file })?;
                self.files.insert(mapping.path.clone(), file);
                file
            }
        };
        self.write_event(
            thread,
            EventKind::Map { open, address, length_bytes, offset_bytes, protection, flags },
        )?;
        mapping.index = Some(self.mappings);
        self.mappings += 1;
        Ok(self.mappings - 1)
    }

    fn write_event(&mut self, thread: u32, event: EventKind) -> Result<(), Error> {
        self.writer.write(&Event { thread, wait_ns: 0, kind: event })
    }
}

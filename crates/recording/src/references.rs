//! Checks that events refer only to objects introduced before.

use crate::error::Problem;
use crate::event::{Event, EventKind, MappingPages};

/// The numbers of objects introduced so far.
#[derive(Debug)]
pub struct ReferenceCheck {
    page_size: u64,
    processes: u32,
    threads: u32,
    files: u32,
    opens: u32,
    /// Length of each mapping in pages.
    mappings: Vec<u64>,
}

impl ReferenceCheck {
    pub fn new(page_size: u64) -> Self {
        ReferenceCheck {
            page_size,
            processes: 0,
            threads: 0,
            files: 0,
            opens: 0,
            mappings: Vec::new(),
        }
    }

    /// Checks a touch: a known thread, and a page within a known mapping.
    pub fn check_touch(&self, thread: u32, mapping: u32, page: u64) -> Result<(), Problem> {
        check_index("thread", thread, self.threads)?;
        let pages = self.mapping_pages(mapping)?;
        if page < pages {
            return Ok(());
        }
        Err(Problem::malformed(format!(
            "page {page} is touched in mapping {mapping}, which has {pages}"
        )))
    }

    /// Checks the references of `event`, and adds the object that it introduces.
    pub fn check_event(&mut self, event: &Event) -> Result<(), Problem> {
        if event.kind.is_of_thread() {
            check_index("thread", event.thread, self.threads)?;
        }
        match &event.kind {
            EventKind::Process { parent, .. } => {
                parent.map_or(Ok(()), |parent| check_index("process", parent, self.processes))?;
                add_index(&mut self.processes)
            }
            EventKind::Thread { process, .. } => {
                check_index("process", *process, self.processes)?;
                add_index(&mut self.threads)
            }
            EventKind::File { .. } => add_index(&mut self.files),
            EventKind::Open { file } => {
                check_index("file", *file, self.files)?;
                add_index(&mut self.opens)
            }
            EventKind::Map { open, length_bytes, .. } => {
                check_index("open file", *open, self.opens)?;
                let pages = self.pages(*length_bytes)?;
                self.mappings.push(pages);
                Ok(())
            }
            EventKind::Unmap { mapping, part: None } => self.mapping_pages(*mapping).map(|_| ()),
            EventKind::Unmap { mapping, part: Some(pages) }
            | EventKind::Protect { mapping, pages, .. }
            | EventKind::Madvise { mapping, pages, .. }
            | EventKind::Unseen { mapping, pages } => self.check_part(*mapping, *pages),
            EventKind::Move { mapping, length_bytes, .. } => {
                self.mapping_pages(*mapping)?;
                self.mappings[*mapping as usize] = self.pages(*length_bytes)?;
                Ok(())
            }
            EventKind::Fadvise { open, .. }
            | EventKind::Readahead { open, .. }
            | EventKind::Read { open, .. }
            | EventKind::Close { open } => check_index("open file", *open, self.opens),
            EventKind::Truncate { file, .. } => check_index("file", *file, self.files),
            EventKind::Cached { file, .. } => check_index("file", *file, self.files),
            EventKind::Exit { process } | EventKind::Memory { process, .. } => {
                check_index("process", *process, self.processes)
            }
            EventKind::Touch { mapping, page, .. } => {
                self.check_touch(event.thread, *mapping, *page)
            }
            EventKind::Lost { .. } | EventKind::Gap { .. } => Ok(()),
        }
    }

    fn pages(&self, length_bytes: u64) -> Result<u64, Problem> {
        match length_bytes.div_ceil(self.page_size) {
            0 => Err(Problem::malformed("a mapping has no length")),
            pages => Ok(pages),
        }
    }

    fn mapping_pages(&self, mapping: u32) -> Result<u64, Problem> {
        check_index("mapping", mapping, self.mappings.len() as u32)?;
        Ok(self.mappings[mapping as usize])
    }

    fn check_part(&self, mapping: u32, part: MappingPages) -> Result<(), Problem> {
        let pages = self.mapping_pages(mapping)?;
        let end = part.first.checked_add(part.pages);
        if part.pages > 0 && end.is_some_and(|end| end <= pages) {
            return Ok(());
        }
        let MappingPages { first, pages: count } = part;
        Err(Problem::malformed(format!(
            "{count} pages from page {first} are named in mapping {mapping}, which has {pages}"
        )))
    }
}

fn check_index(name: &str, index: u32, known: u32) -> Result<(), Problem> {
    if index < known {
        return Ok(());
    }
    Err(Problem::malformed(format!("it names {name} {index}, and has {known} so far")))
}

fn add_index(known: &mut u32) -> Result<(), Problem> {
    *known =
        known.checked_add(1).ok_or_else(|| Problem::malformed("there are too many of a kind"))?;
    Ok(())
}

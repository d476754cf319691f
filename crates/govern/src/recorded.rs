//! What a recording says of files: the touches of their mappings, as a plan is made from them, and
//! the pages that were read or touched, as `--prefetch` reads them.

use std::collections::HashMap;
use std::io::Read;
use std::path::{Path, PathBuf};

use filemap_policy::{BLOCK_PAGES, PageRange, TouchCollector, TouchHistory};
use filemap_recording::{Error, EventKind, Reader, RecordingMode};

use crate::history_format::FileIdentity;

/// Ranges are joined if at most this many pages lie between: another request takes longer than
/// reading them.
const MAX_GAP_PAGES: u64 = 8;

/// Ranges of a file are joined when there are this many.
const MAX_RANGES: usize = 1 << 20;

/// A file of a recording.
#[derive(Debug)]
pub struct RecordedFile {
    /// Its path when it was recorded.
    pub path: PathBuf,
    /// `st_dev` and inode number; 0 if unknown.
    device: u64,
    inode: u64,
    /// The blocks that were touched, and the pages that were read, in file order and without small
    /// gaps.
    pub pages: Vec<PageRange>,
    /// Touches through mappings; `None` if there were none.
    pub history: Option<TouchHistory>,
}

/// A file while its recording is read.
struct FileDraft {
    file: RecordedFile,
    collector: TouchCollector,
    is_random: bool,
}

/// A mapping: its file and first page.
struct RecordedMapping {
    file: usize,
    first_page: u64,
}

impl RecordedFile {
    /// The files of a recording, in order of their first access.
    ///
    /// # Errors
    /// The recording cannot be read.
    pub fn read_all<R: Read>(reader: &mut Reader<R>) -> Result<Vec<RecordedFile>, Error> {
        let page_bytes = reader.header().page_size;
        // A recorder of all pages sees those that fault-around maps.
        let is_exact =
            !matches!(reader.header().mode, RecordingMode::Import | RecordingMode::Faults);
        let (mut files, mut order) = (Vec::<FileDraft>::new(), Vec::<usize>::new());
        let (mut opens, mut mappings) = (Vec::<usize>::new(), Vec::<RecordedMapping>::new());
        let mut accessed: HashMap<usize, ()> = HashMap::new();
        let mut on_access = |file: usize| {
            if accessed.insert(file, ()).is_none() {
                order.push(file);
            }
        };
        for event in reader.by_ref() {
            let event = event?;
            match event.kind {
                EventKind::File { path, device, inode, .. } => files.push(FileDraft {
                    file: RecordedFile { path, device, inode, pages: Vec::new(), history: None },
                    collector: TouchCollector::new(is_exact, false),
                    is_random: false,
                }),
                EventKind::Open { file } => opens.push(file as usize),
                EventKind::Map { open, offset_bytes, .. } => {
                    let (file, first_page) = (opens[open as usize], offset_bytes / page_bytes);
                    mappings.push(RecordedMapping { file, first_page });
                }
                EventKind::Touch { mapping, page, .. } => {
                    let RecordedMapping { file, first_page } = mappings[mapping as usize];
                    on_access(file);
                    let page = first_page.saturating_add(page);
                    files[file].collector.on_touch(page, event.thread.into());
                    // One touch may stand for all that was mapped around it.
                    let first = page / BLOCK_PAGES * BLOCK_PAGES;
                    files[file].add(PageRange { first, end: first.saturating_add(BLOCK_PAGES) });
                }
                EventKind::Read { open, offset_bytes, length_bytes } if length_bytes > 0 => {
                    let file = opens[open as usize];
                    on_access(file);
                    let end = offset_bytes.saturating_add(length_bytes).div_ceil(page_bytes);
                    files[file].add(PageRange { first: offset_bytes / page_bytes, end });
                }
                EventKind::Madvise { mapping, advice, .. } => {
                    let file = mappings[mapping as usize].file;
                    files[file].is_random |= advice == libc::MADV_RANDOM.cast_unsigned();
                }
                _ => {}
            }
        }
        let mut drafts: Vec<Option<FileDraft>> = files.into_iter().map(Some).collect();
        let accessed = order.into_iter().filter_map(|index| drafts[index].take());
        Ok(accessed.map(FileDraft::finish).collect())
    }

    /// Whether it is the file `identity` at `path`.
    fn is(&self, identity: &FileIdentity, path: &Path) -> bool {
        let (major, minor) = (rustix::fs::major(self.device), rustix::fs::minor(self.device));
        let is_inode =
            (major, minor) == identity.device && self.inode == identity.inode && self.inode != 0;
        is_inode || self.path == path
    }
}

impl FileDraft {
    fn add(&mut self, pages: PageRange) {
        let ranges = &mut self.file.pages;
        match ranges.last_mut() {
            Some(last) if last.first <= pages.first && pages.first <= last.end => {
                last.end = last.end.max(pages.end);
            }
            _ => ranges.push(pages),
        }
        if ranges.len() >= MAX_RANGES {
            join(ranges);
        }
    }

    fn finish(self) -> RecordedFile {
        let FileDraft { mut file, collector, is_random } = self;
        join(&mut file.pages);
        let history = TouchHistory { is_random, ..collector.history() };
        file.history = Some(history).filter(|_| collector.touches() > 0);
        file
    }
}

/// Sorts ranges and joins those that overlap or are close.
fn join(ranges: &mut Vec<PageRange>) {
    ranges.sort_by_key(|range| (range.first, range.end));
    let mut joined: Vec<PageRange> = Vec::new();
    for range in ranges.drain(..) {
        match joined.last_mut() {
            Some(last) if range.first <= last.end.saturating_add(MAX_GAP_PAGES) => {
                last.end = last.end.max(range.end);
            }
            _ => joined.push(range),
        }
    }
    *ranges = joined;
}

/// Plans for files that replace their touch histories.
#[derive(Debug, Default)]
pub struct GivenPlans {
    recorded: Vec<RecordedFile>,
    /// Names of files, and whether their mappings are advised MADV_RANDOM.
    advised: Vec<(String, bool)>,
}

/// The plan for a file.
#[derive(Debug, PartialEq)]
pub enum GivenPlan<'a> {
    /// Its recorded touches.
    Recorded(&'a TouchHistory),
    /// Its mappings are advised MADV_RANDOM, or nothing is done.
    Advised { is_random: bool },
}

impl GivenPlans {
    /// The files of a recording.
    pub fn recorded(recorded: Vec<RecordedFile>) -> GivenPlans {
        GivenPlans { recorded, ..GivenPlans::default() }
    }

    /// The answers of `advise`: the name of each file, and whether MADV_RANDOM is its answer.
    pub fn advised(advised: Vec<(String, bool)>) -> GivenPlans {
        GivenPlans { advised, ..GivenPlans::default() }
    }

    /// The plan for the file `identity` at `path`.
    pub(crate) fn find(&self, identity: &FileIdentity, path: &Path) -> Option<GivenPlan<'_>> {
        let recorded = self.recorded.iter().filter(|file| file.is(identity, path));
        if let Some(history) = recorded.filter_map(|file| file.history.as_ref()).next() {
            return Some(GivenPlan::Recorded(history));
        }
        let named = self.advised.iter().find(|(name, _)| path.ends_with(name));
        named.map(|(_, is_random)| GivenPlan::Advised { is_random: *is_random })
    }
}

#[cfg(test)]
mod tests {
    use filemap_recording::{Event, Header, Writer};

    use super::*;

    fn recording(events: Vec<EventKind>) -> Vec<u8> {
        let mut writer =
            Writer::new(Vec::new(), "test", &Header::new(RecordingMode::FirstTouches)).unwrap();
        for kind in events {
            writer.write(&Event { thread: 0, wait_ns: 0, kind }).unwrap();
        }
        writer.finish().unwrap().0
    }

    fn file(name: &str) -> EventKind {
        EventKind::File { path: name.into(), size_bytes: 1 << 30, device: 0x801, inode: 9 }
    }

    fn touch(mapping: u32, page: u64) -> EventKind {
        EventKind::Touch { mapping, page, is_write: false }
    }

    fn map(open: u32) -> EventKind {
        EventKind::Map {
            open,
            address: 1 << 20,
            length_bytes: 1 << 26,
            offset_bytes: 8192,
            protection: 1,
            flags: 1,
        }
    }

    #[test]
    fn files_have_their_pages_in_order_of_the_first_access() {
        let process = EventKind::Process { pid: 1, parent: None, program: "/bin/p".into() };
        let bytes = recording(vec![
            process,
            EventKind::Thread { process: 0, tid: 1 },
            file("/unused"),
            file("/second"),
            file("/first"),
            EventKind::Open { file: 1 },
            EventKind::Open { file: 2 },
            map(0),
            EventKind::Read { open: 1, offset_bytes: 4095, length_bytes: 2 },
            touch(0, 1000),
            touch(0, 5),
            touch(0, 9),
        ]);
        let mut reader = Reader::new(&bytes[..], "test").unwrap();
        let files = RecordedFile::read_all(&mut reader).unwrap();
        let range = |first, end| PageRange { first, end };
        let found: Vec<_> =
            files.iter().map(|file| (file.path.to_str().unwrap(), file.pages.clone())).collect();
        let second = vec![range(0, 16), range(992, 1008)];
        assert_eq!(found, [("/first", vec![range(0, 2)]), ("/second", second)]);
        assert_eq!(files[0].history, None);
        assert_eq!(files[1].history.as_ref().unwrap().total_runs, 3);
        let plans = GivenPlans::recorded(files);
        let identity =
            FileIdentity { device: (0, 0), inode: 0, born: None, size_bytes: 1, modified: (0, 0) };
        assert!(plans.find(&identity, Path::new("/second")).is_some());
        let moved = FileIdentity { device: (8, 1), inode: 9, ..identity };
        assert!(plans.find(&moved, Path::new("/elsewhere")).is_some());
        assert_eq!(plans.find(&identity, Path::new("/elsewhere")), None);
        let advised = GivenPlans::advised(vec![("data.mdb".to_string(), true)]);
        let found = advised.find(&identity, Path::new("/srv/data.mdb"));
        assert_eq!(found, Some(GivenPlan::Advised { is_random: true }));
        assert_eq!(advised.find(&identity, Path::new("/srv/xdata.mdb")), None);
    }
}

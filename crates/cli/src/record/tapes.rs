//! The tapes of the processes that are recorded.

use std::collections::BTreeMap;
use std::fs::{self, OpenOptions};
use std::io;
use std::path::{Path, PathBuf};
use std::ptr;
use std::sync::atomic::AtomicU64;

use filemap_control::tape::{BYTES, Entry, Kind, Reader, Tape, WORDS};
use rustix::mm::{MapFlags, ProtFlags};

use super::Source;

/// An entry of a tape.
pub struct Told {
    /// The process and which of its programs, as in the name of the tape.
    pub process: Image,
    pub entry: Entry,
    pub text: Vec<u8>,
}

/// A process, and how many programs it was before by exec.
pub type Image = (u32, u32);

/// The tapes in a directory.
pub struct Tapes {
    directory: PathBuf,
    open: BTreeMap<Image, Open>,
    /// Entries that were lost on tapes that have ended.
    lost: u64,
}

struct Open {
    path: PathBuf,
    tape: Tape<'static>,
    reader: Reader<'static>,
    words: *mut std::ffi::c_void,
    /// Its process has told that it ends. Whether one is gone cannot be seen otherwise: its number
    /// may be that of another one here.
    has_ended: bool,
}

// SAFETY: the words are atomic, and nobody else unmaps them.
unsafe impl Send for Open {}

impl Tapes {
    pub fn of(directory: &Path) -> Tapes {
        Tapes { directory: directory.to_owned(), open: BTreeMap::new(), lost: 0 }
    }

    /// What was told since this was asked last, in order of time.
    fn read(&mut self) -> Vec<Told> {
        self.find();
        let mut told = Vec::new();
        // The youngest first: what a process did before it made another one is then there too.
        for (process, open) in self.open.iter_mut().rev() {
            for (entry, text) in open.reader.by_ref() {
                open.has_ended |= entry.kind == Kind::End;
                told.push(Told { process: *process, entry, text });
            }
        }
        told.sort_by_key(|told| told.entry.time_ns);
        told
    }

    /// Opens the tapes that are new.
    fn find(&mut self) {
        let entries = fs::read_dir(&self.directory).into_iter().flatten().flatten();
        for entry in entries {
            let name = entry.file_name();
            let Some(process) = name.to_str().and_then(image_of) else { continue };
            if !self.open.contains_key(&process)
                && let Ok(Some(open)) = Open::of(entry.path())
            {
                self.open.insert(process, open);
            }
        }
    }

    /// Lets go of the tapes of processes that have ended, or all of them, and returns what was told
    /// there since [`Tapes::read`]. What was being written there is lost.
    fn let_go(&mut self, all: bool) -> Vec<Told> {
        let mut rest = Vec::new();
        let mut lost = 0;
        self.open.retain(|process, open| {
            let is_over = all || open.has_ended;
            if is_over {
                open.tape.close();
                loop {
                    for (entry, text) in open.reader.by_ref() {
                        rest.push(Told { process: *process, entry, text });
                    }
                    if !open.reader.pass_over() {
                        break;
                    }
                }
                lost += open.tape.lost();
                let _ = fs::remove_file(&open.path);
            }
            !is_over
        });
        self.lost += lost;
        rest
    }
}

impl Source for Tapes {
    fn told(&mut self, is_over: bool) -> Vec<Told> {
        let mut told = self.read();
        told.extend(self.let_go(is_over));
        told
    }

    /// Those of tapes that were let go of.
    fn lost(&self) -> u64 {
        self.lost
    }
}

/// The process of a tape's name.
fn image_of(name: &str) -> Option<Image> {
    let (pid, image) = name.split_once('-')?;
    Some((pid.parse().ok()?, image.parse().ok()?))
}

impl Open {
    /// The tape at `path`; `None` while it is being made.
    fn of(path: PathBuf) -> io::Result<Option<Open>> {
        let file = OpenOptions::new().read(true).write(true).open(&path)?;
        if file.metadata()?.len() < BYTES as u64 {
            return Ok(None);
        }
        let (protection, flags) = (ProtFlags::READ | ProtFlags::WRITE, MapFlags::SHARED);
        // SAFETY: the kernel chooses an address where nothing is.
        let words =
            unsafe { rustix::mm::mmap(ptr::null_mut(), BYTES, protection, flags, &file, 0) }?;
        // SAFETY: it has that many words, and is unmapped when nobody uses them any more.
        let tape = Tape::new(unsafe { &*words.cast::<[AtomicU64; WORDS]>() });
        let open = Open { path, tape, reader: Reader::new(tape), words, has_ended: false };
        Ok(tape.owner().is_some().then_some(open))
    }
}

impl Drop for Open {
    fn drop(&mut self) {
        // SAFETY: it was mapped so, and the tape and its reader go with this.
        let _ = unsafe { rustix::mm::munmap(self.words, BYTES) };
    }
}

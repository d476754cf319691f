//! Reads the tapes of programs that are recorded, while they run.

use std::collections::BTreeMap;
use std::fs::{self, OpenOptions};
use std::os::fd::AsRawFd;
use std::path::Path;
use std::ptr;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::thread;
use std::time::Duration;

use filemap_control::tape::{BYTES, Entry, Kind, Reader, Tape, WORDS};

/// What the processes of a program told, each in its order, by the name of its tape.
#[derive(Debug, Default)]
pub struct Told {
    pub entries: BTreeMap<String, Vec<Entry>>,
    /// Entries that were lost.
    pub lost: u64,
}

impl Told {
    /// The touches of all processes: an address, and whether it was written to.
    pub fn touches(&self) -> impl Iterator<Item = (u64, bool)> {
        let all = self.entries.values().flatten();
        let touches = all.filter(|entry| entry.kind == Kind::Touch);
        touches.map(|entry| (entry.values[0], entry.values[1] != 0))
    }
}

/// Runs `work`, and reads the tapes in `directory` meanwhile.
pub fn while_running<R>(directory: &Path, work: impl FnOnce() -> R) -> (R, Told) {
    let is_over = AtomicBool::new(false);
    thread::scope(|scope| {
        let reading = scope.spawn(|| read(directory, &is_over));
        let result = work();
        is_over.store(true, Ordering::Release);
        (result, reading.join().expect("tapes can be read"))
    })
}

fn read(directory: &Path, is_over: &AtomicBool) -> Told {
    let mut told = Told::default();
    let mut tapes: BTreeMap<String, (Tape<'static>, Reader<'static>)> = BTreeMap::new();
    loop {
        let was_over = is_over.load(Ordering::Acquire);
        for entry in fs::read_dir(directory).expect("it is ours").flatten() {
            let name = entry.file_name().to_string_lossy().into_owned();
            if !tapes.contains_key(&name)
                && let Some(tape) = open(&entry.path())
            {
                tapes.insert(name, (tape, Reader::new(tape)));
            }
        }
        for (name, (_, reader)) in &mut tapes {
            let entries = told.entries.entry(name.clone()).or_default();
            entries.extend(reader.map(|(entry, _)| entry));
        }
        if was_over {
            told.lost = tapes.values().map(|(tape, _)| tape.lost()).sum();
            return told;
        }
        thread::sleep(Duration::from_millis(1));
    }
}

/// The tape at `path`, when it is one. It stays mapped.
fn open(path: &Path) -> Option<Tape<'static>> {
    let file = OpenOptions::new().read(true).write(true).open(path).ok()?;
    if file.metadata().ok()?.len() < BYTES as u64 {
        return None;
    }
    let protection = libc::PROT_READ | libc::PROT_WRITE;
    // SAFETY: the kernel chooses an address where nothing is, and the file has as many words.
    let words = unsafe {
        let at =
            libc::mmap(ptr::null_mut(), BYTES, protection, libc::MAP_SHARED, file.as_raw_fd(), 0);
        assert_ne!(at, libc::MAP_FAILED);
        &*at.cast::<[AtomicU64; WORDS]>()
    };
    let tape = Tape::new(words);
    tape.owner().is_some().then_some(tape)
}

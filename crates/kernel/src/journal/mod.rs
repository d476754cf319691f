//! A write-ahead list of how to undo each change of this process.
//!
//! A live process holds a lock on its journal, so a journal without a lock is from a killed
//! process, even if its PID is in use again.
//!
//! For a setting of the machine, the journal has the value before the run and the value that the
//! run sets. If the setting has neither when it is to be restored, somebody else has changed it: it
//! is left as it is, and reported.
//!
//! A change is listed and made under one lock. A signal that ends the command first kills the
//! children and waits until they are dead. Then it closes the list under the same lock, so a change
//! is either on the list or never made, and undoes the changes from the last to the first. A step
//! leaves the list only when what it names is gone.

mod directory;
mod line;
mod recovery;
mod undo;

use std::fs::{self, File, OpenOptions};
use std::io::Write;
use std::os::unix::fs::{MetadataExt, OpenOptionsExt};
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use rustix::fs::{FlockOperation, flock};

use crate::Error;

pub use directory::{STATE_VARIABLE, state_directory};
pub use recovery::{Recovery, recover};
pub use undo::{Undo, UndoResult};

use directory::{SUFFIX, secure, unusable};
use undo::retry_while_busy;

/// The journal of this process. Clones share it; the file is removed when nothing is left to undo.
#[derive(Clone, Debug)]
pub struct Journal(Arc<JournalInner>);

#[derive(Debug)]
struct JournalInner {
    path: PathBuf,
    // Held during a change, so that it is either on the list or never made.
    open: Mutex<bool>,
    state: Mutex<JournalState>,
}

#[derive(Debug)]
struct JournalState {
    file: File,
    next: u64,
    // In the order in which they were written.
    pending: Vec<(u64, Undo)>,
    // Settings that guards found changed by somebody else, one sentence each.
    left: Vec<String>,
}

impl Journal {
    /// Opens a new journal in [`state_directory`].
    pub fn open() -> Result<Self, Error> {
        Journal::open_in(&state_directory())
    }

    /// Opens a new journal in `directory`, which is created if missing.
    ///
    /// # Errors
    /// [`Error::JournalOwner`] if others can write there: they could make us undo anything.
    pub fn open_in(directory: &Path) -> Result<Self, Error> {
        secure(directory)?;
        static NUMBER: AtomicU64 = AtomicU64::new(0);
        loop {
            let number = NUMBER.fetch_add(1, Ordering::Relaxed);
            let name = format!("{}-{number}.{SUFFIX}", std::process::id());
            let path = directory.join(name);
            let created = OpenOptions::new().append(true).create_new(true).mode(0o600).open(&path);
            let file = match created {
                Ok(file) => file,
                Err(error) if error.kind() == std::io::ErrorKind::AlreadyExists => continue,
                Err(error) => return Err(unusable(directory, error)),
            };
            // A recovery that sees the file before it is locked takes it for a leftover, and
            // removes it.
            let locked = flock(&file, FlockOperation::NonBlockingLockExclusive).is_ok();
            if locked && file.metadata().is_ok_and(|metadata| metadata.nlink() > 0) {
                let state = Mutex::new(JournalState {
                    file,
                    next: 0,
                    pending: Vec::new(),
                    left: Vec::new(),
                });
                return Ok(Journal(Arc::new(JournalInner { path, open: Mutex::new(true), state })));
            }
        }
    }

    /// The directory of the journal, also used for temporary files.
    pub fn directory(&self) -> &Path {
        self.0.path.parent().expect("a journal is opened inside a directory")
    }

    /// Records how to undo a change, and makes it. `make` either makes the whole change or fails
    /// without any effect; then nothing is undone.
    ///
    /// # Errors
    /// [`Error::ShuttingDown`] after [`Journal::undo_all`]; errors of `make`.
    pub fn change<T>(
        &self,
        undo: Undo,
        make: impl FnOnce() -> Result<T, Error>,
    ) -> Result<(T, Guard), Error> {
        let open = lock(&self.0.open);
        if !*open {
            return Err(Error::ShuttingDown);
        }
        let id = self.0.append_undo(undo)?;
        let made = make();
        if made.is_err() {
            let mut state = self.0.lock();
            self.0.remove_undo(&mut state, id);
        }
        drop(open);
        Ok((made?, Guard { shared: self.0.clone(), id, armed: true }))
    }

    /// Creates a directory in `parent` with a unique name: `stem`, the PID, a number.
    ///
    /// # Errors
    /// As for [`Journal::change`]; [`Error::Os`] if it cannot be created.
    pub(crate) fn directory_in(
        &self,
        parent: &Path,
        stem: &str,
        undo: fn(PathBuf) -> Undo,
    ) -> Result<(PathBuf, Guard), Error> {
        static NUMBER: AtomicU64 = AtomicU64::new(0);
        loop {
            let number = NUMBER.fetch_add(1, Ordering::Relaxed);
            let path = parent.join(format!("{stem}-{}-{number}", std::process::id()));
            let make = || fs::create_dir(&path).map_err(|error| Error::os("create", &path, error));
            match self.change(undo(path.clone()), make) {
                Ok(((), guard)) => return Ok((path, guard)),
                // A process in another container may have the same PID.
                Err(Error::Os { source, .. })
                    if source.kind() == std::io::ErrorKind::AlreadyExists => {}
                Err(error) => return Err(error),
            }
        }
    }

    /// Undoes everything now, last change first: for a process that exits on a signal without
    /// dropping its guards. Waits for a change in progress; afterwards no change can be made.
    pub fn undo_all(&self) -> Recovery {
        *lock(&self.0.open) = false;
        let pending: Vec<(u64, Undo)> = self.0.lock().pending.iter().rev().cloned().collect();
        let mut recovery = Recovery::default();
        recovery.take(pending, |(id, _)| self.0.undo(*id));
        self.remove_if_empty();
        recovery
    }

    /// Settings that were not restored because somebody else changed them during a run; one
    /// sentence each.
    pub fn unrestored(&self) -> Vec<String> {
        self.0.lock().left.clone()
    }

    /// Whether nothing is left to undo.
    pub fn is_empty(&self) -> bool {
        self.0.lock().pending.is_empty()
    }

    /// Removes the file if nothing is left to undo: for a process that is about to exit.
    pub fn remove_if_empty(&self) {
        if self.is_empty() {
            let _ = fs::remove_file(&self.0.path);
        }
    }
}

impl JournalInner {
    fn lock(&self) -> MutexGuard<'_, JournalState> {
        lock(&self.state)
    }

    fn append_undo(&self, undo: Undo) -> Result<u64, Error> {
        let mut state = self.lock();
        let id = state.next;
        if undo.outlives_process() {
            self.append(&mut state, &format!("+ {id} {}", undo.encode()))?;
        }
        state.next += 1;
        state.pending.push((id, undo));
        Ok(id)
    }

    /// Removes a change from the list, because it was undone or never made.
    fn remove_undo(&self, state: &mut JournalState, id: u64) {
        state.pending.retain(|(pending, _)| *pending != id);
        // If a full disk loses the line, the step runs twice, which is harmless.
        let _ = self.append(state, &format!("- {id}"));
    }

    fn append(&self, state: &mut JournalState, line: &str) -> Result<(), Error> {
        // One write per line and no sync: entries outlive the process, not the machine. A full disk
        // may have truncated the previous line; a leading newline keeps it from swallowing this
        // one.
        state
            .file
            .write_all(format!("\n{line}\n").as_bytes())
            .map_err(|error| Error::os("write", &self.path, error))
    }

    /// Runs one step, unless it has run already. A failed step stays in the journal.
    fn undo(&self, id: u64) -> Result<Option<UndoResult>, Error> {
        let find = |state: &JournalState| {
            state.pending.iter().find(|(pending, _)| *pending == id).map(|(_, undo)| undo.clone())
        };
        let Some(undo) = find(&self.lock()) else { return Ok(None) };
        // Between two attempts another thread may undo the obstacle, or run the same step.
        retry_while_busy(&undo, |undo, attempt| {
            let mut state = self.lock();
            if find(&state).is_none() {
                return Ok(Some(None));
            }
            let undone = undo.attempt(attempt)?;
            if let Some(undone) = &undone {
                self.remove_undo(&mut state, id);
                state.left.extend(undo.unrestored(undone));
            }
            Ok(undone.map(Some))
        })
    }
}

fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}

impl Drop for JournalInner {
    fn drop(&mut self) {
        if self.lock().pending.is_empty() {
            let _ = fs::remove_file(&self.path);
        }
    }
}

/// Undoes one change on drop.
#[derive(Debug)]
#[must_use = "dropping a guard undoes the change"]
pub struct Guard {
    shared: Arc<JournalInner>,
    id: u64,
    armed: bool,
}

impl Guard {
    /// Undoes the change now and returns errors. If it fails, the journal keeps it.
    pub fn undo(mut self) -> Result<(), Error> {
        self.run()
    }

    fn run(&mut self) -> Result<(), Error> {
        self.armed = false;
        self.shared.undo(self.id).map(drop)
    }
}

impl Drop for Guard {
    fn drop(&mut self) {
        if self.armed {
            // There is no way to report an error: the journal keeps the step for the next start.
            let _ = self.run();
        }
    }
}

#[cfg(test)]
mod tests {
    use std::os::unix::fs::PermissionsExt;

    use super::*;

    pub(super) fn directory(name: &str) -> PathBuf {
        let path = std::env::temp_dir().join(format!("filemap-{name}-{}", std::process::id()));
        fs::create_dir_all(&path).unwrap();
        fs::set_permissions(&path, fs::Permissions::from_mode(0o700)).unwrap();
        path
    }

    /// The same, with a file in it, in whose place there can be no directory.
    pub(super) fn directory_with_file(name: &str) -> (PathBuf, PathBuf) {
        let directory = directory(name);
        let file = directory.join("file");
        fs::write(&file, "").unwrap();
        (directory, file)
    }

    fn written(journal: &Journal, path: &Path) -> Guard {
        let make = || fs::write(path, "x").map_err(|error| Error::os("write", path, error));
        journal.change(Undo::RemoveFile(path.to_owned()), make).unwrap().1
    }

    #[test]
    fn guard_undoes_and_removes_journal() {
        let directory = directory("guard");
        let file = directory.join("victim");
        let journal = Journal::open_in(&directory).unwrap();
        let guard = written(&journal, &file);
        assert!(recover(&directory).unwrap().undone.is_empty(), "the journal is in use");
        drop(journal);
        drop(guard);
        assert!(!file.exists());
        fs::remove_dir(&directory).unwrap();
    }

    #[test]
    fn undo_all_undoes_everything() {
        let directory = directory("signal");
        let inner = directory.join("d");
        let journal = Journal::open_in(&directory).unwrap();
        let make = || fs::create_dir(&inner).map_err(|error| Error::os("create", &inner, error));
        let ((), outer) = journal.change(Undo::RemoveDir(inner.clone()), make).unwrap();
        let _file = written(&journal, &inner.join("f"));
        let recovery = journal.undo_all();
        assert_eq!((recovery.undone.len(), recovery.failed.len()), (2, 0));
        let late = journal.change(Undo::RemoveDir(inner.clone()), || panic!("it is too late"));
        assert!(matches!(late, Err::<((), Guard), _>(Error::ShuttingDown)));
        outer.undo().unwrap();
        fs::remove_dir(&directory).unwrap();
    }

    #[test]
    fn failed_change_is_not_undone() {
        let directory = directory("unmade");
        let journal = Journal::open_in(&directory).unwrap();
        let file = directory.join("another's");
        fs::write(&file, "x").unwrap();
        let make = || Err::<(), _>(Error::ShuttingDown);
        assert!(journal.change(Undo::RemoveFile(file.clone()), make).is_err());
        assert!(journal.undo_all().undone.is_empty());
        assert!(file.exists());
        fs::remove_file(&file).unwrap();
        fs::remove_dir(&directory).unwrap();
    }

    /// One thread makes and undoes changes while another one shuts everything down.
    #[test]
    fn change_is_listed_or_never_made() {
        for round in 0..200 {
            let directory = directory(&format!("race-{round}"));
            let journal = Journal::open_in(&directory).unwrap();
            let maker = {
                let (journal, directory) = (journal.clone(), directory.clone());
                std::thread::spawn(move || {
                    let mut last = None;
                    for number in 0.. {
                        let path = directory.join(format!("made-{number}"));
                        let make = || {
                            fs::create_dir(&path).map_err(|error| Error::os("make", &path, error))
                        };
                        match journal.change(Undo::RemoveDir(path.clone()), make) {
                            Ok(((), guard)) => last = Some(guard),
                            Err(_) => break,
                        }
                    }
                    last
                })
            };
            std::thread::sleep(std::time::Duration::from_micros(20 * round));
            assert!(journal.undo_all().failed.is_empty());
            let left = fs::read_dir(&directory).unwrap().count();
            assert_eq!(left, 0, "round {round}");
            drop(maker.join().unwrap());
            fs::remove_dir(&directory).unwrap();
        }
    }
}

//! A file that lists how to undo what this process changed, written before each change.
//!
//! A live process holds a lock on its journal, so a journal without a lock is what a killed
//! process left, whatever became of its process id.
//!
//! For a setting of the machine the journal holds what it was and what the run makes of it. One
//! that is neither when it is to be restored was changed by somebody else: it is left, and told.
//!
//! A change is listed and made under one lock. A signal that ends the command kills the children
//! first and waits until they are dead. Then it closes the list under the same lock, so that a
//! change is either on the list or never made, and takes the steps back from the last to the first.
//! A step leaves the list only when what it names is gone.

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

/// The journal of this process. Clones share it; the file goes when nothing is left to undo.
#[derive(Clone, Debug)]
pub struct Journal(Arc<JournalInner>);

#[derive(Debug)]
struct JournalInner {
    path: PathBuf,
    // Held while something is changed, so that a change is either in the list or never made.
    open: Mutex<bool>,
    state: Mutex<JournalState>,
}

#[derive(Debug)]
struct JournalState {
    file: File,
    next: u64,
    // In the order in which they were written.
    pending: Vec<(u64, Undo)>,
    // What guards found changed by others, a sentence each.
    left: Vec<String>,
}

impl Journal {
    /// Opens a new journal in [`state_directory`].
    pub fn open() -> Result<Self, Error> {
        Journal::open_in(&state_directory())
    }

    /// Opens a new journal in `directory`, which is created when it is missing.
    ///
    /// # Errors
    /// [`Error::JournalOwner`] when others can write there: they could have us undo anything.
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
            // A recovery that saw the file before its lock takes it for a leftover, and removes it.
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

    /// The directory in which the journal is: also the place for temporary files.
    pub fn directory(&self) -> &Path {
        self.0.path.parent().expect("a journal is opened inside a directory")
    }

    /// Writes down how to undo a change, and makes it. `make` either makes the change whole or
    /// fails without having made it; nothing is undone then.
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

    /// Makes a directory in `parent` by a name that nobody has: `stem`, this process, a number.
    ///
    /// # Errors
    /// As [`Journal::change`]; [`Error::Os`] where there can be none.
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
                // Another container's process may have the same number.
                Err(Error::Os { source, .. })
                    if source.kind() == std::io::ErrorKind::AlreadyExists => {}
                Err(error) => return Err(error),
            }
        }
    }

    /// Undoes everything now, the last change first: for a process that is about to exit without
    /// dropping its guards, because of a signal. A change that is being made is waited for; none
    /// is made from now on.
    pub fn undo_all(&self) -> Recovery {
        *lock(&self.0.open) = false;
        let pending: Vec<(u64, Undo)> = self.0.lock().pending.iter().rev().cloned().collect();
        let mut recovery = Recovery::default();
        recovery.take(pending, |(id, _)| self.0.undo(*id));
        self.remove_if_empty();
        recovery
    }

    /// The settings of the machine that others have changed during a run, and that therefore were
    /// not restored: a sentence each.
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

    /// Takes a change off the list that was undone, or never made.
    fn remove_undo(&self, state: &mut JournalState, id: u64) {
        state.pending.retain(|(pending, _)| *pending != id);
        // Where a full disk takes the line away the step is taken twice, which does no harm.
        let _ = self.append(state, &format!("- {id}"));
    }

    fn append(&self, state: &mut JournalState, line: &str) -> Result<(), Error> {
        // One write per line and no sync: the entries outlive the process, not the machine. A full
        // disk may have cut the line before short, which must not swallow this one.
        state
            .file
            .write_all(format!("\n{line}\n").as_bytes())
            .map_err(|error| Error::os("write", &self.path, error))
    }

    /// Takes one step, unless it was taken. One that fails stays in the journal.
    fn undo(&self, id: u64) -> Result<Option<UndoResult>, Error> {
        let find = |state: &JournalState| {
            state.pending.iter().find(|(pending, _)| *pending == id).map(|(_, undo)| undo.clone())
        };
        let Some(undo) = find(&self.lock()) else { return Ok(None) };
        // Between two attempts another thread may undo the obstacle, or the step itself.
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

/// Undoes one change when it drops.
#[derive(Debug)]
#[must_use = "dropping a guard undoes the change"]
pub struct Guard {
    shared: Arc<JournalInner>,
    id: u64,
    armed: bool,
}

impl Guard {
    /// Undoes the change now, and says whether that worked. What did not stays in the journal.
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
            // Nobody to tell: the journal keeps it for the next start.
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

    /// The same, with a file in it, in whose place no directory can be.
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

    /// Changes are made and undone by one thread while another one ends it all.
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

//! Undoing what a journal lists: of this process, or of one that was killed.

use std::fs::{self, File};
use std::io::Read;
use std::path::Path;

use rustix::fs::{FlockOperation, flock};

use super::directory::{SUFFIX, secure};
use super::undo::Undo;
use crate::Error;

/// What [`recover`] found.
#[derive(Debug, Default)]
pub struct Recovery {
    /// Steps that were taken.
    pub undone: Vec<Undo>,
    /// Why others could not be.
    pub failed: Vec<Error>,
}

impl Recovery {
    /// Takes `steps` in order by `run`, which says whether there was anything to do. What could
    /// not be undone keeps its place, so that the next start finds it.
    pub(super) fn take<K>(
        &mut self,
        steps: impl IntoIterator<Item = (K, Undo)>,
        run: impl Fn(&(K, Undo)) -> Result<bool, Error>,
    ) {
        let mut kept: Vec<Undo> = Vec::new();
        for step in steps {
            if kept.iter().any(|kept| step.1.takes_place_of(kept)) {
                kept.push(step.1);
                continue;
            }
            match run(&step) {
                Ok(true) => self.undone.push(step.1),
                Ok(false) => {}
                Err(error) => {
                    kept.push(step.1);
                    self.failed.push(error);
                }
            }
        }
    }
}

/// Undoes what killed processes left, by their journals in `directory`.
///
/// # Errors
/// The directory cannot be read or is not this user's; a directory that is missing is not an error.
pub fn recover(directory: &Path) -> Result<Recovery, Error> {
    let mut recovery = Recovery::default();
    if !directory.exists() {
        return Ok(recovery);
    }
    secure(directory)?;
    let entries = fs::read_dir(directory).map_err(|error| Error::os("read", directory, error))?;
    for entry in entries.flatten() {
        let path = entry.path();
        if path.extension().is_some_and(|extension| extension == SUFFIX) {
            recover_one(&path, &mut recovery);
        }
    }
    Ok(recovery)
}

fn recover_one(path: &Path, recovery: &mut Recovery) {
    let Ok(mut file) = File::open(path) else { return };
    if flock(&file, FlockOperation::NonBlockingLockExclusive).is_err() {
        return;
    }
    let mut text = String::new();
    if let Err(error) = file.read_to_string(&mut text) {
        recovery.failed.push(Error::os("read", path, error));
        return;
    }
    let failures = recovery.failed.len();
    let steps = pending(&text).into_iter().rev().map(|undo| ((), undo));
    recovery.take(steps, |(_, undo)| undo.run().map(|()| true));
    if recovery.failed.len() == failures {
        let _ = fs::remove_file(path);
    }
}

/// The steps of a journal that were not taken, in the order in which they were written.
fn pending(text: &str) -> Vec<Undo> {
    let mut steps: Vec<(&str, Undo)> = Vec::new();
    for line in text.lines() {
        if let Some(id) = line.strip_prefix("- ") {
            steps.retain(|(pending, _)| *pending != id);
        } else if let Some((id, undo)) = line.strip_prefix("+ ").and_then(|l| l.split_once(' ')) {
            steps.extend(Undo::decode(undo).map(|undo| (id, undo)));
        }
    }
    steps.into_iter().map(|(_, undo)| undo).collect()
}

#[cfg(test)]
mod tests {
    use super::super::tests::directory;
    use super::*;

    #[test]
    fn a_leftover_is_undone_backwards_and_only_where_pending() {
        let directory = directory("leftover");
        let (inner, kept) = (directory.join("d"), directory.join("kept"));
        fs::create_dir(&inner).unwrap();
        fs::write(inner.join("f"), "x").unwrap();
        fs::write(&kept, "x").unwrap();
        let undo = |path: &Path| Undo::RemoveFile(path.to_owned()).encode();
        let text = format!(
            "+ 0 {}\n+ 1 {}\n+ 2 {}\n- 1\n+ 3 fil",
            Undo::RemoveDir(inner.clone()).encode(),
            undo(&kept),
            undo(&inner.join("f")),
        );
        fs::write(directory.join("1-0.journal"), text).unwrap();
        let recovery = recover(&directory).unwrap();
        assert_eq!((recovery.undone.len(), recovery.failed.len()), (2, 0));
        assert!(!inner.exists() && kept.exists());
        fs::remove_file(&kept).unwrap();
        fs::remove_dir(&directory).unwrap();
    }
}

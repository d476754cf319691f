//! Undoes what a journal lists: that of this process, or of a killed one.

use std::fs::{self, File};
use std::io::Read;
use std::path::Path;

use rustix::fs::{FlockOperation, flock};

use super::directory::{SUFFIX, secure};
use super::undo::{Undo, UndoResult, setting_value};
use crate::Error;

/// The result of [`recover`].
#[derive(Debug, Default)]
pub struct Recovery {
    /// Completed steps with their results.
    pub undone: Vec<(Undo, UndoResult)>,
    /// Errors of the others.
    pub failed: Vec<Error>,
}

impl Recovery {
    /// The machine settings that were restored, in one sentence; `None` if there are none.
    pub fn restored(&self) -> Option<String> {
        let restored = self.undone.iter().filter_map(|(undo, undone)| match (undo, undone) {
            (Undo::Restore { path, value, .. }, UndoResult::Restored) => {
                Some(format!("'{}' to '{}'", path.display(), setting_value(value)))
            }
            _ => None,
        });
        let restored: Vec<String> = restored.collect();
        (!restored.is_empty())
            .then(|| format!("restored what a killed run had changed: {}", restored.join(", ")))
    }

    /// Settings that somebody else has changed since, and that are left as they are; one sentence
    /// each.
    pub fn unrestored(&self) -> Vec<String> {
        self.undone.iter().filter_map(|(undo, undone)| undo.unrestored(undone)).collect()
    }

    /// Runs `steps` in order by `run`, which returns the result if there was anything to do. Failed
    /// steps stay, so that the next start finds them.
    pub(super) fn take<K>(
        &mut self,
        steps: impl IntoIterator<Item = (K, Undo)>,
        run: impl Fn(&(K, Undo)) -> Result<Option<UndoResult>, Error>,
    ) {
        let mut blocked: Vec<Undo> = Vec::new();
        for step in steps {
            if blocked.iter().any(|blocked| step.1.takes_place_of(blocked)) {
                blocked.push(step.1);
                continue;
            }
            match run(&step) {
                Ok(Some(undone)) => self.undone.push((step.1, undone)),
                Ok(None) => {}
                Err(error) => {
                    blocked.push(step.1);
                    self.failed.push(error);
                }
            }
        }
    }
}

/// Undoes what killed processes left, by their journals in `directory`.
///
/// # Errors
/// The directory cannot be read or does not belong to this user. A missing or unusable directory is
/// not an error.
pub fn recover(directory: &Path) -> Result<Recovery, Error> {
    let mut recovery = Recovery::default();
    if !directory.is_absolute() || !directory.is_dir() {
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
    recovery.take(steps, |(_, undo)| undo.run().map(Some));
    if recovery.failed.len() == failures {
        let _ = fs::remove_file(path);
    }
}

/// The pending steps of a journal, in the order in which they were written.
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
    use super::super::tests::{directory, directory_with_file};
    use super::*;

    #[test]
    fn recovers_pending_changes_backwards() {
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
        assert_eq!((recovery.restored(), recovery.unrestored()), (None, vec![]));
        fs::remove_file(&kept).unwrap();
        fs::remove_dir(&directory).unwrap();
    }

    #[test]
    fn reports_restored_and_kept_settings() {
        let directory = directory("settings");
        let [ours, others, held] = ["ours", "others", "held"].map(|name| directory.join(name));
        let lines =
            [(&ours, "madvise"), (&others, "always"), (&held, "never")].map(|(path, now)| {
                fs::write(path, now).unwrap();
                let (value, set) = ("never".to_owned(), "madvise".to_owned());
                Undo::Restore { path: path.clone(), value, set }.encode()
            });
        let lines = lines.iter().enumerate().map(|(id, line)| format!("+ {id} {line}\n"));
        fs::write(directory.join("1-0.journal"), lines.collect::<String>()).unwrap();
        let recovery = recover(&directory).unwrap();
        let restored = recovery.restored().unwrap();
        let place = directory.display();
        let expected = format!("restored what a killed run had changed: '{place}/ours' to 'never'");
        assert_eq!(restored, expected);
        let left = format!(
            "'{place}/others' is left at 'always', which somebody else has set: a run had changed \
             it from 'never' to 'madvise'"
        );
        assert_eq!(recovery.unrestored(), [left]);
        let now = [&ours, &others, &held].map(|path| fs::read_to_string(path).unwrap());
        assert_eq!(now, ["never", "always", "never"]);
        assert!(!directory.join("1-0.journal").exists(), "nothing is left to do");
        fs::remove_dir_all(&directory).unwrap();
    }

    #[test]
    fn unusable_directory_has_no_journal() {
        let (directory, file) = directory_with_file("no_place");
        for place in [file.as_path(), &file.join("below"), Path::new("relative")] {
            assert!(recover(place).unwrap().undone.is_empty());
        }
        fs::remove_dir_all(&directory).unwrap();
    }
}

//! Settings of transparent huge pages: the folio sizes that anonymous memory may have.

use std::fs::{self, File};
use std::io::ErrorKind;
use std::path::{Path, PathBuf};

use filemap_job::folio_ops::{PAGE_BYTES, PMD_BYTES};
use filemap_job::format_size;
use rustix::fs::{FlockOperation, flock};

use crate::Error;
use crate::journal::{Guard, Journal, Undo};
use crate::procstat::selected_word;

/// Directory of the settings.
const DIRECTORY: &str = "/sys/kernel/mm/transparent_hugepage";

/// The global setting, which applies to sizes set to `inherit`.
const ALL_SIZES: &str = "enabled";

/// Values with which memory advised MADV_HUGEPAGE gets large folios.
const ALLOWING: [&str; 2] = ["always", "madvise"];

/// The settings of transparent huge pages.
#[derive(Clone, Debug)]
pub(crate) struct ThpSettings {
    pub(crate) directory: PathBuf,
}

/// Settings changed for one size; restored on drop.
#[derive(Debug)]
pub(crate) struct SelectedSize {
    _guards: Vec<Guard>,
}

impl ThpSettings {
    /// The settings of this machine.
    pub(crate) fn here() -> ThpSettings {
        ThpSettings { directory: DIRECTORY.into() }
    }

    /// Sizes with a setting, in bytes, ascending.
    pub(crate) fn offered(&self) -> Vec<u64> {
        let sizes = PAGE_BYTES.ilog2() + 1..=PMD_BYTES.ilog2();
        sizes.map(|bits| 1 << bits).filter(|&bytes| self.value(bytes).is_some()).collect()
    }

    /// Whether advised memory may have folios of `bytes`.
    pub(crate) fn allows(&self, bytes: u64) -> bool {
        match self.value(bytes).as_deref() {
            Some("inherit") => read(&self.directory.join(ALL_SIZES)).is_some_and(is_allowing),
            word => word.is_some_and(is_allowing),
        }
    }

    /// The value of a size's setting.
    pub(crate) fn value(&self, bytes: u64) -> Option<String> {
        read(&self.setting(bytes))
    }

    /// The value of `defrag`.
    pub(crate) fn defrag(&self) -> Option<String> {
        read(&self.directory.join("defrag"))
    }

    /// Why advised memory would not get folios of exactly `bytes`.
    pub(crate) fn refusal(&self, bytes: u64) -> Option<Refusal> {
        if bytes == PAGE_BYTES {
            return None;
        }
        let directory = self.directory.display();
        if self.value(bytes).is_none() {
            let why = format!("this kernel has no setting for them in {directory}");
            return Some(Refusal { why, can_be_set: false });
        }
        if !self.allows(bytes) {
            let why = format!("the settings in {directory} do not allow them");
            return Some(Refusal { why, can_be_set: true });
        }
        let mut larger = self.offered().into_iter().rev().take_while(|&other| other > bytes);
        let larger = format_size(larger.find(|&other| self.allows(other))?);
        let why = format!("folios of {larger} are allowed too, and the kernel takes those first");
        Some(Refusal { why, can_be_set: true })
    }

    /// Allows only large folios of `bytes`, until the result is dropped.
    ///
    /// # Errors
    /// A setting cannot be changed; earlier changes are undone.
    pub(crate) fn select(&self, bytes: u64, journal: &Journal) -> Result<SelectedSize, Error> {
        assert!(bytes > PAGE_BYTES, "single pages have no setting");
        let wrong = |&other: &u64| self.allows(other) != (other == bytes);
        let guards = self.offered().into_iter().filter(wrong).map(|other| {
            let path = self.setting(other);
            let value = self.value(other).unwrap_or_default();
            let word = if other == bytes { "madvise" } else { "never" };
            let write = || fs::write(&path, word).map_err(|error| Error::os("write", &path, error));
            let undo = Undo::Restore { path: path.clone(), value, set: Some(word.to_owned()) };
            let ((), guard) = journal.change(undo, write)?;
            Ok(guard)
        });
        Ok(SelectedSize { _guards: guards.collect::<Result<_, Error>>()? })
    }

    /// Locks the settings against other runs: exclusively if this run `changes` them, since each of
    /// two runs would restore the other's values; otherwise shared, so that the allowed sizes stay.
    /// `None` without settings.
    ///
    /// # Errors
    /// Another run has a conflicting lock.
    pub(crate) fn lock(&self, changes: bool) -> Result<Option<File>, Error> {
        let path = self.directory.join(ALL_SIZES);
        let file = match File::open(&path) {
            Err(error) if error.kind() == ErrorKind::NotFound => return Ok(None),
            file => file.map_err(|error| Error::os("open", &path, error))?,
        };
        let operation = if changes {
            FlockOperation::NonBlockingLockExclusive
        } else {
            FlockOperation::NonBlockingLockShared
        };
        match flock(&file, operation) {
            Ok(()) => Ok(Some(file)),
            Err(_) => Err(Error::unavailable(
                "the use of folio sizes together with another run, when one of both changes them,",
                "wait until the other run has ended",
            )),
        }
    }

    /// The file of a size's setting. Before Linux 6.8 there is one for all sizes.
    fn setting(&self, bytes: u64) -> PathBuf {
        let own = self.directory.join(format!("hugepages-{}kB/enabled", bytes >> 10));
        if bytes == PMD_BYTES && !own.exists() { self.directory.join(ALL_SIZES) } else { own }
    }
}

/// Why advised memory does not get folios of a size.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Refusal {
    /// The reason.
    pub(crate) why: String,
    /// Whether other settings would allow the size.
    pub(crate) can_be_set: bool,
}

fn is_allowing(word: impl AsRef<str>) -> bool {
    ALLOWING.contains(&word.as_ref())
}

/// The selected value of a setting.
fn read(path: &Path) -> Option<String> {
    selected_word(&fs::read_to_string(path).ok()?)
}

#[cfg(test)]
pub(crate) mod tests {
    use super::*;

    const WORDS: [&str; 4] = ["always", "inherit", "madvise", "never"];

    /// Settings in a test directory, with the value of each size.
    pub(crate) fn settings(test: &str, all: &str, sizes: &[(u64, &str)]) -> ThpSettings {
        let directory =
            std::env::temp_dir().join(format!("filemap-sizes-{test}-{}", std::process::id()));
        let marked = |chosen: &str| {
            let mark = |word: &str| if word == chosen { format!("[{word}]") } else { word.into() };
            WORDS.map(mark).join(" ")
        };
        for (bytes, word) in sizes {
            let own = directory.join(format!("hugepages-{}kB", bytes >> 10));
            fs::create_dir_all(&own).unwrap();
            fs::write(own.join("enabled"), marked(word)).unwrap();
        }
        fs::create_dir_all(&directory).unwrap();
        fs::write(directory.join(ALL_SIZES), marked(all)).unwrap();
        ThpSettings { directory }
    }

    #[test]
    fn refuses_sizes_that_are_not_the_largest_allowed() {
        let sizes = [(16 << 10, "never"), (64 << 10, "madvise"), (2 << 20, "inherit")];
        let settings = settings("refusals", "madvise", &sizes);
        assert_eq!(settings.offered(), sizes.map(|(bytes, _)| bytes));
        assert_eq!(settings.refusal(4096), None);
        assert_eq!(settings.refusal(2 << 20), None);
        let why = |bytes| settings.refusal(bytes).unwrap();
        assert!(why(16 << 10).why.ends_with("do not allow them"));
        assert!(why(16 << 10).can_be_set && why(64 << 10).can_be_set);
        assert!(why(64 << 10).why.starts_with("folios of 2m are allowed too"));
        assert!(why(8 << 10).why.contains("no setting") && !why(8 << 10).can_be_set);
        fs::write(settings.directory.join(ALL_SIZES), "always madvise [never]").unwrap();
        assert_eq!(settings.refusal(64 << 10), None, "2m inherits that there are none");
        assert!(why(2 << 20).why.ends_with("do not allow them"));
        fs::remove_dir_all(&settings.directory).unwrap();
    }

    #[test]
    fn old_kernels_have_one_setting() {
        let settings = settings("old", "madvise", &[]);
        assert_eq!(settings.offered(), [2 << 20]);
        assert_eq!(settings.refusal(2 << 20), None);
        fs::remove_dir_all(&settings.directory).unwrap();
    }

    #[test]
    fn selects_one_size_and_restores_all() {
        let sizes = [(16 << 10, "never"), (64 << 10, "always"), (2 << 20, "inherit")];
        let settings = settings("selected", "always", &sizes);
        let journal = Journal::open_in(&settings.directory.join("journal")).unwrap();
        let words = || {
            [16 << 10, 64 << 10, 2 << 20]
                .map(|bytes| fs::read_to_string(settings.setting(bytes)).unwrap())
        };
        let before = words();
        let selected = settings.select(16 << 10, &journal).unwrap();
        assert_eq!(words(), ["madvise", "never", "never"]);
        drop(selected);
        assert_eq!(words(), ["never", "always", "inherit"], "of {before:?}");
        fs::remove_dir_all(&settings.directory).unwrap();
    }

    #[test]
    fn a_run_that_changes_settings_excludes_others() {
        let settings = settings("lock", "madvise", &[]);
        let is_refused = |changes| {
            let error = settings.lock(changes).unwrap_err();
            error.cannot_run_here() && error.to_string().contains("another run")
        };
        let changing = settings.lock(true).unwrap();
        assert!(is_refused(true) && is_refused(false));
        drop(changing);
        let both = [settings.lock(false).unwrap(), settings.lock(false).unwrap()];
        assert!(is_refused(true));
        drop(both);
        settings.lock(true).unwrap();
        fs::remove_dir_all(&settings.directory).unwrap();
        assert!(settings.lock(true).unwrap().is_none(), "there is nothing to change");
    }
}

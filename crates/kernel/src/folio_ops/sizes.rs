//! The sizes of folios that anonymous memory may have here, and the settings that say so.

use std::fs::{self, File};
use std::io::ErrorKind;
use std::path::{Path, PathBuf};

use filemap_job::folio_ops::{PAGE_BYTES, PMD_BYTES};
use filemap_job::format_size;
use rustix::fs::{FlockOperation, flock};

use crate::Error;
use crate::journal::{Guard, Journal, Undo};
use crate::procstat::selected_word;

/// Where they are.
const DIRECTORY: &str = "/sys/kernel/mm/transparent_hugepage";

/// The setting of all sizes that inherit it.
const ALL_SIZES: &str = "enabled";

/// Words with which memory that asks for large folios gets them.
const ALLOWING: [&str; 2] = ["always", "madvise"];

/// The settings of transparent huge pages.
#[derive(Clone, Debug)]
pub(crate) struct Sizes {
    pub(crate) directory: PathBuf,
}

/// Settings that are changed for one size; restored when this drops.
#[derive(Debug)]
pub(crate) struct Selected {
    _guards: Vec<Guard>,
}

impl Sizes {
    /// Those of this machine.
    pub(crate) fn here() -> Sizes {
        Sizes { directory: DIRECTORY.into() }
    }

    /// Sizes that have a setting, in bytes, ascending.
    pub(crate) fn offered(&self) -> Vec<u64> {
        let sizes = PAGE_BYTES.ilog2() + 1..=PMD_BYTES.ilog2();
        sizes.map(|bits| 1 << bits).filter(|&bytes| self.word(bytes).is_some()).collect()
    }

    /// Whether memory that asks for large folios may have such of `bytes`.
    pub(crate) fn allows(&self, bytes: u64) -> bool {
        match self.word(bytes).as_deref() {
            Some("inherit") => read(&self.directory.join(ALL_SIZES)).is_some_and(is_allowing),
            word => word.is_some_and(is_allowing),
        }
    }

    /// What the setting of a size holds.
    pub(crate) fn word(&self, bytes: u64) -> Option<String> {
        read(&self.setting(bytes))
    }

    /// Whether memory that asks for large folios waits until some are made.
    pub(crate) fn defrag(&self) -> Option<String> {
        read(&self.directory.join("defrag"))
    }

    /// Why memory does not get folios of `bytes`, and only such, as the settings are.
    pub(crate) fn refusal(&self, bytes: u64) -> Option<Refusal> {
        if bytes == PAGE_BYTES {
            return None;
        }
        let directory = self.directory.display();
        if self.word(bytes).is_none() {
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

    /// Has memory that asks for large folios get only such of `bytes`, more than a page, if it
    /// gets any.
    ///
    /// # Errors
    /// When a setting cannot be changed. What was changed before that is restored.
    pub(crate) fn select(&self, bytes: u64, journal: &Journal) -> Result<Selected, Error> {
        assert!(bytes > PAGE_BYTES, "a page alone has no setting");
        let wrong = |&other: &u64| self.allows(other) != (other == bytes);
        let guards = self.offered().into_iter().filter(wrong).map(|other| {
            let path = self.setting(other);
            let value = self.word(other).unwrap_or_default();
            let word = if other == bytes { "madvise" } else { "never" };
            let write = || fs::write(&path, word).map_err(|error| Error::os("write", &path, error));
            let undo = Undo::Restore { path: path.clone(), value, set: Some(word.to_owned()) };
            let ((), guard) = journal.change(undo, write)?;
            Ok(guard)
        });
        Ok(Selected { _guards: guards.collect::<Result<_, Error>>()? })
    }

    /// Keeps other runs from changing the settings until what is returned drops. Each of two that
    /// `changes` them would take what the other has set for what it has to restore, and one that
    /// does not would lose the sizes that it found allowed. Where there are none it does nothing.
    ///
    /// # Errors
    /// When another run changes them now, or measures with them while this one is to change them.
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
                "the use of folio sizes beside another run, one of which changes them,",
                "wait until the other run has ended",
            )),
        }
    }

    /// The file that holds the setting of a size. Before Linux 6.8 there is one for all.
    fn setting(&self, bytes: u64) -> PathBuf {
        let own = self.directory.join(format!("hugepages-{}kB/enabled", bytes >> 10));
        if bytes == PMD_BYTES && !own.exists() { self.directory.join(ALL_SIZES) } else { own }
    }
}

/// Why memory does not get folios of a size.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Refusal {
    /// In words.
    pub(crate) why: String,
    /// Other settings would change that.
    pub(crate) can_be_set: bool,
}

fn is_allowing(word: impl AsRef<str>) -> bool {
    ALLOWING.contains(&word.as_ref())
}

/// The word that a setting holds.
fn read(path: &Path) -> Option<String> {
    selected_word(&fs::read_to_string(path).ok()?)
}

#[cfg(test)]
pub(crate) mod tests {
    use super::*;

    const WORDS: [&str; 4] = ["always", "inherit", "madvise", "never"];

    /// Settings of sizes in a directory of their own, each with the word that it holds.
    pub(crate) fn settings(test: &str, all: &str, sizes: &[(u64, &str)]) -> Sizes {
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
        Sizes { directory }
    }

    #[test]
    fn only_what_is_allowed_and_the_largest_is_had() {
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
    fn before_sizes_had_settings_there_was_one() {
        let settings = settings("old", "madvise", &[]);
        assert_eq!(settings.offered(), [2 << 20]);
        assert_eq!(settings.refusal(2 << 20), None);
        fs::remove_dir_all(&settings.directory).unwrap();
    }

    #[test]
    fn what_is_selected_is_alone_and_all_is_restored() {
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
    fn a_run_that_changes_them_is_alone() {
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

//! The library under test, and the statistics that it leaves.

use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;

use filemap_control::{Settings, Snapshot, variable};

/// The library under test.
pub struct Library {
    path: PathBuf,
}

impl Library {
    /// The library that cargo has built for these tests, which lies beside them.
    pub fn find() -> Library {
        let test = std::env::current_exe().expect("the test has a path");
        let path = test.with_file_name("libfilemap_governor.so");
        Library::at(path)
    }

    /// A copy of it.
    pub fn at(path: PathBuf) -> Library {
        assert!(path.exists(), "{} is missing", path.display());
        Library { path }
    }

    pub fn path(&self) -> &Path {
        &self.path
    }

    /// Has `command` run with the library, which governs mappings of `min_bytes` or more and
    /// leaves its statistics in `statistics`.
    pub fn govern(&self, command: &mut Command, min_bytes: u64, statistics: &Path) {
        let settings = Settings {
            min_bytes,
            statistics: Some(statistics.to_owned()),
            keeps_statistics: true,
            ..Settings::default()
        };
        command.env("LD_PRELOAD", &self.path).envs(settings.environment());
    }
}

impl Library {
    /// Has `command` run with the library, which records each change of page of files of
    /// `min_bytes` or more on tapes in `tapes`.
    pub fn record(&self, command: &mut Command, min_bytes: u64, tapes: &Path) {
        command.env("LD_PRELOAD", &self.path).env(variable::RECORD, tapes);
        command.env(variable::RECORD_MIN_SIZE, min_bytes.to_string());
        command.env(variable::RECORD_CHANGES, "1");
    }
}

/// The statistics that processes have left in `directory`.
pub fn statistics(directory: &Path) -> Vec<Snapshot> {
    let Ok(entries) = fs::read_dir(directory) else { return Vec::new() };
    let paths = entries.map(|entry| entry.expect("an entry of the directory").path());
    paths
        .map(|path| {
            let bytes = fs::read(&path).expect("statistics can be read");
            Snapshot::read(&bytes).unwrap_or_else(|error| panic!("{}: {error}", path.display()))
        })
        .collect()
}

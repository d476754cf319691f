//! A directory with files to read, and programs that run plain and governed.

use std::fs::{self, File};
use std::io::Write;
use std::path::{Path, PathBuf};
use std::process::Command;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;

use filemap_control::Snapshot;
use filemap_control::layout::Observer;
use filemap_control::request::event;
use filemap_kernel::cold;

use super::draws::Draws;
use super::library::{Library, statistics};
use super::mapping::PAGE_BYTES;
use super::outcome::{Outcome, run};
use super::skip::skip;
use super::tapes::{self, Told};

/// What has this test program run as one of its own programs.
pub const AS: &str = "as";

/// What no program here takes.
const LIMIT: Duration = Duration::from_secs(60);

/// Bytes of the smallest file that is recorded at most.
const SMALLEST_RECORDED: u64 = 64 << 10;

/// A directory of the test's own, removed in the end, also on a panic.
pub struct Bench {
    pub directory: PathBuf,
    pub library: Library,
    /// Programs are recorded, change by change, and not governed.
    records: bool,
    runs: AtomicU64,
}

/// Bytes of [`Bench::data`].
pub const DATA_BYTES: u64 = 64 << 20;

impl Bench {
    pub fn new(name: &str) -> Bench {
        let directory =
            PathBuf::from(format!("/var/tmp/filemap-governor-{name}-{}", std::process::id()));
        fs::create_dir_all(&directory).expect("a directory of the test's own");
        Bench { directory, library: Library::find(), records: false, runs: AtomicU64::new(0) }
    }

    /// Records programs from here on, change by change, in place of governing them.
    pub fn record(&mut self) {
        self.records = true;
    }

    /// Whether programs are recorded, and not governed.
    pub fn records(&self) -> bool {
        self.records
    }

    /// A new file of `bytes` bytes that look random, on its disk.
    pub fn file(&self, name: &str, bytes: u64) -> PathBuf {
        let path = self.directory.join(name);
        write(&path, bytes);
        path
    }

    /// A file that programs only read.
    pub fn data(&self) -> PathBuf {
        let path = self.directory.join("data");
        if !path.exists() {
            write(&path, DATA_BYTES);
        }
        path
    }

    /// This program, run as its own program `name`.
    pub fn own(&self, name: &str, arguments: &[&str]) -> Command {
        let mut command = Command::new(std::env::current_exe().expect("the test has a path"));
        command.args([AS, name]).args(arguments).current_dir(&self.directory);
        command
    }

    /// Runs a program alone, which has to end well.
    pub fn plain(&self, mut command: Command) -> Outcome {
        let what = format!("{command:?}");
        run(command.current_dir(&self.directory), &self.directory, LIMIT).well(&what)
    }

    /// Runs the program that `command` makes plain and then governed, where mappings of
    /// `min_bytes` or more are governed. `files` are not cached when it begins.
    pub fn both(&self, min_bytes: u64, files: &[&Path], command: impl Fn() -> Command) -> Both {
        self.both_after(min_bytes, files, || (), command)
    }

    /// As [`Bench::both`]. `before` puts back what the program changes.
    pub fn both_after(
        &self,
        min_bytes: u64,
        files: &[&Path],
        before: impl Fn(),
        command: impl Fn() -> Command,
    ) -> Both {
        self.both_with(&self.library, min_bytes, files, before, command)
    }

    /// As [`Bench::both_after`], with another copy of the library.
    pub fn both_with(
        &self,
        library: &Library,
        min_bytes: u64,
        files: &[&Path],
        before: impl Fn(),
        command: impl Fn() -> Command,
    ) -> Both {
        let run = |governed: Option<&Path>| {
            before();
            files.iter().for_each(|file| cold::drop_file(file).expect("the file can be dropped"));
            let mut command = command();
            match governed {
                Some(tapes) if self.records => {
                    library.record(&mut command, min_bytes.min(SMALLEST_RECORDED), tapes);
                }
                Some(statistics) => library.govern(&mut command, min_bytes, statistics),
                None => {}
            }
            run(command.current_dir(&self.directory), &self.directory, LIMIT)
        };
        let plain = run(None);
        let number = self.runs.fetch_add(1, Ordering::Relaxed);
        let directory = self.directory.join(format!("statistics-{number}"));
        fs::create_dir(&directory).expect("a directory for statistics");
        // Whoever the program is, it has statistics.
        open_to_all(&directory);
        let what = format!("{:?}", command());
        if self.records {
            let (governed, told) = tapes::while_running(&directory, || run(Some(&directory)));
            return Both { what, plain, governed, statistics: Vec::new(), told: Some(told) };
        }
        let governed = run(Some(&directory));
        Both { what, plain, governed, statistics: statistics(&directory), told: None }
    }
}

impl Drop for Bench {
    fn drop(&mut self) {
        let _ = fs::remove_dir_all(&self.directory);
    }
}

/// Lets everybody write into a directory.
pub fn open_to_all(directory: &Path) {
    use std::os::unix::fs::PermissionsExt;
    let permissions = fs::Permissions::from_mode(0o777);
    fs::set_permissions(directory, permissions).expect("the directory is ours");
}

/// Writes a file of `bytes` bytes, in which each page begins with a number of its own.
pub fn write(path: &Path, bytes: u64) {
    let mut file = File::create(path).expect("a file can be made");
    let mut draws = Draws::new(bytes);
    let mut block = vec![0; 256 * PAGE_BYTES];
    let mut left = bytes;
    while left > 0 {
        for word in block.chunks_exact_mut(64) {
            word[..8].copy_from_slice(&draws.next().to_ne_bytes());
        }
        let now = left.min(block.len() as u64);
        file.write_all(&block[..now as usize]).expect("there is room for the file");
        left -= now;
    }
    file.sync_all().expect("the file reaches its disk");
}

/// A program that ran plain and governed.
pub struct Both {
    what: String,
    pub plain: Outcome,
    pub governed: Outcome,
    pub statistics: Vec<Snapshot>,
    /// What was told where it was recorded in place of being governed.
    pub told: Option<Told>,
}

impl Both {
    /// What both printed and how they ended is the same.
    pub fn alike(self) -> Both {
        self.alike_but(|text| text.to_vec())
    }

    /// As [`Both::alike`], of what `keep` makes of what they printed.
    pub fn alike_but(self, keep: impl Fn(&[u8]) -> Vec<u8>) -> Both {
        let Both { what, plain, governed, .. } = &self;
        let seen = |of: &Outcome| {
            let [stdout, stderr] = [&of.stdout, &of.stderr].map(|text| keep(text));
            let text = |bytes: &[u8]| String::from_utf8_lossy(bytes).into_owned();
            (of.end, stdout.clone(), stderr.clone(), text(&stdout), text(&stderr))
        };
        let (plain, governed) = (seen(plain), seen(governed));
        if plain != governed {
            let show = |of: (_, _, _, String, String)| format!("{:?}\n{}{}", of.0, of.3, of.4);
            panic!("{what}\nplain: {}\ngoverned: {}", show(plain), show(governed));
        }
        self
    }

    /// It ended well, and printed something.
    pub fn well(self) -> Both {
        let Both { what, plain, .. } = &self;
        assert!(plain.end == super::outcome::End::Exited(0), "{what}: {plain:?}");
        assert!(!plain.stdout.is_empty(), "{what} prints nothing");
        self
    }

    /// Faults in mappings of `path` were governed, if they can be here.
    pub fn governs(self, path: &Path) -> Both {
        if let Some(told) = &self.told {
            let touches = told.touches().count();
            assert!(touches > 0, "{}: nothing was recorded: {told:?}", self.what);
            assert_eq!(told.lost, 0, "{}", self.what);
            return self;
        }
        if !has_observer() {
            skip("perf events are not permitted, so that nothing is governed");
            return self;
        }
        let Both { what, statistics, .. } = &self;
        assert!(self.faults(path) > 0, "{what}: no fault was governed: {statistics:#?}");
        self
    }

    /// Major faults in mappings of `path` that were governed.
    pub fn faults(&self, path: &Path) -> u64 {
        let observed = self.statistics.iter().filter(|of| of.observer == Observer::PerfEvent);
        let mappings = observed.flat_map(|of| &of.mappings);
        mappings.filter(|of| of.path == path).map(|of| of.faults).sum()
    }

    /// The governed program has read less, at most one byte in `divisor`.
    pub fn reads_less(self, divisor: u64) -> Both {
        let Both { what, plain, governed, .. } = &self;
        if !has_observer() || self.told.is_some() {
            return self;
        }
        let (plain, governed) = (plain.read_bytes, governed.read_bytes);
        if plain == 0 {
            skip("the filesystem does not say what is read");
        } else {
            assert!(
                governed.saturating_mul(divisor) <= plain,
                "{what}: {governed} bytes were read when governed, {plain} when not"
            );
        }
        self
    }

    /// The governed program has read about what the plain one has.
    pub fn reads_as_much(self) -> Both {
        let Both { what, plain, governed, .. } = &self;
        let (plain, governed) = (plain.read_bytes, governed.read_bytes);
        assert!(
            governed <= plain + plain / 8 + (1 << 20),
            "{what}: {governed} bytes were read when governed, {plain} when not"
        );
        self
    }
}

/// Whether this process may have perf events.
pub fn has_observer() -> bool {
    let attributes = event::attributes(event::Faults::Major);
    // SAFETY: the attributes are as long as they say.
    let opened =
        unsafe { libc::syscall(libc::SYS_perf_event_open, attributes.as_ptr(), 0, -1, -1, 0) };
    if opened >= 0 {
        // SAFETY: it is ours.
        unsafe { libc::close(opened as i32) };
    }
    opened >= 0
}

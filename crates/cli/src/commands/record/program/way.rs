//! The ways in which a program is recorded: cold with the library, with fault-around of one page
//! and the library, or that without the library.

use std::ffi::{OsStr, OsString};
use std::io::{Write, stderr};
use std::os::fd::RawFd;
use std::path::Path;

use filemap_attach::trace_points::{TracePoints, switch_on};
use filemap_control::{SMALLEST_RECORDED, variable};
use filemap_kernel::engine::FaultAround;
use filemap_kernel::governor::{self, PRELOAD, preloaded};
use filemap_kernel::journal::Journal;
use filemap_kernel::trace::TraceFs;

use crate::args::RecordArgs;
use crate::error::Error;
use crate::govern::environment::{self, Variables};
use crate::govern::{self, Collecting, Program, run_directory};
use crate::record::{Followed, Source, Tapes, WantedFiles};

/// What cannot load the library is recorded so.
const WITHOUT_LIBRARY: &str = "give --without-library --apply as root";

/// Refuses a program that cannot be recorded in the way that `args` say, and to record in a program
/// that is recorded.
pub fn check(args: &RecordArgs, program: &Program) -> Result<(), Error> {
    if std::env::var_os(variable::RECORD).is_some_and(|directory| !directory.is_empty()) {
        let set = variable::RECORD;
        return Err(Error::Usage(format!(
            "{set} is set, as in a program that is recorded already; record it once, or unset {set}"
        )));
    }
    let path = program.path.display();
    let refused = |text: String| Err(Error::CannotRun(text));
    if !args.without_library {
        return match govern::obstacle(&program.path) {
            None => Ok(()),
            Some(reason) => refused(format!(
                "'{path}' cannot be recorded with the library: {reason}; {WITHOUT_LIBRARY}, or \
                 record its faults with perf record -e page-faults -c 1 -d, and give --import \
                 what perf script prints of them"
            )),
        };
    }
    // The kernel ends the events of a program that gains something by exec.
    match govern::gain(&program.path) {
        None => Ok(()),
        Some(reason) => refused(format!(
            "'{path}' cannot be recorded: it {reason}, of which the kernel tells nothing; start it \
             as that user, as in filemap record --without-library -- setpriv --reuid USER {path}"
        )),
    }
}

/// What is there while a program is recorded, and is restored behind it.
pub struct Way {
    /// Where processes have their tapes, if the library is loaded into them.
    collecting: Option<Collecting>,
    // Undone before the journal goes.
    single_pages: Option<FaultAround>,
    /// Where either is changed or mounted.
    journal: Option<Journal>,
}

/// Where it is told what the program does, and what runs in its process before it.
type Begun = (Box<dyn Source + Send>, Box<dyn Fn() + Send + Sync>);

impl Way {
    /// Changes what has to be otherwise, and says to the library what is wanted.
    ///
    /// # Errors
    /// When that is not allowed here, and when there is no library.
    pub fn begin(args: &RecordArgs) -> Result<Way, Error> {
        let mut way = Way { collecting: None, single_pages: None, journal: None };
        if !args.without_library {
            let library = governor::library()?;
            let directory = run_directory::run_directory();
            directory.iter().for_each(|directory| run_directory::sweep(directory));
            let collecting = Collecting::begin()?;
            environment::set(&variables(args, &library, collecting.directory()));
            way.collecting = Some(collecting);
        }
        if args.apply || args.without_library {
            let journal = Journal::open()?;
            let page_bytes = rustix::param::page_size() as u64;
            let set = || FaultAround::set(page_bytes, &journal);
            way.single_pages = args.apply.then(set).transpose()?;
            way.journal = Some(journal);
        }
        Ok(way)
    }

    /// Whether a page is told again that is mapped anew: where all faults are told.
    pub fn repeats(&self) -> bool {
        self.journal.is_some()
    }

    /// Opens where it is told what the program does.
    ///
    /// # Errors
    /// When the kernel does not tell it.
    pub fn source(&self, args: &RecordArgs) -> Result<Begun, Error> {
        let (source, events): (Box<dyn Source + Send>, Vec<RawFd>) = match &self.collecting {
            Some(collecting) => (Box::new(Tapes::of(collecting.directory())), Vec::new()),
            None => {
                let journal = self.journal.as_ref().expect("it is opened without a library");
                let tracefs = TraceFs::open(journal)?;
                let following = TracePoints::of_children(tracefs.root())
                    .map_err(|error| Error::CannotRun(error.to_string()))?;
                for missing in following.missing() {
                    // Nobody is left to be told if stderr is closed.
                    let _ = writeln!(
                        stderr(),
                        "filemap: this kernel has no tracepoint {missing}: what it tells is not \
                         in the recording"
                    );
                }
                let events = following.descriptors();
                let page_bytes = rustix::param::page_size() as u64;
                (Box::new(Followed::new(following, page_bytes, wanted(args))), events)
            }
        };
        Ok((source, Box::new(move || switch_on(&events))))
    }

    /// Restores what was changed. Returns whether it was so until now.
    pub fn end(self) -> bool {
        self.single_pages.as_ref().is_none_or(FaultAround::holds)
    }
}

/// Linux before this has single pages of files in the page cache of ext4. Later ones have large
/// folios there, and one fault maps a folio whole.
const SINGLE_PAGES_BEFORE: (u32, u32) = (6, 16);

/// Whether the kernel of this `release` maps one page of a cached file at a fault where
/// fault-around is one page.
pub fn maps_single_pages(release: &str) -> bool {
    let mut numbers = release.split(|c: char| !c.is_ascii_digit()).map(str::parse::<u32>);
    let version = numbers.next().and_then(Result::ok).zip(numbers.next().and_then(Result::ok));
    version.is_some_and(|version| version < SINGLE_PAGES_BEFORE)
}

fn wanted(args: &RecordArgs) -> WantedFiles {
    let min_bytes = args.min_size.unwrap_or(SMALLEST_RECORDED);
    WantedFiles { min_bytes, patterns: args.files.clone() }
}

/// What is said to the library.
fn variables(args: &RecordArgs, library: &Path, directory: &Path) -> Variables {
    let files = args.files.join(OsStr::new(":"));
    let system = rustix::system::uname();
    let is_warm = args.apply && maps_single_pages(&system.release().to_string_lossy());
    let least = args.min_size.map(|bytes| OsString::from(bytes.to_string())).unwrap_or_default();
    vec![
        (PRELOAD, preloaded(library, std::env::var_os(PRELOAD).as_deref())),
        (variable::SWITCH, "on".into()),
        // Whoever has started this command may have its advice checked.
        (variable::ADVISE, OsString::new()),
        (variable::RECORD, directory.as_os_str().to_owned()),
        (variable::RECORD_FILES, files),
        (variable::RECORD_MIN_SIZE, least),
        (variable::RECORD_FAULTS, if args.apply { "all" } else { "" }.into()),
        (variable::RECORD_CHANGES, if args.changes { "1" } else { "" }.into()),
        (variable::RECORD_WARM, if is_warm { "1" } else { "" }.into()),
    ]
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn kernels_with_large_folios_are_known_by_their_release() {
        assert!(maps_single_pages("6.12.117+deb12-cloud-amd64") && maps_single_pages("5.15.0"));
        assert!(!maps_single_pages("6.16.0") && !maps_single_pages("7.0-rc1"));
        assert!(!maps_single_pages("unknown"));
    }
}

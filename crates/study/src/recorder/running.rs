//! Processes that run and are recorded.

use std::io::Write;
use std::path::Path;
use std::time::Instant;

use filemap_attach::Source;
use filemap_kernel::journal::Journal;
use filemap_kernel::trace::TraceFs;

use super::asked::Asked;
use super::{Followed, Recorded, SinglePages, record};
use crate::error::Error;

/// Records to `output`, which errors call by its name, what the processes `pids` do from now on,
/// until they have ended, for so long as it is said, or until `is_ended`. What is mapped is dropped
/// from the page cache where it is recorded `cold`. Lines that are to be told at once go to `tell`.
///
/// # Errors
/// No process that can be followed.
pub fn of_processes<W: Write>(
    (pids, cold): (&[u32], bool),
    (output, name): (W, &str),
    asked: &Asked,
    is_ended: impl Fn() -> bool,
    tell: fn(&str),
) -> Result<Recorded<W>, Error> {
    let journal = Journal::open().ok();
    let tracefs = journal.as_ref().and_then(|journal| TraceFs::open(journal).ok());
    let (source, refused) = Source::processes(pids, tracefs.as_ref().map(TraceFs::root))?;
    if let Some(error) = refused {
        tell(&format!("{error}; the others are recorded"));
    }
    asked.check(&source)?;
    let single = SinglePages::of_processes(cold, pids);
    tell(&format!(
        "a running process is recorded from now on: pages that it has touched already show no \
         touch{}{}",
        if cold { " where others have them in use" } else { " (--cold drops them)" },
        if source.tells_calls() {
            ""
        } else {
            ", and what it reads and advises is told to root only"
        }
    ));
    let header = asked.header(Vec::new());
    let followed = Followed::new(source, single, header.page_size, asked.wanted.clone());
    let end = asked.duration.map(|duration| Instant::now() + duration);
    let is_over = || {
        is_ended()
            || end.is_some_and(|end| Instant::now() >= end)
            || !pids.iter().any(|pid| Path::new(&format!("/proc/{pid}/exe")).is_symlink())
    };
    Ok(record(followed, output, name, &header, &is_over))
}

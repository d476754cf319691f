//! `filemap record --pid` and `--cgroup`: processes that run.

use std::io::{Write, stderr};
use std::path::Path;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Instant;

use filemap_attach::{Source, cgroup};
use filemap_kernel::journal::Journal;
use filemap_kernel::trace::TraceFs;
use signal_hook::consts::{SIGHUP, SIGINT, SIGTERM};

use super::{told, wanted};
use crate::Outcome;
use crate::args::RecordArgs;
use crate::error::Error;
use crate::output::{self, Inputs};
use filemap_study::recorder::{self, Followed, SinglePages};

/// Records what processes do from now on, until they have ended, for so long as it is said, or
/// until a signal asks for the end.
pub fn run(args: &RecordArgs) -> Result<Outcome, Error> {
    let pids = match &args.cgroup {
        Some(name) => cgroup::processes(name)?,
        None => args.pid.clone(),
    };
    let shown = args.cgroup.clone().unwrap_or_else(|| {
        let all: Vec<String> = pids.iter().map(u32::to_string).collect();
        all.join("-")
    });
    let name = super::place(args.out.as_deref(), &shown.replace('/', "-"))?;
    let target = output::open_part("--out", &name, &Inputs::default())?;
    let is_asked = Arc::new(AtomicBool::new(false));
    for signal in [SIGINT, SIGTERM, SIGHUP] {
        let registered = signal_hook::flag::register(signal, is_asked.clone());
        registered.map_err(|error| Error::CannotRun(format!("no handler of signals: {error}")))?;
    }
    let journal = Journal::open().ok();
    let tracefs = journal.as_ref().and_then(|journal| TraceFs::open(journal).ok());
    let root = tracefs.as_ref().map(TraceFs::root);
    let (source, refused) = Source::processes(&pids, root)?;
    if let Some(error) = refused {
        let _ = writeln!(stderr(), "filemap: {error}; the others are recorded");
    }
    super::check_changes(args, &source)?;
    let single = SinglePages::of_processes(args.cold, &pids);
    let _ = writeln!(
        stderr(),
        "filemap: a process that runs is recorded as it goes on: pages that it has touched already \
         show no touch{}{}",
        if args.cold { " where others have them in use" } else { " (--cold drops them)" },
        if source.tells_calls() {
            ""
        } else {
            ", and what it reads and advises is told to root only"
        }
    );
    let header = wanted::header(args, Vec::new());
    let mut followed = Followed::new(source, single, header.page_size, wanted::files(args));
    let end = args.duration.map(|duration| Instant::now() + duration);
    let is_over = || {
        is_asked.load(Ordering::Acquire)
            || end.is_some_and(|end| Instant::now() >= end)
            || !pids.iter().any(|pid| Path::new(&format!("/proc/{pid}/exe")).is_symlink())
    };
    let recorded = recorder::record(&mut followed, target, &name, &header, &is_over);
    told::kept(recorded, true, &name, args)?;
    Ok(Outcome::Done)
}

//! `filemap govern --pid` and `--cgroup`: governs running processes.

use std::time::{Duration, Instant};

use filemap_attach::process::{check_is_process, with_children};
use filemap_attach::{Error as Refused, cgroup};
use filemap_govern::{GovernTarget, readiness, run_directory};
use filemap_study::govern::{self, GovernRecord};

use crate::args::GovernArgs;
use crate::error::Error;
use crate::govern::parent::{BlockedSignals, STOP_SIGNALS};
use crate::output::Inputs;
use crate::{Outcome, print_message};

/// Polling interval for the end of processes and for signals.
const POLL_INTERVAL: Duration = Duration::from_millis(100);

/// Polling interval until the initial mappings of the processes are known.
const READY_POLL_INTERVAL: Duration = Duration::from_millis(2);

/// Signals that are ignored here.
const IGNORED_SIGNALS: [i32; 5] =
    [libc::SIGCHLD, libc::SIGCONT, libc::SIGURG, libc::SIGWINCH, libc::SIGPIPE];

/// Governs running processes until they exit, the time is over, or a signal arrives.
pub fn run(args: &GovernArgs) -> Result<Outcome, Error> {
    let output = super::output(args, &Inputs::default())?;
    let given = super::read_plans(args)?;
    let metrics = super::metrics_file(args, &Inputs::default())?;
    let waited = BlockedSignals::block();
    let target = GovernTarget::Running { pids: args.pid.clone(), cgroups: args.cgroup.clone() };
    let session = super::begin(&target, args, given, metrics).map_err(|error| cannot(&error))?;
    tell_children(&args.pid);
    let start = Instant::now();
    let is_late = || args.duration.is_some_and(|duration| start.elapsed() >= duration);
    let mut is_told = false;
    while !is_late() && !session.is_over() {
        if !is_told && session.is_ready() {
            // Notifies the parent, which may wait for it. Errors are ignored, as the socket may be
            // gone.
            let _ = readiness::notify();
            is_told = true;
        }
        match waited.next_within(if is_told { POLL_INTERVAL } else { READY_POLL_INTERVAL }) {
            None => {}
            Some(signal) if IGNORED_SIGNALS.contains(&signal) => {}
            Some(signal) if STOP_SIGNALS.contains(&signal) => waited.stop(signal),
            Some(_) => break,
        }
    }
    let way = session.method();
    let outcome = session.finish();
    super::tell_left(&outcome.unrestored);
    drop(waited);
    let mut outcome = outcome;
    let processes = govern::process_records(&outcome.statistics, way);
    let files = std::mem::take(&mut outcome.statistics.files);
    super::check_read(args, &super::mapped(&processes))?;
    let has_none = processes.iter().all(|process| process.mappings.is_empty());
    let ungoverned = has_none.then(|| super::why_nothing(args, &processes));
    let footer = super::footer(super::SCOPE, super::command(args));
    let mut run = GovernRecord::new(processes, outcome.statistics.lost_records, footer);
    (run.ungoverned, run.only_observed) = (ungoverned, args.observe);
    run.files = files;
    output.write(&run.report())?;
    Ok(Outcome::Done)
}

/// Restores the advice left behind by killed governors.
pub fn release(args: &GovernArgs) -> Result<Outcome, Error> {
    for pid in &args.pid {
        // For processes that no longer exist, leftover state is removed.
        if let Err(error @ Refused::Thread { .. }) = check_is_process(*pid) {
            return Err(cannot(&error.into()));
        }
    }
    let mut pids = with_children(&args.pid);
    for name in &args.cgroup {
        pids.extend(cgroup::processes(name).map_err(|error| cannot(&error.into()))?);
    }
    let (mut found, mut left) = (0, Vec::new());
    for directory in run_directory::run_directories() {
        let (of_directory, still) = filemap_govern::release(&directory, &pids);
        found += of_directory;
        left.extend(still);
    }
    if let Some(first) = left.first() {
        return Err(Error::CannotRun(format!(
            "{} of {found} stay advised MADV_RANDOM: {}; try again",
            left.len(),
            first.reason
        )));
    }
    match found {
        0 => print_message("no killed governor has left advice for mappings of these processes"),
        found => print_message(format!(
            "the advice of {} is restored",
            super::count_mappings_text(found)
        )),
    }
    Ok(Outcome::Done)
}

/// Warns that processes started earlier by the named ones are not governed.
fn tell_children(named: &[u32]) {
    let others = with_children(named).split_off(named.len());
    if let Some(first) = others.first() {
        print_message(format!(
            "{} that they started earlier are not governed; name them too, as in --pid {first}, or \
             give the --cgroup of all",
            match others.len() {
                1 => "1 process".to_string(),
                count => format!("{count} processes"),
            }
        ));
    }
}

fn cannot(error: &filemap_govern::Error) -> Error {
    use Refused::{Gone, NoCgroup, Thread};
    match error {
        filemap_govern::Error::Attach(Gone { .. } | NoCgroup { .. } | Thread { .. }) => {
            Error::Usage(error.to_string())
        }
        _ => Error::CannotRun(error.to_string()),
    }
}

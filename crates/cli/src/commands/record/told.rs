//! What is said of a recording that was made.

use std::collections::BTreeSet;
use std::io::{IsTerminal, Write, stderr};

use filemap_attach::{MOST_OPEN, MappedRange};
use filemap_job::format_size;
use filemap_recording::Totals;

use crate::args::RecordArgs;
use crate::error::Error;
use crate::output::{self, Inputs, Target};
use filemap_study::recorder::{self, Recorded};

/// Keeps the recording, and says what is in it where a user looks. The recording `is_whole` as far
/// as the machine's setting goes.
pub fn kept(
    recorded: Recorded<Target>,
    is_whole: bool,
    name: &str,
    args: &RecordArgs,
) -> Result<(), Error> {
    tell_left(&recorded.left);
    let (target, totals) = recorded.written?;
    let mut files = Inputs::default();
    recorded.files.iter().for_each(|path| files.add_regular("a file that the program read,", path));
    output::check_only("--out", name, &files)?;
    target.finish()?;
    let Totals { touches, lost, .. } = totals;
    let lost = lost + recorded.unknown;
    if let Some(error) = recorded.failed {
        return Err(error);
    }
    let line = if lost > 0 {
        format!(
            "the recording in '{name}' is not whole, as {lost} events or more were lost; run it \
             again on a machine that does less"
        )
    } else if !is_whole {
        format!(
            "the recording in '{name}' may lack touches, as somebody has changed fault-around \
             meanwhile; run it again alone"
        )
    } else if let Some(refused) = recorded.refused {
        format!(
            "the recording in '{name}' lacks touches of pages that came with others, as a process \
             was not made to read single pages: {refused}"
        )
    } else if recorded.late > 0 {
        recorded.files.iter().for_each(recorder::drop_cached);
        let pages = match recorded.late_pages {
            0 => "pages".to_string(),
            1 => "a page".to_string(),
            pages => format!("{pages} pages"),
        };
        format!(
            "the recording in '{name}' may lack touches: {pages} of {} of its mappings came with \
             others before they could be read one at a time; run it again",
            recorded.late
        )
    } else if let Some(error) = recorded.not_taken {
        format!(
            "the recording in '{name}' lacks touches of pages that were touched before: {error}"
        )
    } else if recorded.stayed > 0 {
        format!(
            "the recording in '{name}' may lack touches: {} times a page stayed in its process \
             while more than {} others were touched, as another mapping has it, it was written to \
             or locked, or the machine is too busy",
            recorded.stayed, MOST_OPEN
        )
    } else if touches == 0 {
        nothing(args)
    } else if stderr().is_terminal() {
        let which = if args.changes { "" } else { "first " };
        format!("{touches} {which}touches of pages are in '{name}'")
    } else {
        return Ok(());
    };
    // Nobody is left to be told if stderr is closed.
    let _ = writeln!(stderr(), "filemap: {line}");
    Ok(())
}

/// Says which mappings have not got their advice back.
fn tell_left(left: &[(u32, MappedRange)]) {
    if left.is_empty() {
        return;
    }
    let pids: BTreeSet<u32> = left.iter().map(|(pid, _)| *pid).collect();
    let flags: String = pids.iter().map(|pid| format!(" --pid {pid}")).collect();
    // Nobody is left to be told if stderr is closed.
    let _ = writeln!(
        stderr(),
        "filemap: {} mappings stay advised MADV_RANDOM, as no thread of their process could be \
         held; run filemap govern --release{flags}",
        left.len()
    );
}

/// What is said where no touch was recorded.
fn nothing(args: &RecordArgs) -> String {
    let least = format_size(args.min_size.unwrap_or(recorder::SMALLEST));
    let files = if args.files.is_empty() { "" } else { " whose path matches --files" };
    format!(
        "no touch of a mapped page was recorded; files of {least} (--min-size) or more{files} are, \
         on a disk, and pages that nobody else has in use"
    )
}

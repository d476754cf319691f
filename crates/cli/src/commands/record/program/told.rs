//! What is said of a recording that was made.

use std::io::{IsTerminal, Write};

use filemap_job::format_size;
use filemap_recording::Totals;

use crate::args::RecordArgs;
use crate::error::Error;
use crate::output::{self, Inputs, Target};
use crate::record::Recorded;

/// Keeps the recording, and says what is in it where a user looks. The recording `is_whole` as far
/// as the machine's setting goes.
pub fn kept(
    recorded: Recorded<Target>,
    is_whole: bool,
    name: &str,
    args: &RecordArgs,
) -> Result<(), Error> {
    let (target, totals) = recorded.written?;
    let mut files = Inputs::default();
    recorded.files.iter().for_each(|path| files.add_regular("a file that the program read,", path));
    output::check_only("--out", name, &files)?;
    target.finish()?;
    let Totals { touches, lost, .. } = totals;
    let lost = lost + recorded.unknown;
    let mut stderr = std::io::stderr();
    // Nobody is left to be told if stderr is closed.
    if let Some((pid, reason)) = recorded.stopped {
        let _ = writeln!(
            stderr,
            "filemap: process {pid} is in '{name}' only in part: {}",
            reason.not_recorded()
        );
    } else if lost > 0 {
        let _ = writeln!(
            stderr,
            "filemap: the recording in '{name}' is not whole, as {lost} events or more were lost; \
             run it again on a machine that does less"
        );
    } else if !is_whole {
        let _ = writeln!(
            stderr,
            "filemap: the recording in '{name}' may lack touches, as somebody has changed \
             fault-around meanwhile; run it again alone"
        );
    } else if touches == 0 {
        let _ = writeln!(stderr, "filemap: {}", nothing(args));
    } else if stderr.is_terminal() {
        let what =
            if args.changes { "touches after another page" } else { "first touches of pages" };
        let _ = writeln!(stderr, "filemap: {touches} {what} are in '{name}'");
    }
    Ok(())
}

/// What is said where no touch was recorded.
fn nothing(args: &RecordArgs) -> String {
    let least = format_size(args.min_size.unwrap_or(filemap_control::SMALLEST_RECORDED));
    let files = if args.files.is_empty() { "" } else { " whose path matches --files" };
    let is_each_fault = args.apply || args.without_library || args.changes;
    let cached = if is_each_fault { "" } else { ", and pages that nobody else has in use" };
    format!(
        "no touch of a mapped page was recorded; files of {least} (--min-size) or more{files} are, \
         on a disk{cached}"
    )
}

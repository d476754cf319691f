//! `filemap report`.

use filemap_study::html;

use crate::Outcome;
use crate::args::ReportArgs;
use crate::error::Error;
use crate::export::{self, TableFormat};
use crate::output::{self, Inputs};
use crate::recording;
use filemap_study::input;

/// Maximum size of a record in bytes. A record of a thousand seeds takes 2 MiB.
const MAX_RECORD_BYTES: u64 = 256 << 20;

/// Path of stdin.
const STDIN: &str = "/dev/stdin";

/// Renders the HTML page of a record, or exports the events of a recording.
pub fn run(args: &ReportArgs) -> Result<Outcome, Error> {
    let path = if args.record == "-" { STDIN } else { args.record.as_str() };
    // A pipe cannot be read twice.
    let is_file = std::fs::metadata(path).is_ok_and(|data| data.is_file());
    let is_recording = is_file && recording::is_recording_path(path);
    match (&args.html, &args.export) {
        (_, Some(export)) => export_events(path, is_recording, export)?,
        (Some(html), _) => render_page(path, is_recording, html)?,
        (None, None) => unreachable!("clap requires one"),
    }
    Ok(Outcome::Done)
}

fn export_events(path: &str, is_recording: bool, export: &str) -> Result<(), Error> {
    let mut inputs = Inputs::default();
    inputs.add("the recording", path);
    let format = TableFormat::of_path(export)?;
    if std::path::Path::new(path).is_file() && !is_recording {
        return Err(Error::Usage(format!(
            "--export is for a recording, and {path} is none; give what filemap record wrote"
        )));
    }
    export::write_events(path, format, output::open_one("--export", export, &inputs)?)
}

fn render_page(path: &str, is_recording: bool, html: &str) -> Result<(), Error> {
    let mut inputs = Inputs::default();
    inputs.add("the record", path);
    let target = output::open_one("--html", html, &inputs)?;
    if is_recording {
        return Err(Error::Usage(format!(
            "{path} is a recording; give what --json wrote, give the recording to filemap advise, \
             or export its events with --export"
        )));
    }
    let json = input::read("record", path, MAX_RECORD_BYTES)?;
    let in_file = |error| Error::InFile { path: path.to_string(), error: Box::new(error) };
    let page = html::page(&json).map_err(in_file)?;
    target.write(page.as_bytes())
}

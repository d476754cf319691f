//! `filemap report`.

use filemap_study::html;

use crate::Outcome;
use crate::args::ReportArgs;
use crate::error::Error;
use crate::output::{self, Inputs};
use crate::recording;
use filemap_study::input;

/// Maximum size of a record in bytes. A record of a thousand seeds takes 2 MiB.
const MAX_RECORD_BYTES: u64 = 256 << 20;

/// Path of stdin.
const STDIN: &str = "/dev/stdin";

/// Renders the HTML page of a record.
pub fn run(args: &ReportArgs) -> Result<Outcome, Error> {
    let path = if args.record == "-" { STDIN } else { args.record.as_str() };
    let mut inputs = Inputs::default();
    inputs.add("the record", path);
    let target = output::open_one("--html", &args.html, &inputs)?;
    // A pipe cannot be read twice.
    let is_file = std::fs::metadata(path).is_ok_and(|data| data.is_file());
    if is_file && recording::is_recording_path(path) {
        return Err(Error::Usage(format!(
            "{path} is a recording; give what --json wrote, or give the recording to filemap \
             advise"
        )));
    }
    let json = input::read("record", path, MAX_RECORD_BYTES)?;
    let in_file = |error| Error::InFile { path: path.to_string(), error: Box::new(error) };
    let page = html::page(&json).map_err(in_file)?;
    target.write(page.as_bytes())?;
    Ok(Outcome::Done)
}

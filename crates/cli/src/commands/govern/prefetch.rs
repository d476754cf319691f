//! `filemap govern --prefetch` and `--plan`: what a recording or an answer says of files.

use std::io::Read;

use filemap_govern::{GivenPlans, Prefetch, RecordedFile};
use filemap_kernel::page_size;
use filemap_report::units::{bytes, number};
use filemap_study::advise::AdviseRecord;
use filemap_study::input;

use crate::args::GovernArgs;
use crate::error::Error;
use crate::govern::parent::{self, BlockedSignals};
use crate::{Outcome, exit_status, govern, print_message, recording};

/// Maximum size of an answer of `advise`.
const MAX_ANSWER_BYTES: u64 = 64 << 20;

/// Reads what a recorded program touched, while `args.program` starts; at once without one.
pub fn run(args: &GovernArgs, path: &str) -> Result<Outcome, Error> {
    let files = recorded_files(path)?;
    let failed = |error: std::io::Error| Error::CannotRun(format!("no thread is started: {error}"));
    if args.program.is_empty() {
        let prefetch = Prefetch::start(&files).map_err(failed)?;
        let totals = prefetch.totals();
        let read = bytes(prefetch.wait() as f64);
        let files = number(totals.files as f64);
        let mut message = format!("{read} of {files} files are in the page cache now");
        if totals.skipped_files > 0 {
            let skipped = number(totals.skipped_files as f64);
            message += &format!("; {skipped} are gone, or on no local disk");
        }
        if totals.left_out_bytes > 0 {
            let left_out = bytes(totals.left_out_bytes as f64);
            message += &format!("; {left_out} are left out, to keep half of the memory free");
        }
        print_message(message);
        return Ok(Outcome::Done);
    }
    let program = govern::find(&args.program)?;
    // From here on, no signal ends this process without cleanup.
    let waited = BlockedSignals::block();
    let prefetch = Prefetch::start(&files);
    if let Err(error) = &prefetch {
        print_message(format!("nothing is read before: {error}"));
    }
    let ended = parent::run(&program, &waited, || ())?;
    drop(prefetch);
    drop(waited);
    Ok(exit_status::outcome(ended, Ok(())))
}

/// What `path`, a recording or an answer of `advise`, says of files.
pub fn given_plans(path: &str) -> Result<GivenPlans, Error> {
    if recording::is_recording_path(path) {
        return Ok(GivenPlans::recorded(recorded_files(path)?));
    }
    let foreign = || {
        Error::Usage(format!(
            "'{path}' is neither a recording nor an answer of filemap advise --json; give one of \
             these"
        ))
    };
    let (file, _) = input::regular("plan", path)?;
    let mut text = Vec::new();
    let read = file.take(MAX_ANSWER_BYTES).read_to_end(&mut text);
    read.map_err(|error| Error::CannotRun(format!("'{path}' cannot be read: {error}")))?;
    let advice: AdviseRecord = serde_json::from_slice(&text).map_err(|_| foreign())?;
    let is_random = |answer: usize| {
        let tried = advice.tried.get(answer);
        tried
            .is_some_and(|tried| tried.changes.iter().any(|own| own.starts_with("MADV_RANDOM on ")))
    };
    let files = advice.files.iter();
    let advised =
        files.map(|file| (file.name.clone(), file.answer.best.is_some_and(&is_random))).collect();
    Ok(GivenPlans::advised(advised))
}

fn recorded_files(path: &str) -> Result<Vec<RecordedFile>, Error> {
    let mut reader = recording::open(path)?;
    let recorded = reader.header().page_size;
    if recorded != page_size() {
        return Err(Error::Usage(format!(
            "'{path}' was recorded with pages of {recorded} bytes, and this machine's have {}; \
             record the program here",
            page_size()
        )));
    }
    Ok(RecordedFile::read_all(&mut reader)?)
}

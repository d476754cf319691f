//! Decision logs of a program: from the model, and from a traced kernel.

use filemap_core::decision::Log;
use filemap_job::program::{Job, ProgramStep};
use filemap_job::{ShownByFile, ShownKinds, ShownLog, trace_view};
use filemap_kernel::engine::{BootedKernels, ObserveOptions};
use filemap_kernel::image::IO_BYTES;
use filemap_kernel::trace::{Observation, Observer};
use filemap_model::{Profile, Timing};

use crate::engine::Engines;
use crate::error::Error;

/// An empty log for the single file of `program`, restricted to the tracepoints in `seen`.
pub fn empty_file_log(program: &Job, seen: ShownKinds) -> ShownLog {
    ShownLog::seeing(seen).under(&program.rules)
}

/// Empty logs for the files of `program`, restricted to the tracepoints in `seen`.
pub fn empty_logs(program: &Job, seen: ShownKinds) -> ShownByFile {
    ShownByFile::new(program.files.len(), empty_file_log(program, seen))
}

/// The model's decisions about each file of `program`, restricted to `seen`. `io_bytes` is the
/// maximum request size of the device; all I/O completes before the next access.
///
/// # Errors
/// Errors of the model.
pub fn model_logs(program: &Job, io_bytes: u64, seen: ShownKinds) -> Result<Vec<ShownLog>, Error> {
    let mut log = empty_logs(program, seen);
    trace_settled(program, io_bytes, &mut log)?;
    Ok(log.into_logs())
}

/// Like [`model_logs`], but all I/O completes as soon as it is submitted.
///
/// # Errors
/// Errors of the model.
pub fn prompt_model_logs(
    program: &Job,
    io_bytes: u64,
    seen: ShownKinds,
) -> Result<Vec<ShownLog>, Error> {
    let mut log = empty_logs(program, seen);
    trace_timed(program, io_bytes, Timing::Prompt, &mut log)?;
    Ok(log.into_logs())
}

/// Sends the model's decisions in `program` to `log`. `io_bytes` is the maximum request size of the
/// device; all I/O completes before the next access.
///
/// # Errors
/// Errors of the model.
pub fn trace_settled(program: &Job, io_bytes: u64, log: &mut dyn Log) -> Result<(), Error> {
    trace_timed(program, io_bytes, Timing::Settled, log)
}

/// Like [`trace_settled`], with I/O that completes according to `timing`.
///
/// # Errors
/// Errors of the model.
pub fn trace_timed(
    program: &Job,
    io_bytes: u64,
    timing: Timing,
    log: &mut dyn Log,
) -> Result<(), Error> {
    let mut profile = Profile::DEFAULT;
    profile.device.io_bytes = io_bytes;
    filemap_model::trace_timed(program, &profile, timing, log)?;
    Ok(())
}

/// Estimates the number of events in a trace of `program`.
///
/// # Errors
/// Errors of the model.
pub fn expected_events(program: &Job, io_bytes: u64) -> Result<u64, Error> {
    let logs = model_logs(program, io_bytes, ShownKinds::ALL)?;
    let events = |log: ShownLog| log.into_lines().iter().map(trace_view::events).sum::<u64>();
    let shown: u64 = logs.into_iter().map(events).sum();
    // `read(2)` looks pages up in batches: trace events that no log has.
    Ok(shown.saturating_add(read_pages(program)))
}

/// Total length of the reads of `program`, in base pages.
fn read_pages(program: &Job) -> u64 {
    let pages = program.steps().map(|step| match step {
        ProgramStep::Read { accesses, .. } => {
            let pages = accesses.bs_bytes.div_ceil(program.page_size()).max(1);
            accesses.accesses.saturating_mul(pages)
        }
        _ => 0,
    });
    pages.fold(0, u64::saturating_add)
}

/// Runs `program` unmodified under a trace, on the running kernel or on the one booted for it.
///
/// # Errors
/// When the kernel cannot be traced or cannot run the program.
pub fn observe_kernel(program: &Job, engines: &impl Engines) -> Result<Observation, Error> {
    if program.image.is_some() {
        let expected = expected_events(program, IO_BYTES)?;
        let asked =
            ObserveOptions { settled: false, expected_events: expected, may_lack_switches: false };
        let mut observed = None;
        BootedKernels::with_notify(engines.message_sink()).observe_each(
            &[(program, asked)],
            |_, recording| {
                observed = Some(recording.and_then(|recording| recording.observation(program)));
                Ok::<_, Error>(true)
            },
        )?;
        return Ok(observed.expect("each program is told of")?);
    }
    let (journal, _undoing) = engines.journal()?;
    let mut observer = Observer::open(&journal)?;
    let subject = observer.create_files(program)?;
    let expected = expected_events(program, subject.io_bytes())?;
    Ok(observer.observe(program, &subject, expected)?)
}

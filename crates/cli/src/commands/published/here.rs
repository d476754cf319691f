//! What this machine adds to the published tables: fio, and programs.

use std::path::Path;

use filemap_job::JobSpec;
use filemap_kernel::engine::temporary_directory;
use filemap_kernel::fio::{Fio, Job};
use filemap_kernel::storage::Storage;
use filemap_study::published::{
    FIO_FILE_BYTES, FIO_RANGE_BYTES, FioRun, FioRuns, MeasuredHere, fio_jobs,
};

use crate::error::Error;
use crate::progress::Bar;
use filemap_study::engine::Progress;
use filemap_study::input;

/// Programs and libraries that many machines have, from small to large.
const PROGRAMS: [&str; 8] = [
    "/bin/sh",
    "/bin/bash",
    "/usr/bin/git",
    "/usr/bin/perl",
    "/usr/bin/python3",
    "/usr/lib/x86_64-linux-gnu/libc.so.6",
    "/usr/lib/aarch64-linux-gnu/libc.so.6",
    "/usr/lib64/libc.so.6",
];

/// Runs fio, and reads the headers of programs.
///
/// # Errors
/// When fio runs and fails; where it is missing, what is measured says so.
pub fn measured() -> Result<MeasuredHere, Error> {
    let fio = match fio() {
        Ok(runs) => Ok(runs),
        Err(error) if error.cannot_run_here() => Err(error.to_string()),
        Err(error) => return Err(error.into()),
    };
    Ok(MeasuredHere { programs: programs(), fio })
}

fn fio() -> Result<FioRuns, filemap_kernel::Error> {
    let directory = temporary_directory()?;
    let fio = Fio::create(&directory, FIO_FILE_BYTES)?;
    let jobs: Vec<_> = fio_jobs().flat_map(|job| [(job, true), (job, false)]).collect();
    let progress = Bar::new(jobs.len());
    let mut rows = Vec::new();
    for ((ioengine, rw), advises) in jobs {
        let figures = fio.run(&Job { ioengine, rw, advises, range_bytes: FIO_RANGE_BYTES })?;
        rows.push(FioRun {
            ioengine: ioengine.to_string(),
            rw: rw.to_string(),
            advises,
            mib_s: figures.mib_s,
            major_faults: figures.major_faults,
            cached: figures.cached,
        });
        progress.advance();
    }
    Ok(FioRuns {
        version: fio.version().to_string(),
        kernel: input::host_release().unwrap_or_default(),
        read_ahead_kb: Storage::of(&directory)?.read_ahead_kb,
        rows,
    })
}

/// Jobs that map a program, for each of [`PROGRAMS`] that is here and can be read.
fn programs() -> Vec<JobSpec> {
    let spec = |path: &&str| {
        Some(JobSpec {
            workload: Some("elf".to_string()),
            file: Some(path.to_string()),
            elf: Some(input::segments(path).ok()?),
            ..JobSpec::default()
        })
    };
    PROGRAMS.iter().filter(|path| Path::new(path).exists()).filter_map(spec).collect()
}

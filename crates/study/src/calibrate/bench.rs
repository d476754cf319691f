//! What a calibration measures in each round.

use std::fs;
use std::os::unix::fs::MetadataExt;
use std::path::{Path, PathBuf};

use filemap_kernel::calibrate::{
    CalibrationFile, CallBench, DirectFile, LIMIT_BYTES, ReclaimBench, WakeBench, ring_entries,
};
use filemap_kernel::engine::HostKernel;
use filemap_kernel::journal::Journal;
use filemap_kernel::storage::io_bytes;
use filemap_model::Profile;

use super::fit::Samples;
use super::{CALLS, WAKES, hole, repeated};
use crate::error::Error;
use crate::provenance;

/// Everything that is measured, ready to be measured in rounds.
pub(crate) struct MachineBench {
    pub(super) kernel: HostKernel,
    /// The new file by which the costs of the kernel are measured.
    pub(super) file: CalibrationFile,
    /// The file whose device is to be measured, if not that one.
    other: Option<DirectFile>,
    calls: CallBench,
    pub(super) reclaim: ReclaimBench,
    wakes: WakeBench,
    pub(super) samples: Samples,
}

impl MachineBench {
    /// Prepares a new file of `bytes` bytes in `directory`, and the jobs.
    ///
    /// # Errors
    /// Something cannot be measured here.
    pub(crate) fn prepare(
        journal: Journal,
        directory: PathBuf,
        bytes: u64,
    ) -> Result<MachineBench, Error> {
        let file = CalibrationFile::create(&directory, bytes)?;
        let kernel = HostKernel::in_directory(journal, directory);
        let (program, rounds) = repeated(CALLS, None)?;
        let calls = CallBench::prepare(&kernel, &program, rounds)?;
        let reclaim = ReclaimBench::prepare(&kernel, &hole(None)?, &hole(Some(LIMIT_BYTES))?)?;
        let (on_one, rounds) = repeated(WAKES, Some(1))?;
        let wakes = WakeBench::prepare(&kernel, &on_one, &repeated(WAKES, None)?.0, rounds)?;
        let samples = Samples::default();
        Ok(MachineBench { kernel, file, other: None, calls, reclaim, wakes, samples })
    }

    /// Measures the device that holds the existing file at `path`, not the new file's.
    ///
    /// # Errors
    /// If it cannot be measured by that file.
    pub(crate) fn of_file(self, path: &Path) -> Result<MachineBench, Error> {
        let other = DirectFile::open(path)?;
        let device = |path: &Path| fs::metadata(path).ok().map(|found| found.dev());
        let is_same_device = device(path) == device(self.file.path());
        let samples = Samples { is_same_device, ..self.samples };
        Ok(MachineBench { other: Some(other), samples, ..self })
    }

    /// Measures the device and faults once more.
    ///
    /// # Errors
    /// As for [`CalibrationFile::sample`].
    pub(crate) fn sample_device(&mut self) -> Result<(), Error> {
        self.samples.file.push(self.file.sample()?);
        let other = self.other.as_ref().map(DirectFile::sample).transpose()?;
        self.samples.other.extend(other);
        Ok(())
    }

    /// Measures calls, reclaim and wake-ups once more.
    ///
    /// # Errors
    /// A job cannot be run.
    pub(crate) fn sample_kernel(&mut self) -> Result<(), Error> {
        self.samples.calls.push(self.calls.sample()?);
        self.samples.reclaim.push(self.reclaim.sample()?);
        self.samples.wakes.push(self.wakes.sample()?);
        Ok(())
    }

    /// The profile of what was measured, and a warning if it lacks the device's ring.
    ///
    /// # Errors
    /// If the measurements do not determine latency and bandwidth.
    pub(crate) fn profile(&self) -> Result<(Profile, Option<String>), Error> {
        let path = self.other.as_ref().map_or(self.file.path(), DirectFile::path);
        let (profile, no_ring) = self.samples.profile(io_bytes(path)?, ring_entries(path))?;
        Ok((Profile { measured: Some(provenance::today()), ..profile }, no_ring))
    }
}

//! The files that the child opens.

use std::fs::{File, OpenOptions};
use std::os::unix::fs::OpenOptionsExt;
use std::path::{Path, PathBuf};

use rustix::process::{Resource, Rlimit, getrlimit, setrlimit};

use super::process::ProbeProcess;
use crate::Error;
use crate::residency::CacheStat;

/// Descriptors that the child has beside its files.
const OTHER_DESCRIPTORS: u64 = 64;

/// The open file descriptions of a process.
pub(super) struct OpenFiles<'a> {
    process: &'a ProbeProcess,
    opens: Vec<File>,
}

impl<'a> OpenFiles<'a> {
    /// Opens what `process` opens.
    pub(super) fn open(process: &'a ProbeProcess) -> Result<Self, Error> {
        raise_limit(process.opens.len() as u64 + OTHER_DESCRIPTORS)?;
        let opens = process.opens.iter().enumerate();
        let opens = opens.map(|(open, &file)| {
            let (writes, direct) = (process.opens_for_writing(open), process.is_direct(open));
            open_one(&process.files[file], writes, direct)
        });
        Ok(OpenFiles { process, opens: opens.collect::<Result<_, _>>()? })
    }

    /// An open file by its number.
    pub(super) fn get(&self, open: usize) -> &File {
        &self.opens[open]
    }

    /// The path of an open file.
    pub(super) fn path(&self, open: usize) -> &PathBuf {
        &self.process.files[self.process.opens[open]]
    }

    /// What is cached of all files together, where the kernel tells.
    pub(super) fn cached(&self) -> Option<CacheStat> {
        let mut sum = CacheStat::default();
        for file in 0..self.process.files.len() {
            let Some(open) = self.process.opens.iter().position(|&of| of == file) else { continue };
            let stat = CacheStat::query(&self.opens[open], ..).ok()?;
            sum.cached += stat.cached;
            sum.evicted += stat.evicted;
        }
        Some(sum)
    }
}

/// Lets this process have `files` files open.
///
/// # Errors
/// When the system does not.
pub(crate) fn raise_limit(files: u64) -> Result<(), Error> {
    let limit = getrlimit(Resource::Nofile);
    if limit.current.is_none_or(|current| current >= files) {
        return Ok(());
    }
    let most = limit.maximum.unwrap_or(u64::MAX);
    if most < files {
        return Err(Error::unavailable(
            format!("a process with {files} files open"),
            format!("raise the limit of {most} (ulimit -Hn), or give --on model"),
        ));
    }
    setrlimit(Resource::Nofile, Rlimit { current: Some(files), maximum: limit.maximum })
        .map_err(|errno| Error::call("raise the number of open files", errno))
}

fn open_one(path: &Path, writes: bool, direct: bool) -> Result<File, Error> {
    let flags = if direct { libc::O_DIRECT } else { 0 };
    let file = OpenOptions::new().read(true).write(writes).custom_flags(flags).open(path);
    let file = file.map_err(|error| match error.raw_os_error() {
        Some(libc::EINVAL) if direct => Error::unavailable(
            format!("reading '{}' past the page cache", path.display()),
            "put it on a filesystem that has O_DIRECT, or leave out direct = true",
        ),
        _ => Error::os("open", path, error),
    })?;
    let metadata = file.metadata().map_err(|error| Error::os("read the size of", path, error))?;
    if !metadata.is_file() {
        return Err(Error::InvalidProcess(format!(
            "'{}' is not a regular file: name one",
            path.display()
        )));
    }
    Ok(file)
}

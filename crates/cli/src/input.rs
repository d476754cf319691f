//! Files that are read: job files, lists of accesses, machine profiles.

use std::fs::File;
use std::io::Read;

use filemap_job::{Elf, JobSpec, ProgramSpec, format_size};
use filemap_model::Profile;

use crate::error::{Error, reason};

/// Longest job file or machine profile, in bytes.
const MAX_TOML_BYTES: u64 = 1 << 20;

/// Longest accesses file, in bytes.
const MAX_ACCESSES_BYTES: u64 = 1 << 28;

/// The job of a job file.
pub fn job_file(path: &str) -> Result<JobSpec, Error> {
    let text = read("job file", path, MAX_TOML_BYTES)?;
    JobSpec::from_toml(&text)
        .map_err(|error| Error::InFile { path: path.to_string(), error: Box::new(error.into()) })
}

/// The program of a job file; `None` where that is a job of one file, or cannot be read twice.
pub fn program(path: &str) -> Result<Option<ProgramSpec>, Error> {
    if !std::fs::metadata(path).is_ok_and(|data| data.is_file()) {
        return Ok(None);
    }
    let text = read("job file", path, MAX_TOML_BYTES)?;
    if !ProgramSpec::is_meant(&text) {
        return Ok(None);
    }
    let spec = ProgramSpec::from_toml(&text);
    spec.map(Some)
        .map_err(|error| Error::InFile { path: path.to_string(), error: Box::new(error.into()) })
}

/// Reads the accesses files that `spec` names into it.
pub fn accesses_files(spec: &mut JobSpec) -> Result<(), Error> {
    for (path, text) in spec.accesses_files() {
        *text = Some(read("accesses file", path, MAX_ACCESSES_BYTES)?);
    }
    Ok(())
}

/// Longest program or shared library, in bytes.
const MAX_ELF_BYTES: u64 = 1 << 30;

/// Reads the headers of the file whose segments `spec` maps into it.
pub fn segments(spec: &mut JobSpec) -> Result<(), Error> {
    let Some(path) = spec.file.clone().filter(|_| spec.maps_elf()) else { return Ok(()) };
    let bytes = read_bytes("program", &path, MAX_ELF_BYTES)?;
    let elf = Elf::parse(&bytes);
    spec.elf = Some(elf.map_err(|error| Error::InFile { path, error: Box::new(error.into()) })?);
    Ok(())
}

/// The machine profile at `path`; the default one for none.
pub fn profile(path: Option<&str>) -> Result<Profile, Error> {
    let Some(path) = path else { return Ok(Profile::DEFAULT) };
    let text = read("machine profile", path, MAX_TOML_BYTES)?;
    Profile::parse(&text)
        .map_err(|error| Error::InFile { path: path.to_string(), error: Box::new(error.into()) })
}

/// The release of the running kernel, such as `6.18.3-amd64`.
pub fn host_release() -> Option<String> {
    let text = std::fs::read_to_string("/proc/sys/kernel/osrelease").ok()?;
    Some(text.trim().to_string())
}

/// The text of the file at `path`, of at most `most` bytes. `what` names its kind.
fn read(what: &'static str, path: &str, most: u64) -> Result<String, Error> {
    let reason = "it is no text (UTF-8)".to_string();
    let bytes = read_bytes(what, path, most)?;
    String::from_utf8(bytes).map_err(|_| Error::Read { what, path: path.to_string(), reason })
}

/// The bytes of the file at `path`, at most `most`. `what` names its kind.
fn read_bytes(what: &'static str, path: &str, most: u64) -> Result<Vec<u8>, Error> {
    let failed = |reason: String| Error::Read { what, path: path.to_string(), reason };
    let file = File::open(path).map_err(|error| failed(reason(&error)))?;
    let too_long = || failed(format!("it is longer than {}", format_size(most)));
    match file.metadata() {
        Ok(data) if data.is_dir() => return Err(failed("it is a directory".to_string())),
        Ok(data) if data.len() > most => return Err(too_long()),
        _ => {}
    }
    let mut bytes = Vec::new();
    // One byte more than allowed tells what is too long but has no size, such as a pipe.
    file.take(most + 1).read_to_end(&mut bytes).map_err(|error| failed(reason(&error)))?;
    if bytes.len() as u64 > most {
        return Err(too_long());
    }
    Ok(bytes)
}

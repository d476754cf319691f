//! What is done for a process that runs.

use std::ffi::OsString;
use std::fs;
use std::io;
use std::os::unix::ffi::OsStringExt;
use std::os::unix::fs::MetadataExt;
use std::path::{Path, PathBuf};

use filemap_control::variable;
use filemap_kernel::governor::{LIBRARY, PRELOAD};
use filemap_report::govern::Status;
use rustix::fs::statvfs;

use super::run_directory::place;
use super::statistics::{FILE_BYTES, NO_PERMISSION, NO_ROOM, processes, small_limit};
use crate::error::{Error, reason};

/// The user whom no permission keeps from writing.
const ROOT: u32 = 0;

/// What is done for the process `pid`.
///
/// # Errors
/// When it is not there, is another user's, or is not governed.
pub fn of(pid: u32) -> Result<Status, Error> {
    let Ok(data) = fs::metadata(format!("/proc/{pid}")) else {
        return Err(Error::Usage(format!(
            "--status {pid}: there is no such process; give another"
        )));
    };
    let environment = environment(pid).map_err(|error| {
        Error::CannotRun(format!(
            "--status {pid}: its environment cannot be read: {}; ask as its user, or as root",
            reason(&error)
        ))
    })?;
    let value = |name: &str| {
        let prefix = format!("{name}=");
        let of = |entry: &Vec<u8>| entry.strip_prefix(prefix.as_bytes()).map(<[u8]>::to_vec);
        environment.iter().find_map(of).map(OsString::from_vec).filter(|value| !value.is_empty())
    };
    let directory = value(variable::STATISTICS).map(PathBuf::from);
    let directory = directory.unwrap_or_else(|| place(data.uid()));
    let images = processes(&directory, Some(pid));
    if images.is_empty() {
        if let Some(error) = not_governed(pid, value(PRELOAD), value(variable::SWITCH)) {
            return Err(error);
        }
        return Err(unknown(pid, data.uid(), &directory));
    }
    Ok(Status { pid, program: program(pid), images })
}

/// Why a process is not governed, where that is known although it told nothing.
fn not_governed(pid: u32, preload: Option<OsString>, switch: Option<OsString>) -> Option<Error> {
    let why = match switch {
        Some(switch) if switch == "off" => format!("{} is off in it", variable::SWITCH),
        _ if preload.is_none() => "it was not started by filemap govern".to_string(),
        _ if has_loaded(pid) == Some(false) => {
            "it has not loaded the library, as what is statically linked or set-user-ID does not"
                .to_string()
        }
        _ => return None,
    };
    Some(Error::CannotRun(format!("--status {pid}: it is not governed: {why}")))
}

/// Whether a process has mapped the library; `None` where nobody may look.
fn has_loaded(pid: u32) -> Option<bool> {
    let maps = fs::read(format!("/proc/{pid}/maps")).ok()?;
    Some(maps.windows(LIBRARY.len()).any(|window| window == LIBRARY.as_bytes()))
}

/// Why a process of `user` that has loaded the library has told nothing in `directory`.
fn unknown(pid: u32, user: u32, directory: &Path) -> Error {
    let why = match fs::metadata(directory) {
        Err(error) => format!("'{}' cannot be read: {}", directory.display(), reason(&error)),
        Ok(data) if user != ROOT && user != data.uid() => NO_PERMISSION.to_string(),
        Ok(_) if file_limit(pid).is_some_and(|limit| limit < FILE_BYTES) => small_limit(),
        Ok(_) => match statvfs(directory) {
            Ok(stat) if stat.f_bavail * stat.f_frsize < FILE_BYTES => NO_ROOM.to_string(),
            _ => {
                return Error::CannotRun(format!(
                    "--status {pid}: it has told nothing: no file mapping of it was governed so \
                     far (the default of --min-size is 16m), or its statistics could not be kept \
                     in '{}' when the first was",
                    directory.display()
                ));
            }
        },
    };
    Error::CannotRun(format!("--status {pid}: nothing is known of it: {why}"))
}

/// The most bytes that a file of the process `pid` may have.
fn file_limit(pid: u32) -> Option<u64> {
    let limits = fs::read_to_string(format!("/proc/{pid}/limits")).ok()?;
    let limit = limits.lines().find_map(|line| line.strip_prefix("Max file size"))?;
    limit.split_ascii_whitespace().next()?.parse().ok()
}

/// The variables with which a process was started.
fn environment(pid: u32) -> io::Result<Vec<Vec<u8>>> {
    let bytes = fs::read(format!("/proc/{pid}/environ"))?;
    Ok(bytes.split(|&byte| byte == 0).map(<[u8]>::to_vec).collect())
}

/// What a process runs: its command line, or its name.
fn program(pid: u32) -> String {
    let bytes = fs::read(format!("/proc/{pid}/cmdline")).unwrap_or_default();
    let words = bytes.split(|&byte| byte == 0).filter(|word| !word.is_empty());
    let words: Vec<_> = words.map(|word| String::from_utf8_lossy(word).into_owned()).collect();
    match words.is_empty() {
        true => {
            let name = fs::read(format!("/proc/{pid}/comm")).unwrap_or_default();
            String::from_utf8_lossy(&name).trim_end_matches('\n').to_string()
        }
        false => words.join(" "),
    }
}

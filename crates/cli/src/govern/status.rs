//! What is done for a process that runs.

use std::ffi::OsString;
use std::fs;
use std::io;
use std::os::unix::ffi::OsStringExt;
use std::os::unix::fs::MetadataExt;
use std::path::PathBuf;

use filemap_control::variable;
use filemap_kernel::governor::PRELOAD;
use filemap_report::govern::Status;

use super::run_directory::place;
use super::statistics::processes;
use crate::error::{Error, reason};

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
        return Err(not_governed(pid, value(PRELOAD).is_some(), value(variable::SWITCH)));
    }
    Ok(Status { pid, program: program(pid), images })
}

/// Why there is nothing to tell of a process.
fn not_governed(pid: u32, loads: bool, switch: Option<OsString>) -> Error {
    let why = match switch {
        Some(switch) if switch == "off" => format!("{} is off in it", variable::SWITCH),
        _ if loads => "no file mapping of it was governed so far; the default of --min-size is 16m"
            .to_string(),
        _ => "it was not started by filemap govern".to_string(),
    };
    Error::CannotRun(format!("--status {pid}: it is not governed: {why}"))
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

//! fio itself, on a cold file of our own.

use std::fs::File;
use std::io::{self, Read};
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::time::Duration;

use serde_json::Value;

use crate::child::{self, Ended, Running, die_with_parent};
use crate::cold::drop_open_file;
use crate::contents::Contents;
use crate::residency::CacheStat;
use crate::{Error, page_size, temporary};

const PROGRAM: &str = "fio";

/// A run that takes longer is ended: the disk is slower than anything published.
const TIME_LIMIT: Duration = Duration::from_secs(300);

/// One job of fio's, with blocks of 4 KiB, one at a time.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Job<'a> {
    /// How it accesses the file: `mmap` or `psync`.
    pub ioengine: &'a str,
    /// In which order: `read` or `randread`.
    pub rw: &'a str,
    /// It advises the kernel of that order, as it does unless told not to.
    pub advises: bool,
    /// First byte, and how many: whole pages of the file.
    pub range_bytes: (u64, u64),
}

/// What a job came to.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Figures {
    /// Throughput, in MiB a second.
    pub mib_s: f64,
    /// Major faults.
    pub major_faults: u64,
    /// Pages of the file in the cache then: before the range that fio was given, in it, behind it.
    pub cached: [u64; 3],
}

/// fio with a file to run it on.
#[derive(Debug)]
pub struct Fio {
    version: String,
    file: File,
    path: PathBuf,
    bytes: u64,
}

impl Fio {
    /// Writes a file of `bytes` bytes in `directory`.
    ///
    /// # Errors
    /// fio is not installed; no room.
    pub fn create(directory: &Path, bytes: u64) -> Result<Self, Error> {
        let output = child::output(Command::new(PROGRAM).arg("--version")).map_err(start_error)?;
        let version = String::from_utf8_lossy(&output.stdout).trim().to_owned();
        let file = temporary::file(directory, bytes, &Contents::Returns)?;
        Ok(Fio { version, path: temporary::name_for_children(&file), file, bytes })
    }

    /// As it calls itself, such as `fio-3.33`.
    pub fn version(&self) -> &str {
        &self.version
    }

    /// Runs one job on the file, cold.
    ///
    /// # Errors
    /// The file cannot be made cold; fio fails, takes too long or prints something else.
    pub fn run(&self, job: &Job) -> Result<Figures, Error> {
        drop_open_file(&self.file, &self.path)?;
        let (offset, size) = job.range_bytes;
        let mut command = Command::new(PROGRAM);
        command
            .args(["--name=filemap", "--readonly", "--thread", "--invalidate=0", "--bs=4k"])
            .args(["--output-format=json", "--eta=never"])
            .arg(format!("--filename={}", self.path.display()))
            .arg(format!("--filesize={}", self.bytes))
            .arg(format!("--offset={offset}"))
            .arg(format!("--size={size}"))
            .arg(format!("--ioengine={}", job.ioengine))
            .arg(format!("--rw={}", job.rw))
            .arg(format!("--fadvise_hint={}", u8::from(job.advises)))
            .stdin(Stdio::null())
            .stdout(Stdio::piped())
            .stderr(Stdio::null());
        let (mib_s, major_faults) = figures(&output_of(command)?)?;
        let [first, end, all] = [offset, offset + size, self.bytes].map(|at| at / page_size());
        let cached = |pages| CacheStat::of(&self.file, pages).map(|stat| stat.cached);
        let cached = [cached(0..first)?, cached(first..end)?, cached(end..all)?];
        Ok(Figures { mib_s, major_faults, cached })
    }
}

fn output_of(mut command: Command) -> Result<String, Error> {
    die_with_parent(&mut command);
    let mut running = Running::spawn(&mut command).map_err(start_error)?;
    let mut stdout = running.0.stdout.take().expect("its output is a pipe");
    // fio writes all of it in the end; a thread reads it, so that the pipe cannot fill.
    let reader = std::thread::spawn(move || {
        let mut text = String::new();
        stdout.read_to_string(&mut text).map(|_| text)
    });
    let ended = running.wait(TIME_LIMIT, || None::<()>);
    let ended = ended.map_err(|error| Error::call("wait for fio", error))?;
    drop(running);
    let text = reader.join().expect("reading does not panic");
    match ended {
        Ended::Itself(status) if status.success() => {
            text.map_err(|error| Error::call("read what fio prints", error))
        }
        Ended::Itself(status) => Err(failed(format!("it ended with {status}"))),
        _ => Err(failed(format!("it took longer than {} s", TIME_LIMIT.as_secs()))),
    }
}

/// Throughput in MiB a second, and major faults, of the one job that `text` reports.
fn figures(text: &str) -> Result<(f64, u64), Error> {
    let report: Value = serde_json::from_str(text)
        .map_err(|error| failed(format!("its report is no JSON ({error})")))?;
    let job = &report["jobs"][0];
    let number = |value: &Value| value.as_f64().ok_or_else(|| failed("its report lacks a figure"));
    if job["error"] != 0 {
        return Err(failed(format!("its job failed with error {}", job["error"])));
    }
    Ok((number(&job["read"]["bw"])? / 1024.0, number(&job["majf"])? as u64))
}

fn failed(message: impl Into<String>) -> Error {
    Error::Program { program: PROGRAM, message: message.into() }
}

fn start_error(error: io::Error) -> Error {
    match error.kind() {
        io::ErrorKind::NotFound => {
            Error::unavailable(PROGRAM, "install Debian's package fio, or leave out --full")
        }
        _ => Error::call("start fio", error),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_report_has_its_figures() {
        let report = r#"{"jobs": [{"error": 0, "majf": 9, "read": {"bw": 2048}}]}"#;
        assert_eq!(figures(report).unwrap(), (2.0, 9));
    }

    #[test]
    fn what_is_no_report_is_refused() {
        for text in ["", "{}", r#"{"jobs": [{"error": 5, "majf": 9, "read": {"bw": 2048}}]}"#] {
            assert!(figures(text).is_err(), "{text}");
        }
    }
}

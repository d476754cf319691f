//! Victims, seen from the test.

use std::fs;
use std::io::{BufRead, BufReader};
use std::path::PathBuf;
use std::process::{Child, Command, Stdio};
use std::thread::sleep;
use std::time::{Duration, Instant};

use filemap_attach::{FileId, MappedFile, MappedRange};

use crate::victim::FILE_BYTES;

/// State shared by all tests.
pub struct Bench {
    _directory: tempfile::TempDir,
    pub file: PathBuf,
}

/// A running victim.
pub struct Victim {
    child: Child,
    pub pid: u32,
    pub range: MappedRange,
}

impl Bench {
    pub fn new() -> Bench {
        let directory = tempfile::tempdir().expect("a temporary directory");
        let file = directory.path().join("mapped");
        fs::write(&file, vec![7; FILE_BYTES]).expect("a file");
        Bench { _directory: directory, file }
    }

    pub fn start(&self, name: &str) -> Victim {
        let own = std::env::current_exe().expect("this binary");
        let mut child = Command::new(own)
            .args(["__victim", name])
            .arg(&self.file)
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .spawn()
            .expect("a victim");
        let mut line = String::new();
        let output = child.stdout.as_mut().expect("its output");
        BufReader::new(output).read_line(&mut line).expect("a line of it");
        assert_eq!(line, "ready\n");
        let pid = child.id();
        let range = range_of(pid, self.file.to_str().expect("a path of letters"));
        Victim { child, pid, range }
    }
}

impl Victim {
    pub fn tids(&self) -> Vec<u32> {
        tids(self.pid)
    }

    /// Ends the victim, and checks that it noticed nothing.
    pub fn end(mut self) {
        drop(self.child.stdin.take());
        let status = self.child.wait().expect("the victim's end");
        assert!(status.success(), "the victim: {status}");
    }

    /// Whether MADV_RANDOM is in effect on the range: flag `rr` of `VmFlags` in smaps.
    pub fn is_random(&self) -> bool {
        let begin = format!("{:x}-", self.range.address);
        let text = fs::read_to_string(format!("/proc/{}/smaps", self.pid)).expect("smaps");
        let mut lines = text.lines().skip_while(|line| !line.starts_with(&begin));
        let flags = lines.find(|line| line.starts_with("VmFlags:")).expect("flags");
        flags.split_whitespace().any(|flag| flag == "rr")
    }

    pub fn signal(&self, signal: i32) {
        // SAFETY: the child has not been reaped, so its PID cannot have been reused.
        assert_eq!(unsafe { libc::kill(self.pid as i32, signal) }, 0);
    }

    /// Waits until no thread is stopped or traced.
    pub fn runs(&self) {
        let begin = Instant::now();
        while self.tids().iter().any(|tid| {
            matches!(field(self.pid, *tid, "State"), Some(state) if state.starts_with(['t', 'T']))
                || !matches!(field(self.pid, *tid, "TracerPid").as_deref(), Some("0") | None)
        }) {
            assert!(begin.elapsed() < Duration::from_secs(5), "a thread is stopped");
            sleep(Duration::from_micros(100));
        }
    }
}

impl Drop for Victim {
    fn drop(&mut self) {
        if self.child.stdin.is_some() {
            let _ = self.child.kill();
            let _ = self.child.wait();
        }
    }
}

pub fn tids(pid: u32) -> Vec<u32> {
    let Ok(tasks) = fs::read_dir(format!("/proc/{pid}/task")) else { return Vec::new() };
    tasks.filter_map(|task| task.ok()?.file_name().to_str()?.parse().ok()).collect()
}

pub fn field(pid: u32, tid: u32, name: &str) -> Option<String> {
    let text = fs::read_to_string(format!("/proc/{pid}/task/{tid}/status")).ok()?;
    let line = text.lines().find(|line| line.split(':').next() == Some(name))?;
    Some(line.split_once(':')?.1.trim().to_owned())
}

pub fn range_of(pid: u32, path: &str) -> MappedRange {
    let maps = fs::read_to_string(format!("/proc/{pid}/maps")).expect("its mappings");
    let line = maps.lines().find(|line| line.ends_with(path)).expect("the file is mapped");
    let words: Vec<&str> = line.split_whitespace().collect();
    let hex = |text: &str| u64::from_str_radix(text, 16).expect("a number");
    let (begin, end) = words[0].split_once('-').expect("two addresses");
    let (major, minor) = words[3].split_once(':').expect("a device");
    let inode = words[4].parse().expect("an inode");
    let id = FileId { major: hex(major) as u32, minor: hex(minor) as u32, inode };
    MappedRange {
        address: hex(begin),
        length_bytes: hex(end) - hex(begin),
        offset_bytes: hex(words[2]),
        file: Some(MappedFile { id, path: path.into() }),
        protection: (libc::PROT_READ) as u32,
        is_shared: words[1].ends_with('s'),
    }
}

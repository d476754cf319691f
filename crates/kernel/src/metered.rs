//! Runs a program to its end and measures the cost of all processes that it started.

use std::hash::{DefaultHasher, Hasher};
use std::io::{self, Read};
use std::os::unix::process::ExitStatusExt;
use std::process::{Command, ExitStatus, Stdio};
use std::time::{Duration, Instant};
use std::{fs, thread};

use crate::child::{ChildProcess, WaitResult, die_with_parent_in_session};
use crate::shutdown::Subreaper;

/// Unit of `ru_inblock` in bytes.
const BLOCK_BYTES: u64 = 512;

/// How a program ended, and the cost of all processes that it started and waited for.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct MeteredRun {
    /// Its exit status.
    pub status: ExitStatus,
    /// Bytes read from disks.
    pub bytes_read: u64,
    /// Faults that waited for a disk, without those whose wait a signal interrupted: the program
    /// faults again after the signal, and then the page is there.
    pub major_faults: u64,
    /// Elapsed time.
    pub elapsed_ns: u64,
    /// User and system time.
    pub cpu_ns: u64,
    /// Digests of stdout and stderr, to compare with another run.
    pub outputs: [u64; 2],
}

impl MeteredRun {
    /// Its exit code, or the signal that ended it.
    pub fn end(&self) -> (Option<i32>, Option<i32>) {
        (self.status.code(), self.status.signal())
    }

    /// The digests as text.
    pub fn digests(&self) -> [String; 2] {
        self.outputs.map(|digest| format!("{digest:016x}"))
    }
}

/// Runs `command` to its end without input, in its own session. It is terminated if a signal ends
/// this process. Processes that it leaves running are terminated too, whatever their group or
/// session. Lines of its stderr that begin with `left_out` are excluded from the digest.
///
/// This process has no other children meanwhile, and adopts orphaned descendants.
///
/// # Errors
/// The command cannot be started or waited for. [`io::ErrorKind::TimedOut`] if it has stopped and
/// nobody continues it; then it is terminated.
pub fn run(command: &mut Command, left_out: &'static [u8]) -> io::Result<MeteredRun> {
    let adopting = Subreaper::begin()?;
    die_with_parent_in_session(command);
    command.stdin(Stdio::null()).stdout(Stdio::piped()).stderr(Stdio::piped());
    let before = Usage::children();
    let start = Instant::now();
    let mut running = ChildProcess::spawn(command)?;
    let (stdout, stderr) = (running.0.stdout.take(), running.0.stderr.take());
    let readers = [(stdout.map(boxed), &b""[..]), (stderr.map(boxed), left_out)];
    let readers = readers.map(|(pipe, left_out)| thread::spawn(move || digest(pipe, left_out)));
    let status = ended(&mut running)?;
    let elapsed_ns = start.elapsed().as_nanos() as u64;
    drop(adopting);
    let after = Usage::children();
    let outputs = readers.map(|reader| reader.join().expect("reading does not panic"));
    let [stdout, stderr] = outputs;
    Ok(MeteredRun {
        status,
        bytes_read: (after.blocks_read - before.blocks_read) * BLOCK_BYTES,
        major_faults: after.major_faults - before.major_faults,
        elapsed_ns,
        cpu_ns: after.cpu_ns - before.cpu_ns,
        outputs: [stdout?, stderr?],
    })
}

/// A program that is stopped for longer is terminated, as nobody continues it.
const STOPPED_TIMEOUT: Duration = Duration::from_secs(5);

/// Waits for the end of a program, which may be stopped for a while.
fn ended(running: &mut ChildProcess) -> io::Result<ExitStatus> {
    let path = format!("/proc/{}/stat", running.0.id());
    let mut since = None;
    let waits = || {
        // The text in parentheses is set by the program.
        let stat = fs::read_to_string(&path).unwrap_or_default();
        let is_stopped = stat.rsplit(')').next().is_some_and(|rest| rest.starts_with(" T"));
        since = if is_stopped { since.or_else(|| Some(Instant::now())) } else { None };
        since.filter(|since| since.elapsed() >= STOPPED_TIMEOUT)
    };
    match running.wait(Duration::MAX, waits)? {
        WaitResult::Exited(status) => Ok(status),
        WaitResult::Interrupted(_) | WaitResult::TimedOut => Err(io::ErrorKind::TimedOut.into()),
    }
}

fn boxed(pipe: impl Read + Send + 'static) -> Box<dyn Read + Send> {
    Box::new(pipe)
}

/// Resource usage of the children that this process has waited for, and their descendants.
#[derive(Clone, Copy, Debug)]
struct Usage {
    blocks_read: u64,
    major_faults: u64,
    cpu_ns: u64,
}

impl Usage {
    fn children() -> Usage {
        // SAFETY: the structure is plain integers, for which all zeros is a value; it is filled
        // by a call that cannot fail for RUSAGE_CHILDREN.
        let usage = unsafe {
            let mut usage: libc::rusage = std::mem::zeroed();
            libc::getrusage(libc::RUSAGE_CHILDREN, &mut usage);
            usage
        };
        let ns =
            |time: libc::timeval| time.tv_sec as u64 * 1_000_000_000 + time.tv_usec as u64 * 1000;
        Usage {
            blocks_read: usage.ru_inblock as u64,
            major_faults: usage.ru_majflt as u64,
            cpu_ns: ns(usage.ru_utime) + ns(usage.ru_stime),
        }
    }
}

/// A digest of all bytes read from `pipe`, without lines that begin with `left_out`.
fn digest(pipe: Option<Box<dyn Read + Send>>, left_out: &[u8]) -> io::Result<u64> {
    let Some(mut pipe) = pipe else { return Ok(0) };
    let mut kept =
        LineFilter { left_out, at: 0, line: LineState::Undecided, hasher: DefaultHasher::new() };
    let mut buffer = vec![0; 64 << 10];
    loop {
        match pipe.read(&mut buffer) {
            Ok(0) => return Ok(kept.finish()),
            Ok(read) => kept.take(&buffer[..read]),
            Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
            Err(error) => return Err(error),
        }
    }
}

/// Filters lines of a text.
struct LineFilter<'a> {
    /// Prefix of excluded lines. Empty: none is excluded.
    left_out: &'a [u8],
    /// Number of bytes of the prefix that the line has matched.
    at: usize,
    line: LineState,
    hasher: DefaultHasher,
}

/// What happens to the current line.
enum LineState {
    /// Not decided yet.
    Undecided,
    Kept,
    Skipped,
}

impl LineFilter<'_> {
    fn take(&mut self, bytes: &[u8]) {
        if self.left_out.is_empty() {
            return self.hasher.write(bytes);
        }
        for part in bytes.split_inclusive(|&byte| byte == b'\n') {
            self.take_part(part);
            if part.ends_with(b"\n") {
                self.end_line();
            }
        }
    }

    /// Processes bytes that do not extend beyond the line.
    fn take_part(&mut self, part: &[u8]) {
        let wanted = &self.left_out[self.at..];
        match self.line {
            LineState::Skipped => {}
            LineState::Kept => self.hasher.write(part),
            LineState::Undecided if part.starts_with(wanted) => self.line = LineState::Skipped,
            LineState::Undecided if wanted.starts_with(part) => self.at += part.len(),
            LineState::Undecided => {
                self.hasher.write(&self.left_out[..self.at]);
                self.hasher.write(part);
                self.line = LineState::Kept;
            }
        }
    }

    fn end_line(&mut self) {
        (self.at, self.line) = (0, LineState::Undecided);
    }

    fn finish(mut self) -> u64 {
        // The matched part of a line that then differed.
        self.hasher.write(&self.left_out[..self.at]);
        self.hasher.finish()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn digest_of(text: &'static str) -> u64 {
        digest(Some(Box::new(text.as_bytes())), b"note: ").unwrap()
    }

    #[test]
    fn digest_skips_own_lines() {
        assert_eq!(digest_of("a\nnote: x\nb\n"), digest_of("a\nb\n"));
        assert_eq!(digest_of("note: x"), digest_of(""));
        assert_ne!(digest_of("a note: x\n"), digest_of("a\n"));
        assert_ne!(digest_of("not"), digest_of(""));
        assert_ne!(digest_of("a\nb\n"), digest_of("b\na\n"));
        let kept = |parts: &[&str]| {
            let hasher = DefaultHasher::new();
            let mut kept =
                LineFilter { left_out: b"note: ", at: 0, line: LineState::Undecided, hasher };
            parts.iter().for_each(|part| kept.take(part.as_bytes()));
            kept.finish()
        };
        assert_eq!(kept(&["no", "te: x", "\na", "b\n"]), kept(&["ab\n"]));
        assert_eq!(kept(&["no", "x\n"]), kept(&["nox\n"]));
    }
}

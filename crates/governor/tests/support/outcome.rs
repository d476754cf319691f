//! Runs a program, and keeps everything that can be seen of it.

use std::fs::File;
use std::io::{self, Read, Seek};
use std::mem::MaybeUninit;
use std::os::unix::process::CommandExt;
use std::path::Path;
use std::process::{Command, Stdio};
use std::time::{Duration, Instant};

/// How a program ended.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum End {
    /// With this exit code.
    Exited(i32),
    /// By this signal.
    Killed(i32),
    /// It did not, and was killed.
    Hung,
}

/// What can be seen of a program that ran.
#[derive(Debug)]
pub struct Outcome {
    pub end: End,
    pub stdout: Vec<u8>,
    pub stderr: Vec<u8>,
    pub elapsed: Duration,
    /// Time of its processors, in and outside the kernel, with that of its children.
    pub processor: Duration,
    /// Bytes that it and its children have read from disks.
    pub read_bytes: u64,
    pub major_faults: u64,
}

impl Outcome {
    pub fn stdout(&self) -> String {
        String::from_utf8_lossy(&self.stdout).into_owned()
    }

    pub fn stderr(&self) -> String {
        String::from_utf8_lossy(&self.stderr).into_owned()
    }

    /// Panics where the program did not end well.
    pub fn well(self, what: &str) -> Outcome {
        assert_eq!(self.end, End::Exited(0), "{what}: {}{}", self.stdout(), self.stderr());
        self
    }
}

/// Runs `command` in a process group of its own, for at most `limit`. What it prints is kept in
/// files of `directory` meanwhile.
pub fn run(command: &mut Command, directory: &Path, limit: Duration) -> Outcome {
    let [mut stdout, mut stderr] =
        [(); 2].map(|()| tempfile::tempfile_in(directory).expect("a temporary file"));
    let copy = |file: &File| Stdio::from(file.try_clone().expect("a descriptor"));
    command.stdin(Stdio::null()).stdout(copy(&stdout)).stderr(copy(&stderr)).process_group(0);
    // SAFETY: setrlimit(2) may be called between fork and exec.
    unsafe {
        command.pre_exec(|| {
            let none = libc::rlimit { rlim_cur: 0, rlim_max: 0 };
            libc::setrlimit(libc::RLIMIT_CORE, &none);
            Ok(())
        });
    }
    let begun = Instant::now();
    #[expect(clippy::zombie_processes, reason = "wait4(2) waits for it, and says what it used")]
    let child = command.spawn().unwrap_or_else(|error| panic!("{command:?}: {error}"));
    let (end, usage) = wait(child.id().cast_signed(), limit);
    let elapsed = begun.elapsed();
    let mut contents = [&mut stdout, &mut stderr].map(|file| {
        let mut bytes = Vec::new();
        file.rewind().and_then(|()| file.read_to_end(&mut bytes)).expect("output can be read");
        bytes
    });
    let time = |of: libc::timeval| {
        Duration::from_secs(of.tv_sec.cast_unsigned())
            + Duration::from_micros(of.tv_usec.cast_unsigned())
    };
    Outcome {
        end,
        stdout: std::mem::take(&mut contents[0]),
        stderr: std::mem::take(&mut contents[1]),
        elapsed,
        processor: time(usage.ru_utime) + time(usage.ru_stime),
        read_bytes: usage.ru_inblock.cast_unsigned() * 512,
        major_faults: usage.ru_majflt.cast_unsigned(),
    }
}

/// Waits for `pid`, which leads a process group. After `limit` the group is killed.
fn wait(pid: i32, limit: Duration) -> (End, libc::rusage) {
    // SAFETY: pidfd_open(2) has no pointers.
    let descriptor = unsafe { libc::syscall(libc::SYS_pidfd_open, pid, 0) };
    assert!(descriptor >= 0, "pidfd_open: {}", io::Error::last_os_error());
    let mut poll = libc::pollfd { fd: descriptor as i32, events: libc::POLLIN, revents: 0 };
    // SAFETY: there is one descriptor, which is open.
    let ended = unsafe { libc::poll(&mut poll, 1, limit.as_millis() as i32) } == 1;
    let mut status = 0;
    let mut usage = MaybeUninit::<libc::rusage>::zeroed();
    // SAFETY: the descriptor is ours, the group is that of our child, and both places are valid.
    unsafe {
        libc::close(poll.fd);
        if !ended {
            libc::kill(-pid, libc::SIGKILL);
        }
        assert_eq!(libc::wait4(pid, &mut status, 0, usage.as_mut_ptr()), pid);
    }
    let end = match status {
        _ if !ended => End::Hung,
        status if libc::WIFEXITED(status) => End::Exited(libc::WEXITSTATUS(status)),
        status => End::Killed(libc::WTERMSIG(status)),
    };
    // SAFETY: wait4(2) has filled it.
    (end, unsafe { usage.assume_init() })
}

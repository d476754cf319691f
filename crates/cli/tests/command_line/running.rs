//! A running command that a test interacts with.

use std::fmt::Display;
use std::io::Read;
use std::process::{Child, ChildStderr, ChildStdout, Command, Output, Stdio};
use std::thread::{JoinHandle, sleep, spawn};
use std::time::{Duration, Instant};

/// Time limit for a command to exit.
const PATIENCE: Duration = Duration::from_secs(120);

/// Killed on drop, so that a failing test leaves nothing running.
pub struct Running(Option<Child>);

impl Running {
    pub fn start(command: &mut Command) -> Self {
        let command = command.stdout(Stdio::piped()).stderr(Stdio::piped());
        Running(Some(command.spawn().expect("the command starts")))
    }

    pub fn id(&self) -> u32 {
        self.0.as_ref().expect("it was not waited for").id()
    }

    pub fn has_ended(&mut self) -> bool {
        let child = self.0.as_mut().expect("it was not waited for");
        child.try_wait().expect("the child is ours").is_some()
    }

    /// Takes its stdout.
    pub fn stdout(&mut self) -> ChildStdout {
        let child = self.0.as_mut().expect("it was not waited for");
        child.stdout.take().expect("a pipe that nobody reads yet")
    }

    /// Takes its stderr.
    pub fn stderr(&mut self) -> ChildStderr {
        let child = self.0.as_mut().expect("it was not waited for");
        child.stderr.take().expect("a pipe that nobody reads yet")
    }

    pub fn signal(&self, name: &str) {
        assert!(signal(name, self.id()), "the command is gone");
    }

    /// Waits for its exit and returns its output.
    #[track_caller]
    pub fn output(mut self) -> Output {
        let child = self.0.as_mut().expect("it was not waited for");
        // A full pipe would block the command.
        let (stdout, stderr) = (emptied(child.stdout.take()), emptied(child.stderr.take()));
        self.until_end(|| {});
        let mut child = self.0.take().expect("it was not waited for");
        let status = child.wait().expect("the child is ours");
        let [stdout, stderr] = [stdout, stderr].map(|pipe| pipe.join().expect("it only reads"));
        Output { status, stdout, stderr }
    }

    /// Repeats an action until the command exits.
    #[track_caller]
    pub fn until_end(&mut self, mut again: impl FnMut()) {
        self.reaches(|| {
            again();
            false
        });
    }

    /// Waits until `reached` holds; false if the command exits first.
    #[track_caller]
    pub fn reaches(&mut self, mut reached: impl FnMut() -> bool) -> bool {
        let start = Instant::now();
        while !self.has_ended() {
            assert!(start.elapsed() < PATIENCE, "the command neither ends nor gets there");
            if reached() {
                return true;
            }
            sleep(Duration::from_millis(5));
        }
        false
    }
}

impl Drop for Running {
    fn drop(&mut self) {
        if let Some(child) = &mut self.0 {
            let _ = child.kill();
            let _ = child.wait();
        }
    }
}

/// Reads `pipe` to its end.
fn emptied(pipe: Option<impl Read + Send + 'static>) -> JoinHandle<Vec<u8>> {
    spawn(move || {
        let mut bytes = Vec::new();
        if let Some(mut pipe) = pipe {
            let _ = pipe.read_to_end(&mut bytes);
        }
        bytes
    })
}

/// Sends a signal to a process, or to a process group for a negative number. Returns whether it
/// exists.
pub fn signal(name: &str, target: impl Display) -> bool {
    let mut shell = Command::new("sh");
    let kill = shell.args(["-c", &format!("kill -s {name} -- {target}")]);
    kill.stderr(Stdio::null()).status().expect("there is a shell").success()
}

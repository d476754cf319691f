//! A command that runs while a test does something to it.

use std::fmt::Display;
use std::io::Read;
use std::process::{Child, ChildStderr, ChildStdout, Command, Output, Stdio};
use std::thread::{JoinHandle, sleep, spawn};
use std::time::{Duration, Instant};

/// No command takes longer to end.
const PATIENCE: Duration = Duration::from_secs(120);

/// Killed when this drops, so that a test that fails leaves nothing running.
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

    /// Its output from now on, for one reader.
    pub fn stdout(&mut self) -> ChildStdout {
        let child = self.0.as_mut().expect("it was not waited for");
        child.stdout.take().expect("a pipe that nobody reads yet")
    }

    /// What it says on stderr from now on, for one reader.
    pub fn stderr(&mut self) -> ChildStderr {
        let child = self.0.as_mut().expect("it was not waited for");
        child.stderr.take().expect("a pipe that nobody reads yet")
    }

    pub fn signal(&self, name: &str) {
        assert!(signal(name, self.id()), "the command is gone");
    }

    /// What it printed, once it has ended.
    #[track_caller]
    pub fn output(mut self) -> Output {
        let child = self.0.as_mut().expect("it was not waited for");
        // A pipe that nobody empties would stop the command.
        let (stdout, stderr) = (emptied(child.stdout.take()), emptied(child.stderr.take()));
        self.until_end(|| {});
        let mut child = self.0.take().expect("it was not waited for");
        let status = child.wait().expect("the child is ours");
        let [stdout, stderr] = [stdout, stderr].map(|pipe| pipe.join().expect("it only reads"));
        Output { status, stdout, stderr }
    }

    /// Does something again and again until the command ends.
    #[track_caller]
    pub fn until_end(&mut self, mut again: impl FnMut()) {
        self.reaches(|| {
            again();
            false
        });
    }

    /// Waits until `reached` holds; false if the command ends before it does.
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

/// All that comes out of `pipe`.
fn emptied(pipe: Option<impl Read + Send + 'static>) -> JoinHandle<Vec<u8>> {
    spawn(move || {
        let mut bytes = Vec::new();
        if let Some(mut pipe) = pipe {
            let _ = pipe.read_to_end(&mut bytes);
        }
        bytes
    })
}

/// Whether there was a process to send it to, or, for a number below 0, a group of processes.
pub fn signal(name: &str, target: impl Display) -> bool {
    let mut shell = Command::new("sh");
    let kill = shell.args(["-c", &format!("kill -s {name} -- {target}")]);
    kill.stderr(Stdio::null()).status().expect("there is a shell").success()
}

//! Runs one virtual machine: QEMU as a child process that cannot outlive its parent.

use std::fs::File;
use std::os::unix::fs::FileExt;
use std::process::{Command, Stdio};
use std::time::Duration;

use rustix::fs::{MemfdFlags, memfd_create};
use rustix::io::Errno;

use crate::child::{Ended, Running, die_with_parent};

use super::{Accelerator, Error, Image, frame, name_for_child, start_error};

const PROGRAM: &str = "qemu-system-x86_64";
const PACKAGE: &str = "qemu-system-x86";

/// `panic=-1` makes a panic a reboot, and `-no-reboot` makes a reboot the end of QEMU. The log
/// level leaves only what explains a failure. An emulated timer can come too late for the kernel's
/// test of it where the host is busy, and it would then panic.
const KERNEL_ARGUMENTS: &str =
    "console=ttyS0 loglevel=4 panic=-1 rdinit=/init random.trust_cpu=on no_timer_check";

/// Every instruction of any CPU takes 4 ns, and a machine that is idle goes on to its next timer.
const IN_TURN: &str = "shift=2,sleep=off";

/// How much of a console is searched for its last line.
const CONSOLE_TAIL: u64 = 64 << 10;

/// A machine about to be started.
pub(super) struct Machine<'a> {
    pub(super) image: &'a Image,
    pub(super) accelerator: Accelerator,
    pub(super) initramfs: &'a File,
    pub(super) disk: Option<&'a File>,
    pub(super) time_limit: Duration,
}

impl Machine<'_> {
    /// Boots, waits for the end and returns the guest's answer.
    pub(super) fn run(&self) -> Result<String, Error> {
        let output = Output::new()?;
        let mut command = self.command(&output)?;
        let running = Running::spawn(&mut command);
        let mut running = running.map_err(|source| start_error(PROGRAM, PACKAGE, source))?;
        let ended = running.wait(self.time_limit, || output.kvm_failure());
        drop(running);
        let status = match ended.map_err(|source| Error::io(format!("watch {PROGRAM}"), source))? {
            Ended::Itself(status) => status,
            Ended::Because(line) => return Err(Error::Kvm { line }),
            Ended::Late => {
                return Err(Error::TimeLimit { limit: self.time_limit, line: output.last_line() });
            }
        };
        let answer = output.result_bytes()?;
        match frame::decode(&answer) {
            Some(answer) => answer,
            None if status.success() => Err(Error::NoResult { line: output.last_line() }),
            None => Err(Error::Died { status, line: output.last_line() }),
        }
    }

    /// Whether its CPUs take turns.
    fn takes_turns(&self) -> bool {
        self.image.takes_turns && self.accelerator == Accelerator::Tcg
    }

    fn kernel_arguments(&self) -> String {
        match self.takes_turns() {
            // Otherwise the timer ticks of all CPUs fall into one turn.
            true => format!("{KERNEL_ARGUMENTS} skew_tick=1"),
            false => KERNEL_ARGUMENTS.to_string(),
        }
    }

    fn command(&self, output: &Output) -> Result<Command, Error> {
        let errors = output.errors.try_clone();
        let errors = errors.map_err(|source| Error::io("share a file with QEMU", source))?;
        let mut command = Command::new(PROGRAM);
        command
            .args(["-nodefaults", "-no-user-config", "-no-reboot", "-display", "none"])
            .args(["-machine", "pc", "-cpu", "max", "-accel", self.accelerator.name()])
            .arg("-m")
            .arg(format!("{}M", self.image.ram_bytes >> 20))
            .arg("-smp")
            .arg(self.image.cpus.to_string())
            .arg("-kernel")
            .arg(&self.image.kernel)
            .arg("-initrd")
            .arg(name_for_child(self.initramfs))
            .args(["-append", &self.kernel_arguments()])
            .arg("-serial")
            .arg(format!("file:{}", name_for_child(&output.console)))
            .arg("-serial")
            .arg(format!("file:{}", name_for_child(&output.result)));
        if self.takes_turns() {
            command.args(["-icount", IN_TURN]);
        }
        if let Some(disk) = self.disk {
            // A full host disk is an I/O error in the guest: the default would stop it for good.
            let name = name_for_child(disk);
            let rest = "format=raw,if=virtio,cache=unsafe,werror=report,rerror=report";
            command.arg("-drive").arg(format!("file={name},{rest}"));
        }
        command.stdin(Stdio::null()).stdout(Stdio::null()).stderr(errors);
        die_with_parent(&mut command);
        Ok(command)
    }
}

/// What a machine writes: files in memory, so that a full disk does not take the explanation along.
struct Output {
    console: File,
    result: File,
    errors: File,
}

impl Output {
    fn new() -> Result<Self, Error> {
        let file = || memfd_create("filemap-guest", MemfdFlags::CLOEXEC).map(File::from);
        let files = || Ok(Self { console: file()?, result: file()?, errors: file()? });
        files().map_err(|source: Errno| Error::io("make a file in memory", source.into()))
    }

    fn result_bytes(&self) -> Result<Vec<u8>, Error> {
        tail(&self.result, u64::MAX).map_err(|source| Error::io("read the guest's result", source))
    }

    /// The line with which QEMU says that KVM failed.
    fn kvm_failure(&self) -> Option<String> {
        let text = text(&self.errors);
        let line = text.lines().find(|line| line.contains("KVM internal error"))?;
        Some(line.trim().to_owned())
    }

    /// The line that explains most: QEMU's own error, else a panic, else the console's last.
    fn last_line(&self) -> String {
        let (errors, console) = (text(&self.errors), text(&self.console));
        let last = |text: &str, holds: &dyn Fn(&str) -> bool| {
            let found = text.lines().map(str::trim).rfind(|&line| holds(line) && !line.is_empty());
            found.map(str::to_owned)
        };
        let is_error = |line: &str| line.starts_with("qemu") && !line.contains("warning:");
        last(&errors, &is_error)
            .or_else(|| last(&console, &|line| line.contains("Kernel panic")))
            .or_else(|| last(&console, &|_| true))
            .unwrap_or_else(|| "(nothing)".to_owned())
    }
}

fn text(file: &File) -> String {
    let bytes = tail(file, CONSOLE_TAIL).unwrap_or_default();
    let text = String::from_utf8_lossy(&bytes);
    text.chars().filter(|&character| character == '\n' || !character.is_control()).collect()
}

/// The last `limit` bytes of a file that another process wrote.
fn tail(file: &File, limit: u64) -> std::io::Result<Vec<u8>> {
    let len = file.metadata()?.len();
    let wanted = len.min(limit);
    let mut bytes = vec![0; usize::try_from(wanted).map_err(std::io::Error::other)?];
    file.read_exact_at(&mut bytes, len - wanted)?;
    Ok(bytes)
}

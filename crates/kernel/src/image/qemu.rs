//! Runs a guest under QEMU, a child process that cannot outlive its parent.

use std::fs::File;
use std::io::Write;
use std::os::fd::BorrowedFd;
use std::os::unix::fs::FileExt;
use std::process::{Command, ExitStatus, Stdio};
use std::sync::OnceLock;
use std::time::{Duration, Instant};

use rustix::fs::{MemfdFlags, memfd_create};
use rustix::io::Errno;

use super::Error;
use super::boot_image::KernelImage;
use super::console::{Incident, JOB_MARK};
use super::disk::proc_path;
use super::frame::{self, ChannelFrame, FrameKind};
use super::initramfs::GuestSettings;
use super::watch::{BEAT, Watch};
use crate::child::{self, ChildProcess, WaitResult, die_with_parent};

const PROGRAM: &str = "qemu-system-x86_64";
const PACKAGE: &str = "qemu-system-x86";

/// `panic=-1` turns a panic into a reboot, and `-no-reboot` turns a reboot into the exit of QEMU.
/// The log level keeps only warnings and what explains a failure. `no_timer_check`: on a busy host
/// an emulated timer can be too late for the kernel's timer check, which would panic.
/// `unknown_nmi_panic` makes a silent guest report what it is doing when it gets an NMI.
const KERNEL_ARGUMENTS: &str = "console=ttyS0 loglevel=5 panic=-1 rdinit=/init \
    random.trust_cpu=on no_timer_check printk.devkmsg=on unknown_nmi_panic";

/// The monitor command that sends an NMI.
const INTERRUPT: &[u8] = b"nmi\n";

/// Each instruction takes 4 ns of virtual time, and an idle machine skips to its next timer event.
const ICOUNT_OPTIONS: &str = "shift=2,sleep=off";

/// Serial numbers by which the guest finds its disks.
pub(super) const SCRATCH_SERIAL: &str = "filemap-scratch";
pub(super) const EXCHANGE_SERIAL: &str = "filemap-jobs";

/// Blocks of removed files are discarded on the host. Nothing needs to survive a crash.
const DISK_NODE_OPTIONS: &str = "discard=unmap,cache.no-flush=on,file.cache.no-flush=on";

/// Each disk is attached twice, and the guest uses the one that its kernel has a driver for. A full
/// host disk is an I/O error: by default virtio would pause the guest for good. NVMe requests are
/// as large as virtio's.
const DISK_DEVICES: [&str; 2] = ["virtio-blk-pci,werror=report,rerror=report", "nvme,mdts=9"];

/// Maximum number of console lines in an error.
const MAX_LAST_LINES: usize = 3;

/// Parts of lines that say why a kernel crashed.
const FATAL: [&str; 4] = ["Kernel panic", "BUG:", "Oops:", "watchdog:"];

/// How much of the console is searched for its last lines.
const CONSOLE_TAIL_BYTES: u64 = 64 << 10;

/// The installed version of QEMU.
pub fn version() -> Option<&'static str> {
    static VERSION: OnceLock<Option<String>> = OnceLock::new();
    let query_version = || {
        let output = child::output(Command::new(PROGRAM).arg("--version")).ok()?;
        let text = String::from_utf8(output.stdout).ok()?;
        let word = text.strip_prefix("QEMU emulator version ")?.split_whitespace().next()?;
        Some(word.to_owned())
    };
    VERSION.get_or_init(query_version).as_deref()
}

/// How a machine's instructions are executed.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Accelerator {
    /// By the CPU.
    Kvm,
    /// By QEMU's emulator: counters are right, times are meaningless.
    Tcg,
}

impl Accelerator {
    /// Name in QEMU options and reports.
    pub fn name(self) -> &'static str {
        match self {
            Self::Kvm => "kvm",
            Self::Tcg => "tcg",
        }
    }
}

/// A machine about to be started.
pub(super) struct Vm<'a> {
    pub(super) image: &'a KernelImage,
    pub(super) accelerator: Accelerator,
    pub(super) initramfs: &'a File,
    pub(super) disks: Option<VmDisks<'a>>,
}

/// The files that back its disks.
#[derive(Clone, Copy)]
pub(super) struct VmDisks<'a> {
    /// Holds the files of jobs.
    pub(super) scratch: BorrowedFd<'a>,
    /// Carries frames between host and guest.
    pub(super) exchange: BorrowedFd<'a>,
}

/// A started machine; killed on drop.
#[derive(Debug)]
pub(super) struct RunningVm {
    running: ChildProcess,
    output: VmOutput,
    watch: Watch,
    /// Its exit status, once it has exited.
    status: Option<ExitStatus>,
}

impl Vm<'_> {
    /// Starts it. QEMU opens its files some time later.
    pub(super) fn start(&self) -> Result<RunningVm, Error> {
        let output = VmOutput::new()?;
        let mut command = self.command(&output)?;
        let running = ChildProcess::spawn(&mut command);
        let running = running.map_err(|source| Error::from_spawn(PROGRAM, PACKAGE, source))?;
        let watch = Watch::new(running.0.id(), self.image.cpus, self.uses_icount());
        Ok(RunningVm { running, output, watch, status: None })
    }

    /// Whether its CPUs take turns.
    fn uses_icount(&self) -> bool {
        self.image.uses_icount && self.accelerator == Accelerator::Tcg
    }

    fn kernel_arguments(&self) -> String {
        if self.uses_icount() {
            // Otherwise the timer ticks of all CPUs coincide.
            format!("{KERNEL_ARGUMENTS} skew_tick=1")
        } else {
            KERNEL_ARGUMENTS.to_string()
        }
    }

    fn command(&self, output: &VmOutput) -> Result<Command, Error> {
        let errors = output.errors.try_clone();
        let errors = errors.map_err(|source| Error::io("share a file with QEMU", source))?;
        let mut command = Command::new(PROGRAM);
        command
            .args(["-nodefaults", "-no-user-config", "-no-reboot", "-display", "none"])
            .args(["-monitor", "stdio"])
            .args(["-machine", "pc", "-cpu", "max", "-accel", self.accelerator.name()])
            .arg("-m")
            .arg(format!("{}M", self.image.ram_bytes >> 20))
            .arg("-smp")
            .arg(self.image.cpus.to_string())
            .arg("-kernel")
            .arg(&self.image.kernel)
            .arg("-initrd")
            .arg(proc_path(self.initramfs))
            .args(["-append", &self.kernel_arguments()])
            .arg("-serial")
            .arg(format!("file:{}", proc_path(&output.console)))
            .arg("-serial")
            .arg(format!("file:{}", proc_path(&output.result)));
        if self.uses_icount() {
            command.args(["-icount", ICOUNT_OPTIONS]);
        }
        if let Some(VmDisks { scratch, exchange }) = self.disks {
            for (disk, serial) in [(scratch, SCRATCH_SERIAL), (exchange, EXCHANGE_SERIAL)] {
                let name = proc_path(disk);
                command.arg("-blockdev").arg(format!(
                    "raw,node-name={serial},{DISK_NODE_OPTIONS},file.driver=file,file.filename={name}"
                ));
                let shared = format!("drive={serial},serial={serial},share-rw=on");
                for device in DISK_DEVICES {
                    command.arg("-device").arg(format!("{device},{shared}"));
                }
            }
        }
        command.stdin(Stdio::piped()).stdout(Stdio::null()).stderr(errors);
        die_with_parent(&mut command);
        Ok(command)
    }
}

impl RunningVm {
    /// Polls for its exit. Returns whether it has exited.
    ///
    /// # Errors
    /// KVM failed, or the process cannot be watched.
    pub(super) fn has_ended(&mut self) -> Result<bool, Error> {
        if self.status.is_some() {
            return Ok(true);
        }
        let ended = self.running.wait(Duration::ZERO, || self.output.kvm_failure());
        match ended.map_err(|source| Error::io(format!("watch {PROGRAM}"), source))? {
            WaitResult::Exited(status) => self.status = Some(status),
            WaitResult::Interrupted(line) => return Err(Error::Kvm { line }),
            WaitResult::TimedOut => {}
        }
        Ok(self.status.is_some())
    }

    /// Incidents since the last call.
    pub(super) fn incidents(&mut self) -> Vec<Incident> {
        let is_last = self.status.is_some();
        let VmOutput { console, result, .. } = &self.output;
        let monitor = self.running.0.stdin.as_mut();
        self.watch.poll(console, result, is_last, || {
            // On failure, the silence is reported without a call trace.
            let _ = monitor.map(|monitor| monitor.write_all(INTERRUPT));
        })
    }

    /// Waits for an idle machine to exit, and kills it after `limit`.
    ///
    /// # Errors
    /// It did not exit by itself with success.
    pub(super) fn wait_until_end(mut self, limit: Duration) -> Result<(), Error> {
        let start = Instant::now();
        while !self.has_ended()? {
            if start.elapsed() >= limit {
                return Err(self.timeout_error(limit, false));
            }
        }
        match self.read_port()? {
            Some(frame) if frame.kind == FrameKind::Answer => Ok(()),
            _ => Err(self.failure()),
        }
    }

    /// The error for a machine that exited without an answer.
    pub(super) fn failure(&self) -> Error {
        let line = self.last_lines();
        match (self.read_port(), self.status.is_some_and(|status| !status.success())) {
            (Err(error), _) => error,
            (Ok(Some(frame)), _) => match (frame.kind, frame.text()) {
                (FrameKind::Lack, Ok(text)) => Error::MissingInGuest(text.replace('\n', " ")),
                (_, Ok(text)) => Error::Guest(text.replace('\n', " ")),
                (_, Err(reason)) => Error::Damaged { reason: reason.to_owned() },
            },
            (Ok(None), false) => Error::NoResult { line },
            (Ok(None), true) => {
                Error::QemuExited { status: self.status.expect("it has ended"), line }
            }
        }
    }

    /// The error for a machine that did not boot, or did not answer, within `limit`.
    pub(super) fn timeout_error(&self, limit: Duration, has_begun: bool) -> Error {
        let line = self.last_lines();
        if has_begun {
            Error::JobTimeout { limit, line }
        } else {
            Error::BootTimeout { limit, line }
        }
    }

    /// The most informative lines of the console, in one line.
    pub(super) fn last_lines(&self) -> String {
        self.output.last_lines()
    }

    /// The frame that the guest sent over its serial port, after its heartbeats.
    fn read_port(&self) -> Result<Option<ChannelFrame>, Error> {
        let bytes = self.output.result_bytes()?;
        let beats = bytes.iter().take_while(|byte| **byte == BEAT).count();
        frame::decode(&bytes[beats..])
            .map_err(|reason| Error::Damaged { reason: reason.to_owned() })
    }
}

/// Output of a machine: files in memory, so that the explanation survives a full disk.
#[derive(Debug)]
struct VmOutput {
    console: File,
    result: File,
    errors: File,
}

impl VmOutput {
    fn new() -> Result<Self, Error> {
        let file = || memfd_create("filemap-guest", MemfdFlags::CLOEXEC).map(File::from);
        let files = || Ok(Self { console: file()?, result: file()?, errors: file()? });
        files().map_err(|source: Errno| Error::io("make a file in memory", source.into()))
    }

    fn result_bytes(&self) -> Result<Vec<u8>, Error> {
        tail(&self.result, u64::MAX).map_err(|source| Error::io("read the guest's result", source))
    }

    /// QEMU's message about a KVM failure.
    fn kvm_failure(&self) -> Option<String> {
        let text = read_text(&self.errors);
        let line = text.lines().find(|line| line.contains("KVM internal error"))?;
        Some(line.trim().to_owned())
    }

    /// The most informative lines: QEMU's own error, else a panic and the lines before it, else the
    /// last lines of the console.
    fn last_lines(&self) -> String {
        explain_console(&read_text(&self.errors), &read_text(&self.console))
    }
}

/// See [`VmOutput::last_lines`].
fn explain_console(errors: &str, console: &str) -> String {
    let lines = |text: &str, holds: &dyn Fn(&str) -> bool, most: usize| {
        let all = text.lines().map(str::trim).filter(|&line| !line.is_empty() && holds(line));
        let all: Vec<&str> = all.collect();
        all[all.len().saturating_sub(most)..].join(" | ")
    };
    let is_error = |line: &str| line.starts_with("qemu") && !line.contains("warning:");
    let is_fatal = |line: &str| FATAL.iter().any(|words| line.contains(words));
    let found = [
        lines(errors, &is_error, 1),
        lines(console, &is_fatal, MAX_LAST_LINES),
        lines(console, &|line| !line.contains(JOB_MARK), MAX_LAST_LINES),
    ];
    found.into_iter().find(|line| !line.is_empty()).unwrap_or_else(|| "(nothing)".to_owned())
}

fn read_text(file: &File) -> String {
    let bytes = tail(file, CONSOLE_TAIL_BYTES).unwrap_or_default();
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

/// A guest under working KVM exits after about a second.
const PROBE_TIMEOUT: Duration = Duration::from_secs(5);

/// Whether KVM can run a guest here: boots `image`, which does nothing and reports back.
///
/// # Errors
/// The inner error says in one line why KVM fails; the outer one, why no guest could be tried.
pub fn kvm_works(image: &KernelImage) -> Result<Result<(), String>, Error> {
    if let Err(error) = File::options().read(true).write(true).open("/dev/kvm") {
        return Ok(Err(format!("/dev/kvm: {error}")));
    }
    let settings = GuestSettings {
        answers_at: None,
        modules: Vec::new(),
        read_ahead_kb: None,
        filesystem: image.filesystem,
    };
    let initramfs = image.initramfs(&settings, &[])?;
    let machine = Vm { image, accelerator: Accelerator::Kvm, initramfs: &initramfs, disks: None };
    match machine.start().and_then(|started| started.wait_until_end(PROBE_TIMEOUT)) {
        Ok(()) => Ok(Ok(())),
        Err(error @ Error::Missing { .. }) => Err(error),
        Err(error) => Ok(Err(error.to_string())),
    }
}

/// The accelerator for `image`; probed once per process.
pub(super) fn choose_accelerator(image: &KernelImage) -> Result<Accelerator, Error> {
    static CHOICE: OnceLock<Accelerator> = OnceLock::new();
    if let Some(&choice) = CHOICE.get() {
        return Ok(choice);
    }
    let choice = if kvm_works(image)?.is_ok() { Accelerator::Kvm } else { Accelerator::Tcg };
    Ok(*CHOICE.get_or_init(|| choice))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn joins_most_informative_lines() {
        let console = "a\n\nb\n c \nd\n";
        assert_eq!(explain_console("", ""), "(nothing)");
        assert_eq!(explain_console("", console), "b | c | d");
        let panic = "[1] BUG: x\n[2] RIP: y\n[3] Kernel panic - z\nReboot\n";
        assert_eq!(explain_console("", panic), "[1] BUG: x | [3] Kernel panic - z");
        let errors = "qemu: warning: no\nqemu: no memory\n";
        assert_eq!(explain_console(errors, panic), "qemu: no memory");
    }
}

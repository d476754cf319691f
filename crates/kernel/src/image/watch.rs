//! Watches a running guest from the host: its console and its heartbeat.

use std::fs::{self, File};
use std::os::unix::fs::FileExt;
use std::time::{Duration, Instant};

use super::console::{ConsoleParser, Incident, IncidentKind};

/// A live guest writes this byte to its serial port every [`BEAT_INTERVAL`].
pub(super) const BEAT: u8 = b'.';
pub(super) const BEAT_INTERVAL: Duration = Duration::from_millis(500);

/// CPU time per virtual CPU that QEMU may spend without a heartbeat before the guest is considered
/// silent. CPU time, because a guest on a busy host is slow without being broken.
const SILENCE_CPU_TIME: Duration = Duration::from_secs(5);

/// With `-icount`, virtual time runs slower than a real CPU.
const ICOUNT_FACTOR: u32 = 5;

/// An incident is complete when the console has been quiet for this long.
const CONSOLE_QUIET_TIME: Duration = Duration::from_millis(700);

/// How long a silent guest may take to react to an NMI before the silence alone is reported.
const NMI_TIMEOUT: Duration = Duration::from_secs(3);

const READ_BYTES: usize = 64 << 10;

/// State of watching one guest.
#[derive(Debug)]
pub(super) struct Watch {
    pid: u32,
    parser: ConsoleParser,
    /// Number of console bytes read.
    console_offset: u64,
    console_read_at: Instant,
    beats: u64,
    /// CPU time of QEMU at the last beat; `None` before the first.
    cpu_at_beat: Option<Duration>,
    silence_limit: Duration,
    nmi_sent_at: Option<Instant>,
    has_failed: bool,
}

impl Watch {
    /// Watches the QEMU process `pid`, which runs a guest with `cpus` virtual CPUs.
    pub(super) fn new(pid: u32, cpus: u32, uses_icount: bool) -> Self {
        let factor = if uses_icount { ICOUNT_FACTOR } else { cpus.max(1) };
        Watch {
            pid,
            parser: ConsoleParser::default(),
            console_offset: 0,
            console_read_at: Instant::now(),
            beats: 0,
            cpu_at_beat: None,
            silence_limit: SILENCE_CPU_TIME * factor,
            nmi_sent_at: None,
            has_failed: false,
        }
    }

    /// Returns new incidents. `has_exited`: QEMU writes no more. `send_nmi` makes a silent guest
    /// panic, which prints where it is (`unknown_nmi_panic`).
    pub(super) fn poll(
        &mut self,
        console: &File,
        port: &File,
        has_exited: bool,
        send_nmi: impl FnOnce(),
    ) -> Vec<Incident> {
        let cpu = cpu_time(self.pid);
        let mut bytes = vec![0; READ_BYTES];
        while let Ok(length @ 1..) = console.read_at(&mut bytes, self.console_offset) {
            self.console_offset += length as u64;
            self.console_read_at = Instant::now();
            self.parser.push(&bytes[..length]);
        }
        if has_exited || self.console_read_at.elapsed() >= CONSOLE_QUIET_TIME {
            self.parser.close();
        }
        let mut new = Vec::new();
        while let Some(mut incident) = self.parser.next_incident() {
            if self.nmi_sent_at.is_some() {
                incident.lines.insert(0, self.silence_message());
            }
            new.push(incident);
        }
        self.has_failed |= new.iter().any(|incident| incident.kind != IncidentKind::Warning);
        if !has_exited && !self.has_failed {
            new.extend(self.check_silence(port, cpu, send_nmi));
        }
        new
    }

    fn check_silence(
        &mut self,
        port: &File,
        cpu: Duration,
        send_nmi: impl FnOnce(),
    ) -> Option<Incident> {
        let beats = port.metadata().map_or(0, |port| port.len());
        if beats > self.beats {
            (self.beats, self.cpu_at_beat, self.nmi_sent_at) = (beats, Some(cpu), None);
        }
        if cpu.saturating_sub(self.cpu_at_beat?) < self.silence_limit {
            return None;
        }
        let nmi_sent_at = *self.nmi_sent_at.get_or_insert_with(|| {
            send_nmi();
            Instant::now()
        });
        if nmi_sent_at.elapsed() < NMI_TIMEOUT || self.parser.is_open() {
            return None;
        }
        self.has_failed = true;
        let (kind, lines) = (IncidentKind::Crash, vec![self.silence_message()]);
        Some(Incident { kind, job: self.parser.job(), lines })
    }

    fn silence_message(&self) -> String {
        let seconds = self.silence_limit.as_secs();
        format!("no sign of life in {seconds} s of processor time: a CPU loops in the kernel")
    }
}

/// CPU time of all threads of a process: `utime` and `stime`, fields 14 and 15 of `/proc/PID/stat`.
/// Zero if it has exited.
fn cpu_time(pid: u32) -> Duration {
    let stat = fs::read_to_string(format!("/proc/{pid}/stat")).unwrap_or_default();
    let fields = stat.rsplit(") ").next().unwrap_or_default().split(' ');
    let ticks: u64 = fields.skip(11).take(2).filter_map(|field| field.parse::<u64>().ok()).sum();
    Duration::from_millis(ticks * 1000 / rustix::param::clock_ticks_per_second())
}

#[cfg(test)]
mod tests {
    use std::io::Write;

    use super::*;

    struct Guest {
        watch: Watch,
        console: File,
        port: File,
        nmis: u32,
    }

    impl Guest {
        /// A guest whose QEMU process is this one, so that spinning here counts as its CPU time.
        fn new() -> Guest {
            let mut watch = Watch::new(std::process::id(), 1, false);
            watch.silence_limit = Duration::from_millis(50);
            let file = || tempfile::tempfile().unwrap();
            Guest { watch, console: file(), port: file(), nmis: 0 }
        }

        fn poll(&mut self, has_exited: bool) -> Vec<Incident> {
            let send_nmi = || self.nmis += 1;
            self.watch.poll(&self.console, &self.port, has_exited, send_nmi)
        }

        /// Polls, using CPU time, until there is an incident.
        fn poll_until_incident(&mut self) -> Vec<Incident> {
            let start = Instant::now();
            while start.elapsed() < Duration::from_secs(60) {
                let found = self.poll(false);
                if !found.is_empty() {
                    return found;
                }
            }
            Vec::new()
        }
    }

    #[test]
    fn silent_guest_gets_an_nmi_and_is_reported() {
        let mut guest = Guest::new();
        let start = Instant::now();
        while start.elapsed() < Duration::from_millis(200) {
            assert_eq!(guest.poll(false), [], "a guest that boots is not silent");
        }
        guest.port.write_all(&[BEAT]).unwrap();
        let found = guest.poll_until_incident();
        assert_eq!((found.len(), guest.nmis), (1, 1));
        assert!(found[0].lines[0].starts_with("no sign of life"), "{found:?}");
    }

    #[test]
    fn panic_after_the_nmi_is_reported_with_the_silence() {
        let mut guest = Guest::new();
        guest.port.write_all(&[BEAT]).unwrap();
        while guest.nmis == 0 {
            assert_eq!(guest.poll(false), []);
        }
        guest.console.write_all(b"Kernel panic - not syncing: NMI\n").unwrap();
        let found = guest.poll_until_incident();
        assert!(found[0].lines[0].starts_with("no sign of life"), "{found:?}");
        assert_eq!(found[0].lines[1], "Kernel panic - not syncing: NMI");
    }
}

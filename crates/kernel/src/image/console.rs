//! Finds panics, oopses and warnings in the console output of a guest kernel.

use std::collections::VecDeque;

use serde_json::{Value, json};

/// Written to the kernel log by the guest when a job begins, followed by the job's number.
pub(super) const JOB_MARK: &str = "filemap: job ";

/// Maximum number of lines kept of an incident, and of characters of a line.
const MAX_LINES: usize = 80;
const MAX_LINE_CHARS: usize = 400;

/// Maximum number of call-trace functions in the summary of an incident.
const MAX_SUMMARY_FRAMES: usize = 5;

/// Prefixes of lines after which no figure of this boot is reliable.
const CRASHES: [&str; 9] = [
    "BUG: unable to handle",
    "BUG: kernel NULL pointer dereference",
    "BUG: KASAN:",
    "BUG: KFENCE:",
    "BUG: spinlock",
    "kernel BUG at",
    "Oops:",
    "general protection fault",
    "Kernel panic - not syncing",
];

/// Prefixes of reports by the kernel's watchdogs, which go by elapsed time: a guest that gets no
/// processor time of its host prints them too. [`Watch`](super::watch::Watch) goes by QEMU's.
const WATCHDOGS: [&str; 2] = ["BUG: soft lockup", "BUG: workqueue lockup"];

/// Prefixes of warnings, after which the kernel continues.
const WARNINGS: [&str; 6] =
    ["WARNING:", "BUG:", "UBSAN:", "INFO: possible ", "INFO: suspicious ", "INFO: inconsistent "];

/// Severity of an incident.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum IncidentKind {
    /// The kernel continues.
    Warning,
    /// The kernel stopped or hangs, or its state is corrupt.
    Crash,
}

/// A warning, oops, panic or hang that a guest kernel reported.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Incident {
    /// Its severity.
    pub kind: IncidentKind,
    /// Index of the job that was running; `None` before the first.
    pub job: Option<usize>,
    /// The console lines, starting with the one that describes the incident.
    pub lines: Vec<String>,
}

impl Incident {
    /// The form used in records: `line` is the summary, `lines` are the console lines.
    pub fn to_json(&self) -> Value {
        json!({ "line": self.summary(), "lines": self.lines })
    }

    /// What happened, where, and the callers, in one line.
    pub fn summary(&self) -> String {
        let mut parts: Vec<String> = self.lines.first().cloned().into_iter().collect();
        parts.extend(self.lines.iter().skip(1).find(|l| l.starts_with("Kernel panic")).cloned());
        // For a user-space address, RIP has no function name.
        let rip = self.lines.iter().filter_map(|line| line.strip_prefix("RIP: ")?.split_once(':'));
        let rip = rip.map(|(_, address)| function(address)).find(|name| name.contains("+0x"));
        parts.extend(rip.map(|name| format!("RIP: {name}")));
        let trace = self.call_trace();
        if !trace.is_empty() {
            parts.push(format!("Call Trace: {}", trace.join(" < ")));
        }
        parts.join(" | ")
    }

    /// The innermost functions of the call trace. Functions that the unwinder marks as unreliable
    /// with a question mark are used only if there are no others.
    fn call_trace(&self) -> Vec<&str> {
        let position = |header: &str| self.lines.iter().position(|line| line == header);
        let start = position("<TASK>").or_else(|| position("Call Trace:"));
        let lines = self.lines.iter().skip(start.map_or(self.lines.len(), |start| start + 1));
        let frames = lines.filter(|line| line.contains("+0x") && !line.contains(": "));
        let (unsure, sure): (Vec<&String>, Vec<&String>) =
            frames.partition(|line| line.starts_with('?'));
        let frames = if sure.is_empty() { unsure } else { sure };
        let names = frames.into_iter().map(|line| function(line.trim_start_matches("? ")));
        names.take(MAX_SUMMARY_FRAMES).collect()
    }

    /// Whether this is a boot warning that says nothing about jobs. Warnings raised while init runs
    /// do not count as such: they come from code under test, and are printed only once (WARN_ONCE),
    /// so a job would not repeat them.
    fn is_boot_warning(&self) -> bool {
        self.kind == IncidentKind::Warning
            && self.job.is_none()
            && !self.lines.iter().any(|line| line.contains("Comm: init "))
    }
}

/// Finds incidents in console output that arrives in pieces of any length.
#[derive(Debug, Default)]
pub(super) struct ConsoleParser {
    /// The incomplete last line.
    partial: Vec<u8>,
    job: Option<usize>,
    /// The incident whose lines are arriving.
    open: Option<Incident>,
    complete: VecDeque<Incident>,
}

impl ConsoleParser {
    /// Parses the next `bytes` of the console.
    pub(super) fn push(&mut self, bytes: &[u8]) {
        for piece in bytes.split_inclusive(|&byte| byte == b'\n') {
            self.partial.extend_from_slice(piece);
            if piece.ends_with(b"\n") {
                let line = String::from_utf8_lossy(&std::mem::take(&mut self.partial)).into_owned();
                self.parse_line(&line);
            }
        }
    }

    /// The next complete incident.
    pub(super) fn next_incident(&mut self) -> Option<Incident> {
        self.complete.pop_front()
    }

    /// The job that is running.
    pub(super) fn job(&self) -> Option<usize> {
        self.job
    }

    /// Whether an incident is incomplete.
    pub(super) fn is_open(&self) -> bool {
        self.open.is_some()
    }

    /// Completes the open incident: it gets no more lines.
    pub(super) fn close(&mut self) {
        let open = self.open.take();
        self.complete.extend(open.filter(|incident| !incident.is_boot_warning()));
    }

    fn parse_line(&mut self, line: &str) {
        let line: String = line.chars().filter(|character| !character.is_control()).collect();
        let line = without_prefix(&line);
        if let Some(number) = line.strip_prefix(JOB_MARK) {
            self.close();
            self.job = number.parse().ok();
            return;
        }
        // Until the panic, an oops prints lines that look like the start of another one.
        let continues = self.open.as_ref().is_some_and(|open| open.kind != IncidentKind::Warning);
        if let Some(kind) = incident_kind(line).filter(|_| !continues) {
            self.close();
            self.open = Some(Incident { kind, job: self.job, lines: Vec::new() });
        }
        let Some(open) = &mut self.open else { return };
        if open.lines.len() < MAX_LINES && line.chars().any(char::is_alphanumeric) {
            open.lines.push(line.chars().take(MAX_LINE_CHARS).collect());
        }
        if ["</TASK>", "---[ end"].iter().any(|end| line.starts_with(end)) {
            self.close();
        }
    }
}

/// The kind of the incident that `line` begins, if it begins one.
fn incident_kind(line: &str) -> Option<IncidentKind> {
    let text = line.strip_prefix("watchdog: ").unwrap_or(line);
    let begins_with = |prefixes: &[&str]| prefixes.iter().any(|prefix| text.starts_with(prefix));
    if begins_with(&WATCHDOGS) {
        None
    } else if begins_with(&CRASHES) || is_numbered_oops(text) {
        Some(IncidentKind::Crash)
    } else {
        begins_with(&WARNINGS).then_some(IncidentKind::Warning)
    }
}

/// Whether `line` is the first of an oops of another trap, as `die()` prints it:
/// `divide error: 0000 [#1] SMP`.
fn is_numbered_oops(line: &str) -> bool {
    let Some((text, rest)) = line.split_once(" [#") else { return false };
    let Some((_, code)) = text.rsplit_once(": ") else { return false };
    let number = rest.split(']').next().unwrap_or_default();
    u64::from_str_radix(code, 16).is_ok() && number.parse::<u32>().is_ok()
}

/// `line` without the bracketed prefix of printk: the time, and the task or CPU.
fn without_prefix(line: &str) -> &str {
    let mut line = line.trim();
    while let Some((stamp, rest)) = line.strip_prefix('[').and_then(|line| line.split_once(']')) {
        let stamp = stamp.trim_start().trim_start_matches(['T', 'C']);
        if stamp.is_empty() || !stamp.bytes().all(|byte| byte.is_ascii_digit() || byte == b'.') {
            break;
        }
        line = rest.trim_start();
    }
    line
}

/// The function and offset of a frame such as `filemap_fault+0x1a/0x9f0 [xfs]`.
fn function(frame: &str) -> &str {
    frame.trim().split(['/', ' ']).next().unwrap_or_default()
}

#[cfg(test)]
mod tests {
    use super::*;

    /// The incidents in `text`, which arrives in pieces of `piece` bytes.
    fn incidents(text: &str, piece: usize) -> Vec<Incident> {
        let mut parser = ConsoleParser::default();
        text.as_bytes().chunks(piece).for_each(|piece| parser.push(piece));
        parser.close();
        std::iter::from_fn(|| parser.next_incident()).collect()
    }

    fn only_incident(text: &str) -> Incident {
        let found = incidents(text, 7);
        assert_eq!(found, incidents(text, text.len()));
        let [incident] = &found[..] else { panic!("one incident: {found:?}") };
        incident.clone()
    }

    /// Output of a 6.12.117 kernel with a planted warning.
    const WARNING: &str = "\
[    1.270180] filemap: job 0\r
[    1.402513] filemap: job 1\r
[    1.644701] ------------[ cut here ]------------\r
[    1.644899] WARNING: CPU: 0 PID: 39 at mm/filemap.c:3293 planted+0x168/0x260\r
[    1.645353] CPU: 0 UID: 0 PID: 39 Comm: exe Not tainted 6.12.117 #3 \r
[    1.645548] RIP: 0010:planted+0x168/0x260\r
[    1.646841] Call Trace:\r
[    1.647187]  <TASK>\r
[    1.647331]  filemap_fault+0x56/0xd50\r
[    1.647416]  __do_fault+0x2a/0xb0\r
[    1.647502]  ? mmput+0x1a/0x120\r
[    1.647518]  __handle_mm_fault+0x398/0x840\r
[    1.647939] RIP: 0033:0x55643097e724\r
[    1.649064]  </TASK>\r
[    1.649121] ---[ end trace 0000000000000000 ]---\r
[    1.730417] filemap: job 2\r
";

    #[test]
    fn warning_has_its_job_and_callers() {
        let warning = only_incident(WARNING);
        assert_eq!((warning.kind, warning.job), (IncidentKind::Warning, Some(1)));
        assert_eq!(
            warning.summary(),
            "WARNING: CPU: 0 PID: 39 at mm/filemap.c:3293 planted+0x168/0x260 | RIP: \
             planted+0x168 | Call Trace: filemap_fault+0x56 < __do_fault+0x2a < \
             __handle_mm_fault+0x398"
        );
        assert_eq!(warning.to_json()["lines"][0], warning.lines[0]);
    }

    #[test]
    fn boot_warnings_count_only_in_init() {
        let (_, at_boot) = WARNING.split_once("[    1.644701]").unwrap();
        assert_eq!(incidents(&at_boot.replace("Comm: exe", "Comm: swapper/0"), 100), []);
        assert_eq!(only_incident(&at_boot.replace("Comm: exe", "Comm: init")).job, None);
    }

    #[test]
    fn first_line_tells_the_kind() {
        use IncidentKind::{Crash, Warning};
        let cases = [
            ("BUG: kernel NULL pointer dereference, address: 0000000000000008", Crash),
            ("kernel BUG at mm/readahead.c:512!", Crash),
            ("Oops: general protection fault, probably for non-canonical address: 0", Crash),
            ("divide error: 0000 [#1] PREEMPT SMP NOPTI", Crash),
            ("BUG: KASAN: slab-out-of-bounds in page_cache_ra_order+0x1f2/0x3a0", Crash),
            ("Kernel panic - not syncing: planted", Crash),
            ("WARNING: possible recursive locking detected", Warning),
            ("BUG: sleeping function called from invalid context at mm/filemap.c:1", Warning),
            ("UBSAN: array-index-out-of-bounds in mm/readahead.c:1:2", Warning),
        ];
        for (first, kind) in cases {
            let found = only_incident(&format!("{JOB_MARK}0\n[    1.0][   T71] {first}\nmore\n"));
            assert_eq!((found.kind, found.lines[0].as_str()), (kind, first));
        }
        let harmless = "[    0.1] Spectre V2 : WARNING: x\n\
                        [    1.0] traps: a[1] general protection fault\n\
                        [    2.0] EXT4-fs (vda): mounted [#1]\nfilemap: job 0\n\
                        [    3.0] watchdog: BUG: soft lockup - CPU#0 stuck for 4s! [exe:39]\n";
        assert_eq!(incidents(harmless, 5), []);
    }

    #[test]
    fn oops_and_its_panic_are_one_incident() {
        let text = "[    1.344734] filemap: job 0\n\
            [    1.663043] BUG: kernel NULL pointer dereference, address: 0000000000000000\n\
            [    1.664148] Oops: Oops: 0002 [#1] SMP\n\
            [    1.664810] RIP: 0010:planted+0x221/0x260\n\
            [    1.666492] Call Trace:\n[    1.667029]  ? filemap_fault+0x56/0xd50\n\
            [    1.668700] Kernel panic - not syncing: Fatal exception\n";
        assert_eq!(
            only_incident(text).summary(),
            "BUG: kernel NULL pointer dereference, address: 0000000000000000 | Kernel panic - not \
             syncing: Fatal exception | RIP: planted+0x221 | Call Trace: filemap_fault+0x56"
        );
    }
}

//! What a kernel says of itself on its console while it runs.

use std::collections::VecDeque;
use std::time::Duration;

use serde_json::{Value, json};

/// How the guest's program marks where a job begins, before its number.
pub(super) const JOB_BEGINS: &str = "filemap: job ";

/// How the guest's program begins to tell of a task that waits for ever.
pub(super) const HANGS: &str = "filemap: hang: ";

/// Most lines that are kept of a complaint, and most characters of each.
const MOST_LINES: usize = 80;
const LONGEST_LINE: usize = 400;

/// In one line stand so many functions of a call trace, and so many characters of what was said.
const FRAMES: usize = 5;
const LONGEST_WORDS: usize = 300;

/// How lines begin after which no figure of this boot can be trusted.
const CRASHES: [&str; 14] = [
    "BUG: unable to handle",
    "BUG: kernel NULL pointer dereference",
    "BUG: KASAN:",
    "BUG: KFENCE:",
    "BUG: spinlock",
    "BUG: stack guard page",
    "BUG: TASK stack guard page",
    "BUG: IRQ stack guard page",
    "kernel BUG at",
    "Oops:",
    "general protection fault",
    "Kernel panic - not syncing",
    "double fault",
    HANGS,
];

/// The same, of detectors that go by the time that passes.
const LATE: [&str; 4] =
    ["BUG: soft lockup", "BUG: workqueue lockup", "INFO: rcu", "Watchdog detected hard LOCKUP"];

/// How lines begin after which the kernel goes on.
const WARNINGS: [&str; 7] = [
    "WARNING:",
    "BUG:",
    "UBSAN:",
    "INFO: possible ",
    "INFO: suspicious ",
    "INFO: inconsistent ",
    "INFO: trying to register non-static key",
];

/// What a complaint says of the kernel.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Severity {
    /// It goes on.
    Warned,
    /// It goes on no more, or as nobody knows.
    Crashed,
    /// By its own clock it was late for long: so is a kernel whose machine had no processor.
    Late,
}

/// What no kernel says that is in order.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Complaint {
    /// What it says of the kernel.
    pub severity: Severity,
    /// The job that ran, by its number from 0; `None` before the first.
    pub task: Option<usize>,
    /// The line that tells what happened, and those after it.
    pub lines: Vec<String>,
}

impl Complaint {
    /// As records have it.
    pub fn to_json(&self) -> Value {
        json!({ "line": self.in_one_line(), "lines": self.lines })
    }

    /// What happened, where, and who had called that, in one line.
    pub fn in_one_line(&self) -> String {
        let mut parts: Vec<String> =
            self.lines.first().map(|line| cut(line, LONGEST_WORDS)).into_iter().collect();
        let panic = self.lines.iter().skip(1).find(|line| line.starts_with("Kernel panic"));
        parts.extend(panic.map(|line| cut(line, LONGEST_WORDS)));
        let at = self.lines.iter().filter_map(|line| line.strip_prefix("RIP: ")?.split_once(':'));
        let at = at.map(|(_, at)| function(at)).find(|at| at.contains("+0x"));
        parts.extend(at.map(|at| format!("RIP: {at}")));
        let frames = self.frames();
        if !frames.is_empty() {
            parts.push(format!("Call Trace: {}", frames.join(" < ")));
        }
        parts.join(" | ")
    }

    /// Of how much time a detector speaks, if it says so.
    pub(super) fn seconds(&self) -> Option<Duration> {
        let line = self.lines.first()?;
        let (_, after) = line.split_once("stuck for ").or(line.split_once("for more than "))?;
        let digits = after.split(|character: char| !character.is_ascii_digit()).next()?;
        digits.parse().ok().map(Duration::from_secs)
    }

    /// The functions that had called what happened, the last one first. The kernel puts a question
    /// mark before those that it only found on the stack.
    fn frames(&self) -> Vec<&str> {
        let after = |words: &str| self.lines.iter().position(|line| line == words);
        let start =
            after("<TASK>").or_else(|| after("Call Trace:")).map_or(self.lines.len(), |at| at + 1);
        let is_frame = |line: &&String| line.contains("+0x") && !line.contains(": ");
        let frames: Vec<&String> = self.lines[start..].iter().filter(is_frame).collect();
        let sure = frames.iter().filter(|line| !line.starts_with('?'));
        let sure: Vec<&str> = sure.map(|line| function(line)).take(FRAMES).collect();
        if sure.is_empty() {
            let found = frames.iter().map(|line| function(line.trim_start_matches("? ")));
            return found.take(FRAMES).collect();
        }
        sure
    }

    /// Whether a kernel says it that only boots.
    fn is_of_boot(&self) -> bool {
        let is_of_init = |line: &String| line.contains("Comm: init ");
        self.severity == Severity::Warned
            && self.task.is_none()
            && !self.lines.iter().any(is_of_init)
    }
}

/// Finds complaints in what a console says, in pieces of any length.
#[derive(Debug, Default)]
pub(super) struct Reader {
    /// What came of a line that is not whole.
    begun: Vec<u8>,
    task: Option<usize>,
    /// The complaint whose lines come.
    open: Option<Complaint>,
    whole: VecDeque<Complaint>,
}

impl Reader {
    /// Takes what came next.
    pub(super) fn push(&mut self, bytes: &[u8]) {
        for &byte in bytes {
            if byte == b'\n' {
                let line = String::from_utf8_lossy(&self.begun).into_owned();
                self.begun.clear();
                self.line(&line);
            } else {
                self.begun.push(byte);
            }
        }
    }

    /// The next complaint that is whole.
    pub(super) fn next(&mut self) -> Option<Complaint> {
        self.whole.pop_front()
    }

    /// The job that runs.
    pub(super) fn task(&self) -> Option<usize> {
        self.task
    }

    /// Whether more of a complaint should come.
    pub(super) fn is_within(&self) -> bool {
        self.open.is_some()
    }

    /// No more of it comes.
    pub(super) fn close(&mut self) {
        let open = self.open.take();
        self.whole.extend(open.filter(|complaint| !complaint.is_of_boot()));
    }

    fn line(&mut self, line: &str) {
        let line: String = line.chars().filter(|character| !character.is_control()).collect();
        let line = without_time(&line);
        if let Some(number) = line.strip_prefix(JOB_BEGINS) {
            self.close();
            self.task = number.parse().ok();
            return;
        }
        let goes_on = self.open.as_ref().is_some_and(|open| open.severity != Severity::Warned);
        if let Some(severity) = severity(line).filter(|_| !goes_on) {
            self.close();
            self.open = Some(Complaint { severity, task: self.task, lines: Vec::new() });
        }
        let Some(open) = &mut self.open else { return };
        if open.lines.len() < MOST_LINES && line.chars().any(char::is_alphanumeric) {
            open.lines.push(cut(line.strip_prefix(HANGS).unwrap_or(line), LONGEST_LINE));
        }
        let is_end = line.starts_with("</TASK>") || line.starts_with("---[ end");
        if is_end || line.starts_with(HANGS) {
            self.close();
        }
    }
}

/// What `line` says of the kernel, if it begins a complaint.
fn severity(line: &str) -> Option<Severity> {
    let words = ["watchdog: ", "rcu: "].into_iter().find_map(|who| line.strip_prefix(who));
    let words = words.unwrap_or(line);
    let begins = |all: &[&str]| all.iter().any(|begin| words.starts_with(begin));
    let is_late = begins(&LATE)
        || words.starts_with("INFO: task ") && words.contains(" blocked for more than ")
        || words.contains("Watchdog detected hard LOCKUP");
    if is_late {
        Some(Severity::Late)
    } else if begins(&CRASHES) || is_counted_oops(words) {
        Some(Severity::Crashed)
    } else {
        begins(&WARNINGS).then_some(Severity::Warned)
    }
}

/// Whether `line` ends as those of each kind of Oops do: `divide error: 0000 [#1] SMP`.
fn is_counted_oops(line: &str) -> bool {
    let Some((words, rest)) = line.split_once(" [#") else { return false };
    let code = words.rsplit(' ').next().unwrap_or_default();
    let is_hex = |text: &str| !text.is_empty() && text.bytes().all(|byte| byte.is_ascii_hexdigit());
    let number = rest.split_once(']').map_or("", |(number, _)| number);
    words.contains(": ") && is_hex(code) && number.parse::<u32>().is_ok()
}

/// `line` without the time, and the task or CPU, that a kernel writes before it.
fn without_time(line: &str) -> &str {
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

/// The function in a frame: `filemap_fault+0x1a/0x9f0 [xfs]`.
fn function(frame: &str) -> &str {
    frame.trim().split(['/', ' ']).next().unwrap_or_default()
}

fn cut(text: &str, most: usize) -> String {
    let mut characters = text.chars();
    let kept: String = characters.by_ref().take(most).collect();
    if characters.next().is_some() { format!("{kept}...") } else { kept }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// What is complained of in `text`, which comes in pieces of `piece` bytes.
    fn complaints(text: &str, piece: usize) -> Vec<Complaint> {
        let mut reader = Reader::default();
        text.as_bytes().chunks(piece).for_each(|piece| reader.push(piece));
        reader.close();
        std::iter::from_fn(|| reader.next()).collect()
    }

    fn one(text: &str) -> Complaint {
        let found = complaints(text, 7);
        assert_eq!(found, complaints(text, text.len()));
        let [complaint] = &found[..] else { panic!("one complaint: {found:?}") };
        complaint.clone()
    }

    /// What a 6.12.117 said that had a warning planted into it, and what came before and after.
    const WARNING: &str = "\
[    1.270180] filemap: job 0\r
[    1.402513] filemap: job 1\r
[    1.644701] ------------[ cut here ]------------\r
[    1.644899] WARNING: CPU: 0 PID: 39 at mm/filemap.c:3293 planted+0x168/0x260\r
[    1.645172] Modules linked in:\r
[    1.645354] CPU: 0 UID: 0 PID: 39 Comm: exe Not tainted 6.12.117 #3 \r
[    1.645548] RIP: 0010:planted+0x168/0x260\r
[    1.645940] RSP: 0000:ffa000000014fcf0 EFLAGS: 00000293\r
[    1.646779] PKRU: 55555554\r
[    1.646841] Call Trace:\r
[    1.647187]  <TASK>\r
[    1.647331]  filemap_fault+0x56/0xd50\r
[    1.647416]  __do_fault+0x2a/0xb0\r
[    1.647471]  do_fault+0x394/0x5a0\r
[    1.647502]  ? mmput+0x1a/0x120\r
[    1.647518]  __handle_mm_fault+0x398/0x840\r
[    1.647575]  handle_mm_fault+0x1b8/0x310\r
[    1.647628]  do_user_addr_fault+0x20b/0x5d0\r
[    1.647939] RIP: 0033:0x55643097e724\r
[    1.649064]  </TASK>\r
[    1.649121] ---[ end trace 0000000000000000 ]---\r
[    1.730417] filemap: job 2\r
";

    #[test]
    fn a_warning_is_told_with_its_job_and_its_callers() {
        let warning = one(WARNING);
        assert_eq!((warning.severity, warning.task), (Severity::Warned, Some(1)));
        assert_eq!(
            warning.in_one_line(),
            "WARNING: CPU: 0 PID: 39 at mm/filemap.c:3293 planted+0x168/0x260 | RIP: \
             planted+0x168 | Call Trace: filemap_fault+0x56 < __do_fault+0x2a < do_fault+0x394 < \
             __handle_mm_fault+0x398 < handle_mm_fault+0x1b8"
        );
        assert_eq!(warning.to_json()["lines"][0], warning.lines[0]);
    }

    #[test]
    fn a_warning_of_the_boot_is_of_no_job() {
        let (_, of_boot) = WARNING.split_once("[    1.644701]").unwrap();
        let of = |name| of_boot.replace("Comm: exe", name);
        assert_eq!(complaints(&of("Comm: swapper/0"), 100), []);
        // The first fault may warn, and never again.
        assert_eq!(one(&of("Comm: init")).task, None);
        assert_eq!(one(&WARNING.replace("Comm: exe", "Comm: kworker/0:1")).task, Some(1));
    }

    #[test]
    fn each_end_of_a_kernel_is_told_by_its_first_line() {
        let ends = [
            "BUG: kernel NULL pointer dereference, address: 0000000000000008",
            "BUG: unable to handle page fault for address: ffffdeadbeef0000",
            "kernel BUG at mm/readahead.c:512!",
            "Oops: general protection fault, probably for non-canonical address: 0000 [#1] SMP",
            "general protection fault, probably for non-canonical address 0xdead: 0000 [#1] SMP",
            "divide error: 0000 [#1] PREEMPT SMP NOPTI",
            "BUG: KASAN: slab-out-of-bounds in page_cache_ra_order+0x1f2/0x3a0",
            "Kernel panic - not syncing: planted",
            "exe:39 has slept 5 s, and no disk works: folio_wait_bit_common+0x12a",
        ];
        for first in ends {
            let who = if first.starts_with("exe") { HANGS } else { "" };
            let found = one(&format!("[    1.0][   T71] {who}{first}\nmore\n"));
            assert_eq!((found.severity, found.lines[0].as_str()), (Severity::Crashed, first));
        }
        let late = [
            ("watchdog: BUG: soft lockup - CPU#0 stuck for 4s! [exe:39]", Some(4)),
            ("rcu: INFO: rcu_sched self-detected stall on CPU", None),
            ("INFO: task exe:39 blocked for more than 122 seconds.", Some(122)),
            ("watchdog: CPU1: Watchdog detected hard LOCKUP on cpu 1", None),
        ];
        for (first, seconds) in late {
            let found = one(&format!("{first}\n"));
            assert_eq!(found.severity, Severity::Late, "{first}");
            assert_eq!(found.seconds(), seconds.map(Duration::from_secs), "{first}");
        }
        let goes_on = [
            "WARNING: possible recursive locking detected",
            "INFO: possible recursive locking detected",
            "BUG: sleeping function called from invalid context at mm/filemap.c:1",
            "BUG: scheduling while atomic: exe/39/0x00000002",
            "UBSAN: array-index-out-of-bounds in mm/readahead.c:1:2",
        ];
        for first in goes_on {
            let of_job = format!("{JOB_BEGINS}0\n{first}\n");
            assert_eq!(one(&of_job).severity, Severity::Warned, "{first}");
        }
        let fine = "[    0.1] Spectre V2 : WARNING: x\n\
                    [    1.0] traps: a[1] general protection fault\n\
                    [    2.0] EXT4-fs (vda): mounted [#1]\nfilemap: job 0\n";
        assert_eq!(complaints(fine, 5), []);
    }

    #[test]
    fn an_oops_and_the_panic_after_it_are_one() {
        let text = "[    1.344734] filemap: job 0\n\
            [    1.663043] BUG: kernel NULL pointer dereference, address: 0000000000000000\n\
            [    1.663366] #PF: supervisor write access in kernel mode\n\
            [    1.664148] Oops: Oops: 0002 [#1] SMP\n\
            [    1.664455] CPU: 0 UID: 0 PID: 39 Comm: exe Not tainted 6.12.117 #3 \n\
            [    1.664810] RIP: 0010:planted+0x221/0x260\n\
            [    1.666492] Call Trace:\n[    1.667029]  ? filemap_fault+0x56/0xd50\n\
            [    1.668700] Kernel panic - not syncing: Fatal exception\n";
        assert_eq!(
            one(text).in_one_line(),
            "BUG: kernel NULL pointer dereference, address: 0000000000000000 | Kernel panic - not \
             syncing: Fatal exception | RIP: planted+0x221 | Call Trace: filemap_fault+0x56"
        );
    }

    #[test]
    fn a_kernel_that_was_interrupted_says_where_it_looped() {
        let text = "[    7.983886] Uhhuh. NMI received for unknown reason 21 on CPU 0.\n\
            [    7.984466] Kernel panic - not syncing: NMI: Not continuing\n\
            [    7.985059] Call Trace:\n[    7.985468]  <NMI>\n[    7.985726]  panic+0x344/0x3a0\n\
            [    7.986232]  end_repeat_nmi+0xf/0x53\n\
            [    7.986320] RIP: 0010:planted+0x16c/0x200 [planted]\n[    7.991611]  </NMI>\n\
            [    7.991627]  <TASK>\n[    7.991631]  filemap_fault_planted+0x24/0xd60 [planted]\n\
            [    7.991738] RIP: 0033:0x5630029c5724\n[    7.991942]  </TASK>\n";
        assert_eq!(
            one(text).in_one_line(),
            "Kernel panic - not syncing: NMI: Not continuing | RIP: planted+0x16c | Call Trace: \
             filemap_fault_planted+0x24"
        );
    }
}

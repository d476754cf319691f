//! Checks whether processes can be followed from outside, by trying it on a child.

use std::process::{Child, Command, Stdio};
use std::time::{Duration, Instant};

use filemap_attach::{Error, FollowMethod, Follower, MemoryAdvice, Refusal, advise_any, process};
use filemap_kernel::doctor::MachineCheck;
use rustix::mm::ProtFlags;

/// Commands that follow a process.
const FOLLOWS: &str = "govern, record, advise --check";

/// Time limit for the child to exec its program.
const EXEC_TIMEOUT: Duration = Duration::from_secs(2);

/// Command of the child: it spins in user mode.
const SPIN_COMMAND: [&str; 3] = ["/bin/sh", "-c", "while :; do :; done"];

/// Runs all checks.
pub(super) fn checks() -> Vec<MachineCheck> {
    vec![perf_events(), page_tables(), advice()]
}

fn perf_events() -> MachineCheck {
    let opened = Follower::for_children_with(FollowMethod::PerfEvents);
    let found = opened.map(|_| "permitted".to_string());
    let check = check_from("perf events", FOLLOWS, found);
    let note = check.note.map(|remedy| {
        format!("{remedy}; without them govern looks at page tables, and record cannot follow")
    });
    MachineCheck { note, ..check }
}

fn page_tables() -> MachineCheck {
    let opened = Follower::for_children_with(FollowMethod::PageTables);
    check_from("page table scan", "govern", opened.map(|_| "permitted".to_string()))
}

/// Whether madvise(2) can be injected into a thread of another process.
fn advice() -> MachineCheck {
    let name = "advice to others";
    let lacking = |why: String, remedy: &str| MachineCheck {
        name,
        used_by: FOLLOWS,
        state: Err(why),
        note: Some(remedy.to_string()),
    };
    let Ok(busy) = SpinningChild::start() else {
        return lacking(format!("{} cannot be started", SPIN_COMMAND[0]), "install a shell");
    };
    match busy.advise() {
        Some(Ok(())) => check_from(name, FOLLOWS, Ok("permitted".to_string())),
        Some(Err(refusal)) => lacking(
            refusal.to_string(),
            "permit ptrace of own children: kernel.yama.ptrace_scope 1 or lower, and a profile of \
             the container that allows it",
        ),
        None => lacking("nothing to try it on".to_string(), "mount /proc"),
    }
}

fn check_from(
    name: &'static str,
    used_by: &'static str,
    found: Result<String, Error>,
) -> MachineCheck {
    let (state, note) = match found {
        Ok(found) => (Ok(found), None),
        Err(Error::Refused { what, cause, remedy }) => {
            (Err(format!("no {what}: {cause}")), Some(remedy))
        }
        Err(error) => (Err(error.to_string()), None),
    };
    MachineCheck { name, used_by, state, note }
}

/// A child that spins in user mode, killed on drop.
struct SpinningChild(Child);

impl SpinningChild {
    fn start() -> std::io::Result<SpinningChild> {
        let null = Stdio::null;
        let mut command = Command::new(SPIN_COMMAND[0]);
        command.args(&SPIN_COMMAND[1..]).stdin(null()).stdout(null()).stderr(null());
        command.spawn().map(SpinningChild)
    }

    /// Injects advice that the mapping already has; `None` if the child maps no file in time.
    fn advise(&self) -> Option<Result<(), Refusal>> {
        let pid = self.0.id();
        let start = Instant::now();
        while start.elapsed() < EXEC_TIMEOUT {
            let maps = process::maps(pid).ok()?;
            // The dynamic loader is the last mapping before the program runs.
            let of_file = maps.iter().filter(|range| range.file.is_some());
            let mut read_only = of_file.filter(|range| range.protection == ProtFlags::READ.bits());
            if let Some(range) = read_only.next_back() {
                match advise_any(pid, pid, range, MemoryAdvice::Normal) {
                    Ok(_) => return Some(Ok(())),
                    Err(refusal)
                        if refusal.is_lasting() && !matches!(refusal, Refusal::Changed { .. }) =>
                    {
                        return Some(Err(refusal));
                    }
                    Err(_) => {}
                }
            }
            std::thread::sleep(Duration::from_millis(2));
        }
        None
    }
}

impl Drop for SpinningChild {
    fn drop(&mut self) {
        let _ = self.0.kill();
        let _ = self.0.wait();
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn checks_succeed_or_have_a_remedy() {
        for check in checks() {
            assert!(check.state.is_ok() || check.note.is_some(), "{check:?}");
        }
    }
}

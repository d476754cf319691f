//! Operations over folios on the running kernel: what is not had is named, and settings come back.

use std::fs;
use std::path::Path;
use std::process::Command;
use std::sync::{Mutex, PoisonError};

use crate::running::Running;
use crate::skip::skip;
use crate::{Scratch, filemap, stderr};

const SETTINGS: &str = "/sys/kernel/mm/transparent_hugepage";

const JOB: &str = "run --workload folio-ops --on kernel";

/// Tests run beside each other, and what one changes another would see.
static ONE_AT_A_TIME: Mutex<()> = Mutex::new(());

/// A command whose journal is in a directory of its own.
fn in_scratch(scratch: &Scratch, args: &str) -> Command {
    let mut command = filemap(&format!("{JOB} {args}"));
    command.env("FILEMAP_STATE", scratch.path("state"));
    command
}

/// What the setting of folios of 64 KiB holds.
fn setting() -> Option<String> {
    fs::read_to_string(Path::new(SETTINGS).join("hugepages-64kB/enabled")).ok()
}

/// Whether a journal lists that setting: another run may have changed it too.
fn is_listed(scratch: &Scratch) -> bool {
    let journals = fs::read_dir(scratch.path("state")).into_iter().flatten().flatten();
    let mut texts = journals.filter_map(|entry| fs::read_to_string(entry.path()).ok());
    texts.any(|text| text.contains("hugepages-64kB"))
}

#[test]
fn sizes_that_are_not_allowed_are_named() {
    let _alone = ONE_AT_A_TIME.lock().unwrap_or_else(PoisonError::into_inner);
    let scratch = Scratch::new("folios_not_allowed");
    if setting().is_none_or(|held| !held.contains("[never]")) {
        return skip("folios of 64k have no setting, or are allowed");
    }
    let output = in_scratch(&scratch, "--file-size 2m --folio-sizes 64k").output().unwrap();
    let message = stderr(&output);
    assert_eq!((output.status.code(), message.matches('\n').count()), (Some(4), 1), "{message}");
    assert!(message.contains("folios of 64k") && message.contains("give --apply"), "{message}");
    let some = "--file-size 2m --folio-sizes 4k,64k --runs 1";
    let output = in_scratch(&scratch, some).output().unwrap();
    let text = String::from_utf8(output.stdout).unwrap();
    let text = text.split_whitespace().collect::<Vec<_>>().join(" ");
    assert!(text.contains("Warning: folios of 64k are not measured: the settings in"), "{text}");
    assert!(text.contains("Time of a page in ns") && text.contains("cow-byte"), "{text}");
}

#[test]
fn a_signal_leaves_the_settings_as_they_were() {
    let _alone = ONE_AT_A_TIME.lock().unwrap_or_else(PoisonError::into_inner);
    let scratch = Scratch::new("folios_signal");
    if !rustix::process::geteuid().is_root() {
        return skip("it needs root");
    }
    let Some(before) = setting() else {
        return skip("this kernel has no setting of folios of 64k");
    };
    for (signal, number) in [("INT", 2), ("TERM", 15)] {
        let endless = "--file-size 64m --folio-sizes 64k --runs 1000 --apply";
        let mut child = Running::start(&mut in_scratch(&scratch, endless));
        let changed = || is_listed(&scratch) && setting().is_some_and(|held| held != before);
        if !child.reaches(changed) {
            return skip(stderr(&child.output()));
        }
        child.signal(signal);
        let output = child.output();
        assert_eq!(output.status.code(), Some(128 + number), "{}", stderr(&output));
        assert_eq!(setting().as_ref(), Some(&before));
        let left = fs::read_dir(scratch.path("state")).into_iter().flatten().count();
        assert_eq!(left, 0);
    }
}

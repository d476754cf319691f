//! Operations on folios on the running kernel: missing features are named, and settings restored.

use std::fs;
use std::path::Path;
use std::process::Command;
use std::sync::{Mutex, PoisonError};

use crate::running::Running;
use crate::skip::skip;
use crate::{Scratch, filemap, stderr};

const SETTINGS: &str = "/sys/kernel/mm/transparent_hugepage";

const JOB: &str = "folio-ops --on kernel";

/// Serializes tests, which would see each other's changes.
static ONE_AT_A_TIME: Mutex<()> = Mutex::new(());

/// A command whose journal is in a directory of its own.
fn in_scratch(scratch: &Scratch, args: &str) -> Command {
    let mut command = filemap(&format!("{JOB} {args}"));
    command.env("FILEMAP_STATE", scratch.path("state"));
    command
}

/// Value of the setting for 64 KiB folios.
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
    let output = in_scratch(&scratch, "--size 2m --folio-sizes 64k").output().unwrap();
    let message = stderr(&output);
    assert_eq!((output.status.code(), message.matches('\n').count()), (Some(4), 1), "{message}");
    assert!(
        message.contains("folios of 64k") && message.contains("give --change-settings"),
        "{message}"
    );
    let some = "--size 2m --folio-sizes 4k,64k --runs 1";
    let output = in_scratch(&scratch, some).output().unwrap();
    let text = String::from_utf8(output.stdout).unwrap();
    let text = text.split_whitespace().collect::<Vec<_>>().join(" ");
    assert!(text.contains("Warning: folios of 64k are not measured: the settings in"), "{text}");
    assert!(text.contains("Time of a page in ns") && text.contains("cow-byte"), "{text}");
    assert!(text.contains("Folios: 4 KiB Machine:"), "only what was measured: {text}");
}

#[test]
fn too_much_memory_is_refused_with_what_fits() {
    let scratch = Scratch::new("folios_too_large");
    let output = in_scratch(&scratch, "--size 1t --folio-sizes 4k").output().unwrap();
    let message = stderr(&output);
    assert_eq!((output.status.code(), message.matches('\n').count()), (Some(4), 1), "{message}");
    assert!(message.contains("end other programs, or give --size "), "{message}");
    assert!(message.ends_with(" or less\n"), "{message}");
}

/// Kills a run that changed the setting, optionally sets it to `since`, and returns the message of
/// the next command and the resulting value.
fn after_kill(scratch: &Scratch, before: &str, since: Option<&str>) -> Option<(String, String)> {
    let endless = "--size 64m --folio-sizes 64k --runs 1000 --change-settings";
    let mut child = Running::start(&mut in_scratch(scratch, endless));
    let changed = || is_listed(scratch) && setting().is_some_and(|held| held != before);
    if !child.reaches(changed) {
        skip(stderr(&child.output()));
        return None;
    }
    child.signal("KILL");
    child.output();
    let path = Path::new(SETTINGS).join("hugepages-64kB/enabled");
    if let Some(word) = since {
        fs::write(&path, word).unwrap();
    }
    let next = || {
        let mut command = filemap("run --workload first --file-size 1m");
        command.env("FILEMAP_STATE", scratch.path("state")).output().unwrap()
    };
    let (said, held) = (stderr(&next()), fs::read_to_string(&path).unwrap());
    // Restored for other tests even on failure.
    fs::write(&path, word(before)).unwrap();
    assert_eq!(stderr(&next()), "", "it is said once");
    Some((said, held))
}

/// The word in brackets.
fn word(held: &str) -> &str {
    held.split(['[', ']']).nth(1).unwrap()
}

#[test]
fn what_a_killed_run_changed_is_restored_unless_others_changed_it() {
    let _alone = ONE_AT_A_TIME.lock().unwrap_or_else(PoisonError::into_inner);
    let scratch = Scratch::new("folios_killed");
    if !rustix::process::geteuid().is_root() {
        return skip("it needs root");
    }
    let Some(before) = setting().filter(|held| word(held) == "never") else {
        return skip("folios of 64k have no setting, or are allowed");
    };
    let Some((said, held)) = after_kill(&scratch, &before, None) else { return };
    assert_eq!((held, said.matches('\n').count()), (before.clone(), 1), "{said}");
    assert!(said.starts_with("filemap: restored what a killed run had changed: "), "{said}");
    assert!(said.contains("hugepages-64kB/enabled' to 'never'"), "{said}");
    let Some((said, held)) = after_kill(&scratch, &before, Some("always")) else { return };
    assert_eq!(word(&held), "always");
    let left = "hugepages-64kB/enabled' is left at 'always', which somebody else has set: a run \
                had changed it from 'never' to 'madvise'\n";
    assert!(said.contains(left) && !said.contains("hugepages-64kB/enabled' to"), "{said}");
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
        let endless = "--size 64m --folio-sizes 64k --runs 1000 --change-settings";
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

//! Machines without some required feature, simulated by private mounts and by other programs that
//! hold a resource.

use std::fs;
use std::os::unix::fs::PermissionsExt;
use std::path::Path;
use std::process::Command;

use serde_json::Value;

use crate::running::Running;
use crate::skip::skip;
use crate::{Scratch, can_change_mounts, filemap, has_disk, stderr, without_profile};

const JOB: &str = "run --on kernel --workload first --file-size 4m --accesses 1";

/// Runs the command with `args` after `change` of what it sees of the machine; it must fail with
/// `code` and one line that has `words`, and leave nothing.
#[track_caller]
fn lacking(test: &str, change: &str, args: &str, code: i32, words: &[&str]) {
    let scratch = Scratch::new(test);
    let state = scratch.path("state");
    let script = format!("{change} exec {} {args}", env!("CARGO_BIN_EXE_filemap"));
    let mut command = without_profile("unshare");
    command.args(["--mount", "sh", "-e", "-c", &script]).env("FILEMAP_STATE", &state);
    let output = Running::start(&mut command).output();
    let message = stderr(&output);
    assert_eq!(output.status.code(), Some(code), "{message}");
    assert!(message.starts_with("filemap: ") && message.matches('\n').count() == 1, "{message}");
    assert!(words.iter().all(|word| message.contains(word)), "{message}");
    let left: Vec<_> = fs::read_dir(&state).into_iter().flatten().flatten().collect();
    assert!(left.is_empty(), "{left:?}");
}

#[test]
fn no_loop_device() {
    let flags = "--read-ahead-kb 64 --fs ext4";
    if !can_change_mounts() {
        return;
    }
    if !Path::new("/dev/loop-control").exists() {
        return skip("there are no loop devices");
    }
    if filemap(&format!("{JOB} {flags}")).output().unwrap().status.code() == Some(4) {
        return skip("no scratch filesystem can be made here");
    }
    let change = "mount --bind /dev/null /dev/loop-control;";
    lacking("no_loop", change, &format!("{JOB} {flags}"), 4, &["a loop device", "load the module"]);
    lacking("no_mkfs", "PATH=;", &format!("{JOB} {flags}"), 4, &["mkfs.ext4", "install"]);
}

#[test]
fn conform_without_mkfs() {
    let path = std::env::var("PATH").unwrap_or_default();
    let mut places = std::env::split_paths(&path).map(|directory| directory.join("mkfs.ext4"));
    let Some(mkfs) = places.find(|path| path.exists()) else {
        return skip("it needs mkfs.ext4");
    };
    let scratch = Scratch::new("no_mkfs_xfs");
    std::os::unix::fs::symlink(mkfs, scratch.path("mkfs.ext4")).unwrap();
    let conform = |format: &str| {
        let mut command = filemap(&format!("conform --fuzz 8 --seed 7{format}"));
        command.env("PATH", scratch.path("")).env("FILEMAP_STATE", scratch.path("state"));
        Running::start(&mut command).output()
    };
    let output = conform(" --json -");
    if output.status.code() == Some(4) {
        return skip(stderr(&output));
    }
    assert!(output.status.success(), "{}", stderr(&output));
    let report: Value = serde_json::from_slice(&output.stdout).unwrap();
    let patterns = report["patterns"].as_array().unwrap();
    let mut left_out = 0;
    for pattern in patterns {
        let needs_it = pattern["job"].as_str().unwrap().contains("fs = \"xfs\"");
        let reason = pattern["left_out"].as_str().unwrap_or_default();
        assert_eq!(needs_it, reason.contains("mkfs.xfs") && reason.contains("install xfsprogs"));
        assert_eq!(pattern["ok"].is_null(), needs_it, "{pattern}");
        left_out += usize::from(needs_it);
    }
    assert!((1..patterns.len()).contains(&left_out), "{left_out} were left out");
    let text = String::from_utf8(conform("").stdout).unwrap();
    let parts = text.split("\n\n").collect::<Vec<_>>();
    let [.., outcome, _] = parts[..] else { panic!("parts: {text}") };
    assert!(outcome.starts_with(&format!("{left_out} of 8 patterns were left out")), "{outcome}");
}

#[test]
fn no_tracefs() {
    let setpriv = Command::new("setpriv").arg("--version").output();
    if !can_change_mounts() {
        return;
    }
    if setpriv.is_err() {
        return skip("it needs setpriv");
    }
    let args = "conform --workload first --file-size 4m --accesses 1";
    // At any mount point, also with several mounts on one directory.
    let unprivileged = "while point=$(awk '$3 == \"tracefs\" { print $2; exit }' \
                        /proc/self/mounts) && [ -n \"$point\" ]; do umount -l \"$point\"; done; \
                        exec setpriv --bounding-set=-sys_admin";
    let script = format!("{unprivileged} {} {args};", env!("CARGO_BIN_EXE_filemap"));
    lacking("no_tracefs", &script, "", 4, &["tracefs"]);
}

#[test]
fn a_read_only_cgroup() {
    let places = ["/sys/fs/cgroup/memory", "/sys/fs/cgroup"];
    let Some(place) = places.into_iter().find(|place| Path::new(place).is_dir()) else {
        return skip("no cgroups are mounted");
    };
    if !can_change_mounts() {
        return;
    }
    let change = format!("mount --bind {place} {place}; mount -o remount,bind,ro {place};");
    let args = format!("{JOB} --memory-max 64m");
    lacking("read_only_cgroup", &change, &args, 4, &["a memory cgroup"]);
}

#[test]
fn the_multi_generational_lru() {
    if !can_change_mounts() {
        return;
    }
    let change = "mount -t tmpfs none /sys/kernel/mm; mkdir /sys/kernel/mm/lru_gen; \
                  echo 0x0007 > /sys/kernel/mm/lru_gen/enabled;";
    let larger = "run --on kernel --workload first --file-size 8m --accesses 1 --memory-max 8m";
    lacking("lru_gen", change, larger, 4, &["multi-generational LRU", "echo 0 >", "--image"]);
}

#[test]
fn disk_fills_up() {
    if !can_change_mounts() {
        return;
    }
    let image = Scratch::new("filling_image");
    let path = image.file("disk", "");
    fs::File::options().write(true).open(&path).unwrap().set_len(16 << 20).unwrap();
    let mkfs = Command::new("mkfs.ext4").args(["-q", &path]).status();
    if !mkfs.is_ok_and(|status| status.success()) {
        return skip("it needs mkfs.ext4");
    }
    let change = format!("mount -o loop {path} /mnt; export TMPDIR=/mnt;");
    let args = "run --on kernel --workload first --file-size 32m --accesses 1";
    lacking("full_disk", &change, args, 4, &["no room", "/mnt", "33554432", "are available"]);
    let change = format!("mount -o loop {path} /mnt; export TMPDIR=/mnt;");
    let args = "run --on kernel --read-ahead-kb 64 --fs ext4 --workload first --accesses 1 \
                --file-size 20m";
    lacking("full_disk", &change, args, 4, &["no room", "/mnt", "are available"]);
}

#[test]
fn qemu_is_missing_or_dies() {
    if !has_disk() {
        return;
    }
    let scratch = Scratch::new("no_qemu");
    let kernel = scratch.file("bzImage", bz_image());
    let args = format!("{JOB} --image {kernel}");
    let in_path = |directory: &str| {
        let path = std::env::var("PATH").unwrap_or_default();
        let mut command = filemap(&args);
        command.env("PATH", format!("{directory}:{path}"));
        Running::start(&mut command).output()
    };
    let mut longer = bz_image();
    longer[0x1f4..0x1f8].copy_from_slice(&1000u32.to_le_bytes());
    let path = scratch.file("cut", longer);
    let cut = filemap(&format!("{JOB} --image {path}")).output().unwrap();
    assert_eq!(cut.status.code(), Some(2), "{}", stderr(&cut));
    assert!(stderr(&cut).contains("it is cut off at 8192 of 17024 bytes"), "{}", stderr(&cut));
    let missing = filemap(&args).env("PATH", "").output().unwrap();
    assert_eq!(missing.status.code(), Some(4), "{}", stderr(&missing));
    assert!(stderr(&missing).contains("install the package qemu-system-x86"));
    for (script, words) in [
        ("#!/bin/sh\nexit 3\n", "QEMU ended (exit status: 3)"),
        ("#!/bin/sh\nkill -9 $$\n", "QEMU ended (signal: 9"),
        ("#!/bin/sh\nexit 0\n", "stopped without a result"),
    ] {
        let program = scratch.file("qemu-system-x86_64", script);
        fs::set_permissions(&program, fs::Permissions::from_mode(0o755)).unwrap();
        let output = in_path(&scratch.path(""));
        assert_eq!(output.status.code(), Some(1), "{}", stderr(&output));
        assert!(stderr(&output).contains(words), "{}", stderr(&output));
        assert_eq!(stderr(&output).matches('\n').count(), 1);
    }
}

/// A bootable kernel's setup header without anything after it.
fn bz_image() -> Vec<u8> {
    let mut image = vec![0; 8192];
    image[0x1f1] = 1;
    image[0x1fe..0x200].copy_from_slice(&0xaa55u16.to_le_bytes());
    image[0x202..0x206].copy_from_slice(b"HdrS");
    image[0x206..0x208].copy_from_slice(&0x020fu16.to_le_bytes());
    image[0x20e..0x210].copy_from_slice(&0x200u16.to_le_bytes());
    let release = b"6.12.0-test (nobody@nowhere)\0";
    image[0x400..0x400 + release.len()].copy_from_slice(release);
    image
}

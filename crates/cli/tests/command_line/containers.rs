//! `filemap record` of programs in containers: in mount namespaces of their own, or on overlays.

use std::fs;
use std::path::Path;
use std::process::Command;

use filemap_kernel::cold_cache;
use filemap_kernel::storage::Storage;
use filemap_recording::EventKind;
use serde_json::Value;

use crate::governed::Place;
use crate::recorded::{PAGES, events, is_recorded, touches};
use crate::running::Running;
use crate::{skip, stderr};

/// The files of a process in another mount namespace are found, whatever is at their path here, and
/// recorded by the path that they have here.
#[test]
fn records_process_in_another_mount_namespace() {
    if !rustix::process::geteuid().is_root() {
        return skip("only root may make mount namespaces");
    }
    let place = Place::new("record_namespace");
    let [program, data] = place.lookups();
    let [root, name] = ["root", "root/data"].map(|name| place.scratch.path(name));
    fs::create_dir(&root).expect("the target directory can be written");
    // A file without pages is there for everybody else.
    fs::write(&name, "other").expect("the target directory can be written");
    for (kind, enter) in [("bind", "exec".to_string()), ("chroot", format!("exec chroot {root}"))] {
        let (program, seen) = match kind {
            "chroot" => ("/program".to_string(), "/data"),
            _ => (program.clone(), name.as_str()),
        };
        let script = format!("mount --bind {data} {name} && {enter} {program} {seen} 400 wait");
        let mut command = Command::new("unshare");
        command.args(["-m", "sh", "-c", &script]).env("LOOKUPS_WORK_US", "10000");
        if kind == "chroot" {
            let source = concat!(env!("CARGO_MANIFEST_DIR"), "/tests/command_line/lookups.c");
            let to = format!("{root}/program");
            let mut compiler = Command::new("cc");
            let compiled =
                compiler.args(["-O1", "-static", "-pthread", "-o", &to, source]).status();
            if !compiled.is_ok_and(|status| status.success()) {
                return skip("no static libc");
            }
        }
        cold_cache::drop_file(Path::new(&data)).expect("it can be dropped");
        let running = Running::start(&mut command);
        std::thread::sleep(std::time::Duration::from_millis(300));
        let path = place.scratch.path(kind);
        let args = format!("--pid {} --cold --duration 1s --output {path}", running.id());
        let output = place.command("record", &args).output().expect("the command starts");
        drop(running);
        if !is_recorded(&output) {
            return;
        }
        let events = events(&path);
        let file = events.iter().find_map(|event| match &event.kind {
            EventKind::File { path, size_bytes, .. } => Some((path.clone(), *size_bytes)),
            _ => None,
        });
        assert_eq!(file, Some((data.clone().into(), PAGES * 4096)), "{kind}: {}", stderr(&output));
        assert!(!touches(&events, &data).is_empty(), "{kind}: {}", stderr(&output));
    }
}

/// A file of an overlay has the readahead and the pages of its layer, whether the overlay is
/// mounted here or in the namespace of the process alone.
#[test]
fn overlay_has_the_readahead_of_its_layer() {
    if !rustix::process::geteuid().is_root() {
        return skip("only root may mount overlays");
    }
    if !crate::has_disk() {
        return;
    }
    let place = Place::new("record_overlay");
    let [program, data] = place.lookups();
    let names = ["lower", "upper", "work", "mounted"].map(|name| place.scratch.path(name));
    names.iter().for_each(|name| fs::create_dir(name).expect("the directory can be written"));
    let [lower, upper, work, mounted] = &names;
    fs::rename(&data, format!("{lower}/data")).expect("it is ours");
    let options = format!("lowerdir={lower},upperdir={upper},workdir={work}");
    let script = format!(
        "mount -t overlay overlay -o {options} {mounted} || exit 9; {program} {mounted}/data 40"
    );
    let path = place.scratch.path("r");
    let mut command = place.command("record", &format!("--output {path} -- unshare -m sh -c"));
    // Long enough for the recorder to find the file.
    command.arg(&script).env("LOOKUPS_PAUSE_US", "5000");
    let output = command.output().expect("the command starts");
    if output.status.code() == Some(9) {
        return skip(stderr(&output));
    }
    assert!(!touches(&events(&path), &format!("{lower}/data")).is_empty(), "{}", stderr(&output));
    let run = |args: &str| {
        let output = place.command("run", args).output().expect("the command starts");
        assert!(output.status.success(), "{}", stderr(&output));
        let record: Value = serde_json::from_slice(&output.stdout).expect("one JSON object");
        let pages = record["runs"][0]["counters"]["data_pages_read"].clone();
        (record["job"]["read_ahead_kb"].clone(), pages)
    };
    let disk = Storage::find(Path::new(lower)).expect("it exists").read_ahead_kb;
    // The overlay is gone with its namespace; its device is not.
    assert_eq!(run(&format!("{path} --json -")).0.as_u64(), disk, "{}", stderr(&output));
    let is_mounted = Command::new("mount")
        .args(["-t", "overlay", "overlay", "-o", &options, mounted])
        .status()
        .is_ok_and(|status| status.success());
    let shown = place.command("record", &format!("--show {path}")).output();
    let job = "--workload random --accesses 40 --json - --file";
    let found = run(&format!("{job} {mounted}/data"));
    let expected = run(&format!("{job} {lower}/data"));
    let unmounted = Command::new("umount").arg(mounted).status().expect("umount starts");
    assert!(is_mounted && unmounted.success());
    let shown = String::from_utf8_lossy(&shown.expect("the command starts").stdout).into_owned();
    assert!(shown.contains(&format!("path = \"{lower}/data\"")), "{shown}");
    assert_eq!((found.0.as_u64(), &found), (disk, &expected));
}

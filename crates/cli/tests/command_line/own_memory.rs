//! A program that holds memory of its own beside its files, under a memory limit; and one whose
//! files are cached at the beginning.

use std::os::unix::process::CommandExt;
use std::path::Path;
use std::process::Command;

use filemap_kernel::cgroup::{CgroupLimits, MemoryCgroup};
use filemap_kernel::cold_cache;
use filemap_kernel::journal::Journal;
use filemap_kernel::procstat::VmStat;
use serde_json::Value;

use crate::governed::Place;
use crate::recorded::is_recorded;
use crate::{skip, stderr};

const MIB: u64 = 1 << 20;

/// Size of the file: the limit leaves room for it, but not also for the program's memory.
const FILE_MIB: u64 = 40;
const HELD_MIB: u64 = 24;
const LIMIT_MIB: u64 = 56;

/// Pages of files that were read into the memory of `cgroup` again.
fn refaults(stat: VmStat) -> u64 {
    let changes = stat.into_map();
    let refaults = changes.get("workingset_refault_file").copied().unwrap_or(0);
    u64::try_from(refaults).expect("it counts up")
}

/// The pages that a program reads under a memory limit are those of its files and its own memory:
/// the model is compared with the program in a memory cgroup, and with the same job on the kernel.
#[test]
fn the_programs_own_memory_counts_under_a_limit() {
    if !rustix::process::geteuid().is_root() || !crate::has_disk() {
        return skip("memory cgroups and reads are for root, and a disk");
    }
    let place = Place::new("own_memory");
    let program = place.compiled("held");
    let bytes: Vec<u8> = (0..FILE_MIB * MIB).map(|at| (at / 4096 % 251) as u8).collect();
    let data = place.scratch.file("data", bytes);
    std::fs::File::open(&data).and_then(|file| file.sync_all()).expect("the disk has room");
    let held = HELD_MIB.to_string();
    let path = place.scratch.path("r");
    let mut command = place.command("record", &format!("--output {path} --"));
    let output = command.args([&program, &data, &held]).output().expect("the command starts");
    if !is_recorded(&output) {
        return;
    }
    assert!(output.status.success(), "{}", stderr(&output));
    let limits = CgroupLimits { max_bytes: Some(LIMIT_MIB * MIB), high_bytes: None };
    let journal = Journal::open().expect("root has one");
    let Ok(cgroup) = MemoryCgroup::create(&journal, limits) else {
        return skip("no memory cgroup can be made");
    };
    cold_cache::drop_file(Path::new(&data)).expect("it can be dropped");
    let procs = cgroup.path().join("cgroup.procs");
    let mut command = Command::new(&program);
    // SAFETY: write(2) to a file only.
    unsafe { command.pre_exec(move || std::fs::write(&procs, "0")) };
    let ran = command.args([&data, &held]).output().expect("it starts");
    assert!(ran.status.success(), "{ran:?}");
    let measured = FILE_MIB * 256 + refaults(cgroup.stat().expect("it has counters"));
    let pages = |flags: &str| {
        let args = format!("{path} --memory-max {LIMIT_MIB}m {flags} --json -");
        let output = place.command("run", &args).output().expect("the command starts");
        assert!(output.status.success(), "{}", stderr(&output));
        let record: Value = serde_json::from_slice(&output.stdout).expect("one JSON object");
        record["runs"][0]["counters"]["data_pages_read"].as_u64().expect("they are counted")
    };
    assert_eq!(pages("--anonymous 0"), FILE_MIB * 256, "it alone fits");
    let predicted = pages("");
    assert!(measured > FILE_MIB * 256 * 3 / 2, "{measured}");
    let is_near = |pages: u64| pages.abs_diff(measured) <= measured / 50;
    assert!(is_near(predicted), "{predicted} predicted, {measured} measured");
    let kernel = pages("--on kernel --cold");
    println!("{predicted} predicted, {kernel} by the probe, {measured} measured");
    assert!(is_near(kernel), "{kernel} by the probe, {measured} measured");
}

/// A run on the kernel begins with the cached pages that the model begins with.
#[test]
fn runs_begin_with_the_pages_that_are_cached() {
    if !rustix::process::geteuid().is_root() || !crate::has_disk() {
        return skip("pages of files are counted for root, and on a disk");
    }
    let place = Place::new("start");
    let job = "--workload stride:7 --file-size 16m --accesses 2000 --advice random";
    let kb = std::fs::read_to_string("/sys/block/vda/queue/read_ahead_kb").unwrap_or_default();
    for start in ["cold", "warm", "0.5"] {
        let counters = |engine: &str| {
            let kb = if kb.is_empty() { "128" } else { kb.trim() };
            let args = format!("{job} --start {start} --read-ahead-kb {kb} --on {engine} --json -");
            let output = place.command("run", &args).output().expect("the command starts");
            if output.status.code() == Some(4) {
                skip(stderr(&output));
                return None;
            }
            assert!(output.status.success(), "{}", stderr(&output));
            let record: Value = serde_json::from_slice(&output.stdout).expect("one JSON object");
            let run = &record["runs"][0];
            let keys = ["data_pages_read", "major_faults"];
            Some((keys.map(|key| run["counters"][key].as_u64()), run["cached"].as_u64()))
        };
        let Some(kernel) = counters("kernel") else { return };
        assert_eq!(Some(kernel), counters("model"), "--start {start}");
    }
}

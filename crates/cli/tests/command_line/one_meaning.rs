//! A flag has the same meaning for the model and the running kernel: both read the same number of
//! pages of the same file.
//!
//! `FILEMAP_FUZZ_SEED` sets the random seed, which is printed.

use std::fs::{self, File};
use std::io::{Seek, SeekFrom, Write};
use std::path::Path;

use filemap_core::rules::Kernel;
use filemap_job::random::Rng;
use filemap_kernel::storage::Storage;
use serde_json::Value;

use crate::running::Running;
use crate::{Scratch, filemap, has_disk, json, stderr, stdout};

/// Number of random configurations.
const DRAWN: usize = 12;

const PAGE: u64 = 4096;

/// stdout of the command; `None`, with a printed note, if it cannot run here.
#[track_caller]
fn record(scratch: &Scratch, args: &str) -> Option<Value> {
    let mut command = filemap(&format!("run {args} --json -"));
    command.env("FILEMAP_STATE", scratch.path("state")).env("TMPDIR", scratch.path(""));
    let output = Running::start(&mut command).output();
    if output.status.code() == Some(4) {
        println!("skipped: {}", stderr(&output).trim());
        return None;
    }
    assert!(output.status.success(), "{args}: {}", stderr(&output));
    Some(serde_json::from_slice(&output.stdout).expect("one JSON object"))
}

fn pages_read(record: &Value) -> u64 {
    record["runs"][0]["counters"]["data_pages_read"].as_u64().expect("both engines count them")
}

/// The release of the running kernel, if its rules are the default ones.
fn has_default_rules() -> bool {
    let release = fs::read_to_string("/proc/sys/kernel/osrelease").unwrap_or_default();
    let nearest = Kernel::nearest(release.trim());
    let own = nearest.is_some_and(|nearest| nearest.is_exact && nearest.kernel == Kernel::V6_18);
    if !own {
        println!("skipped: the rules of 6.18 are not those of {}", release.trim());
    }
    own
}

/// Creates a file without holes in `scratch`.
fn file(scratch: &Scratch, bytes: u64) -> String {
    let block: Vec<u8> =
        (0..1 << 20).map(|at: u32| (at.wrapping_mul(2_654_435_761) >> 24) as u8).collect();
    let path = scratch.path("data.bin");
    let mut file = File::create(&path).unwrap();
    let mut left = bytes;
    while left > 0 {
        let length = left.min(block.len() as u64);
        file.write_all(&block[..length as usize]).unwrap();
        left -= length;
    }
    file.sync_all().unwrap();
    path
}

/// Random flags of a job on a file of `pages` pages.
fn drawn(rng: &mut Rng, pages: u64) -> String {
    let workload = match rng.below(9) {
        0 | 1 => "random".to_string(),
        2 => format!("stride:{}", 1 + rng.below(3000)),
        3 => "sequential".to_string(),
        4 => "reverse".to_string(),
        5 => format!("interleave:{}", 1 + rng.below(8)),
        6 => "first".to_string(),
        7 => "read-random".to_string(),
        _ => "read-sequential".to_string(),
    };
    let mut flags = format!("--workload {workload} --accesses {}", 1 + rng.below(600));
    flags += &format!(" --seed {}", 1 + rng.below(1 << 40));
    if workload.starts_with("read") {
        flags += &format!(" --bs {}", rng.pick(&["512", "4k", "5000", "64k", "300k", "1m", "20m"]));
    }
    if rng.chance(40) {
        let offset = rng.below(pages / 2);
        let length = 16 + rng.below(pages - offset - 16);
        flags += &format!(" --map-offset {} --map-len {}", offset * PAGE, length * PAGE);
    }
    if rng.chance(40) {
        flags += &format!(" --advice {}", rng.pick(&["random", "sequential", "normal"]));
    }
    if rng.chance(20) {
        flags += &format!(" --map-shift {}", rng.below(512));
    }
    if rng.chance(20) {
        flags += &format!(" --split {}", 8 + rng.below(500));
    }
    flags
}

#[test]
fn the_model_reads_as_many_pages_of_a_file_as_the_kernel() {
    if !has_disk() || !has_default_rules() {
        return;
    }
    let seed = std::env::var("FILEMAP_FUZZ_SEED").ok().and_then(|seed| seed.parse().ok());
    let seed = seed.unwrap_or(u64::from(std::process::id()));
    println!("FILEMAP_FUZZ_SEED={seed}");
    let mut rng = Rng(seed);
    let scratch = Scratch::new("one_meaning");
    let pages = 8192 + rng.below(8192);
    let path = file(&scratch, pages * PAGE - rng.pick(&[0, 1, 4095]));
    let fixed = ["random", "stride:37", "sequential"].map(|name| format!("--workload {name}"));
    let (mut compared, mut disturbed) = (0, 0);
    for flags in fixed.into_iter().chain((0..DRAWN).map(|_| drawn(&mut rng, pages))) {
        let flags = format!("--file {path} {flags}");
        let Some(measured) = record(&scratch, &format!("{flags} --on kernel")) else { return };
        if measured["environment"]["runs_kept_with_foreign_eviction"].as_u64() > Some(0) {
            disturbed += 1;
            continue;
        }
        for model in ["", "--kernel host"] {
            let predicted = record(&scratch, &format!("{flags} {model}")).expect("it ran above");
            for key in ["read_ahead_kb", "fs", "page_size", "arch", "kernel", "file_size"] {
                assert_eq!(predicted["job"][key], measured["job"][key], "{key}, {flags} {model}");
            }
            assert_eq!(
                pages_read(&predicted),
                pages_read(&measured),
                "FILEMAP_FUZZ_SEED={seed}: model and kernel, {flags} {model}"
            );
        }
        compared += 1;
    }
    println!("{compared} configurations compared, {disturbed} disturbed by others");
}

#[test]
fn a_file_has_the_readahead_of_its_device() {
    if !has_disk() {
        return;
    }
    let scratch = Scratch::new("readahead_of_device");
    let path = file(&scratch, 1 << 20);
    let place = Storage::find(Path::new(&path)).unwrap();
    let job = format!("run --workload random --accesses 9 --file {path} --json -");
    let found = json(&job);
    assert_eq!(found["job"]["read_ahead_kb"].as_u64(), place.read_ahead_kb);
    assert_eq!(found["job"]["fs"], place.folios().name());
    assert_eq!(found["job"]["kernel"], "6.18", "--file says nothing of rules");
    let io_bytes = filemap_kernel::storage::io_bytes(Path::new(&path)).ok();
    let profile = |record: &Value| record["environment"]["profile"]["device"]["io_bytes"].as_u64();
    if io_bytes.is_some() {
        assert_eq!(profile(&found), io_bytes);
    }
    // Flags take precedence.
    let shown = json(&format!("{job} --read-ahead-kb 64 --fs xfs"));
    assert_eq!((&shown["job"]["read_ahead_kb"], &shown["job"]["fs"]), (&64.into(), &"xfs".into()));
    // Other commands behave alike.
    let args =
        format!("compare --workload random --accesses 9 --file {path} --variants baseline,p2");
    let cells = json(&format!("{args} --json -"));
    assert_eq!(cells["cells"][1]["job"]["read_ahead_kb"].as_u64(), place.read_ahead_kb);
    let args = "compare --workload random --accesses 9 --file-size 1m";
    let cells = json(&format!("{args} --variants baseline,kernel=host --json -"));
    if let Ok(bytes) = filemap_kernel::engine::temporary_directory()
        .and_then(|directory| filemap_kernel::storage::io_bytes(&directory))
    {
        let of_host = cells.to_string().contains(&format!("\"io_bytes\":{bytes}"));
        assert!(of_host, "a variant takes the largest request of this machine's device");
    }
    // A size without a file does not refer to this machine.
    let sized = json("run --workload random --accesses 9 --file-size 1m --json -");
    assert_eq!(sized["job"]["read_ahead_kb"], 128);
    let here = json("run --workload random --accesses 9 --file-size 1m --kernel host --json -");
    let usual = filemap_kernel::engine::temporary_directory().unwrap();
    assert_eq!(here["job"]["read_ahead_kb"].as_u64(), Storage::find(&usual).unwrap().read_ahead_kb);
    let command = here["command"].as_str().unwrap();
    assert!(command.contains("--kernel host"), "{command}");
}

#[test]
fn files_in_memory_have_no_readahead() {
    let directory = Path::new("/dev/shm");
    if !Storage::find(directory).is_ok_and(|place| place.unsuitable_reason().is_some()) {
        println!("files_in_memory_have_no_readahead: skipped: /dev/shm is not in memory");
        return;
    }
    let path = directory.join(format!("filemap-one-meaning-{}", std::process::id()));
    fs::write(&path, [1; 8192]).unwrap();
    let job = format!("run --workload first --accesses 1 --file {}", path.display());
    let refused = filemap(&job).output().unwrap();
    let output = filemap(&format!("{job} --read-ahead-kb 128 --fs ext4")).output().unwrap();
    fs::remove_file(&path).unwrap();
    assert_eq!(refused.status.code(), Some(4), "{}", stderr(&refused));
    let message = stderr(&refused);
    assert_eq!(message.matches('\n').count(), 1);
    for word in ["in memory", "--read-ahead-kb", "--fs"] {
        assert!(message.contains(word), "{message}");
    }
    assert!(output.status.success(), "{}", stderr(&output));
}

#[test]
fn holes_are_not_read() {
    if !has_disk() {
        return;
    }
    let scratch = Scratch::new("holes");
    let path = scratch.path("sparse.bin");
    let mut file = File::create(&path).unwrap();
    file.set_len(4 << 20).unwrap();
    let job = format!("run --workload sequential --accesses 64 --file {path}");
    let all = json(&format!("{job} --json -"));
    assert_eq!(all["job"]["file"][0]["sparse"], true);
    assert_eq!(all["runs"][0]["counters"]["bytes_read"], 0);
    file.seek(SeekFrom::Start(1 << 20)).unwrap();
    file.write_all(&[1; 65536]).unwrap();
    file.sync_all().unwrap();
    // Read until the data, and all of it.
    for (accesses, bytes_read) in [(64, 0), (1024, 65536)] {
        let job = format!(
            "run --workload sequential --accesses {accesses} --read-ahead-kb 128 --file {path}"
        );
        let some = json(&format!("{job} --json -"));
        assert_eq!(some["job"]["file"][0]["sparse"], Value::Null);
        assert_eq!(some["runs"][0]["counters"]["bytes_read"], bytes_read, "{job}");
    }
    let text = stdout(&format!("explain --workload sequential --accesses 1024 --file {path}"));
    let text = text.split_whitespace().collect::<Vec<_>>().join(" ");
    assert!(text.contains("64 KiB of them were read; the others lie in holes"), "{text}");
    let output = filemap(&format!("{job} --sparse")).output().unwrap();
    assert_eq!(output.status.code(), Some(2), "{}", stderr(&output));
}

//! Random attempts at data loss: full disks, and commands killed at any moment. An output is
//! complete or unchanged, and nothing is left behind.
//!
//! `FILEMAP_SEED` sets the seed; `-- --ignored` makes 200 attempts.

use std::collections::BTreeMap;
use std::fs;
use std::path::Path;
use std::process::Command;
use std::thread::sleep;
use std::time::{Duration, Instant};

use filemap_job::random::Rng;
use serde_json::Value;

use crate::running::Running;
use crate::{Scratch, filemap, stderr, without_profile};

const SEED: u64 = 1;
const FEW: u64 = 6;
const MANY: u64 = 200;

/// Writes a log of a few MiB, and a record.
const LOGGED: &str = "run --workload random --file-size 64m --cache-limit 4m --accesses 20000 \
                      --log log --json record";

#[test]
fn nothing_is_lost() {
    attempts("losses", FEW);
}

#[test]
#[ignore = "200 attempts: a minute"]
fn nothing_is_lost_in_many_attempts() {
    attempts("many-losses", MANY);
}

fn attempts(test: &str, number: u64) {
    let seed = std::env::var("FILEMAP_SEED").ok().and_then(|text| text.parse().ok());
    let mut rng = Rng(seed.unwrap_or(SEED));
    println!("seed {}", rng.0);
    let usual = usual(&Scratch::new(&format!("{test}-usual")));
    let mut made = [0; 2];
    for attempt in 0..number {
        let about = format!("seed {} attempt {attempt}", seed.unwrap_or(SEED));
        let scratch = Scratch::new(&format!("{test}-{attempt}"));
        let kind = (attempt % 2) as usize;
        made[kind] += match kind {
            0 => full_disk(&scratch, &mut rng, &about),
            _ => end(&scratch, &mut rng, &usual, &about),
        };
    }
    println!("{} full disks, {} ended commands", made[0], made[1]);
    assert!(made.iter().all(|&made| made > 0), "{made:?}");
}

/// The command in `scratch`, with its journals there.
fn inside(scratch: &Scratch, args: &str) -> Command {
    let mut command = filemap(args);
    command.current_dir(scratch.path("")).env("FILEMAP_STATE", scratch.path("state"));
    command.env("XDG_STATE_HOME", scratch.path("home"));
    command
}

/// Every file below `directory` except journals, with its contents.
fn files(directory: &Path) -> BTreeMap<String, Vec<u8>> {
    let mut files = BTreeMap::new();
    for entry in fs::read_dir(directory).expect("it is there").flatten() {
        let path = entry.path();
        if path.is_dir() && !path.is_symlink() {
            if entry.file_name() != "state" {
                files.extend(self::files(&path));
            }
        } else {
            let contents = fs::read(&path).unwrap_or_default();
            files.insert(path.display().to_string(), contents);
        }
    }
    files
}

/// A disk or a file-size limit too small for the whole output.
fn full_disk(scratch: &Scratch, rng: &mut Rng, about: &str) -> usize {
    fs::create_dir(scratch.path("disk")).unwrap();
    let old = rng.chance(50).then(|| vec![b'o'; 1 + rng.below(9000) as usize]);
    old.iter().for_each(|old| drop(scratch.file("old", old)));
    let kib = 16 + rng.below(2000);
    // Only root can mount a small disk, in a private mount namespace.
    let is_limit = rng.chance(50) || !rustix::process::geteuid().is_root();
    let filled = if is_limit {
        format!("ulimit -S -f {kib}")
    } else {
        format!("mount -t tmpfs -o size={kib}k none disk")
    };
    let put = old.as_ref().map_or("true", |_| "cp old disk/log && cp old disk/record");
    let logged = LOGGED.replace("--log ", "--log disk/").replace("--json ", "--json disk/");
    let script = format!(
        "{filled} || exit 77\n{put} || exit 78\n$0 {logged} 2> errors > report\ncode=$?\n\
         ulimit -S -f unlimited; cp -r disk/. after && exit $code"
    );
    fs::create_dir(scratch.path("after")).unwrap();
    let mut command = without_profile(if is_limit { "sh" } else { "unshare" });
    command.args((!is_limit).then_some(["--mount", "sh"]).into_iter().flatten());
    command.args(["-c", &script, env!("CARGO_BIN_EXE_filemap")]);
    command.current_dir(scratch.path("")).env("FILEMAP_STATE", scratch.path("state"));
    let output = Running::start(&mut command).output();
    let message = stderr(&output);
    if matches!(output.status.code(), Some(77)) || message.starts_with("unshare") {
        println!("{about}: skipped, it needs root and unshare: {message}");
        return 0;
    }
    let errors = fs::read_to_string(scratch.path("errors")).unwrap_or_default();
    assert_eq!(output.status.code(), Some(1), "{about}: {filled}: {message} {errors}");
    assert_eq!(errors.lines().count(), 1, "{about}: {errors}");
    assert!(errors.contains("cannot be written"), "{about}: {errors}");
    assert!(fs::read(scratch.path("report")).unwrap().is_empty(), "{about}");
    let after: Vec<_> = files(Path::new(&scratch.path("after"))).into_values().collect();
    assert_eq!(after, old.iter().chain(&old).cloned().collect::<Vec<_>>(), "{about}: {filled}");
    1
}

/// Output of an undisturbed [`LOGGED`], and its duration.
struct Usual {
    log: Vec<u8>,
    took: Duration,
}

/// Its outputs.
const WRITTEN: [&str; 2] = ["log", "record"];

impl Usual {
    /// Whether `contents` are the complete output `name`. Records differ in their time.
    fn is_whole(&self, name: &str, contents: &[u8]) -> bool {
        match name {
            "log" => contents == self.log,
            _ => serde_json::from_slice::<Value>(contents).is_ok_and(|record| record.is_object()),
        }
    }
}

fn usual(scratch: &Scratch) -> Usual {
    let start = Instant::now();
    let output = Running::start(&mut inside(scratch, LOGGED)).output();
    let took = start.elapsed();
    assert!(output.status.success(), "{}", stderr(&output));
    let usual = Usual { log: fs::read(scratch.path("log")).unwrap(), took };
    assert!(usual.log.len() > 4 << 20, "no full disk would be met");
    assert!(usual.is_whole("record", &fs::read(scratch.path("record")).unwrap()));
    usual
}

/// A command that a signal ends at a random moment.
fn end(scratch: &Scratch, rng: &mut Rng, usual: &Usual, about: &str) -> usize {
    let old = rng.chance(70).then(|| "old\n".repeat(1 + rng.below(1000) as usize));
    for name in WRITTEN {
        old.iter().for_each(|old| drop(scratch.file(name, old)));
    }
    let signal = rng.pick(&["INT", "TERM", "HUP", "KILL"]);
    let after = usual.took.mul_f64(rng.below(1100) as f64 / 1000.0);
    let child = Running::start(&mut inside(scratch, LOGGED));
    sleep(after);
    crate::running::signal(signal, child.id());
    let status = child.output().status;
    let about = format!("{about}: SIG{signal} after {after:?}: {status}");
    let names = fs::read_dir(scratch.path("")).unwrap().flatten();
    let names = names.map(|entry| entry.file_name().to_string_lossy().into_owned());
    let left: Vec<String> =
        names.filter(|name| name != "state" && !WRITTEN.contains(&name.as_str())).collect();
    let is_temporary = |name: &String| name.starts_with(".filemap-") && signal == "KILL";
    assert!(left.iter().all(is_temporary), "{about}: {left:?}");
    for name in WRITTEN {
        let found = fs::read(scratch.path(name)).ok();
        let is_old = found.as_deref() == old.as_deref().map(str::as_bytes);
        let is_new = found.is_some_and(|found| usual.is_whole(name, &found));
        assert!(is_old || is_new, "{about}: {name} is torn");
    }
    let next = inside(scratch, "run --workload first --file-size 1m").output().unwrap();
    assert!(next.status.success(), "{about}: {}", stderr(&next));
    let journals = fs::read_dir(scratch.path("state")).map_or(0, |entries| entries.count());
    assert_eq!(journals, 0, "{about}");
    1
}

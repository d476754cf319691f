//! Random attempts at data loss: outputs that are inputs, full disks, and commands killed at any
//! moment. Inputs never change, an output is complete or unchanged, and nothing is left behind.
//!
//! `FILEMAP_SEED` sets the seed; `-- --ignored` makes 200 attempts.

use std::collections::BTreeMap;
use std::fs;
use std::os::unix::fs::symlink;
use std::path::Path;
use std::process::Command;
use std::thread::sleep;
use std::time::{Duration, Instant};

use filemap_job::random::Rng;
use serde_json::Value;

use crate::running::Running;
use crate::{Scratch, filemap, stderr, without_profile};

const SEED: u64 = 1;
const FEW: u64 = 9;
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
    let mut made = [0; 3];
    for attempt in 0..number {
        let about = format!("seed {} attempt {attempt}", seed.unwrap_or(SEED));
        let scratch = Scratch::new(&format!("{test}-{attempt}"));
        let kind = (attempt % 3) as usize;
        made[kind] += match kind {
            0 => collision(&scratch, &mut rng, &about),
            1 => full_disk(&scratch, &mut rng, &about),
            _ => end(&scratch, &mut rng, &usual, &about),
        };
    }
    println!("{} collisions, {} full disks, {} ended commands", made[0], made[1], made[2]);
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

/// An output that is an input, or another output, under some name.
fn collision(scratch: &Scratch, rng: &mut Rng, about: &str) -> usize {
    for directory in ["modules/lib/modules/6.12.0/kernel", "home/filemap", "sub"] {
        fs::create_dir_all(scratch.path(directory)).unwrap();
    }
    scratch.file("data", vec![rng.next() as u8; 1 << 20]);
    scratch.file("image", "no kernel at all");
    scratch.file("list", "1\n2\n3\n");
    scratch.file("modules/lib/modules/6.12.0/kernel/ext4.ko", "module");
    scratch.file("machine.toml", PROFILE);
    scratch.file("home/filemap/machine-profile.toml", PROFILE);
    scratch.file("there", "old");
    scratch.file("job.toml", "workload = \"random\"\naccesses = 5\nfile = \"data\"\n");
    let phases = "file_size = \"1m\"\n[[phase]]\naccesses_file = \"list\"\n";
    scratch.file("phases.toml", phases);
    let (inputs, input) = rng.pick(&[
        ("--workload random --file data", "data"),
        ("--workload random --file data --machine machine.toml", "machine.toml"),
        ("--file-size 1m --accesses-file list", "list"),
        ("job.toml", "job.toml"),
        ("job.toml", "data"),
        ("phases.toml", "list"),
        ("--workload random --file-size 1m", "home/filemap/machine-profile.toml"),
        ("--workload random --file-size 1m --on kernel --image image", "image"),
        (
            "--workload random --file-size 1m --image image --modules modules",
            "modules/lib/modules/6.12.0/kernel/ext4.ko",
        ),
        ("--workload random --file-size 1m", ""),
    ]);
    let (command, flags): (&str, &[&str]) = rng.pick(&[
        ("run", &["--json", "--log", "--html"] as &[&str]),
        ("compare --variants baseline,p1", &["--json", "--html"]),
        ("explain", &["--json", "--html"]),
        ("conform", &["--json"]),
        ("calibrate --runs 1 --file-size 64m", &["--json", "--output"]),
        ("published", &["--html", "--json"]),
        ("doctor", &["--json"]),
        ("search --differ --variants baseline,p1", &["--json", "--state"]),
    ]);
    let own_inputs =
        ["calibrate", "published", "doctor", "search"].iter().any(|c| command.starts_with(c));
    let (inputs, input) = match own_inputs {
        true if flags.len() > 1 => ("", ""),
        true => ("", "home/filemap/machine-profile.toml"),
        false if input.is_empty() && flags.len() == 1 => ("job.toml", "job.toml"),
        false => (inputs, input),
    };
    let outputs = match input {
        // Two outputs: an existing file, or a new one.
        "" => {
            let file = rng.pick(&["there", "new", "sub/new"]);
            format!("{} {file} {} {}", flags[0], flags[1], other_name(scratch, rng, file))
        }
        input => format!("{} {}", rng.pick(flags), other_name(scratch, rng, input)),
    };
    let before = files(&scratch.0);
    let args = format!("{command} {inputs} {outputs}");
    let output = Running::start(&mut inside(scratch, &args)).output();
    let message = stderr(&output);
    assert_eq!(output.status.code(), Some(2), "{about}: {args}: {message}");
    assert_eq!(message.lines().count(), 1, "{about}: {args}: {message}");
    assert!(message.contains("is the same file as"), "{about}: {args}: {message}");
    assert!(output.stdout.is_empty(), "{about}: {args}");
    assert!(files(&scratch.0) == before, "{about}: {args}: something changed");
    1
}

const PROFILE: &str = "[device]\nlatency_ns = 54000\nbandwidth_bytes = 1300000000\n\
                       queue_depth = 32\nio_bytes = 1048576\n[cost]\ntouch_ns = 5\n\
                       fault_ns = 700\nmap_page_ns = 25\nadd_page_ns = 60\n";

/// Another path to the file `name` in `scratch`: equal, relative, or a link.
fn other_name(scratch: &Scratch, rng: &mut Rng, name: &str) -> String {
    let path = scratch.path(name);
    symlink(".", scratch.path("here")).unwrap();
    match rng.below(7) {
        0 => name.to_string(),
        1 => format!("./{name}"),
        2 => path,
        3 => format!("here/sub/../{name}"),
        4 => {
            symlink(&path, scratch.path("link")).unwrap();
            symlink("link", scratch.path("link-to-link")).unwrap();
            "link-to-link".to_string()
        }
        5 => format!("/proc/self/cwd/{name}"),
        _ if Path::new(&path).exists() => {
            fs::hard_link(&path, scratch.path("hard")).unwrap();
            "hard".to_string()
        }
        _ => format!("here/{name}"),
    }
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
    let left = || -> Vec<String> {
        let names = fs::read_dir(scratch.path("")).unwrap().flatten();
        let names = names.map(|entry| entry.file_name().to_string_lossy().into_owned());
        names.filter(|name| name != "state" && !WRITTEN.contains(&name.as_str())).collect()
    };
    if signal != "KILL" {
        assert_eq!(left(), [""; 0], "{about}");
    }
    for name in WRITTEN {
        let found = fs::read(scratch.path(name)).ok();
        let is_old = found.as_deref() == old.as_deref().map(str::as_bytes);
        let is_new = found.is_some_and(|found| usual.is_whole(name, &found));
        assert!(is_old || is_new, "{about}: {name} is torn");
    }
    let next = inside(scratch, "run --workload first --file-size 1m").output().unwrap();
    assert!(next.status.success(), "{about}: {}", stderr(&next));
    assert_eq!(left(), [""; 0], "{about}");
    let journals = fs::read_dir(scratch.path("state")).map_or(0, |entries| entries.count());
    assert_eq!(journals, 0, "{about}");
    1
}

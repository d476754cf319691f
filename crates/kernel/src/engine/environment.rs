//! The environment of a job: what a reader needs to judge or reproduce its figures.

use std::collections::BTreeMap;
use std::fs;
use std::path::Path;
use std::process::Command;

use serde_json::{Map, Value, json};

use super::needs::{JobNeeds, NeededFile};
use super::stage::RunSetup;
use super::{limits, settings};
use crate::child;
use crate::interference::damon_pageout;
use crate::procstat::selected_word;
use crate::temporary_file::FileContents;

/// Options of the kernel configuration that the rules or their costs depend on.
pub const CONFIG_OPTIONS: [&str; 10] = [
    "CONFIG_HZ",
    "CONFIG_LRU_GEN",
    "CONFIG_MEMCG",
    "CONFIG_MM_ID",
    "CONFIG_NO_PAGE_MAPCOUNT",
    "CONFIG_PER_VMA_LOCK",
    "CONFIG_PREEMPT_NONE",
    "CONFIG_PREEMPT_VOLUNTARY",
    "CONFIG_READ_ONLY_THP_FOR_FS",
    "CONFIG_TRANSPARENT_HUGEPAGE",
];

/// The environment of the runs of `stage`, with `seed` and files of this kind.
pub(super) fn run_environment(stage: &RunSetup, needs: &JobNeeds, seed: u64) -> Map<String, Value> {
    let (storage, files) = (&stage.files.storage, &stage.files.files);
    let mut environment = host_environment();
    let mut add = |key: &str, value: Value| environment.insert(key.into(), value);
    add("scope", scope(stage, needs).into());
    let names = files.iter().map(|file| file.name.display().to_string());
    let names: Vec<String> = names.take(MAX_NAMES).collect();
    add("file", names.join(", ").into());
    add("device", storage.device.clone().into());
    add("filesystem", storage.filesystem.clone().into());
    add("mount", storage.mount_options.clone().into());
    add("read_ahead_kb", storage.read_ahead_kb.into());
    add("seed", seed.into());
    add("seed_text", seed.to_string().into());
    if stage.disturbed + stage.kept_disturbed > 0 {
        add("runs_repeated_after_foreign_eviction", stage.disturbed.into());
        add("runs_kept_with_foreign_eviction", stage.kept_disturbed.into());
    }
    environment
}

/// Maximum number of files that are named.
const MAX_NAMES: usize = 20;

/// Environment of the running kernel and its machine, the same for all jobs.
pub fn host_environment() -> Map<String, Value> {
    let uname = rustix::system::uname();
    let release = uname.release().to_string_lossy();
    let mut environment = json!({
        "filemap": env!("CARGO_PKG_VERSION"),
        "kernel": release,
        "build": uname.version().to_string_lossy(),
        "compiler": compiler(),
        "config": config(&release),
        "lru_gen": limits::lru_gen().name(),
        "cpu": cpu_model(),
        "cores": std::thread::available_parallelism().map_or(1, usize::from),
        "ram_kib": field("/proc/meminfo", "MemTotal:").and_then(|text| {
            text.trim_end_matches(" kB").parse::<u64>().ok()
        }),
        "load": read("/proc/loadavg").map(|text| {
            text.split(' ').take(3).collect::<Vec<_>>().join(" ")
        }),
        "thp": read("/sys/kernel/mm/transparent_hugepage/enabled").as_deref().and_then(selected_word),
        "damon": damon_pageout().map(|_| "evicts unmapped pages"),
        "command_line": command_line(),
    });
    let switches = settings::switch_state();
    if !switches.is_empty() {
        environment["series_switches"] = switches.into();
    }
    std::mem::take(environment.as_object_mut().expect("an object literal"))
}

/// The scope of the figures.
fn scope(stage: &RunSetup, needs: &JobNeeds) -> String {
    let cgroup = if stage.has_cgroup() { " in a memory cgroup of its own" } else { "" };
    let files = match needs.files.as_slice() {
        [NeededFile { contents: FileContents::CopyOf(_), .. }] => {
            "a copy of the program, whose pages nobody else maps,"
        }
        [_] => "its file",
        _ => "its files",
    };
    let is_warm = needs.files.iter().any(|needed| !needed.file.cached.is_empty());
    let state =
        if is_warm { "cached before each run as --start says" } else { "cold before each run" };
    format!("the running kernel, one child process{cgroup}, {files} {state}")
}

/// [`CONFIG_OPTIONS`] of the running kernel, if its configuration is readable.
fn config(release: &str) -> Option<BTreeMap<&'static str, String>> {
    let text = packed_config().or_else(|| read(&format!("/boot/config-{release}")))?;
    let value = |option: &str| {
        let mut values = text.lines().filter_map(|line| line.strip_prefix(option));
        values.find_map(|rest| rest.strip_prefix('=')).unwrap_or("n").to_owned()
    };
    Some(CONFIG_OPTIONS.into_iter().map(|option| (option, value(option))).collect())
}

/// The configuration embedded in the kernel (`/proc/config.gz`), unpacked by gzip if installed.
fn packed_config() -> Option<String> {
    let packed = Path::new("/proc/config.gz");
    if !packed.exists() {
        return None;
    }
    let output = child::output(Command::new("gzip").arg("-dc").arg(packed)).ok()?;
    output.status.success().then(|| String::from_utf8_lossy(&output.stdout).into_owned())
}

/// The compiler of the running kernel, from `/proc/version`.
fn compiler() -> Option<String> {
    built_with(&read("/proc/version")?)
}

/// The second parenthesized part: compiler and linker, which contain parentheses themselves.
fn built_with(version: &str) -> Option<String> {
    let (_, rest) = version.split_once(") (")?;
    Some(rest.split_once(") #")?.0.to_owned())
}

/// CPU model as reported by the kernel.
pub(super) fn cpu_model() -> Option<String> {
    field("/proc/cpuinfo", "model name").map(|text| text.trim_start_matches([':', ' ']).to_owned())
}

/// The text after `name` on its line of the file.
fn field(path: &str, name: &str) -> Option<String> {
    let text = read(path)?;
    text.lines().find_map(|line| Some(line.strip_prefix(name)?.trim().to_owned()))
}

fn read(path: &str) -> Option<String> {
    fs::read_to_string(path).ok()
}

/// The command line of this process; invalid UTF-8 is replaced.
pub fn command_line() -> String {
    let words: Vec<String> =
        std::env::args_os().map(|word| word.to_string_lossy().into_owned()).collect();
    words.join(" ")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn parses_compiler() {
        let compiler_of =
            |tools: &str| built_with(&format!("Linux version 6.12.1 (me@here) ({tools}) #1 x"));
        let tools = "gcc (Debian 12.2.0-14) 12.2.0, GNU ld (GNU Binutils) 2.40";
        assert_eq!(compiler_of(tools).as_deref(), Some(tools));
        assert_eq!(built_with("Linux version 6.12.1"), None);
        assert!(host_environment()["compiler"].is_string());
    }
}

//! Every flag that a command lists has an effect there: each pair of command and flag has a command
//! line that is accepted.

use clap::{Arg, Command};
use filemap_job::Flag;

use crate::{Scratch, filemap, stderr};

/// A flag of a job with a value, and what it needs beside it, in place of the command's own job.
fn job_flag(name: &str, list: &str, data: &str) -> String {
    let thrash = "--workload thrash --file-size 1m --memory-max 16m --threads 2 --duration 1ms";
    match name {
        "on" => "--on model".to_string(),
        "kernel" => "--kernel 6.12".to_string(),
        "image" => "--on kernel --image /dev/null".to_string(),
        "modules" => "--on kernel --image /dev/null --modules /".to_string(),
        "with" => "--with mmap-miss".to_string(),
        "runs" => "--runs 2".to_string(),
        "machine" => "--machine server".to_string(),
        "workload" => "--workload sequential".to_string(),
        "accesses" => "--accesses 20".to_string(),
        "fraction" => "--fraction 0.5".to_string(),
        "accesses-file" => format!("--accesses-file {list} --file-size 1m"),
        "seed" => "--seed 7".to_string(),
        "bs" => "--workload read-random --bs 8k".to_string(),
        "file-size" => "--file-size 2m".to_string(),
        "file" => format!("--file {data} --workload first"),
        "map-offset" => "--map-offset 8k --map-len 64k".to_string(),
        "map-len" => "--map-len 64k".to_string(),
        "map-shift" => "--map-shift 3".to_string(),
        "split" => "--split 64".to_string(),
        "split-prot" => "--split 64 --split-prot exec".to_string(),
        "advice" => "--advice random".to_string(),
        "governor" | "exec" | "private" | "sparse" => format!("--{name}"),
        "cold" => format!("--file {data} --workload first --cold"),
        "start" => "--start warm".to_string(),
        "ram" => "--ram 64m".to_string(),
        "anonymous" => "--anonymous 1m --memory-max 32m".to_string(),
        "cache-limit" | "memory-high" | "memory-max" => format!("--{name} 32m"),
        "read-ahead-kb" => "--read-ahead-kb 64".to_string(),
        "fault-around" => "--fault-around 16k".to_string(),
        "arch" => "--arch arm64".to_string(),
        "page-size" => "--page-size 16k --arch arm64".to_string(),
        "fs" => "--fs xfs".to_string(),
        "block-size" => "--block-size 16k --fs xfs --kernel 6.18".to_string(),
        "cpus" => format!("{thrash} --cpus 2"),
        "threads" | "duration" => thrash.to_string(),
        "stagger" => format!("{thrash} --stagger 1ms"),
        "writers" => format!("{thrash} --writers 1"),
        name => panic!("--{name} has no example here"),
    }
}

/// A command-specific flag, with the rest of a command line that accepts it.
fn own_flag(command: &str, name: &str) -> String {
    let rest = match (command, name) {
        ("govern", "format") => "--format json --pid 1",
        ("govern", "json" | "html") => return format!("--{name} x -- true"),
        (_, "format") => "--format json",
        ("report", "html") => "r.json --html x",
        ("report", "export") => "r.recording --export x.csv",
        ("run", "export") => "--export x.json",
        ("govern", "metrics") => "--metrics x -- true",
        (_, "json" | "html" | "log" | "svg" | "state") => return format!("--{name} x"),
        ("run" | "compare" | "explain" | "published", "seeds") => "--seeds 2",
        ("run" | "compare", "change-settings") => "--change-settings --on kernel",
        ("folio-ops", "change-settings") => "--change-settings --on kernel",
        ("record", "change-settings") => "--change-settings -- true",
        ("advise", "change-settings") => "x --check --change-settings",
        ("advise", "runs") => "x --check --runs 2",
        ("advise", "check") => "x --check",
        ("govern", "runs") => "--compare --runs 2 -- true",
        ("calibrate" | "folio-ops", "runs") => "--runs 2",
        ("calibrate", "file-size") => "--file-size 64m",
        ("folio-ops", "on") => "--on model",
        ("folio-ops", "seed") => "--seed 7",
        ("folio-ops", "size") => "--size 64m",
        ("folio-ops", "folio-sizes") => "--folio-sizes 64k",
        ("compare" | "search", "variants") => "--variants baseline,p1",
        ("conform", "fuzz") => "--fuzz 2",
        ("conform", "pattern") => "--pattern x",
        ("search", "worse" | "over") => return format!("--{name} bytes"),
        ("search", "jobs") => "--jobs 20",
        ("search", "duration") => "--duration 1s",
        ("govern" | "record", "duration") => "--duration 1s --pid 1",
        ("record", "output") => "--output x -- true",
        (_, "output") => "--output x",
        ("record", "show") => "--show x",
        ("record", "import") => "--import lines x",
        ("record", "changes") => "--changes -- true",
        ("record", "cold") => "--cold --pid 1",
        ("govern" | "record", "pid") => "--pid 1",
        ("govern" | "record", "cgroup") => "--cgroup x",
        ("govern" | "record", "include" | "exclude") => return format!("--{name} x -- true"),
        ("govern" | "record", "min-size") => "--min-size 1m -- true",
        ("govern", "largest-window") => "--largest-window 1m -- true",
        ("govern", "release") => "--release --pid 1",
        ("govern", "forget") => "--forget x",
        ("govern", "watch") => "--watch 1s -- true",
        ("govern", "memory" | "plan" | "prefetch") => return format!("--{name} x -- true"),
        ("govern", "observe" | "compare" | "no-memory") => return format!("--{name} -- true"),
        // Switches.
        _ => return format!("--{name}"),
    };
    rest.to_string()
}

/// `words`, plus the flags of the command's default job that they lack.
fn with_job(words: &str, job: &[&str]) -> String {
    let flag = |part: &str| part.split(' ').next().unwrap_or_default().to_string();
    let has = |flag: &str| words.split(' ').any(|word| word == flag);
    let is_list = has("--accesses-file") || has("--workload") && words.contains("thrash");
    let is_file = has("--file");
    let left_out = |part: &&&str| {
        let flag = flag(part);
        let is_pattern = is_list && ["--workload", "--accesses"].contains(&flag.as_str());
        has(&flag)
            || is_pattern
            || is_file && flag == "--file-size"
            || flag == "--accesses" && has("--fraction")
            || flag == "--worse" && (has("--differ") || has("--over"))
    };
    let rest: Vec<&str> = job.iter().filter(|part| !left_out(part)).copied().collect();
    format!("{words} {}", rest.join(" "))
}

fn long_flags(command: &Command) -> impl Iterator<Item = (&str, &Arg)> {
    let flags = command.get_arguments().filter_map(|arg| Some((arg.get_long()?, arg)));
    flags.filter(|(name, _)| !["help", "version"].contains(name))
}

fn is_of_job(arg: &Arg) -> bool {
    Flag::all().any(|flag| flag.key == arg.get_id().as_str())
        && arg.get_help_heading().is_some_and(|heading| heading != "Output")
}

/// Values that no job has are refused too, and by the same code: so jobs are run where they run in
/// the model.
#[test]
fn every_listed_flag_has_an_accepted_command_line() {
    let scratch = Scratch::new("listed_flags");
    let list = scratch.file("list", "1\n5\n9\n");
    let data = scratch.file("data", vec![1; 64 << 10]);
    let program = "[[file]]\nname = 'f'\nsize = '1m'\n[[open]]\nname = 'f'\nfile = 'f'\n\
                   [[mapping]]\nname = 'm'\nopen = 'f'\n[[thread]]\nphase = [{ mapping = 'm', \
                   workload = 'random', accesses = 9 }]\n";
    let program = scratch.file("program.toml", program);
    let job = ["--workload random", "--file-size 1m", "--accesses 9"];
    let root = filemap_cli::command();
    for command in root.get_subcommands() {
        let name = command.get_name();
        let own: Vec<&str> = match name {
            "run" | "explain" | "conform" | "advise" => job.to_vec(),
            "compare" => [&job[..], &["--variants baseline,p1"]].concat(),
            "search" => vec!["--variants baseline,p1", "--worse majors", "--jobs 1"],
            _ => Vec::new(),
        };
        for (flag, arg) in long_flags(command) {
            let is_of_job = !own.is_empty() && is_of_job(arg);
            // A job of one thread needs one CPU.
            let is_program = (name, flag) == ("advise", "cpus");
            let own = if is_program { &[program.as_str()][..] } else { &own };
            let mut words = if !is_of_job {
                own_flag(name, flag)
            } else if is_program {
                "--cpus 2".to_string()
            } else {
                job_flag(flag, &list, &data)
            };
            if ["conform", "search"].contains(&name) {
                words = words.replace("--on kernel ", "").replace("--kernel 6.18", "");
            }
            if (name, flag) == ("search", "page-size") {
                // Random mappings are multiples of 4 KiB.
                words += " --file-size 2m";
            }
            let mut line = format!("filemap {name} {}", with_job(words.trim(), own));
            if (name, flag) == ("compare", "with") {
                // Each variant has its own series.
                line = line.replace("--variants baseline,p1", "--on model,kernel");
            }
            let parsed = filemap_cli::command().try_get_matches_from(line.split_whitespace());
            assert!(parsed.is_ok(), "{line}: {}", parsed.unwrap_err());
            if !is_of_job {
                continue;
            }
            // An unwritable journal directory stops runs on this kernel.
            let mut command = filemap(line.strip_prefix("filemap ").unwrap());
            let output = command.env("FILEMAP_STATE", "relative").output().unwrap();
            let (code, message) = (output.status.code(), stderr(&output));
            match flag {
                "image" | "modules" => assert!(message.contains("/dev/null"), "{line}: {message}"),
                _ if name == "conform" => assert_eq!(code, Some(4), "{line}: {message}"),
                "cold" | "file" | "with" if code == Some(4) => {}
                _ => assert_eq!(code, Some(0), "{line}: {message}"),
            }
        }
    }
}

#[test]
fn flags_of_other_commands_are_unknown() {
    for (command, flags) in [
        ("advise r", &["--on", "--image", "--threads"][..]),
        ("search", &["--on", "--image", "--with", "--runs", "--file", "--threads", "--cold"]),
        ("explain", &["--runs", "--variants", "--change-settings"]),
        ("conform", &["--on", "--runs", "--governor", "--threads", "--seeds"]),
        ("doctor", &["--workload", "--seed"]),
        ("record", &["--apply", "--out", "--files"]),
        ("search", &["--time", "--out"]),
    ] {
        for flag in flags {
            let output = filemap(&format!("{command} {flag}")).output().unwrap();
            let message = stderr(&output);
            assert_eq!(output.status.code(), Some(2), "{command} {flag}: {message}");
            let expected = format!("filemap: unexpected argument '{flag}' found");
            assert!(message.starts_with(&expected), "{command} {flag}: {message}");
            assert_eq!(message.lines().count(), 1, "{message}");
        }
    }
}

#[test]
fn help_groups_the_flags_of_a_job() {
    let help = |command: &str| {
        let output = filemap(&format!("{command} --help")).output().unwrap();
        let text = String::from_utf8(output.stdout).unwrap();
        let heading = |line: &&str| line.ends_with(':') && !line.starts_with(' ');
        text.lines().filter(heading).map(String::from).collect::<Vec<_>>()
    };
    let run = help("run");
    for heading in ["Engine:", "Rules of the model:", "Runs and seeds:", "Accesses:", "File:"] {
        assert!(run.iter().any(|line| line == heading), "{heading} is not in {run:?}");
    }
    assert!(!help("advise").iter().any(|line| line == "Engine:"));
}

//! `filemap run`.

use serde_json::Value;

use crate::{Scratch, filemap, json, stdout, undated};

const JOB: &str = "run --workload random --file-size 8m --accesses 50";

#[test]
fn record_matches_contract() {
    let record = json(&format!("{JOB} --runs 2 --json -"));
    assert_eq!(record["schema"], 2);
    assert_eq!(record["engine"], "model");
    assert_eq!(record["job"]["thread"][0]["phase"][0]["workload"], "random");
    assert!(record["environment"].is_object());
    let runs = record["runs"].as_array().unwrap();
    assert_eq!(runs.len(), 2);
    for name in [
        "accesses",
        "data_pages_read",
        "bytes_read",
        "major_faults",
        "minor_faults",
        "readahead_calls",
        "read_around",
        "async_readahead",
        "evicted_pages",
        "mmap_miss",
        "mmap_miss_max",
        "retry_mmap_drop",
        "retry_io_miss",
    ] {
        assert!(runs[0]["counters"][name].is_u64(), "{name}");
        for part in ["median", "mad", "min", "max"] {
            assert!(record["summary"][name][part].is_u64(), "{name} {part}");
        }
    }
    assert_eq!(runs[0]["counters"]["rounds"], Value::Null);
    for part in ["inside", "before", "after"] {
        assert!(runs[0]["cached"][part].is_u64(), "{part}");
    }
    assert!(runs[0]["seed"].is_u64() && runs[0]["elapsed_ns"].is_u64());
    assert_eq!(record["summary"]["accesses"]["median"], 50);
}

#[test]
fn report_command_repeats_it() {
    for flags in ["--seed 7 --with p2 --read-ahead-kb 64", "--kernel 6.12 --map-offset 1m"] {
        let mut record = json(&format!("{JOB} {flags} --format json"));
        let command = record["command"].as_str().unwrap().to_string();
        let words = command.strip_prefix("filemap ").unwrap();
        let mut again = json(&format!("{words} --format json"));
        // The runs may fall into different seconds.
        for run in [&mut record, &mut again] {
            run["environment"]["date"].take();
        }
        assert_eq!(record, again, "{command}");
    }
}

#[test]
fn every_format_but_csv_carries_scope_command_and_engine() {
    for format in ["table", "markdown", "json"] {
        let text = stdout(&format!("{JOB} --format {format}"));
        let flat = text.split_whitespace().collect::<Vec<_>>().join(" ");
        for words in ["rules of Linux 6.18", "classic LRU", "filemap run ", "0.1.0"] {
            assert!(flat.contains(words), "{format}: no '{words}' in {text}");
        }
    }
}

#[test]
fn csv_has_one_line_a_run() {
    let text = stdout(&format!("{JOB} --runs 3 --format csv"));
    assert_eq!(text.lines().count(), 4);
    assert!(text.starts_with("engine,seed,accesses,data_pages_read,bytes_read"));
    let header = text.lines().next().unwrap();
    assert!(header.ends_with(",elapsed_ns"), "counters only: {header}");
}

/// The lines from the first that starts with `from` up to but excluding one that starts with `to`.
fn lines_between<'a>(text: &'a str, from: &str, to: &str) -> Vec<&'a str> {
    let rest = text.lines().skip_while(|line| !line.starts_with(from));
    rest.take_while(|line| !line.starts_with(to)).collect()
}

#[test]
fn report_begins_with_setup() {
    let job = "--workload read-random --bs 16k --file-size 8m --accesses 50 --map-offset 1m \
               --map-len 4m --split 64 --advice random --memory-max 2m --read-ahead-kb 64 \
               --fault-around 32k --kernel 6.12 --with p2 --fs xfs --arch arm64 --page-size 16k";
    for (command, series) in
        [("run", " with miss-no-retry"), ("explain", " with miss-no-retry"), ("compare", "")]
    {
        let job = match command {
            "compare" => format!("{} --variants baseline,p2", job.replace(" --with p2", "")),
            _ => job.to_string(),
        };
        let text = stdout(&format!("{command} {job}"));
        let head = lines_between(&text, "File:", "Never").join("\n");
        let flat = head.split_whitespace().collect::<Vec<_>>().join(" ");
        for words in [
            "File: 8 MiB, xfs Mapping: 4 MiB from 1 MiB on, in VMAs of 64 pages, every second \
             one writable, advice random",
            "Accesses: 50 read-random of 16 KiB, seed 88172645463325252",
            "Readahead: 64 KiB, fault-around 32 KiB",
            "Memory: memory.max 2 MiB",
            &format!("Kernel: rules of Linux 6.12{series}, arm64, pages of 16 KiB"),
        ] {
            assert!(flat.contains(words), "{command}: no '{words}' in {text}");
        }
        // A comparison has an answer before that.
        assert!(text.lines().take(8).any(|line| line.starts_with("File:")), "{text}");
    }
}

#[test]
fn report_footer_has_four_lines() {
    for command in [
        JOB.to_string(),
        format!("{JOB} --memory-max 4m"),
        JOB.replace("run", "explain"),
        JOB.replace("run", "compare") + " --variants baseline,p1,kernel=6.12",
        "published exec-order".to_string(),
    ] {
        let text = stdout(&command);
        let end = lines_between(&text, "Scope:", "nothing else");
        assert!(end.len() <= 4, "{command}: {end:?}");
        assert!(end.iter().any(|line| line.contains("rules of Linux ")), "{end:?}");
    }
    let text = stdout(JOB);
    let times: Vec<&str> = text.lines().filter(|line| line.contains("profile")).collect();
    let [line] = times[..] else { panic!("one line on the profile: {times:?}") };
    assert!(line.contains("assumed profile 'default'") && line.len() <= 75, "{line}");
}

/// The number of pages used, counted from the job's list, and the bytes read per page used.
#[test]
fn report_compares_read_and_used_bytes() {
    let scratch = Scratch::new("read_against_used");
    let list = scratch.file("list", "0\n1000\n0\n1000\n500\n");
    let job = format!("run --file-size 8m --accesses-file {list} --advice random");
    let record = json(&format!("{job} --json -"));
    assert_eq!(record["used_pages"], 3);
    assert_eq!(record["runs"][0]["counters"]["bytes_read"], 3 * 4096);
    let text = stdout(&job);
    let words = text.split_whitespace().collect::<Vec<_>>().join(" ");
    assert!(words.contains("read from device 12 KiB of what was used x 1 major"), "{text}");
}

#[test]
fn verbose_adds_every_counter_by_its_name() {
    let usual = stdout(JOB);
    assert!(!usual.contains("data_pages_read") && usual.contains("read from device"), "{usual}");
    let verbose = stdout(&format!("{JOB} --verbose"));
    for name in ["data_pages_read", "bytes_read", "retry_io_miss", "cached_before", "elapsed_ns"] {
        assert!(verbose.contains(&format!("\n{name} ")), "{name}: {verbose}");
    }
}

#[test]
fn each_seed_is_a_run_of_its_own() {
    let record = undated(&format!("{JOB} --seeds 3"));
    let runs = record["runs"].as_array().unwrap();
    let seeds: Vec<u64> = runs.iter().map(|run| run["seed"].as_u64().unwrap()).collect();
    assert_eq!(seeds, [88172645463325252, 1363160026601443621, 14004281193724023956]);
    for (seed, run) in seeds.iter().zip(runs) {
        assert_eq!(*run, json(&format!("{JOB} --seed {seed} --json -"))["runs"][0]);
    }
    let command = record["command"].as_str().unwrap().strip_prefix("filemap ").unwrap();
    assert!(command.ends_with(" --seeds 3"), "{command}");
    assert_eq!(record, undated(command));
    let text = stdout(&format!("{JOB} --seeds 3"));
    assert!(text.contains("\n3 seeds "), "{text}");
}

#[test]
fn a_log_is_the_same_each_time() {
    let log = stdout(&format!("{JOB} --log -"));
    assert_eq!(log, stdout(&format!("{JOB} --log -")));
    assert_ne!(log, stdout(&format!("{JOB} --log - --seed 3")));
    let lines: Vec<Value> = log.lines().map(|line| serde_json::from_str(line).unwrap()).collect();
    let of_kind = |kind| lines.iter().filter(move |line| line["decision"] == kind);
    let record = json(&format!("{JOB} --json -"));
    let counters = &record["runs"][0]["counters"];
    assert_eq!(Some(of_kind("readahead").count() as u64), counters["readahead_calls"].as_u64());
    let first = of_kind("readahead").next().unwrap();
    for key in ["cause", "index", "order", "start", "size", "async_size", "mmap_miss"] {
        assert!(!first[key].is_null(), "{key}");
    }
}

#[test]
fn logs_and_json_go_to_files_beside_the_report() {
    let scratch = Scratch::new("logs_and_json");
    let old = "x".repeat(1 << 20);
    let (log, record) = (scratch.file("log", &old), scratch.file("record", &old));
    let report = stdout(&format!("{JOB} --log {log} --json {record}"));
    assert!(report.contains("read from device"));
    assert_eq!(std::fs::read_to_string(&log).unwrap(), stdout(&format!("{JOB} --log -")));
    // The second run may be of another second.
    let without_date = |text: &str| {
        let dated = |line: &&str| line.trim_start().starts_with("\"date\"");
        text.lines().filter(|line| !dated(line)).map(str::to_string).collect::<Vec<_>>()
    };
    let written = std::fs::read_to_string(&record).unwrap();
    assert_eq!(without_date(&written), without_date(&stdout(&format!("{JOB} --json -"))));
}

#[test]
fn flags_override_job_file_keys() {
    let scratch = Scratch::new("flags_go_before");
    let job = "workload = \"stride:3\"\nfile_size = \"1m\"\naccesses = 5\nseed = 9\n";
    let job = scratch.file("job.toml", job);
    let record = json(&format!("run {job} --accesses 7 --json -"));
    assert_eq!(record["job"]["thread"][0]["phase"][0]["workload"], "stride:3");
    assert_eq!(record["job"]["thread"][0]["phase"][0]["accesses"], 7);
    assert_eq!(record["job"]["seed"], 9);
}

#[test]
fn phases_and_lists_come_from_files() {
    let scratch = Scratch::new("phases_and_lists");
    let list = scratch.file("list", "5\n0\n255\n");
    let job = format!(
        "file_size = \"1m\"\n[[phase]]\naccesses_file = \"{list}\"\n\
         [[phase]]\nworkload = \"read-sequential\"\naccesses = 4\n"
    );
    let job = scratch.file("job.toml", job);
    let record = json(&format!("run {job} --json -"));
    assert_eq!(record["runs"][0]["counters"]["accesses"], 7);
    assert_eq!(record["command"], format!("filemap run {job}"));
    let command = format!("run {job} --kernel 6.12 --read-ahead-kb 64");
    let again = json(&format!("{command} --json -"));
    assert_eq!(again["command"], format!("filemap {command}"), "flags go before the file's keys");
    let record = json(&format!("run --file-size 1m --accesses-file {list} --json -"));
    assert_eq!(record["runs"][0]["counters"]["accesses"], 3);
}

#[test]
fn reports_share_of_predicted_time() {
    let job = "--workload stride:7 --file-size 2m --accesses 500";
    let short = "Memory was short.";
    let warning = "Warning: memory was short.";
    for (flags, notes) in [
        ("--memory-max 1m", [true, false]),
        ("--exec", [false, false]),
        ("--exec --memory-max 1m", [false, true]),
        ("--ram 1m", [true, false]),
    ] {
        let report = stdout(&format!("run {job} {flags}"));
        assert_eq!([short, warning].map(|note| report.contains(note)), notes, "{flags}");
    }
    let compared = format!("compare {job} --memory-max 1m --variants baseline,p1");
    assert!(stdout(&compared).contains(short));
}

#[test]
fn a_machine_profile_changes_times_only() {
    let scratch = Scratch::new("a_machine_profile");
    let profile = "[device]\nlatency_ns = 1000000\nbandwidth_bytes = 1000000\nqueue_depth = 1\n\
                   io_bytes = 1048576\n[cost]\ntouch_ns = 5\nfault_ns = 700\nmap_page_ns = 25\n\
                   add_page_ns = 60\n";
    let profile = scratch.file("profile.toml", profile);
    let [slow, usual] = [format!("{JOB} --machine {profile} --json -"), format!("{JOB} --json -")]
        .map(|args| json(&args)["runs"][0].clone());
    assert_eq!(slow["counters"], usual["counters"]);
    assert!(slow["elapsed_ns"].as_u64() > usual["elapsed_ns"].as_u64());
}

#[test]
fn help_and_version() {
    for args in ["--help", "run --help", "compare --help", "published --help", "help run"] {
        assert!(stdout(args).contains("Usage: filemap"), "{args}");
    }
    assert_eq!(stdout("--version"), "filemap 0.1.0\n");
    assert!(filemap("--version").output().unwrap().stderr.is_empty());
}

/// Latencies of faults: of look-ups, each of which reads a page, that of the device and a fault.
#[test]
fn latencies_are_those_of_faults_and_reads() {
    let job = "--workload random --file-size 64m --accesses 2000 --read-ahead-kb 128";
    let run = |more: &str| {
        json(&format!("run {job} {more} --machine default --json -"))["runs"][0].clone()
    };
    let random = run("--advice random");
    let [faults, counters] = [&random["faults"], &random["counters"]];
    let number =
        |value: &Value, key: &str| value[key].as_u64().unwrap_or_else(|| panic!("{value}"));
    let all = number(counters, "major_faults") + number(counters, "minor_faults");
    assert_eq!(number(faults, "count"), all, "{random:#}");
    let ns = ["p50_ns", "p99_ns", "p999_ns", "max_ns"].map(|key| number(faults, key));
    assert!(ns.is_sorted() && (54_000..70_000).contains(&ns[0]), "{faults}");
    assert!(number(faults, "sum_ns") <= number(&random, "elapsed_ns"), "{random:#}");
    // With windows, hits of fault-around and of cached pages are shorter.
    let windows = run("");
    assert!(number(&windows["faults"], "p999_ns") > ns[1], "{}", windows["faults"]);
    let text = stdout(&format!("compare {job} --variants baseline,advice=random"));
    assert!(text.contains("How long a fault and a read(2) took"), "{text}");
    assert!(text.contains("p99.9"), "{text}");
    let reads = "run --workload read-sequential --file-size 64m --bs 64k --accesses 100";
    let reads = json(&format!("{reads} --json -"))["runs"][0]["reads"].clone();
    assert_eq!(number(&reads, "count"), 100, "{reads}");
}

//! `filemap explain`: sums, what is printed, and what is refused.

use std::fs;

use serde_json::Value;

use crate::running::Running;
use crate::skip::skip;
use crate::{Scratch, filemap, json, stderr};

/// Jobs that read for different reasons.
const JOBS: [&str; 9] = [
    "--workload random --file-size 64m",
    "--workload random --file-size 64m --with mmap-miss --accesses 3000",
    "--workload stride:33 --file-size 32m --advice random",
    "--workload sequential --file-size 8m --accesses 3000",
    "--workload sequential --file-size 16m --advice hugepage --accesses 1500",
    "--workload random --file-size 8m --map-offset 1m --map-len 2m --accesses 300",
    "--workload random --file-size 16m --exec --fs xfs",
    "--workload read-random --file-size 16m --bs 64k",
    "--workload random --file-size 16m --cache-limit 4m --accesses 3000",
];

/// The explanation as JSON; `None`, with a line that says so, where it cannot be had.
fn explained(scratch: &Scratch, args: &str) -> Option<Value> {
    let path = scratch.path("explained.json");
    let command = format!("explain {args} --json {path}");
    let output = Running::start(&mut filemap(&command)).output();
    if output.status.code() == Some(4) {
        skip(stderr(&output));
        return None;
    }
    assert!(output.status.success(), "{args}: {}", stderr(&output));
    let text = fs::read_to_string(path).expect("the report was written");
    Some(serde_json::from_str(&text).expect("one JSON object"))
}

/// Pages of each cause.
fn sums(explanation: &Value) -> Vec<(String, u64)> {
    let causes = explanation["causes"].as_array().expect("causes");
    let of = |cause: &Value| {
        let name = cause["cause"].as_str().expect("a name").to_string();
        let pages = cause["pages"].as_u64().expect("pages");
        assert_eq!(cause["bytes"], pages * 4096, "{name}");
        (name, pages)
    };
    causes.iter().map(of).collect()
}

#[test]
fn the_causes_add_up_to_the_pages_read() {
    let scratch = Scratch::new("explain-sums");
    for job in JOBS {
        let explanation = explained(&scratch, job).expect("the model runs everywhere");
        let counters = json(&format!("run {job} --json -"))["runs"][0]["counters"].clone();
        let total: u64 = sums(&explanation).iter().map(|(_, pages)| pages).sum();
        assert_eq!(counters["data_pages_read"], total, "{job}");
        assert_eq!(explanation["pages_read"], total, "{job}");
        assert_eq!(explanation["bytes_counted"], counters["bytes_read"], "{job}");
        assert_eq!(explanation["evicted_pages"], counters["evicted_pages"], "{job}");
        assert_eq!(explanation["mmap_miss"]["last"], counters["mmap_miss"], "{job}");
    }
}

#[test]
fn a_programs_segments_are_told_from_what_lies_between() {
    let scratch = Scratch::new("explain-elf");
    let program = env!("CARGO_BIN_EXE_filemap");
    let job = format!("--workload elf --file {program}");
    let explanation = explained(&scratch, &job).expect("the model runs everywhere");
    let record = json(&format!("run {job} --json -"));
    let cached = &record["runs"][0]["cached"];
    let sums = sums(&explanation);
    let of = |name| sums.iter().find(|(cause, _)| cause == name).expect("a cause").1;
    assert_eq!(cached["between"], of("between-segments"));
    let outside = cached["before"].as_u64().zip(cached["after"].as_u64());
    assert_eq!(outside.map(|(before, after)| before + after), Some(of("beyond-mapping")));
    let total: u64 = sums.iter().map(|(_, pages)| pages).sum();
    assert_eq!(record["runs"][0]["counters"]["data_pages_read"], total);
}

#[test]
fn the_report_is_narrow_enough() {
    for job in JOBS {
        let output = Running::start(&mut filemap(&format!("explain {job}"))).output();
        let text = String::from_utf8(output.stdout).expect("reports are text");
        // The command is one line, to be copied.
        for line in text.lines().filter(|line| !line.starts_with("Command:")) {
            assert!(line.chars().count() <= 75, "{job}: {line}");
        }
        assert!(text.contains("\nbytes read ") && text.contains("\nmmap_miss\n"), "{text}");
    }
}

#[test]
fn the_json_has_its_keys() {
    let scratch = Scratch::new("explain-json");
    let explanation = explained(&scratch, JOBS[0]).expect("the model runs everywhere");
    for key in [
        "schema",
        "job",
        "engine",
        "pages_read",
        "bytes_read",
        "bytes_counted",
        "causes",
        "brought_in",
        "runs",
        "remedies",
        "warnings",
        "evicted_pages",
        "mmap_miss",
        "answer",
        "map",
        "scope",
        "command",
        "environment",
    ] {
        assert!(explanation.get(key).is_some(), "{key}");
    }
    let command = explanation["command"].as_str().expect("a command");
    assert!(command.starts_with("filemap explain --kernel 6.18 --workload random"), "{command}");
    let again = command.strip_prefix("filemap explain ").expect("it was just there");
    // The second at which it was made is in the environment.
    let timeless = |explanation: Value| {
        let Value::Object(mut keys) = explanation else { panic!("it is an object") };
        keys.remove("environment");
        keys
    };
    let again = explained(&scratch, again).expect("it ran before");
    assert_eq!(timeless(again), timeless(explanation));
}

#[test]
fn the_picture_is_well_formed() {
    let scratch = Scratch::new("explain-svg");
    for job in [JOBS[0], JOBS[5], JOBS[8]] {
        let path = scratch.path("picture.svg");
        let command = format!("explain {job} --svg {path}");
        let output = Running::start(&mut filemap(&command)).output();
        assert!(output.status.success(), "{job}: {}", stderr(&output));
        let picture = fs::read_to_string(&path).expect("the picture was written");
        assert!(picture.trim_start().starts_with("<svg"), "{job}");
        well_formed(&picture);
        let alone = Running::start(&mut filemap(&format!("explain {job} --svg -"))).output();
        assert_eq!(String::from_utf8_lossy(&alone.stdout), picture, "{job}: nothing else");
    }
}

/// Checks that every tag is closed, in order, and that texts hold no bare `<` or `&`.
fn well_formed(document: &str) {
    let mut open = Vec::new();
    let mut rest = document.trim();
    while let Some(start) = rest.find('<') {
        entities(&rest[..start]);
        let end = rest.find('>').expect("a tag ends");
        let tag = &rest[start + 1..end];
        rest = &rest[end + 1..];
        if let Some(name) = tag.strip_prefix('/') {
            assert_eq!(open.pop(), Some(name), "{tag}");
            assert!(!open.is_empty() || rest.is_empty(), "something behind the end: {rest}");
            continue;
        }
        assert!(!tag.contains('<') && tag.matches('"').count().is_multiple_of(2), "{tag}");
        entities(tag);
        if !tag.ends_with('/') {
            open.push(tag.split_whitespace().next().expect("a name"));
        }
    }
    assert!(open.is_empty() && rest.is_empty(), "{open:?}");
}

fn entities(text: &str) {
    for part in text.split('&').skip(1) {
        let known = ["amp;", "lt;", "gt;", "quot;"].iter().any(|name| part.starts_with(name));
        assert!(known, "a bare &: {part}");
    }
}

#[test]
fn the_kernel_reads_for_the_same_reasons() {
    let scratch = Scratch::new("explain-kernel");
    for job in [
        "--workload random --file-size 4m --accesses 60",
        "--workload stride:33 --file-size 4m --accesses 60",
        "--workload sequential --file-size 2m --accesses 400",
        "--workload random --file-size 4m --map-offset 1m --map-len 1m --accesses 60",
        "--workload random --file-size 4m --exec --accesses 60",
        "--workload elf --file /bin/sh",
    ] {
        let job = format!("{job} --kernel host --read-ahead-kb 128");
        let Some(kernel) = explained(&scratch, &format!("{job} --on kernel")) else { return };
        let model = explained(&scratch, &job).expect("the model runs everywhere");
        if kernel["environment"]["pages_evicted_by_others"] != 0 {
            skip(format!("{job}: somebody else evicted pages in each run"));
            continue;
        }
        assert_eq!(sums(&kernel), sums(&model), "{job}");
        assert_eq!(kernel["bytes_counted"], kernel["bytes_read"], "{job}");
    }
}

#[test]
fn what_cannot_be_explained_is_refused() {
    let job = "explain --workload random --file-size 1m";
    for (args, code, words) in [
        ("explain", 2, &["--file-size is missing"] as &[&str]),
        ("explain --workload nothing --file-size 1m", 2, &["unknown workload 'nothing'"]),
        ("explain /no/such/job.toml", 2, &["/no/such/job.toml"]),
        (&format!("{job} --json - --svg -"), 2, &["--json -", "--svg -"]),
        (&format!("{job} --svg /no/such/x.svg"), 2, &["'/no/such/x.svg'", "can be written"]),
        (&format!("{job} --on kernel --with mmap-miss"), 4, &["--on model"]),
        (&format!("{job} --on kernel --memory-max 512k"), 4, &["no memory limit"]),
        (&format!("{job} --on kernel --image /no/kernel"), 4, &["--image"]),
    ] {
        let output = Running::start(&mut filemap(args)).output();
        let message = stderr(&output);
        assert_eq!(output.status.code(), Some(code), "{args}: {message}");
        assert_eq!(message.matches('\n').count(), 1, "{args}: {message}");
        assert!(words.iter().all(|word| message.contains(word)), "{args}: {message}");
        assert!(output.stdout.is_empty(), "{args}");
    }
}

/// What is said to help is what `run` and `compare` say of the same settings.
#[test]
fn what_would_help_is_what_a_run_with_that_setting_does() {
    let scratch = Scratch::new("explain-remedies");
    let job = "--workload random --file-size 1g --read-ahead-kb 512";
    let remedies = explained(&scratch, job).expect("the model runs everywhere")["remedies"].take();
    let plain = json(&format!("run {job} --json -"))["runs"][0].take();
    let tried = remedies["tried"].as_array().expect("trials");
    assert!(tried.len() >= 5, "{tried:?}");
    let figures = |run: &Value| {
        let counters = &run["counters"];
        let names = ["data_pages_read", "bytes_read", "major_faults"];
        let mut all = names.map(|name| counters[name].as_u64()).to_vec();
        all.push(run["elapsed_ns"].as_u64());
        all
    };
    let said = |figures: &Value| {
        ["data_pages_read", "bytes_read", "major_faults", "elapsed_ns"]
            .map(|name| figures[name].as_u64())
            .to_vec()
    };
    assert_eq!(said(&remedies["now"]), figures(&plain));
    for trial in tried {
        let setting = trial["setting"].as_str().expect("a setting");
        let (key, value) = setting.split_once('=').expect("a key and a value");
        let flags = match key {
            "advice" => format!("{job} --advice {value}"),
            _ => job.replace("512", value),
        };
        let run = json(&format!("run {flags} --json -"))["runs"][0].take();
        assert_eq!(said(&trial["figures"]), figures(&run), "{setting}");
    }
    let best = tried.iter().find(|trial| trial["rank"] == 1).expect("something helps");
    assert_eq!(best["setting"], "advice=random");
    let output = filemap(&format!("explain {job}")).output().expect("the command starts");
    let text = String::from_utf8(output.stdout).expect("reports are text");
    let read = |run: &Value| run["data_pages_read"].as_u64().expect("pages") as f64 / 256.0;
    let expected = format!(
        "  MADV_RANDOM: {:.1} instead of {:.1} MiB,",
        read(&best["figures"]),
        read(&remedies["now"])
    );
    assert!(text.contains(&expected), "{expected}: {text}");
}

#[test]
fn where_nothing_would_help_it_says_so() {
    let output = filemap("explain --workload first --file-size 4k --accesses 1").output();
    let text = String::from_utf8(output.expect("it starts").stdout).expect("reports are text");
    assert!(
        text.contains("None of the settings that were tried in the model, by the rules of"),
        "{text}"
    );
}

#[test]
fn seeds_are_runs_beside_the_explained_one() {
    let scratch = Scratch::new("explain-seeds");
    let found = explained(&scratch, &format!("{} --seeds 3", JOBS[0])).expect("the model runs");
    let record = json(&format!("run {} --seeds 3 --json -", JOBS[0]));
    assert_eq!(found["runs"], record["runs"]);
    let first = &record["runs"][0]["counters"]["data_pages_read"];
    assert_eq!(&found["pages_read"], first, "the first seed is explained");
    let job = format!("explain {} --seeds 3", JOBS[0]);
    let refused = filemap(&format!("{job} --on kernel")).output().expect("it starts");
    assert_eq!(refused.status.code(), Some(4), "{}", stderr(&refused));
    assert_eq!(stderr(&refused).matches('\n').count(), 1);
}

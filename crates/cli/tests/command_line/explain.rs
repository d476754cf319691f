//! `filemap explain`: sums, output formats, and refused jobs.

use std::fs;

use serde_json::Value;

use crate::running::Running;
use crate::skip::skip;
use crate::{Scratch, filemap, json, stderr};

/// Jobs that cover different causes of reads.
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

/// The explanation as JSON; `None`, with a printed note, if this machine cannot produce it.
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
    let row = |cause: &Value| {
        let name = cause["cause"].as_str().expect("a name").to_string();
        let pages = cause["pages"].as_u64().expect("pages");
        assert_eq!(cause["bytes"], pages * 4096, "{name}");
        (name, pages)
    };
    causes.iter().map(row).collect()
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
        let counter = &explanation["opens"][0]["mmap_miss"];
        assert_eq!(counter["last"].as_u64().unwrap_or(0), counters["mmap_miss"], "{job}");
        assert_eq!(explanation["files"][0]["causes"], explanation["causes"], "{job}");
    }
}

#[test]
fn explains_segments_and_gaps() {
    let scratch = Scratch::new("explain-elf");
    let program = env!("CARGO_BIN_EXE_filemap");
    let job = format!("--workload elf --file {program}");
    let explanation = explained(&scratch, &job).expect("the model runs everywhere");
    let record = json(&format!("run {job} --json -"));
    let cached = &record["runs"][0]["cached"];
    let sums = sums(&explanation);
    let sum = |name| sums.iter().find(|(cause, _)| cause == name).expect("a cause").1;
    assert_eq!(cached["between"], sum("between-segments"));
    let outside = cached["before"].as_u64().zip(cached["after"].as_u64());
    assert_eq!(outside.map(|(before, after)| before + after), Some(sum("beyond-mapping")));
    let total: u64 = sums.iter().map(|(_, pages)| pages).sum();
    assert_eq!(record["runs"][0]["counters"]["data_pages_read"], total);
}

#[test]
fn the_report_is_narrow_enough() {
    for job in JOBS {
        let output = Running::start(&mut filemap(&format!("explain {job}"))).output();
        let text = String::from_utf8(output.stdout).expect("reports are text");
        // The command is on one line, so that it can be copied.
        for line in text.lines().filter(|line| !line.starts_with("Command:")) {
            assert!(line.chars().count() <= 75, "{job}: {line}");
        }
        assert!(text.contains("\nbytes read ") && text.contains("\nmmap_miss\n"), "{text}");
    }
}

#[test]
fn json_has_contract_keys() {
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
        "files",
        "mappings",
        "opens",
        "answer",
        "history",
        "scope",
        "command",
        "environment",
    ] {
        assert!(explanation.get(key).is_some(), "{key}");
    }
    let command = explanation["command"].as_str().expect("a command");
    assert!(command.starts_with("filemap explain --kernel 6.18 --workload random"), "{command}");
    let again = command.strip_prefix("filemap explain ").expect("it was just there");
    // The environment holds the time in seconds.
    let timeless = |explanation: Value| {
        let Value::Object(mut keys) = explanation else { panic!("it is an object") };
        keys.remove("environment");
        keys
    };
    let again = explained(&scratch, again).expect("it ran before");
    assert_eq!(timeless(again), timeless(explanation));
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

/// A job of two files for which a kernel's trace shows the same as the model's log.
const TABLES: &str = "read_ahead_kb = 128
    [[file]]\nname = 'a'\nsize = '4m'\n[[file]]\nname = 'b'\nsize = '2m'
    [[open]]\nname = 'oa'\nfile = 'a'\n[[open]]\nname = 'ob'\nfile = 'b'
    [[mapping]]\nname = 'ma'\nopen = 'oa'
    [[mapping]]\nname = 'mb'\nopen = 'ob'\nadvice = 'sequential'
    [[thread]]
    [[thread.phase]]\nmapping = 'ma'\nworkload = 'random'\naccesses = 60
    [[thread.phase]]\nmapping = 'mb'\nworkload = 'sequential'\naccesses = 200
    [[thread.phase]]\nopen = 'oa'\nworkload = 'read-random'\nbs = '16k'\naccesses = 20\n";

/// Causes by file, and reads by mapping and open file, as far as a kernel shows them.
fn by_table(explanation: &Value) -> Vec<(Value, Value)> {
    let tables = |key: &str| explanation[key].as_array().expect("a list").clone();
    let files =
        tables("files").into_iter().map(|mut file| (file["name"].take(), file["causes"].take()));
    let through = tables("mappings").into_iter().chain(tables("opens"));
    files.chain(through.map(|mut own| (own["name"].take(), own["brought_in"].take()))).collect()
}

#[test]
fn kernel_explains_two_files_like_the_model() {
    let scratch = Scratch::new("explain-tables");
    let job = scratch.file("tables.toml", TABLES);
    let model = explained(&scratch, &format!("{job} --kernel host")).expect("the model runs");
    let counters = json(&format!("run {job} --kernel host --json -"))["runs"][0].take();
    for (file, counted) in [0, 1].map(|at| (&model["files"][at], &counters["files"][at])) {
        assert_eq!(file["pages_read"], counted["data_pages_read"], "{file}");
    }
    let remedies = model["remedies"]["tried"].as_array().expect("trials");
    let tried = |setting: &str| remedies.iter().any(|trial| trial["setting"] == setting);
    assert!(["advice=random", "advice@ma=random", "read_ahead_kb=32"].into_iter().all(tried));
    let Some(kernel) = explained(&scratch, &format!("{job} --kernel host --on kernel")) else {
        return;
    };
    if kernel["environment"]["pages_evicted_by_others"] != 0 {
        skip("somebody else evicted pages in each run");
        return;
    }
    assert_eq!(by_table(&kernel), by_table(&model));
    assert_eq!(kernel["bytes_counted"], kernel["bytes_read"]);
    let text = Running::start(&mut filemap(&format!("explain {job} --on kernel"))).output();
    let text = String::from_utf8(text.stdout).expect("reports are text");
    for words in ["bytes by file and cause", "mapping ma", "File b", "What would help"] {
        assert!(text.contains(words), "{words}: {text}");
    }
}

/// A job file with one mapping gives the same report as the equivalent flags.
#[test]
fn single_mapping_report_is_independent_of_form() {
    let scratch = Scratch::new("explain-one");
    let tables = "read_ahead_kb = 512\nwith = 'mmap-miss'
        [[file]]\nname = 'f'\nsize = '64m'\n[[open]]\nname = 'o'\nfile = 'f'
        [[mapping]]\nname = 'm'\nopen = 'o'\n[[thread]]
        [[thread.phase]]\nmapping = 'm'\nworkload = 'random'\naccesses = 3000\n";
    let tables = scratch.file("one.toml", tables);
    let flags = "--workload random --file-size 64m --read-ahead-kb 512 --with mmap-miss \
                 --accesses 3000";
    let found = [tables.as_str(), flags].map(|job| {
        let found = explained(&scratch, job).expect("the model runs everywhere");
        let output = filemap(&format!("explain {job}")).output().expect("it starts");
        let text = String::from_utf8(output.stdout).expect("reports are text");
        let body = text[text.find("\n\nRead").expect("an answer")..].to_string();
        let body = body[..body.find("\nScope:").expect("a footer")].to_string();
        (found["causes"].clone(), found["remedies"]["tried"].clone(), body)
    });
    assert_eq!(found[0], found[1]);
}

/// Of many files, the ones with the most pages read are named and the rest is summed.
#[test]
fn many_files_are_summed() {
    let scratch = Scratch::new("explain-many");
    let mut job = "[[thread]]\n".to_string();
    for at in 0..60 {
        job += &format!(
            "[[thread.phase]]\nmapping = 'm{at}'\nworkload = 'sequential'\naccesses = {}\n",
            40 + at
        );
    }
    for at in 0..60 {
        job += &format!(
            "[[file]]\nname = 'f{at}'\nsize = '1m'\n[[open]]\nname = 'o{at}'\nfile = 'f{at}'\n\
             [[mapping]]\nname = 'm{at}'\nopen = 'o{at}'\n"
        );
    }
    let job = scratch.file("many.toml", &job);
    let found = explained(&scratch, &job).expect("the model runs everywhere");
    let files = found["files"].as_array().expect("files");
    let total: u64 = files.iter().map(|file| file["pages_read"].as_u64().unwrap()).sum();
    assert_eq!((files.len(), Some(total)), (60, found["pages_read"].as_u64()));
    let output = filemap(&format!("explain {job}")).output().expect("it starts");
    let text = String::from_utf8(output.stdout).expect("reports are text");
    assert!(text.contains("f59 ") && text.contains("52 others"), "{text}");
    assert!(text.lines().count() < 200, "{} lines", text.lines().count());
}

#[test]
fn refuses_jobs_tracing_cannot_follow() {
    let scratch = Scratch::new("explain-refused");
    let with = |more: &str| scratch.file("job.toml", format!("{TABLES}{more}"));
    let second = "[[thread]]\nname = 'x'";
    let phase = "\n[[thread.phase]]\nmapping = 'ma'\nworkload = 'first'\naccesses = 1\n";
    for (more, words) in [
        (format!("{second}{phase}"), "follows one thread, and this job has 2"),
        (format!("{second}\nprocess = 'child'{phase}"), "follows one thread"),
    ] {
        let job = with(&more);
        let model = filemap(&format!("explain {job}")).output().expect("it starts");
        assert!(model.status.success(), "{}", stderr(&model));
        let output = filemap(&format!("explain {job} --on kernel")).output().expect("it starts");
        let message = stderr(&output);
        assert_eq!(output.status.code(), Some(4), "{message}");
        assert!(message.contains(words) && message.matches('\n').count() == 1, "{message}");
    }
}

#[test]
fn refuses_unexplainable_jobs() {
    let job = "explain --workload random --file-size 1m";
    for (args, code, words) in [
        ("explain", 2, &["--file-size is missing"] as &[&str]),
        ("explain --workload nothing --file-size 1m", 2, &["unknown workload 'nothing'"]),
        ("explain /no/such/job.toml", 2, &["/no/such/job.toml"]),
        (&format!("{job} --on kernel --with mmap-miss"), 4, &["--on model"]),
        (&format!("{job} --on kernel --memory-max 512k"), 4, &["no memory limit"]),
        (&format!("{job} --on kernel --image /no/kernel"), 2, &["--image"]),
    ] {
        let output = Running::start(&mut filemap(args)).output();
        let message = stderr(&output);
        assert_eq!(output.status.code(), Some(code), "{args}: {message}");
        assert_eq!(message.matches('\n').count(), 1, "{args}: {message}");
        assert!(words.iter().all(|word| message.contains(word)), "{args}: {message}");
        assert!(output.stdout.is_empty(), "{args}");
    }
}

/// Remedies have the same figures as `run` and `compare` with these settings.
#[test]
fn remedies_match_runs_with_the_setting() {
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
    let figures_text = |figures: &Value| {
        ["data_pages_read", "bytes_read", "major_faults", "elapsed_ns"]
            .map(|name| figures[name].as_u64())
            .to_vec()
    };
    assert_eq!(figures_text(&remedies["now"]), figures(&plain));
    for trial in tried {
        let setting = trial["setting"].as_str().expect("a setting");
        let (key, value) = setting.split_once('=').expect("a key and a value");
        let flags = match key {
            "advice" => format!("{job} --advice {value}"),
            _ => job.replace("512", value),
        };
        let run = json(&format!("run {flags} --json -"))["runs"][0].take();
        assert_eq!(figures_text(&trial["figures"]), figures(&run), "{setting}");
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
fn reports_if_no_remedy_helps() {
    let output = filemap("explain --workload first --file-size 4k --accesses 1").output();
    let text = String::from_utf8(output.expect("it starts").stdout).expect("reports are text");
    assert!(
        text.contains("None of the settings that were tried in the model, by the rules of"),
        "{text}"
    );
}

#[test]
fn seeds_add_runs_to_explanation() {
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

//! Programs: job files with tables of files, opens, mappings and threads.

use std::process::Command;

use serde_json::Value;

use crate::{Scratch, filemap, json, stderr, stdout};

/// Two opens of one file and another file, with memory smaller than both files.
pub const PROGRAM: &str = "memory_max = '24m'
anonymous = '1m'
[[file]]
name = 'data'
size = '32m'
[[file]]
name = 'index'
size = '4m'
[[open]]
name = 'scan'
file = 'data'
[[open]]
name = 'index'
file = 'index'
[[mapping]]
name = 'tree'
open = 'index'
advice = 'random'
[[mapping]]
name = 'data'
open = 'scan'
[[thread]]
[[thread.phase]]
mapping = 'tree'
workload = 'random'
accesses = 500
think_ns = 1000
[[thread.phase]]
mapping = 'data'
workload = 'sequential'
accesses = 8192
[[thread.phase]]
open = 'scan'
workload = 'read-sequential'
bs = '64k'
accesses = 100
";

fn file<'a>(record: &'a Value, name: &str) -> &'a Value {
    let files = record["runs"][0]["files"].as_array().unwrap();
    files.iter().find(|file| file["name"] == name).unwrap()
}

/// The output of `--show-job` runs like the job it was printed for.
#[test]
fn the_program_of_a_job_runs_the_same() {
    let scratch = Scratch::new("show_job");
    let pages = scratch.file("pages.txt", "5\n1023\n7\n5\n");
    let listed = format!("--accesses-file {pages} --file-size 4m");
    for flags in [
        "--workload random --file-size 64m --accesses 5000 --seed 7 --memory-max 8m",
        "--workload read-sequential --bs 64k --file-size 16m --accesses 100 --map-offset 4m",
        "--workload stride:7 --file-size 32m --map-len 16m --private --read-ahead-kb 512",
        "--workload zipf:0.99 --file-size 64m --accesses 900 --with mmap-miss --kernel 6.12",
        "--workload interleave:3 --file-size 64m --accesses 3000 --governor --split 100",
        "--workload hot:90/10 --file-size 9m --arch arm64 --page-size 16k --ram 8m --fs xfs",
        "--workload exec --file-size 4m --arch arm64 --with exec-order --seed 3",
        "--workload elf --file /bin/bash --advice sequential --map-shift 5",
        &listed,
    ] {
        let of_flags = json(&format!("run {flags} --json -"));
        let program = scratch.file("program.toml", stdout(&format!("run {flags} --show-job")));
        let of_program = json(&format!("run {program} --json -"));
        let counters = &of_flags["runs"][0]["counters"];
        assert_eq!(&of_program["runs"][0]["counters"], counters, "{flags}");
        assert_eq!(
            of_program["runs"][0]["elapsed_ns"], of_flags["runs"][0]["elapsed_ns"],
            "{flags}"
        );
        // A program is what it is.
        let again = stdout(&format!("run {program} --show-job"));
        assert_eq!(again, std::fs::read_to_string(&program).unwrap(), "{flags}");
    }
}

#[test]
fn job_without_program_is_a_one_line_error() {
    for (flags, words) in
        [("--workload folio-ops", "filemap folio-ops"), ("--workload random", "--file-size")]
    {
        let output = filemap(&format!("run {flags} --show-job")).output().unwrap();
        let message = stderr(&output);
        assert_eq!((output.status.code(), message.lines().count()), (Some(2), 1), "{message}");
        assert!(message.contains(words) && output.stdout.is_empty(), "{message}");
    }
}

/// So that the flags of what takes the file can still say it.
#[test]
fn shown_job_has_only_given_machine_keys() {
    let shown = |more: &str| {
        let text = stdout(&format!("run --workload random --file-size 1m {more} --show-job"));
        text.parse::<toml::Table>().unwrap()
    };
    let text = |table: &toml::Table, key: &str| table.get(key).map(toml::Value::to_string);
    let plain = shown("");
    let with_kernel = shown("--kernel host --with p1 --runs 2 --machine server --on model");
    for (key, value) in [
        ("on", "\"model\""),
        ("kernel", "\"host\""),
        ("with", "\"p1\""),
        ("machine", "\"server\""),
        ("runs", "2"),
    ] {
        assert_eq!(text(&plain, key), None, "{key}");
        assert_eq!(text(&with_kernel, key).as_deref(), Some(value));
    }
    let scratch = Scratch::new("shown_job");
    let path = scratch.file("job.toml", stdout("run --workload random --file-size 1m --show-job"));
    stdout(&format!("compare {path} --variants baseline,mmap-miss"));
}

/// A table of several programs describes each of them.
#[test]
fn a_program_that_does_one_thing_is_titled_by_it() {
    let scratch = Scratch::new("title");
    let flags = "--workload stride:7 --file-size 32m";
    let job = stdout(&format!("run {flags} --show-job"));
    let title = |job: &str| {
        let path = scratch.file("program.toml", job);
        stdout(&format!("run {path}")).lines().next().unwrap().to_string()
    };
    assert_eq!(title(&job), "stride:7 of 32m, baseline, on the model");
    assert_eq!(stdout(&format!("run {flags}")).lines().next(), Some(&title(&job)[..]));
    let two = job.replace("[[thread]]", "[[thread]]\ncount = 2");
    assert_eq!(title(&two), "program of 1 file, baseline, on the model");
}

/// A variant with advice equals the program with that advice in its job file.
#[test]
fn advice_is_for_all_mappings_or_for_those_of_a_name() {
    let scratch = Scratch::new("program_advice");
    let path = scratch.file("program.toml", PROGRAM);
    let sequential = PROGRAM.replace("advice = 'random'", "advice = 'sequential'");
    let data = sequential
        .replace("open = 'scan'\n[[thread]]", "open = 'scan'\nadvice = 'sequential'\n[[thread]]");
    assert_ne!(data, sequential);
    let [tree, both] = [("tree.toml", sequential), ("both.toml", data)].map(|(name, text)| {
        let path = scratch.file(name, text);
        json(&format!("run {path} --json -"))["runs"][0].clone()
    });
    let variants = "advice=sequential,advice@tree=sequential,advice@index=sequential";
    let report = json(&format!("compare {path} --variants {variants} --json -"));
    let found: Vec<&Value> =
        report["cells"].as_array().unwrap().iter().map(|cell| &cell["runs"][0]["files"]).collect();
    assert_eq!(found, [&both["files"], &tree["files"], &tree["files"]]);
    let flag = json(&format!("run {path} --advice sequential --json -"));
    assert_eq!(flag["runs"][0]["files"], both["files"]);
}

#[test]
fn a_program_runs_in_the_model() {
    let scratch = Scratch::new("program");
    let path = scratch.file("program.toml", PROGRAM);
    let record = json(&format!("run {path} --json -"));
    assert_eq!(record["runs"][0]["counters"]["accesses"], 500 + 8192 + 100);
    assert!(file(&record, "data")["data_pages_read"].as_u64() > Some(8192));
    assert!(file(&record, "index")["data_pages_read"].as_u64() < Some(501));
    assert_eq!(record["runs"][0]["phases"][0]["does"], "touch tree: random");
    let text = stdout(&format!("run {path}"));
    for words in ["program of 2 files", "2  touch data: sequential", "mapping", "evicted"] {
        assert!(text.contains(words), "{words}: {text}");
    }
    let seeds = json(&format!("run {path} --seeds 3 --json -"));
    let runs = seeds["runs"].as_array().unwrap();
    assert_eq!((runs.len(), &runs[0]), (3, &record["runs"][0]));
    assert_ne!(runs[1]["seed"], runs[0]["seed"]);
    assert_ne!(runs[1]["counters"], runs[0]["counters"]);
    let log = stdout(&format!("run {path} --log -"));
    assert!(log.lines().any(|line| line.contains(r#""decision":"file""#)), "files are told apart");
}

/// A program with an existing file of 40 KiB without blocks, and with advice as steps.
fn of_existing(path: &str) -> String {
    format!(
        "[[file]]\nname = 'data'\npath = '{path}'\n[[open]]\nname = 'o'\nfile = 'data'\n\
         [[mapping]]\nname = 'm'\nopen = 'o'\n[[thread]]\n\
         [[thread.phase]]\nmapping = 'm'\nmadvise = 'willneed'\noffset = '8k'\nlen = '12k'\n\
         [[thread.phase]]\nopen = 'o'\nfadvise = 'dontneed'\n"
    )
}

/// Several job files with tables can be compared like others.
#[test]
fn several_programs_are_compared_in_the_same_variants() {
    let scratch = Scratch::new("program_several");
    let one = scratch.file("one.toml", PROGRAM);
    let other = scratch.file("other.toml", "workload = 'random'\nfile_size = '8m'\n");
    let report = json(&format!("compare {one} {other} --variants baseline,p1 --json -"));
    let cells = report["cells"].as_array().unwrap();
    let files: Vec<&str> = cells.iter().map(|cell| cell["job_file"].as_str().unwrap()).collect();
    assert_eq!(files, [&*one, &*one, &*other, &*other]);
    let alone = json(&format!("compare {one} --variants baseline,p1 --json -"));
    assert_eq!(alone["cells"][1]["runs"], cells[1]["runs"]);
}

#[test]
fn an_existing_file_and_advice_as_steps() {
    let scratch = Scratch::new("program_existing");
    let data = scratch.path("data");
    std::fs::File::create(&data).unwrap().set_len(40_960).unwrap();
    let path = scratch.file("program.toml", of_existing(&data));
    let text = stdout(&format!("run {path} --json -"));
    let record: Value = serde_json::from_str(&text).unwrap();
    let phases = &record["runs"][0]["phases"];
    assert_eq!(phases[0]["does"], "madvise m: willneed of 12k from 8k");
    assert_eq!(phases[0]["counters"]["data_pages_read"], 3);
    assert_eq!(phases[0]["counters"]["bytes_read"], 0, "holes are filled without the device");
    assert_eq!(phases[1]["does"], "fadvise o: dontneed");
    assert_eq!(record["runs"][0]["files"][0]["evicted_pages"], 3);

    let missing = scratch.file("missing.toml", of_existing("/nowhere/at/all"));
    let directory = scratch.file("directory.toml", of_existing("/"));
    let twice = format!("[[file]]\nname = 'twin'\npath = '{data}'\n{}", of_existing(&data));
    let twice = scratch.file("twice.toml", &twice);
    for (args, words) in [
        (format!("run {missing}"), "'/nowhere/at/all'"),
        (format!("run {directory}"), "it is a directory"),
        (format!("run {twice}"), "files 'twin' and 'data' are the same file"),
        (format!("run {path} --json {data}"), "the file 'data' of the job file"),
    ] {
        let output = filemap(&args).output().unwrap();
        let error = stderr(&output);
        assert_eq!(output.status.code(), Some(2), "{args}: {error}");
        assert!(error.contains(words), "{args}: {error}");
        assert_eq!(error.lines().count(), 1, "{args}: {error}");
    }
    assert_eq!(std::fs::metadata(&data).unwrap().len(), 40_960, "nothing is written to it");
}

#[test]
fn refuses_flags_programs_do_not_take() {
    let scratch = Scratch::new("program_errors");
    let path = scratch.file("program.toml", PROGRAM);
    let behind = PROGRAM.replace("advice = 'random'", "len = '1g'");
    let behind = scratch.file("behind.toml", &behind);
    let unknown = PROGRAM.replace("mapping = 'tree'", "mapping = 'trees'");
    let unknown = scratch.file("unknown.toml", &unknown);
    let (tables, _) = PROGRAM.split_once("[[thread]]").expect("it has threads");
    let advice = "[[thread]]\n[[thread.phase]]\nmapping = 'tree'\nmadvise = 'dontneed'\n";
    let advice = scratch.file("advice.toml", format!("{tables}{advice}"));
    let full = PROGRAM.replace("name = 'tree'\n", "name = 'tree'\nprivate = true\n");
    let full =
        full.replace("'24m'", "'2m'").replace("accesses = 500", "accesses = 500\nwrite = true");
    let full = scratch.file("full.toml", full);
    let cases = [
        (format!("run {path} --accesses 3"), "--accesses is for a job with one [[thread.phase]]"),
        (format!("run {path} --threads 3"), "--threads is for --workload thrash"),
        (format!("run {path} --workload thrash"), "--workload thrash is a program of its own"),
        (
            format!("compare {path} --variants baseline,threads=3"),
            "--threads is for --workload thrash",
        ),
        (format!("run {path} --memory-high 1g"), "--memory-high: 1g is above memory.max of 24m"),
        (format!("run {path} --on model --image x"), "--image does not go with --on model"),
        (format!("run {path} --on kernel --modules x"), "'image' is missing"),
        (
            format!("run {path} --image x --image y"),
            "'--image <PATH>' cannot be used multiple times",
        ),
        (format!("compare {path} --modules x --variants p1,p2"), "give that with --image"),
        (format!("run {path} --on disk"), "unknown engine 'disk'"),
        (format!("run {path} --change-settings"), "--change-settings is for the running kernel"),
        (format!("compare {path}"), "there is one variant only"),
        (
            format!("compare {path} --variants baseline,exec=true"),
            "--exec is for a job with one [[mapping]]",
        ),
        (
            format!("compare {path} --variants baseline,advice@x=random"),
            "unknown mapping or file 'x'",
        ),
        (format!("compare {path} --variants baseline,advice@data=no"), "unknown advice 'no'"),
        (format!("compare {path} --variants baseline,p9"), "unknown series 'p9'"),
        (format!("explain {path} --runs 2"), "unexpected argument '--runs'"),
        (format!("conform {path} --fuzz 2"), "--fuzz is for a job of one file"),
        (format!("conform {path} --on kernel"), "unexpected argument '--on'"),
        (format!("conform {advice}"), "no decision to compare; add a [[thread.phase]]"),
        (format!("run {behind}"), "behind.toml: phase 1: page "),
        (format!("run {behind}"), "gets SIGBUS"),
        (format!("run {full}"), "full.toml: phase 1: out of memory at page"),
        (format!("run {full}"), "raise 'memory_max', or give less 'anonymous' or fewer writes"),
        (format!("run {unknown}"), "phase 1: unknown mapping 'trees'; known: data, tree"),
        (format!("run {path} --json {path}"), "the job file"),
    ];
    for (args, words) in cases {
        let output = filemap(&args).output().unwrap();
        let error = stderr(&output);
        assert_eq!(output.status.code(), Some(2), "{args}: {error}");
        assert!(error.contains(words), "{args}: {error}");
        assert_eq!(error.lines().count(), 1, "{args}: {error}");
    }
}

#[test]
fn checks_images_before_running() {
    let scratch = Scratch::new("program_images");
    let path = scratch.file("program.toml", PROGRAM);
    let named = scratch.file("named.toml", format!("image = '/no/such/kernel'\n{PROGRAM}"));
    let image = "--image /no/such/kernel";
    let pipe = scratch.path("pipe");
    assert!(Command::new("mkfifo").arg(&pipe).status().expect("mkfifo").success());
    for (args, words) in [
        (format!("conform --image {pipe}"), "it is no regular file"),
        (format!("run {path} {image}"), "cannot boot /no/such/kernel"),
        (format!("run {named}"), "cannot boot /no/such/kernel"),
        (format!("compare {path} --on model,kernel {image}"), "cannot boot /no/such/kernel"),
        (format!("compare {named} --image /proc/self/exe"), "no boot header"),
        (format!("explain {path} {image}"), "cannot boot /no/such/kernel"),
        (format!("explain --workload first --file-size 1m {image}"), "cannot boot /no/such/kernel"),
        (format!("conform {path} {image}"), "cannot boot /no/such/kernel"),
        (format!("conform {image}"), "cannot boot /no/such/kernel"),
        ("conform --image /".to_string(), "Is a directory"),
        ("conform --with mmap-mis".to_string(), "unknown series 'mmap-mis'"),
    ] {
        let output = filemap(&args).output().unwrap();
        let error = stderr(&output);
        assert_eq!(output.status.code(), Some(2), "{args}: {error}");
        assert!(error.contains(words), "{args}: {error}");
        assert_eq!(error.lines().count(), 1, "{args}: {error}");
    }
    let kernel = scratch.file("kernel", "no kernel");
    let output = filemap(&format!("run {path} --image {kernel} --json {kernel}")).output().unwrap();
    let error = stderr(&output);
    assert_eq!(output.status.code(), Some(2), "{error}");
    assert!(error.contains("--image"), "{error}");
    assert_eq!(std::fs::read_to_string(kernel).unwrap(), "no kernel");
}

#[test]
fn machine_flags_override_job_file() {
    let scratch = Scratch::new("program_flags");
    let path = scratch.file("program.toml", PROGRAM);
    let record = json(&format!("run {path} --memory-max 1g --seed 3 --runs 2 --json -"));
    assert_eq!((&record["job"]["memory_max"], &record["job"]["seed"]), (&"1g".into(), &3.into()));
    assert_eq!(record["runs"][0]["counters"]["evicted_pages"], 0);
    assert_eq!(record["runs"].as_array().unwrap().len(), 2);
    assert_eq!(record["summary"]["files"][0]["data_pages_read"]["min"], 8192);
    let command = record["command"].as_str().unwrap();
    assert_eq!(command, format!("filemap run {path} --runs 2 --seed 3 --memory-max 1g"));
}

#[test]
fn variants_of_a_program_are_compared_by_file() {
    let scratch = Scratch::new("program_compare");
    let path = scratch.file("program.toml", PROGRAM);
    let variants = "--variants baseline,mmap-miss,memory_max=1g+read_ahead_kb=512";
    let report = json(&format!("compare {path} {variants} --json -"));
    let cells = report["cells"].as_array().unwrap();
    let names: Vec<&str> = cells.iter().map(|cell| cell["variant"].as_str().unwrap()).collect();
    assert_eq!(names, ["baseline", "mmap-miss", "memory_max=1g+read_ahead_kb=512"]);
    let pages = |cell: &Value| cell["figures"]["files"][0]["data_pages_read"]["median"].as_u64();
    assert!(pages(&cells[0]) > pages(&cells[2]), "{report}");
    assert_eq!(cells[2]["job"]["read_ahead_kb"], 512);
    let text = stdout(&format!("compare {path} {variants}"));
    for words in ["program of 2 files: changes against baseline", "By file: pages read", "\nindex "]
    {
        assert!(text.contains(words), "{words}: {text}");
    }
}

#[test]
fn bytes_of_a_program_are_explained_by_file_and_mapping() {
    let scratch = Scratch::new("program_explain");
    let path = scratch.file("program.toml", PROGRAM);
    let report = json(&format!("explain {path} --json -"));
    let sum = |value: &Value, list: &str| -> u64 {
        value[list].as_array().unwrap().iter().map(|one| one["pages"].as_u64().unwrap()).sum()
    };
    let files = report["files"].as_array().unwrap();
    let all: u64 = files.iter().map(|file| sum(file, "causes")).sum();
    assert_eq!(Some(all), report["pages_read"].as_u64());
    assert_eq!(report["counters"]["data_pages_read"].as_u64(), Some(all));
    let [mappings, opens] = ["mappings", "opens"].map(|key| report[key].as_array().unwrap());
    let through = mappings.iter().chain(opens);
    assert_eq!(through.map(|one| sum(one, "brought_in")).sum::<u64>(), all);
    let tree = mappings.iter().find(|one| one["name"] == "tree").unwrap();
    assert_eq!(sum(tree, "brought_in"), sum(&files[1], "causes"));
    let text = stdout(&format!("explain {path}"));
    for words in
        ["bytes by file and cause", "refetched after eviction", "mapping tree", "open scan"]
    {
        assert!(text.contains(words), "{words}: {text}");
    }
}

/// The loader maps segments, so no advice is suggested for them.
#[test]
fn advice_is_for_no_segments() {
    let scratch = Scratch::new("advise_segments");
    let thread = "[[thread]]\n[[thread.phase]]\nmapping = 'm'\nworkload = 'elf'\n\
                  [[thread.phase]]\nmapping = 'm'\nworkload = 'random'\naccesses = 400\n";
    let path = scratch.file(
        "segments.toml",
        format!(
            "[[file]]\nname = 'bash'\npath = '/bin/bash'\n[[open]]\nname = 'o'\nfile = 'bash'\n\
             [[mapping]]\nname = 'm'\nopen = 'o'\nelf = true\n{thread}{thread}"
        ),
    );
    let advice = stdout(&format!("advise {path} --kernel 6.18"));
    assert!(!advice.contains("madvise("), "{advice}");
    // It uses the pages of the file.
    let explained = stdout(&format!("explain {path} --kernel 6.18"));
    assert!(!explained.contains("beyond the mapping 2"), "{explained}");
}

//! `filemap search`.

use std::fs;
use std::thread::sleep;
use std::time::Duration;

use filemap_job::random::Rng;
use serde_json::Value;

use crate::running::Running;
use crate::{Scratch, filemap, json, stderr, stdout};

const SPLITS: &str = "search --variants baseline,vma-bound --worse majors --jobs 300 --seed 3";

fn undated(mut report: Value) -> Value {
    report["environment"]["date"].take();
    report
}

/// Independent of the number of processors.
#[test]
#[ignore = "searches hundreds of jobs several times: minutes without optimization"]
fn a_seed_finds_the_same_jobs_again() {
    let found = undated(json(&format!("{SPLITS} --json -")));
    let mut command = filemap(&format!("{SPLITS} --json -"));
    let alone = command.env("RAYON_NUM_THREADS", "1").output().unwrap();
    assert_eq!(undated(serde_json::from_slice(&alone.stdout).unwrap()), found);
    let command = found["command"].as_str().unwrap().strip_prefix("filemap ").unwrap();
    assert_eq!(undated(json(&format!("{command} --json -"))), found);
    let other = json(&format!("{} --json -", SPLITS.replace("--seed 3", "--seed 4")));
    assert_ne!(other["groups"], found["groups"]);
}

/// Runs a `compare` command and returns the figures of both variants.
fn majors(command: &str) -> [u64; 2] {
    let command = command.strip_prefix("filemap ").unwrap();
    let report = json(&format!("{command} --json -"));
    let cells = report["cells"].as_array().unwrap();
    assert_eq!(cells.len(), 2, "{command}");
    [0, 1].map(|cell| cells[cell]["figures"]["major_faults"]["median"].as_u64().unwrap())
}

/// Each reported job has the reported costs when its `compare` command runs.
#[test]
fn search_estimates_job_costs() {
    let scratch = Scratch::new("search_repeats");
    let directory = scratch.path("jobs");
    let found = json(&format!("{SPLITS} --json - --output {directory}"));
    let groups = found["groups"].as_array().unwrap();
    assert!(groups.len() >= 3, "windows are clipped in faults, behind misses and at marks");
    let mut most = 0.0_f64;
    for group in groups {
        let cases = group["cases"].as_array().unwrap();
        for case in cases {
            let figures = majors(case["command"].as_str().unwrap());
            let faults =
                ["first", "second"].map(|side| case[side]["major_faults"].as_u64().unwrap());
            assert_eq!(figures, faults, "{case}");
            assert!(faults[1] > faults[0]);
            most = most.max(faults[1] as f64 / faults[0].max(1) as f64);
        }
        let accesses = |case: usize| cases[case]["accesses"].as_u64().unwrap();
        assert!(accesses(0) <= accesses(1) && accesses(0) <= accesses(2), "{group}");
    }
    assert!(most >= 50.0, "a scan of a mapping in pieces: {most}");
    assert_eq!(fs::read_dir(&directory).unwrap().count(), 3 * groups.len());
    let output = filemap(&format!("{SPLITS} --output {directory}")).output().unwrap();
    assert_eq!(output.status.code(), Some(2));
    assert!(stderr(&output).contains("not empty"), "{}", stderr(&output));
}

/// Commands without a job file repeat their jobs too.
#[test]
fn commands_repeat_their_jobs() {
    let text = stdout(SPLITS);
    let is_command = |line: &&str| line.starts_with("filemap compare --");
    let commands: Vec<&str> = text.lines().filter(is_command).collect();
    assert!(commands.len() >= 3, "{text}");
    for command in commands {
        let [first, second] = majors(command);
        assert!(second > first, "{command}");
        let change = format!(": {first} -> {second} in");
        assert!(text.replace('\n', " ").contains(&change), "{command}: {change}");
    }
}

/// A search that was interrupted and resumed prints the same as an uninterrupted one.
#[test]
#[ignore = "searches hundreds of jobs several times: minutes without optimization"]
fn search_resumes() {
    let scratch = Scratch::new("search_goes_on");
    let state = scratch.path("state.search");
    let whole = stdout(SPLITS);
    let part = SPLITS.replace("--jobs 300", "--jobs 270");
    stdout(&format!("{part} --state {state}"));
    let kept = fs::read_to_string(&state).unwrap();
    assert!(kept.contains("\"drawn\":256"), "{kept}");
    // A shorter search keeps the state.
    let shorter = SPLITS.replace("--jobs 300", "--jobs 260");
    assert_eq!(stdout(&format!("{shorter} --state {state}")), stdout(&shorter));
    assert_eq!(fs::read_to_string(&state).unwrap(), kept);
    assert_eq!(stdout(&format!("{SPLITS} --state {state}")), whole);
    // Again, with the complete state.
    assert_eq!(stdout(&format!("{SPLITS} --state {state}")), whole);
    for (args, words) in [
        (SPLITS.replace("--seed 3", "--seed 4"), "another search"),
        (SPLITS.replace("--worse", "--over"), "another search"),
        (SPLITS.replace("--jobs 300", "--jobs 20"), "tried already"),
    ] {
        let output = filemap(&format!("{args} --state {state}")).output().unwrap();
        let message = stderr(&output);
        assert_eq!(output.status.code(), Some(2), "{args}: {message}");
        assert!(message.contains(words) && message.lines().count() == 1, "{args}: {message}");
    }
    let kept = fs::read_to_string(&state).unwrap();
    for (broken, words) in [
        ("workload = 'random'\n".to_string(), "no state of a search"),
        (kept.replace("begins later", "begins sooner"), "do not show"),
        (kept.replace("\"drawn\":256", "\"drawn\":255"), "do not show"),
        (kept.replace("\"accesses\":", "\"accesses\":1"), "do not show"),
        (kept.replace("\"filemap_search\":4", "\"filemap_search\":3"), "another version"),
    ] {
        let path = scratch.file("broken", &broken);
        let output = filemap(&format!("{SPLITS} --state {path}")).output().unwrap();
        let message = stderr(&output);
        assert_eq!(output.status.code(), Some(2), "{message}");
        assert!(message.contains(words), "{message}");
        assert_eq!(fs::read_to_string(&path).unwrap(), broken, "what is no state stays");
    }
}

/// SIGINT ends a search with its findings so far, and the next search resumes.
#[test]
#[ignore = "searches hundreds of jobs several times: minutes without optimization"]
fn interrupted_search_reports_findings() {
    let scratch = Scratch::new("search_interrupted");
    let state = scratch.path("state.search");
    let long = SPLITS.replace("--jobs 300", "--jobs 1000000");
    let mut command = filemap(&format!("{long} --state {state}"));
    let running = Running::start(&mut command);
    while fs::metadata(&state).is_err() {
        sleep(Duration::from_millis(20));
    }
    running.signal("INT");
    let output = running.output();
    assert_eq!(output.status.code(), Some(130), "{}", stderr(&output));
    assert_eq!(stderr(&output), "");
    let text = String::from_utf8(output.stdout).unwrap();
    assert!(text.contains("The same command continues from job "), "{text}");
    let again = text.lines().find_map(|line| line.strip_prefix("Command: filemap ")).unwrap();
    let without = |text: &str| {
        let is_note = |line: &&str| line.contains("Interrupted");
        text.lines().filter(|line| !is_note(line)).map(str::to_string).collect::<Vec<_>>()
    };
    let of_state = stdout(&format!("{again} --state {state}"));
    assert_eq!(of_state, stdout(again), "the same as without a break");
    let (first, again) = (without(&text), without(&of_state));
    assert_eq!(
        first.iter().filter(|line| !line.is_empty()).collect::<Vec<_>>(),
        again.iter().filter(|line| !line.is_empty()).collect::<Vec<_>>()
    );
}

/// A signal that ends the search immediately still has it name the saved state.
#[test]
fn ended_search_reports_saved_state() {
    let scratch = Scratch::new("search_ended");
    let state = scratch.path("state.search");
    let long = SPLITS.replace("--jobs 300", "--jobs 1000000");
    let running = Running::start(&mut filemap(&long));
    sleep(Duration::from_millis(700));
    running.signal("TERM");
    let output = running.output();
    let message = stderr(&output);
    assert_eq!((output.status.code(), message.lines().count()), (Some(143), 1), "{message}");
    assert!(message.starts_with("filemap: nothing is kept of this search; with --state FILE"));
    let mut running = Running::start(&mut filemap(&format!("{long} --state {state}")));
    assert!(running.reaches(|| fs::metadata(&state).is_ok()));
    running.signal("TERM");
    let output = running.output();
    let message = stderr(&output);
    assert_eq!((output.status.code(), message.lines().count()), (Some(143), 1), "{message}");
    let words = format!(" jobs are kept in '{state}'; the same command continues from there");
    assert!(message.contains(&words), "{message}");
}

/// Each random job is counted, or reported as skipped.
#[test]
fn search_reports_counts() {
    let search = "search --variants baseline,read_ahead_kb=8192 --worse bytes --jobs 60";
    let found = json(&format!("{search} --json -"));
    let [tried, left_out, alike] =
        ["tried", "left_out", "alike"].map(|key| found[key].as_u64().unwrap());
    assert_eq!(tried + left_out + alike, 60);
    assert!(alike > 0, "some of the jobs have this size already");
    let text = stdout(search).replace('\n', " ");
    assert!(text.contains(&format!(" of {tried} jobs that ran in both variants, by ")), "{text}");
    let words = format!("Of 60 jobs drawn, {alike} that are the same in both variants");
    assert!(text.contains(&words), "{text}");
}

/// A search killed at any moment leaves a complete state file or none.
#[test]
#[ignore = "searches hundreds of jobs several times: minutes without optimization"]
fn killed_search_resumes() {
    let scratch = Scratch::new("search_killed");
    let state = scratch.path("state.search");
    let mut rng = Rng(11);
    println!("seed {}", rng.0);
    for kill in 0..6 {
        let running = Running::start(&mut filemap(&format!("{SPLITS} --state {state}")));
        sleep(Duration::from_millis(rng.below(2000)));
        // The process may have exited already.
        crate::running::signal(["KILL", "TERM", "INT"][kill % 3], running.id());
        running.output();
        let names = fs::read_dir(scratch.path("")).unwrap().flatten();
        let names: Vec<_> = names.map(|entry| entry.file_name()).collect();
        assert!(names.iter().all(|name| name == "state.search"), "{names:?}");
    }
    assert_eq!(stdout(&format!("{SPLITS} --state {state}")), stdout(SPLITS));
}

#[test]
fn series_without_effect_finds_nothing() {
    // exec-unify does not change any rule of 6.12.
    let search = "search --variants baseline,exec-unify --kernel 6.12 --differ --jobs 60";
    let text = stdout(search).replace('\n', " ");
    assert!(text.contains("None was found among"), "{text}");
    assert!(text.contains("proves nothing"), "{text}");
    assert!(text.contains("rules of Linux 6.12"), "{text}");
}

/// Flags apply to every job.
#[test]
fn flags_bound_the_space() {
    let flags = "--read-ahead-kb 16 --workload sequential --fs xfs";
    let found = json(&format!("{SPLITS} {flags} --json -"));
    let groups = found["groups"].as_array().unwrap();
    assert!(!groups.is_empty());
    for case in groups.iter().flat_map(|group| group["cases"].as_array().unwrap()) {
        let job = &case["job"];
        assert_eq!((&job["read_ahead_kb"], &job["fs"]), (&16.into(), &"xfs".into()), "{job}");
        let phases = job["thread"][0]["phase"].as_array().unwrap();
        assert!(phases.iter().all(|phase| phase["workload"] == "sequential"), "{job}");
    }
}

/// A job file, with tables or without, is what the jobs are variations of.
#[test]
fn begins_with_a_given_job() {
    let scratch = Scratch::new("search_begins");
    let flat = "workload = 'sequential'\nfile_size = '4m'\nsplit = 16\nsplit_prot = 'exec'\n\
                read_ahead_kb = 1024\n";
    let tables = "read_ahead_kb = 1024\n[[file]]\nname = 'data'\nsize = '4m'\n\
                  [[file]]\nname = 'index'\nsize = '1m'\n[[open]]\nname = 'data'\n\
                  file = 'data'\n[[open]]\nname = 'index'\nfile = 'index'\n[[mapping]]\n\
                  name = 'data'\nopen = 'data'\nsplit = 16\nsplit_prot = 'exec'\n\
                  [[mapping]]\nname = 'index'\nopen = 'index'\n\
                  [[thread]]\n[[thread.phase]]\nmapping = 'data'\n\
                  workload = 'sequential'\naccesses = 900\n\
                  [[thread]]\nphase = [{ mapping = 'index', workload = 'random', accesses = 9 }]\n";
    for (name, text) in [("flat.toml", flat), ("tables.toml", tables)] {
        let path = scratch.file(name, text);
        let directory = scratch.path(&format!("{name}.found"));
        let search =
            format!("search {path} --fs xfs --variants baseline,vma-bound --differ --seed 2");
        let found = json(&format!("{search} --jobs 60 --json - -o {directory}"));
        assert_eq!(found["command"], format!("filemap {search} --jobs 60"));
        let groups = found["groups"].as_array().unwrap();
        assert!(!groups.is_empty(), "{found}");
        for case in groups.iter().flat_map(|group| group["cases"].as_array().unwrap()) {
            assert_eq!(case["job"]["fs"], "xfs", "{case}");
            let told = ["first", "second"].map(|side| case[side]["major_faults"].as_u64().unwrap());
            assert_eq!(majors(case["command"].as_str().unwrap()), told, "{case}");
        }
        let again = json(&format!("{search} --jobs 60 --json -"));
        let jobs = |found: &Value| -> Vec<Value> {
            let groups = found["groups"].as_array().unwrap();
            groups.iter().map(|group| group["cases"][0]["job"].clone()).collect()
        };
        assert_eq!(jobs(&again), jobs(&found));
    }
}

#[test]
fn tables_keep_to_75_columns() {
    let text = stdout(SPLITS);
    let is_copied = |line: &&str| line.contains("filemap ") || line.starts_with("Command:");
    for line in text.lines().filter(|line| !is_copied(line)) {
        assert!(line.chars().count() <= 75, "{line}");
    }
}

#[test]
fn unsearchable_job_is_a_one_line_error() {
    for (args, code, words) in [
        ("--variants baseline,p1", 2, &["--worse", "--differ"][..]),
        ("--differ", 2, &["--variants"]),
        ("--differ --variants p1", 2, &["two variants", "baseline,vma-bound"]),
        ("--differ --variants baseline,p1,p2", 2, &["two variants"]),
        ("--worse speed --variants baseline,p1", 2, &["'speed'", "bytes, majors, elapsed"]),
        ("--differ --worse bytes --variants baseline,p1", 2, &["cannot be used with"]),
        ("--differ --variants baseline,p1 --jobs 0", 2, &["out of range"]),
        ("--differ --variants baseline,p1 --duration 3", 2, &["unit"]),
        (
            "--differ --variants baseline,p1 --duration 0s",
            2,
            &["'0s'", "--duration", "such as 60s"],
        ),
        ("/nowhere.toml --differ --variants baseline,p1", 2, &["/nowhere.toml"]),
        ("--differ --variants baseline,p1 --on kernel", 2, &["unexpected argument '--on'"]),
        ("--differ --variants baseline,p1 --workload folio-ops", 2, &["filemap folio-ops"]),
        ("--differ --variants baseline,p1 --workload thrash", 2, &["--show-job"]),
        ("--differ --variants baseline,p1 --runs 3", 2, &["unexpected argument '--runs'"]),
        ("--differ --variants baseline,p1 --file-size 1m --map-len 2m", 2, &["map"]),
        ("--differ --variants baseline,baseline", 2, &["the same in all jobs"]),
        ("--differ --variants p1,miss-fault-address", 2, &["the same in all jobs"]),
        ("--differ --variants fs=xfs,baseline --fs xfs", 2, &["the same in all jobs"]),
        ("--differ --variants baseline,p1 --state -", 2, &["give it a file"]),
        ("--differ --variants baseline,p1 --output /nowhere/at/all", 2, &["/nowhere/at"]),
        ("--differ --variants baseline,p1 --output /dev/null", 2, &["new directory"]),
        ("--differ --variants baseline,p1 --json x --state x", 2, &["--state"]),
    ] {
        let output = filemap(&format!("search {args}")).output().unwrap();
        let message = stderr(&output);
        assert_eq!(output.status.code(), Some(code), "{args}: {message}");
        assert!(words.iter().all(|word| message.contains(word)), "{args}: {message}");
        assert!(output.stdout.is_empty(), "{args}");
    }
}

#[test]
fn progress_is_lines_where_stderr_is_no_terminal() {
    let search = "search --variants baseline,p1 --differ --file-size 1m";
    let long = filemap(&format!("{search} --duration 3700ms")).output().unwrap();
    let error = stderr(&long);
    let lines: Vec<&str> = error.lines().filter(|line| line.ends_with(" jobs after 2 s")).collect();
    assert_eq!(lines.len(), 1, "{error}");
    let short = filemap(&format!("{search} --jobs 10")).output().unwrap();
    assert_eq!(stderr(&short), "");
}

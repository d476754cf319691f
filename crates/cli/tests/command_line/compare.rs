//! `filemap compare`.

use serde_json::Value;

use crate::{Scratch, filemap, json, stderr, stdout, undated};

const JOB: &str = "compare --workload random --file-size 64m --accesses 500";

#[test]
fn matrix_has_a_cell_per_variant() {
    let report = json(&format!("{JOB} --variants baseline,p1,p1+p2 --json -"));
    assert_eq!(report["schema"], 2);
    let cells = report["cells"].as_array().unwrap();
    let names: Vec<_> = cells.iter().map(|cell| cell["variant"].as_str().unwrap()).collect();
    assert_eq!(names, ["baseline", "p1", "p1+p2"]);
    for cell in cells {
        assert_eq!(cell["engine"], "model");
        assert_eq!((&cell["error"], &cell["ok"]), (&Value::Null, &Value::Null));
        assert!(cell["figures"]["data_pages_read"]["median"].is_u64());
    }
    assert_eq!(cells[0]["change"]["bytes_read"], 0.0);
    assert_eq!(cells[0]["figures"], cells[1]["figures"], "p1 alone changes nothing");
    assert!(cells[2]["change"]["bytes_read"].as_f64().unwrap() < -50.0);
    assert_eq!(cells[2]["job"]["with"], "miss-fault-address+miss-no-retry");
}

#[test]
fn lists_allow_blanks() {
    let args = format!("{JOB} --json - --variants");
    let cells = |words: &[&str]| {
        let output = filemap(&args).args(words).output().unwrap();
        let report: Value = serde_json::from_slice(&output.stdout).unwrap();
        report["cells"].as_array().unwrap().iter().map(|cell| cell["variant"].clone()).collect()
    };
    let names: Vec<Value> = cells(&["baseline, p1 + p2"]);
    assert_eq!(names, ["baseline", "p1+p2"]);
    let output = filemap(&format!("{JOB} --json - --with")).arg("p1, p2").output().unwrap();
    assert!(output.status.code() == Some(2), "one cell is no comparison");
    assert!(String::from_utf8_lossy(&output.stderr).contains("one variant"));
}

#[test]
fn report_command_repeats_it() {
    let report = undated(&format!("{JOB} --seed 5 --variants baseline,mmap-miss"));
    let command = report["command"].as_str().unwrap().strip_prefix("filemap ").unwrap();
    assert_eq!(report, undated(command));
}

#[test]
fn tables_keep_to_75_columns() {
    let variants = "baseline,p1,p2,p1+p2,mmap-miss,miss-fault-address+miss-no-retry";
    let text = stdout(&format!("{JOB} --variants {variants}"));
    for line in text.lines().filter(|line| !line.starts_with("Command:")) {
        assert!(line.chars().count() <= 75, "{line}");
    }
    for variant in ["p1 ", "p2 ", "p1+p2", "mmap-miss", "miss-fault-address+"] {
        assert!(text.contains(variant), "{variant}");
    }
}

#[test]
fn csv_has_one_line_a_cell_and_counter() {
    let text = stdout(&format!("{JOB} --variants baseline,p2 --format csv"));
    assert!(text.starts_with("engine,variant,counter,median,mad,min,max,change_percent\n"));
    let lines = text.lines().filter(|line| line.contains(",bytes_read,"));
    assert_eq!(lines.count(), 2);
}

/// Warns of a change that affects no decision of the job, and only of such a change.
#[test]
fn warns_if_job_is_unaffected() {
    let whole = "compare --workload sequential --file-size 1m --accesses 64 --advice random";
    let report = json(&format!("{whole} --variants baseline,vma-bound --json -"));
    let warnings = report["warnings"].as_array().unwrap();
    assert_eq!(warnings.len(), 1);
    let warning = warnings[0].as_str().unwrap();
    assert!(warning.starts_with("this job cannot see this change: in vma-bound"), "{warning}");
    let text = stdout(&format!("{whole} --variants baseline,vma-bound"));
    assert!(text.contains("Warning: this job cannot see this change"));

    let part =
        "compare --workload first --accesses 1 --file-size 1m --map-offset 256k --map-len 16k";
    let report = json(&format!("{part} --variants baseline,vma-bound,exec-bypass --json -"));
    let warnings = report["warnings"].as_array().unwrap();
    assert_eq!(warnings.len(), 1, "{warnings:?}");
    assert!(warnings[0].as_str().unwrap().contains("in exec-bypass no rule"));
}

#[test]
fn warns_of_variant_without_effect() {
    let report = json(&format!("{JOB} --private --variants baseline,split=16 --json -"));
    let warnings = report["warnings"].as_array().unwrap();
    let split = |warning: &Value| warning.as_str().is_some_and(|text| text.contains("--split 16"));
    assert!(warnings.iter().any(split), "{warnings:?}");
}

/// The governor is a variant of jobs and programs, with reads that no other variant makes.
#[test]
fn the_governor_is_a_variant() {
    let scratch = Scratch::new("governor");
    let program = scratch.file(
        "program.toml",
        "read_ahead_kb = 8192\n[[file]]\nname = 'f'\nsize = '64m'\n[[open]]\nname = 'o'\nfile = \
         'f'\n[[mapping]]\nname = 'm'\nopen = 'o'\n[[thread]]\n[[thread.phase]]\nmapping = 'm'\n\
         workload = 'stride:67'\naccesses = 200\n",
    );
    let flags = "--workload stride:67 --accesses 200 --file-size 64m --read-ahead-kb 8192";
    for job in [flags, program.as_str()] {
        let variants = "--variants baseline,mmap-miss,governor,read_ahead_kb=128+governor";
        let report = json(&format!("compare {job} {variants} --json -"));
        let cells = report["cells"].as_array().unwrap();
        let read = |cell: &Value| cell["figures"]["data_pages_read"]["median"].as_u64().unwrap();
        let read: Vec<u64> = cells.iter().map(read).collect();
        assert!(read[0] > 5000 && read[2] < 300 && read[2] == read[3], "{job}: {read:?}");
    }
}

/// On a kernel a governor runs beside the job, where that can be followed. It makes no series of
/// the kernel.
#[test]
fn a_kernel_takes_a_governor_and_no_series() {
    let job = "--workload random --file-size 32m --accesses 10";
    for (args, words) in [
        (format!("run --on kernel {job} --governor"), ""),
        (format!("compare --on model,kernel {job} --variants baseline,governor"), ""),
        (
            format!("compare --on kernel {job} --variants baseline,p1+governor"),
            "miss-fault-address",
        ),
    ] {
        let output = filemap(&args).output().unwrap();
        let message = stderr(&output);
        if words.is_empty() && output.status.success() {
            continue;
        }
        assert_eq!(output.status.code(), Some(4), "{args}: {message}");
        assert!(message.contains(words) && message.matches('\n').count() == 1, "{message}");
    }
}

/// A variant equals the job with its settings as flags: separate commands give the same runs.
#[test]
fn settings_follow_flags() {
    let job = "--workload random --file-size 64m --accesses 500 --map-len 32m";
    for (variant, flags) in [
        ("advice=random", "--advice random"),
        ("governor", "--governor"),
        ("governor+read_ahead_kb=1024", "--governor --read-ahead-kb 1024"),
        ("read_ahead_kb=1024", "--read-ahead-kb 1024"),
        ("fault_around=4k", "--fault-around 4k"),
        ("kernel=6.12", "--kernel 6.12"),
        ("ram=16m", "--ram 16m"),
        ("cache_limit=4m", "--cache-limit 4m"),
        ("memory_max=8m", "--memory-max 8m"),
        ("memory_high=8m", "--memory-high 8m"),
        ("fs=xfs", "--fs xfs"),
        ("arch=arm64+page_size=16k", "--arch arm64 --page-size 16k"),
        ("split=16", "--split 16"),
        ("split=16+split_prot=exec", "--split 16 --split-prot exec"),
        ("map_len=16m", "--map-len 16m"),
        ("map_offset=1m", "--map-offset 1m"),
        ("map_shift=7", "--map-shift 7"),
        ("exec=true", "--exec"),
        ("private=true", "--private"),
        ("sparse=true", "--sparse"),
        ("accesses=77", "--accesses 77"),
        ("fraction=0.02", "--fraction 0.02"),
        ("seed=5", "--seed 5"),
        ("file_size=128m", "--file-size 128m"),
        ("p1+advice=random", "--with p1 --advice random"),
    ] {
        let report = json(&format!("compare {job} --variants baseline,{variant} --json -"));
        // Each flag of the job, unless the variant sets it or a conflicting one.
        let replaced = |flag: &str| {
            let excluded = flag.starts_with("accesses ") && flags.contains("--fraction");
            excluded || flags.contains(&format!("--{} ", flag.split(' ').next().unwrap()))
        };
        let own = job.trim_start_matches("--").split(" --").filter(|flag| !replaced(flag));
        let own: Vec<String> = own.map(|flag| format!("--{flag}")).collect();
        let record = json(&format!("run {} {flags} --json -", own.join(" ")));
        assert_eq!(report["cells"][1]["variant"], variant);
        assert_eq!(report["cells"][1]["runs"], record["runs"], "{variant}");
        assert_eq!(report["cells"][1]["job"], record["job"], "{variant}");
    }
}

#[test]
fn sweep_is_reproducible() {
    let mut command = filemap(JOB);
    command.args(["--variants", "baseline, read-ahead-kb=16,512+p1, advice=random", "--json", "-"]);
    let output = command.output().unwrap();
    assert!(output.status.success(), "{}", stderr(&output));
    let report: Value = serde_json::from_slice(&output.stdout).unwrap();
    let names: Vec<_> =
        report["cells"].as_array().unwrap().iter().map(|cell| &cell["variant"]).collect();
    assert_eq!(names, ["baseline", "read_ahead_kb=16", "read_ahead_kb=512+p1", "advice=random"]);
    let command = report["command"].as_str().unwrap().strip_prefix("filemap ").unwrap();
    // Commands may start in different seconds.
    let undated = |mut report: Value| {
        report["environment"]["date"].take();
        report
    };
    assert_eq!(undated(json(&format!("{command} --json -"))), undated(report.clone()));
}

/// The number of accesses of each variant follows from its own file, also in the repeating command.
#[test]
fn a_repeated_command_means_the_same_where_variants_change_the_size() {
    let command = "compare --workload random --variants file_size=16m,64m --json -";
    let report = json(command);
    let accesses = |at: usize| {
        report["cells"][at]["job"]["thread"][0]["phase"][0]["accesses"].as_u64().unwrap()
    };
    assert_eq!((accesses(0), accesses(1)), (40, 163));
    let command = report["command"].as_str().unwrap().strip_prefix("filemap ").unwrap();
    assert_eq!(report["cells"], json(&format!("{command} --json -"))["cells"]);
}

#[test]
fn many_variants_are_the_rows_of_one_table() {
    let variants = "baseline,advice=random,sequential,read_ahead_kb=16,512,8192,ram=8m,p1+p2";
    let text = stdout(&format!("{JOB} --variants {variants}"));
    for line in text.lines().filter(|line| !line.starts_with("Command:")) {
        assert!(line.chars().count() <= 75, "{line}");
    }
    let begins = |name: &str| text.lines().filter(|line| line.starts_with(name)).count();
    for name in ["baseline ", "advice=random ", "read_ahead_kb=512 ", "ram=8m ", "p1+p2 "] {
        assert_eq!(begins(name), 1, "{name}: {text}");
    }
    let four = stdout(&format!("{JOB} --variants baseline,p1,p2,p1+p2"));
    let rows = four.lines().filter(|line| line.starts_with("read from device"));
    assert_eq!(rows.count(), 1, "one table: {four}");
}

/// Rows of several jobs are in one table, with their times, and each job has an answer first.
#[test]
fn several_jobs_are_in_one_table_with_their_times() {
    let scratch = Scratch::new("compare_jobs");
    let job = |name: &str, keys: &str| {
        scratch.file(name, format!("file_size = '64m'\nread_ahead_kb = 8192\n{keys}"))
    };
    let looks = job("looks.toml", "workload = 'random'\naccesses = 200\n");
    let scan = job("scan.toml", "workload = 'sequential'\n");
    let text = stdout(&format!("compare {looks} {scan} --variants baseline,advice=random"));
    let table = text.split("changes against").next().unwrap();
    assert!(table.starts_with("All jobs"), "{text}");
    for head in ["read", "major faults", "time"] {
        assert!(
            table.lines().any(|line| line.contains("variant") && line.contains(head)),
            "{text}"
        );
    }
    let rows: Vec<&str> = table.lines().filter(|line| line.contains(".toml ")).collect();
    assert!(rows.len() >= 4 && rows.iter().all(|row| row.contains("s")), "{text}");
    let words = text.split_whitespace().collect::<Vec<_>>().join(" ");
    assert!(words.contains("Fastest is advice=random: "), "{text}");
    assert!(words.contains("Nothing is faster than baseline: "), "{text}");
    let one = stdout(&format!("compare {looks} --variants baseline,advice=random"));
    assert!(!one.contains("All jobs"), "{one}");
    // Many single pages are the price of less time, and no regression.
    assert!(one.contains("Fastest is advice=random"), "{one}");
}

#[test]
fn a_regression_is_named() {
    let job = "compare --workload sequential --file-size 256m --accesses 65536 --split 16";
    let text = stdout(&format!("{job} --variants baseline,vma-bound"));
    assert!(text.contains("Regression against baseline:"), "{text}");
    assert!(text.contains("  vma-bound, split 16: 1 -> 4096 major faults (x 4096)"), "{text}");
    let report = json(&format!("{job} --variants baseline,vma-bound --json -"));
    let first = &report["regressions"][0];
    assert_eq!(
        (&first["counter"], &first["variant"]),
        (&"major_faults".into(), &"vma-bound".into())
    );
    assert_eq!((&first["before"], &first["after"]), (&1.into(), &4096.into()));
    let turned = stdout(&format!("{job} --variants vma-bound,baseline"));
    assert!(!turned.contains("Regression"), "{turned}");
}

/// A cell with two outcomes over seeds can look unchanged with a single seed.
#[test]
fn warns_of_several_outcomes_with_one_seed() {
    let job = "compare --workload random --file-size 20g --ram 8g --read-ahead-kb 8192 \
               --variants baseline,p2";
    let report = json(&format!("{job} --json -"));
    let warnings = report["warnings"].as_array().unwrap();
    let [warning] = &warnings[..] else { panic!("one warning: {warnings:?}") };
    let warning = warning.as_str().unwrap();
    // How many seeds fit into the time budget depends on the machine, the two outcomes do not.
    let range = warning.strip_prefix("with other seeds p2 reads from ").expect(warning);
    let range = range.strip_suffix(" GiB; give --seeds 25").expect(warning);
    let (low, high) = range.split_once(" to ").expect(warning);
    let [low, high] = [low, high].map(|figure| figure.parse::<f64>().expect(warning));
    assert!((0.9..2.0).contains(&low) && (219.0..225.0).contains(&high), "{warning}");
    let text = stdout(&format!("{job} --seeds 4"));
    assert!(!text.contains("with other seeds"), "{text}");
    assert!(text.contains("Read from device over 4 seeds"), "{text}");
    assert!(text.contains("Medians of 4 seeds."), "{text}");
    let steady = "compare --workload sequential --file-size 20g --ram 8g --variants baseline,p2";
    assert!(!stdout(steady).contains("with other seeds"));
}

/// Variants that the running kernel cannot provide are refused before anything runs.
#[test]
fn variants_that_no_running_kernel_has_are_exit_4() {
    for (variant, words) in [
        ("p1", "series"),
        ("kernel=mm-2026-05", "--variants kernel=mm-2026-05: the running kernel has rules"),
        ("ram=2g", "another size of RAM"),
        ("arch=arm64+page_size=64k", "--arch and --page-size"),
    ] {
        let job = "compare --on kernel --workload random --file-size 64m --accesses 20";
        let output = filemap(&format!("{job} --variants baseline,{variant}")).output().unwrap();
        let message = stderr(&output);
        assert_eq!(output.status.code(), Some(4), "{variant}: {message}");
        assert_eq!(message.matches('\n').count(), 1, "{message}");
        assert!(message.contains(words) || message.contains("not available"), "{message}");
    }
}

#[test]
fn warns_of_equal_variants() {
    let compare = |variants: &str| {
        let job = "--workload random --file-size 64m --accesses 100";
        stdout(&format!("compare {job} --variants {variants}"))
    };
    for variants in ["mmap-miss,p1+p2", "baseline,read_ahead_kb=128", "baseline,baseline"] {
        let text = compare(variants);
        assert!(text.contains("is the same job as"), "{variants}: {text}");
    }
    assert!(!compare("baseline,mmap-miss").contains("is the same job as"));
}

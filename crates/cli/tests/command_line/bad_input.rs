//! Invalid input: exit codes and error messages.

use std::fs::File;

use crate::skip::skip;
use crate::{Scratch, filemap, stderr};

const JOB: &str = "run --workload random --file-size 1m";

/// Runs the command; it must fail with `code` and one line that has all of `words`.
#[track_caller]
pub fn fails(args: &str, code: i32, words: &[&str]) {
    let output = filemap(args).output().expect("the command starts");
    let message = stderr(&output);
    assert_eq!(output.status.code(), Some(code), "{args}: {message}");
    assert!(message.starts_with("filemap: "), "{args}: {message}");
    assert_eq!(message.matches('\n').count(), 1, "{args}: {message}");
    assert!(message.len() < 700, "{args}: {message}");
    for word in words {
        assert!(message.contains(word), "{args}: no '{word}' in: {message}");
    }
    assert!(output.stdout.is_empty(), "{args}");
}

#[test]
fn commands_and_flags() {
    for (args, words) in [
        ("", &["a command is missing", "--help"] as &[&str]),
        ("foo", &["'foo'", "--help"]),
        ("run --workloads random", &["'--workloads'", "'--workload'"]),
        ("run --workload", &["--workload", "value is required"]),
        ("run --runs 1 --runs 2", &["--runs", "multiple times"]),
        ("run a.toml b.toml", &["'b.toml'"]),
        ("conform --fuzz 0", &["0 is out of range", "1 to 1000000"]),
        ("conform --pattern none", &["'none' is no built-in pattern", "such as '"]),
        ("conform --pattern=", &["'' is no built-in pattern"]),
        ("conform --pattern none --fuzz 2", &["--fuzz", "--pattern"]),
        ("conform --pattern none --advice random", &["--pattern", "the flags of the job"]),
        ("conform --fuzz some", &["'some'", "digits only"]),
        ("conform --fuzz 2 --advice random", &["--fuzz draws its own jobs", "--seed only"]),
        ("conform --fuzz 2 --seed 0", &["--seed: 0 is out of range"]),
        ("conform --on model --workload first --file-size 1m", &["unexpected argument '--on'"]),
        ("conform --runs 2 --workload first --file-size 1m", &["unexpected argument '--runs'"]),
        ("explain --runs 2 --workload first --file-size 1m", &["unexpected argument '--runs'"]),
        (
            "run --change-settings --workload first --file-size 1m",
            &["--change-settings", "--on kernel"],
        ),
        ("published --format xml", &["'xml'", "table, markdown, csv, json"]),
        ("published nothing", &["'nothing'", "mmap-miss, vma-bound"]),
        ("published mm-owner --seeds 3", &["--seeds", "mmap-miss", "remove it"]),
        ("published --seeds 0", &["'0'", "1 to 1000"]),
        ("published --seeds -1", &["'-1'", "negative"]),
        ("published --seeds 1001", &["1001", "1 to 1000"]),
        ("published --seeds many", &["'many'", "digits only"]),
    ] {
        fails(args, 2, words);
    }
}

#[test]
fn places_of_the_journal() {
    let scratch = Scratch::new("journal_places");
    let file = scratch.file("file", "");
    for (place, words) in [
        ("relative", "cannot keep a journal in 'relative': the path does not begin with /"),
        (&file, "it is no directory"),
        ("/proc/filemap", "cannot keep a journal in '/proc/filemap'"),
    ] {
        let output = filemap("doctor").env("FILEMAP_STATE", place).output().unwrap();
        let message = stderr(&output);
        assert_eq!(output.status.code(), Some(4), "{message}");
        assert_eq!(message.matches('\n').count(), 1, "{message}");
        assert!(message.contains(words) && message.contains("FILEMAP_STATE"), "{message}");
        // Irrelevant if nothing is changed.
        let mut command = filemap("run --workload first --file-size 1m");
        let output = command.env("FILEMAP_STATE", place).output().unwrap();
        assert!(output.status.success() && stderr(&output).is_empty(), "{}", stderr(&output));
    }
}

#[test]
fn values() {
    for (flags, words) in [
        ("--workload stride:0", &["--workload", "0 is not allowed", "stride:1021"] as &[&str]),
        ("--workload nothing", &["unknown workload 'nothing'", "random, stride:N"]),
        ("--workload stride:-1", &["'-1' is negative"]),
        ("--workload random --with nothing", &["unknown series 'nothing'", "mmap-miss"]),
        ("--workload random --kernel 5.4", &["Linux 5.4 is not modelled", "give 6.1"]),
        ("--workload random --on sun", &["unknown engine 'sun'", "model, kernel"]),
        ("--workload random --on model,kernel", &["unknown engine 'model,kernel'"]),
        ("--workload random --advice some", &["unknown advice 'some'", "normal, random"]),
        ("--workload random --fs ntfs", &["unknown filesystem 'ntfs'", "ext4"]),
        ("--workload random --arch vax", &["unknown architecture 'vax'", "x86-64"]),
        ("--workload random --page-size 64k", &["x86-64 has no pages of 64k", "arm64"]),
        ("--workload random --seed 0", &["--seed", "0 is out of range", "give 1 to"]),
        ("--workload random --seed 1.5", &["--seed", "'1.5' is no whole number"]),
        ("--workload random --runs 0", &["--runs", "0 is out of range"]),
        ("--workload random --accesses 0", &["--accesses", "0 is out of range"]),
        ("--workload random --accesses -3", &["--accesses", "'-3' is negative"]),
        ("--workload random --fraction 0", &["--fraction", "0 is out of range"]),
        ("--workload random --fraction -1", &["--fraction", "-1 is out of range"]),
        ("--workload random --fraction nan", &["--fraction", "NaN is out of range"]),
        ("--workload random --fraction half", &["--fraction", "'half'", "0.01"]),
        ("--workload random --fraction 1e-9", &["less than one access; give --accesses"]),
        ("--workload random --map-offset 1g", &["ends beyond the file", "--file-size"]),
        ("--workload random --map-len 2m", &["ends beyond the file", "--map-len"]),
        ("--workload random --map-offset 5k", &["not a multiple of the page size", "4k or 8k"]),
        ("--workload random --split 0", &["--split", "0 is not allowed", "such as 64"]),
        ("--workload random --split-prot exec", &["--split is missing"]),
        ("--workload random --fault-around 5k", &["no power of two"]),
        ("--workload random --fault-around 64", &["--fault-around: '64' has no unit", "64k"]),
        ("--workload random --ram 100", &["--ram: '100' has no unit", "100k"]),
        ("--workload random --read-ahead-kb 3", &["--read-ahead-kb", "not a multiple"]),
        ("--workload random --bs 4k", &["--bs does not go with"]),
        ("--workload random --accesses 3 --fraction 0.1", &["does not go with --fraction"]),
        ("--workload random --seed 18446744073709551616", &["give 1 to 18446744073709551615"]),
        ("--workload random --runs 99999999999999999999", &["--runs", "give 1 to 100000"]),
        ("--workload random --accesses 99999999999999999999", &["give 1 to 1099511627776"]),
        ("--workload random --read-ahead-kb 99999999999999999999", &["give 0 to 4194304"]),
        ("--workload random --map-shift 99999999999999999999", &["give 0 to 8191"]),
        ("--workload random --split 99999999999999999999", &["--split", "give 1 to"]),
        ("--workload random --ram 0", &["--ram: 0 is out of range; give 8k to"]),
        ("--workload random --ram 4k", &["--ram: 4k is out of range; give 8k to"]),
        ("--workload random --memory-max 0", &["give 4k to"]),
        ("--workload read-random --bs 1m --file-size 64m", &["less than one read of 1m"]),
        ("", &["--workload is missing", "random"]),
    ] {
        let size = if flags.contains("--file-size") { "" } else { "--file-size 1m " };
        fails(&format!("run {size}{flags}"), 2, words);
    }
}

#[test]
fn sizes() {
    for (size, words) in [
        ("0", &["0 is out of range; give 1b to "] as &[&str]),
        ("-4k", &["'-4k' is negative"]),
        ("4x", &["unknown unit 'x' in '4x'", "k, m, g, t, p"]),
        ("64", &["'64' has no unit", "give 64k, or 64b for bytes"]),
        ("big", &["'big' is no size", "4k"]),
        ("99999999999999999999", &["99999999999999999999 is out of range; give 1b to 1024p"]),
        ("16384p", &["16384p is out of range; give 1b to 1024p"]),
        ("0.3k", &["'0.3k' is not a whole number of bytes"]),
    ] {
        let words = [&["--file-size"], words].concat();
        fails(&format!("run --workload random --file-size {size}"), 2, &words);
    }
    fails("run --workload random", 2, &["--file-size is missing", "1g"]);
}

#[test]
fn values_are_shown_as_entered() {
    for (value, shown) in [(" 4k", "' 4k' is no size"), ("4  x", "'4  x'"), ("4k ", "'4k '")] {
        let mut command = filemap("run --workload random --file-size");
        let output = command.arg(value).output().unwrap();
        assert_eq!(output.status.code(), Some(2), "{value}");
        assert!(stderr(&output).contains(shown), "{value}: {}", stderr(&output));
    }
    let file = "run --workload random --accesses 1 --file";
    let output = filemap(file).arg("/no  such file").output().unwrap();
    assert!(stderr(&output).contains("'/no  such file'"), "{}", stderr(&output));
}

#[test]
fn refuses_flags_without_effect() {
    let compare = "compare --workload random --file-size 1m --accesses 9";
    for (args, words) in [
        ("conform --seed 5", &["--seed goes with --fuzz", "--workload"] as &[&str]),
        ("published vma-bound --seeds 5", &["--seeds", "only mmap-miss and vma-retry have"]),
        (
            "published exec-order vma-bound --seeds 5",
            &["--seeds", "only mmap-miss and vma-retry have"],
        ),
        ("published --seeds 99999999999999999999", &["give 1 to 1000"]),
        ("conform --fuzz 99999999999999999999", &["give 1 to 1000000"]),
        (&format!("{compare} --on model,model"), &["model is named twice", "once"]),
        (&format!("{compare} --variants baseline,p1 --modules /lib"), &["--modules", "--image"]),
        ("compare a.toml a.toml --variants baseline,p1", &["a.toml is given twice"]),
        ("compare a.toml b.toml --variants p1,p2 --html c.html", &["--html shows one job"]),
        (
            "explain --image a --image b --workload first --file-size 1m",
            &["--image", "multiple times"],
        ),
        (
            "run --modules a --modules b --workload first --file-size 1m",
            &["--modules", "multiple times"],
        ),
    ] {
        fails(args, 2, words);
    }
}

#[test]
fn messages_stay_readable() {
    let long = "x".repeat(100_000);
    fails(&format!("{JOB} --seed {long}"), 2, &["--seed"]);
    fails(&format!("run --file-size 1m --workload {long}"), 2, &["unknown workload 'xxx"]);
    let mut broken = filemap(JOB);
    let output = broken.args(["--advice", "a\nb\u{1b}[31m"]).output().unwrap();
    assert_eq!(output.status.code(), Some(2));
    assert_eq!(stderr(&output).matches('\n').count(), 1);
    assert!(!stderr(&output).contains('\u{1b}'));
}

#[test]
fn job_files() {
    let scratch = Scratch::new("job_files");
    for (number, (text, words)) in [
        ("nothing = 1", &["line 1", "unknown key 'nothing'", "flags"] as &[&str]),
        ("seed = 1\nseed = 2", &["line 2", "duplicate key"]),
        ("seed = \"one\"", &["line 1", "give a whole number"]),
        ("seed = -1", &["line 1"]),
        ("exec = 1", &["line 1", "give true or false"]),
        ("workload = [", &["line 1"]),
        ("[[phase]]\nworkloads = \"random\"", &["line 2", "phase 1: unknown key 'workloads'"]),
        (
            "file_size = \"1q\"\nworkload = \"first\"",
            &["line 1 ('file_size", "'file_size': unknown unit 'q'"],
        ),
        ("file_size = \"1m\"\nworkload = \"first\"\n[[phase]]\nworkload = \"first\"", &["phase"]),
        (
            "file_size = \"1m\"\n[[phase]]\nworkload = \"worst\"",
            &["line 3", "phase 1: 'workload'", "'worst'"],
        ),
    ]
    .into_iter()
    .enumerate()
    {
        let path = scratch.file(&format!("{number}.toml"), text);
        fails(&format!("run {path}"), 2, words);
    }
    let invalid = scratch.file("invalid.toml", b"workload = \"\xff\"");
    fails(&format!("run {invalid}"), 2, &["invalid.toml", "it is no text"]);
    let long = scratch.file("long.toml", vec![b'#'; (16 << 20) + 1]);
    fails(&format!("run {long}"), 2, &["long.toml", "no recording, and longer than 16m"]);
}

#[test]
fn files() {
    let scratch = Scratch::new("files");
    let (missing, directory) = (scratch.path("missing"), scratch.path(""));
    for (args, what) in [
        (format!("run {missing}"), "job file"),
        (format!("compare {missing}"), "job file"),
        (format!("run --file-size 1m --accesses-file {missing}"), "accesses file"),
        (format!("{JOB} --machine {missing}"), "machine profile"),
    ] {
        fails(&args, 2, &[what, "missing", "no such file", "give a readable file"]);
    }
    fails(&format!("{JOB} --machine nope"), 2, &["'nope'", "known: default, server"]);
    for args in [
        format!("run {directory}"),
        format!("run --file-size 1m --accesses-file {directory}"),
        format!("{JOB} --machine {directory}"),
    ] {
        fails(&args, 2, &["it is a directory"]);
    }
    for (flag, path) in [("json", &directory), ("log", &directory)] {
        fails(&format!("{JOB} --{flag} {path}"), 2, &["cannot be opened", "directory"]);
    }
    let below_missing = format!("{missing}/out");
    fails(&format!("{JOB} --json {below_missing}"), 2, &["cannot be opened", "no such file"]);
    // Above the highest number of a process.
    let recording = scratch.path("recording");
    fails(&format!("record --pid 4194305 -o {recording}"), 2, &["process 4194305 is gone"]);
    fails(&format!("{JOB} --json - --log -"), 2, &["cannot both go to stdout"]);
}

#[test]
fn unreadable_files() {
    use std::os::unix::fs::PermissionsExt;
    let scratch = Scratch::new("unreadable_files");
    let path = scratch.file("secret.toml", "workload = \"random\"");
    let nobody = std::fs::Permissions::from_mode(0o000);
    std::fs::set_permissions(&path, nobody).unwrap();
    if File::open(&path).is_ok() {
        skip("this user may read every file");
        return;
    }
    fails(&format!("run {path}"), 2, &["secret.toml", "permission denied"]);
}

#[test]
fn access_lists() {
    let scratch = Scratch::new("access_lists");
    for (number, (text, words)) in [
        ("1\nx\n", &["line 2", "'x' is no page index"] as &[&str]),
        ("1\n-1\n", &["line 2", "'-1'"]),
        ("0\n256\n", &["line 2", "page 256 is beyond the mapping", "255"]),
        ("", &["no page index"]),
    ]
    .into_iter()
    .enumerate()
    {
        let path = scratch.file(&number.to_string(), text);
        fails(&format!("run --file-size 1m --accesses-file {path}"), 2, words);
    }
    let list = scratch.file("list", "1\n2\n");
    fails(&format!("{JOB} --accesses-file {list}"), 2, &["--workload does not go with"]);
    let huge = scratch.path("huge");
    File::create(&huge).unwrap().set_len(1 << 40).unwrap();
    fails(&format!("run --file-size 1m --accesses-file {huge}"), 2, &["longer than 256m"]);
}

#[test]
fn machine_profiles() {
    let scratch = Scratch::new("machine_profiles");
    let unknown = scratch.file("unknown.toml", "speed = 3\n");
    fails(&format!("{JOB} --machine {unknown}"), 2, &["unknown.toml", "line 1", "`speed`"]);
    let small_pages = scratch.file(
        "small_pages.toml",
        "huge_pages = false\n\
         cost = { touch_ns = 5, fault_ns = 700, map_page_ns = 25, add_page_ns = 60 }\n\
         [device]\nlatency_ns = 54000\nbandwidth_bytes = 1300000000\nqueue_depth = 32\n\
         io_bytes = 1048576\n",
    );
    let job = format!("{JOB} --machine {small_pages}");
    assert!(filemap(&job).output().unwrap().status.success());
    fails(&format!("{job} --advice hugepage"), 2, &["--advice hugepage", "no huge pages", "true"]);
}

#[test]
fn comparisons() {
    for (args, words) in [
        ("--variants baseline", &["one variant only", "--variants baseline,mmap-miss"] as &[&str]),
        ("", &["one variant only"]),
        ("--variants baseline,nothing", &["--variants nothing: unknown series 'nothing'"]),
        ("--variants baseline,", &["a variant is missing", "quotes"]),
        ("--variants baseline,speed=3", &["--variants speed=3: unknown setting 'speed'", "advice"]),
        ("--variants baseline,advice=no", &["--variants advice=no: ", "unknown advice 'no'"]),
        ("--variants baseline,advice=random,p9", &["unknown advice 'p9'", "'p9' is no series"]),
        ("--variants baseline,map_len=3g", &["--variants map_len=3g: ", "beyond the file"]),
        ("--variants baseline,p1 --seeds 0", &["0 is out of range; give 1 to 1000"]),
        ("--variants baseline,machine=/no/such", &["'/no/such'", "cannot be read"]),
        ("--variants baseline,p1 --with p2", &["--with does not go with --variants"]),
        ("--variants baseline,p1 --kernel 7.2", &["--variants p1: p1 (miss-fault-address) has no"]),
        ("--with p1 --kernel 7.2", &["--with: p1 (miss-fault-address) has no"]),
        ("--variants baseline,p1 --on model,sun", &["unknown engine 'sun'"]),
    ] {
        fails(&format!("compare --workload random --file-size 1m {args}"), 2, words);
    }
}

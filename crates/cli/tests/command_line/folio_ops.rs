//! `filemap folio-ops`: operations on folios with every mapcount scheme, in the user-space mm.

use serde_json::Value;

use crate::bad_input::fails;
use crate::running::Running;
use crate::{filemap, json, stdout};

/// Takes a fraction of a second.
const SMALL: &str = "folio-ops --size 4m --folio-sizes 4k,16k --runs 2";

const SCHEMES: [&str; 5] =
    ["page-mapcount", "plain-counts", "mm-owner", "no-page-mapcount", "precise-owners"];

#[test]
fn records_have_every_sample_of_every_repeat() {
    let record = json(&format!("{SMALL} --json -"));
    assert_eq!(record["benchmark"]["folio_sizes"], "4k,16k");
    assert_eq!(record["engine"], "model");
    let runs = record["runs"].as_array().unwrap();
    assert_eq!(runs.len(), 2);
    for run in runs {
        assert!(run["locked_ns"].as_f64() > Some(0.0), "{run}");
        for cell in run["cells"].as_array().unwrap() {
            check_copies(cell);
        }
    }
    let compared = record["compared"].as_array().unwrap();
    assert_eq!(compared.len(), 2 * 7);
    for operation in compared {
        let schemes = operation["configurations"].as_array().unwrap();
        let names: Vec<_> =
            schemes.iter().map(|scheme| scheme["counters"].as_str().unwrap()).collect();
        let threads = operation["operation"].as_str().unwrap().starts_with("anon-cow");
        let expected = SCHEMES.into_iter().filter(|scheme| !threads || *scheme != "plain-counts");
        assert!(names.iter().copied().eq(expected), "{names:?}");
        assert!(schemes[0]["change"].is_null() && schemes[1]["change"]["percent"].is_object());
    }
    let command = record["command"].as_str().unwrap();
    let again = json(&format!("{} --json -", &command["filemap ".len()..]));
    assert_eq!(again["benchmark"], record["benchmark"]);
}

/// Numbers of copies are deterministic: with owner tracking, pages with a single owner are reused.
fn check_copies(cell: &Value) {
    let counts = (cell["copied"].as_u64(), cell["reused"].as_u64());
    let single = cell["folio_bytes"] == 4096;
    let unknown = ["page-mapcount", "plain-counts"].contains(&cell["counters"].as_str().unwrap());
    match cell["operation"].as_str().unwrap() {
        "munmap" | "fork" => assert_eq!(counts, (None, None), "{cell}"),
        "reuse-byte" | "child-reuse-byte" if single || !unknown => {
            assert_eq!(counts, (Some(0), Some(1024)), "{cell}");
        }
        "cow-byte" | "reuse-byte" | "child-reuse-byte" => {
            assert_eq!(counts, (Some(1024), Some(0)), "{cell}");
        }
        _ => assert!(counts.0 > Some(0) && counts.1 == Some(0), "{cell}"),
    }
    assert!(cell["ns_per_page"].as_f64() > Some(0.0), "{cell}");
}

#[test]
fn reports_fit_the_width_and_csv_is_flat() {
    let text = stdout(SMALL);
    for line in text.lines().filter(|line| !line.starts_with("Command:")) {
        assert!(line.chars().count() <= 75, "{line}");
    }
    let text = text.split_whitespace().collect::<Vec<_>>().join(" ");
    for words in [
        "munmap: change of the time of a page in %",
        "fork: saving of a page in L",
        "with a fault's cost added",
        "- is faster",
        "+ is faster",
        "The MAD is the median of",
        "Pages that write faults copied",
        "~ marks all changes",
        "real atomics in real time",
    ] {
        assert!(text.contains(words), "{words}: {text}");
    }
    assert!(!text.contains("rules of Linux"), "{text}");
    assert!(!text.contains("byte: saving"), "writes do more than count: {text}");
    let csv = stdout(&format!("{SMALL} --format csv"));
    assert!(csv.starts_with("engine,repeat,folio_bytes,operation,counters,ns_per_page,"), "{csv}");
    let rows = |word: &str| csv.lines().filter(|line| line.contains(word)).count();
    assert_eq!((rows(",munmap,"), rows(",anon-cow-seq,")), (2 * 2 * 5, 2 * 2 * 4));
    let markdown = stdout(&format!("{SMALL} --format markdown"));
    let headings = ["| 16 KiB |", "| no-page-mapcount |", "| page-mapcount |"];
    assert!(headings.iter().all(|heading| markdown.contains(heading)), "{markdown}");
    assert!(stdout(&format!("{SMALL} --verbose")).contains("plain-counts"));
}

/// Counts are deterministic, so runs are equal.
#[test]
#[ignore = "counts owners in all histories: two minutes of a processor"]
fn owners_are_counted_and_nothing_is_timed() {
    let record = json("folio-ops --owners --size 2m --folio-sizes 64k --json -");
    assert_eq!(record["command"], "filemap folio-ops --owners --size 2m --folio-sizes 64k");
    assert_eq!(record["runs"].as_array().map(Vec::len), Some(0));
    let find = |about: &str, case: &str, counters: &str| {
        let all = record["counted"].as_array().unwrap();
        let is_it = |own: &&Value| {
            own["about"] == about && own["case"] == case && own["counters"] == counters
        };
        all.iter().find(is_it).unwrap()["count"].as_u64().unwrap()
    };
    for (case, slots, sums) in [("3 mms", 2, 0), ("8 mms", 30_240, 0)] {
        let lost = |counters| find("last-owner-lost", case, counters);
        assert_eq!((lost("mm-owner"), lost("precise-owners")), (slots, sums));
    }
    for counters in ["mm-owner", "precise-owners"] {
        assert_eq!(find("last-owner-lost", "several taken for one", counters), 0);
    }
    for (case, slots, sums) in [("drained", 4096, 3584), ("reforked", 512, 0)] {
        let copied = |counters| find("prefork-copies", &format!("{case}, 64 KiB"), counters);
        assert_eq!((copied("mm-owner"), copied("precise-owners")), (slots, sums));
    }
    let text = stdout("folio-ops --owners");
    for line in text.lines() {
        assert!(line.chars().count() <= 75, "{line}");
    }
    assert_eq!(text, stdout("folio-ops --owners"));
    let csv = stdout("folio-ops --owners --format csv");
    assert!(csv.starts_with("about,case,counters,count,of\nlast-owner-lost,2 mms,"), "{csv}");
    fails("folio-ops --owners --runs 2", 2, &["--owners", "--runs"]);
}

#[test]
fn refuses_invalid_options_with_a_remedy() {
    for (flags, words) in [
        ("--runs 0", ["--runs: 0", "1 to 1000"]),
        ("--runs 1001", ["--runs: 1001", "1 to 1000"]),
        ("--runs x", ["--runs", "'x'"]),
        ("--seed 0", ["--seed: 0", "out of range"]),
    ] {
        fails(&format!("folio-ops {flags}"), 2, &words);
    }
    for command in ["run", "compare --variants baseline,p1", "conform", "explain"] {
        fails(&format!("{command} --workload folio-ops"), 2, &["give filemap folio-ops"]);
    }
    for (flags, words) in [
        ("--size 3m", ["--size: 3m", "2m or 4m"]),
        ("--size 64k", ["--size: 64k", "2m to 1t"]),
        ("--folio-sizes 12k", ["--folio-sizes: 12k", "power of two"]),
        ("--folio-sizes 4m", ["--folio-sizes: 4m", "4k to 2m"]),
        ("--folio-sizes 16k,16k", ["--folio-sizes: 16k", "give it once"]),
    ] {
        fails(&format!("folio-ops {flags}"), 2, &words);
    }
    let too_large = "folio-ops --size 1t --folio-sizes 2m";
    fails(too_large, 4, &["--size 1t", "of memory are needed", "are available"]);
}

#[test]
fn signals_end_folio_ops() {
    let long = "folio-ops --size 64m --runs 1000";
    for (signal, number) in [("INT", 2), ("TERM", 15)] {
        let child = Running::start(&mut filemap(long));
        std::thread::sleep(std::time::Duration::from_millis(500));
        child.signal(signal);
        assert_eq!(child.output().status.code(), Some(128 + number));
    }
}

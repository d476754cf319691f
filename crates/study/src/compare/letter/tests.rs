//! Layout of letters, checked on random comparisons.

use filemap_job::random::Rng;
use filemap_job::{Counters, EngineKind, JobFlags, Run, shell_word};
use serde_json::json;

use super::super::{JobVariants, RanVariant};
use super::*;
use filemap_report::TEXT_COLUMNS;

fn of_one(ran: Vec<RanVariant>, warnings: Vec<String>) -> Comparison {
    Comparison::from_jobs(vec![JobVariants { job_file: None, ran, warnings }], String::new())
}

fn count(draws: &mut Rng) -> Option<u64> {
    let bits = draws.below(63);
    let count = draws.below(1 << bits);
    (draws.below(8) > 0).then_some(count)
}

const VARIANTS: [&str; 8] = [
    "baseline",
    "p1+p2",
    "miss-fault-address+miss-no-retry+vma-bound+exec-unify",
    "read_ahead_kb=128",
    "machine=/srv/müller/a very long path/to a profile/that nobody would like to read.toml",
    "6.12.117+deb12-cloud-amd64",
    "advice=random+advice=hugepage+read_ahead_kb=8192+kernel=6.12",
    "aaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaa",
];

fn run(draws: &mut Rng, seed: u64) -> Run {
    let counters = Counters {
        data_pages_read: count(draws),
        bytes_read: count(draws),
        major_faults: count(draws),
        minor_faults: count(draws),
        readahead_calls: count(draws),
        read_around: count(draws),
        evicted_pages: count(draws),
        vma_lock_refused: count(draws),
        throttled: count(draws),
        ..Counters::default()
    };
    Run { seed, elapsed_ns: count(draws), counters, ..Run::default() }
}

fn cell(draws: &mut Rng, engine: EngineKind, runs: u64, emulated: bool) -> RanVariant {
    let spec = JobFlags {
        workload: Some(draws.pick(&["random", "first", "stride:4099"]).to_string()),
        file_size: Some(filemap_job::SizeText::from_bytes(1 << 20)),
        ..JobFlags::default()
    };
    let job = spec.validate(None).unwrap();
    let environment = match engine {
        EngineKind::Model => json!({ "filemap": "1", "scope": "classic LRU" }),
        EngineKind::Kernel => json!({
            "filemap": "1", "kernel": "6.12.1", "cpu": "Größte CPU @ 3 GHz", "cores": 2,
            "ram_kib": 1_000_000, "device": format!("/dev/{}", "d".repeat(90)),
            "filesystem": "ext4", "mount": "rw,relatime", "read_ahead_kb": 128,
            "image": format!("/boot/{}/bzImage", "b".repeat(120)),
            "emulator": if emulated { "QEMU, tcg" } else { "QEMU, kvm" },
            "scope": "Linux 6.12.1 booted under QEMU",
        }),
    };
    let serde_json::Value::Object(environment) = environment else { panic!("an object") };
    let runs = (0..runs).map(|number| run(draws, 1 + number)).collect();
    let record = Record::new(&job, engine.name(), environment, runs);
    RanVariant { variant: draws.pick(&VARIANTS).to_string(), job, record }
}

#[test]
fn any_comparison_keeps_to_its_width_in_ascii() {
    // A fixed seed, so that failures reproduce.
    let mut draws = Rng(20_261_123);
    let mut lists = 0;
    for _ in 0..300 {
        let (runs, emulated) = (draws.pick(&[1, 1, 3]), draws.below(2) == 0);
        let engines = [&[EngineKind::Model][..], &[EngineKind::Kernel], EngineKind::ALL];
        let engines = draws.pick(&engines);
        let each = 1 + draws.below(5);
        let drawn = engines.iter().flat_map(|&engine| (0..each).map(move |_| engine));
        let cells: Vec<RanVariant> =
            drawn.map(|engine| cell(&mut draws, engine, runs, emulated)).collect();
        let words: Vec<String> = cells.iter().map(|cell| shell_word(&cell.variant)).collect();
        let command = format!("filemap compare --variants {}", words.join(" "));
        let warnings = ["p1 changes no decision of 'ä.toml'".to_string()];
        let text = ["a = 1\n", "a = 1\tb\n", "größe\n", &"a\n".repeat(99)].map(String::from);
        let file = JobFile {
            path: "job.toml".to_string(),
            text: Ok(draws.pick(&text.each_ref()).clone()),
        };
        let letter = of_one(cells, warnings.to_vec()).letter(command, &[file]).text();
        for line in letter.lines() {
            assert!(line.len() <= TEXT_COLUMNS, "{} columns: {line}\n{letter}", line.len());
            assert!(line.bytes().all(|byte| matches!(byte, b' '..=b'~')), "{line:?}\n{letter}");
            assert!(!line.ends_with(' '), "{line:?}\n{letter}");
            // `git am` cuts a message at these lines.
            assert!(!line.starts_with("--- ") && line != "---" && line != "--", "{letter}");
        }
        lists += usize::from(!letter.contains("\nfigure "));
        for name in ["Job:", "Runs:", "Variants:", "Machine:", "Command:", "job.toml is"] {
            assert!(letter.contains(name), "{name} is missing in\n{letter}");
        }
        let judges = letter.lines().any(|line| line.contains("(e)") && line.contains('%'));
        assert!(!judges, "a time of an emulated guest is compared:\n{letter}");
    }
    assert!(lists < 300, "none of them is a table");
}

fn with(
    variant: &str,
    engine: EngineKind,
    seeds: &[(u64, u64)],
    emulator: Option<&str>,
) -> RanVariant {
    let toml = "workload = 'random'\nfile_size = '1m'";
    let job = JobFlags::from_toml(toml).unwrap().validate(None).unwrap();
    let run = |&(seed, faults): &(u64, u64)| Run {
        seed,
        elapsed_ns: Some(1_000_000 * faults),
        counters: Counters { major_faults: Some(faults), ..Counters::default() },
        ..Run::default()
    };
    let environment = json!({ "filemap": "1", "scope": "s", "emulator": emulator });
    let serde_json::Value::Object(environment) = environment else { panic!("an object") };
    let runs = seeds.iter().map(run).collect();
    let record = Record::new(&job, engine.name(), environment, runs);
    RanVariant { variant: variant.to_string(), job, record }
}

fn text(cells: &[RanVariant]) -> String {
    let comparison = of_one(cells.to_vec(), Vec::new());
    comparison.letter("filemap compare".to_string(), &[]).text()
}

#[test]
fn a_pair_is_before_and_after_with_its_spread() {
    let model = |variant, seeds| with(variant, EngineKind::Model, seeds, None);
    let cells = [
        model("baseline", &[(1, 10), (2, 30), (3, 20)]),
        model("p1", &[(1, 10), (2, 10), (3, 10)]),
    ];
    let text = text(&cells);
    let table = "                      before  after\n\
                 figure              baseline     p1   change\n\
                 ------------------  --------  -----  -------\n\
                 major faults              20     10  -50.0 %\n    least..most       10..30\n\
                 elapsed, predicted     20 ms  10 ms  -50.0 %\n    least..most       10..30\n";
    assert!(text.contains(table), "{text}");
    assert!(text.contains("Runs:      3 seeds of each variant; medians"), "{text}");
}

#[test]
fn times_of_an_emulated_guest_are_marked() {
    let kernel = |variant, faults, emulator| {
        with(variant, EngineKind::Kernel, &[(1, faults)], Some(emulator))
    };
    let letter = |emulator| text(&[kernel("old", 10, emulator), kernel("new", 20, emulator)]);
    let row = |text: &str| {
        text.lines()
            .find(|line| line.starts_with("elapsed"))
            .map(|line| line.split_whitespace().collect::<Vec<_>>().join(" "))
    };
    let emulated = letter("QEMU, tcg");
    assert_eq!(row(&emulated).as_deref(), Some("elapsed 10 ms (e) 20 ms (e) -"));
    assert!(emulated.contains("of an emulated guest"), "{emulated}");
    let real = letter("QEMU, kvm");
    assert_eq!(row(&real).as_deref(), Some("elapsed 10 ms 20 ms +100.0 %"));
    assert!(!real.contains("(e)") && !real.contains("emulated"), "{real}");
}

#[test]
fn each_engine_is_compared_with_itself() {
    let cells = [
        with("baseline", EngineKind::Model, &[(1, 10)], None),
        with("p1", EngineKind::Model, &[(1, 20)], None),
        with("old", EngineKind::Kernel, &[(1, 100)], None),
        with("new", EngineKind::Kernel, &[(1, 50)], None),
    ];
    let both = text(&cells);
    assert!(both.contains("On the model:") && both.contains("On the kernel:"), "{both}");
    assert!(both.contains("+100.0 %") && both.contains("-50.0 %"), "{both}");
    // With one cell per engine, the engines are compared with each other.
    let beside = text(&[cells[0].clone(), cells[2].clone()]);
    assert!(beside.contains("model") && beside.contains("x 10"), "{beside}");
}

/// Job files copied from a terminal are indented and have blanks on empty lines.
#[test]
fn a_job_file_that_was_copied_is_shown() {
    let text = "\n  seed = 3\n  \n  [[phase]]\n    workload = 'random'  \n  \n".to_string();
    let file = JobFile { path: "job.toml".to_string(), text: Ok(text) };
    let shown = quoted_file(&file);
    let expected = "seed = 3\n\n[[phase]]\n  workload = 'random'";
    let [Part::Paragraph(_), Part::Preformatted(text)] = shown.as_slice() else {
        panic!("{shown:?}")
    };
    assert_eq!(text, expected);
}

#[test]
fn several_jobs_are_the_rows_of_one_table() {
    let model = |variant, seeds| with(variant, EngineKind::Model, seeds, None);
    let job = |path: &str, before, after| JobVariants {
        job_file: Some(path.to_string()),
        ran: vec![model("baseline", before), model("p1", after)],
        warnings: vec!["of all".to_string(), format!("of {path}")],
    };
    let jobs = vec![
        job("jobs/one.toml", &[(1, 10), (2, 30), (3, 20)], &[(1, 5), (2, 15), (3, 20)]),
        job("jobs/two.toml", &[(1, 4), (2, 4), (3, 4)], &[(1, 4), (2, 4), (3, 4)]),
    ];
    let letter =
        Comparison::from_jobs(jobs, String::new()).letter("filemap".to_string(), &[]).text();
    let table = "Major faults:\n               before  after\n\
                 job              baseline     p1   change\n\
                 ---------------  --------  -----  -------\n\
                 one                    20     15  -25.0 %\n    \
                 least..most    10..30  5..20\n\
                 two                     4      4        =\n";
    let blanks = |text: &str| {
        text.lines()
            .map(|line| line.split_whitespace().collect::<Vec<_>>().join(" ") + "\n")
            .filter(|line| !line.starts_with("---") && line != "\n")
            .collect::<String>()
    };
    assert!(blanks(&letter).contains(&blanks(table)), "{letter}");
    let seeds = "one, p1, major faults: median -50.0 %, from -50.0 to +0.0 % over 3 seeds; -50.0, \
                 -50.0, +0.0 %";
    let text = blanks(&letter).replace('\n', " ");
    assert!(text.contains(seeds) && !text.contains("two, p1"), "{letter}");
    assert!(text.contains("2 jobs: changes against baseline"), "{letter}");
    assert_eq!((text.matches("of all").count(), text.matches("Runs:").count()), (1, 1), "{letter}");
    assert!(text.contains("in one: of jobs/one.toml"), "{letter}");
    // No kernel section when only the model ran.
    assert!(!text.contains("Kernels:") && !text.contains("counts them"), "{letter}");
}

#[test]
fn kernels_are_named_once_with_what_differs() {
    let image = |variant: &str, path: &str, more: serde_json::Value| {
        let mut ran = with(variant, EngineKind::Kernel, &[(1, 10)], Some("QEMU 7.2.22, kvm"));
        let environment = json!({
            "kernel": "6.12.0-00042-g0123456789abcdef", "build": "#1 SMP x", "image": path,
            "compiler": "gcc 12.2.0", "host_cpu": "A CPU", "mount": "rw,noatime",
        });
        for (key, value) in environment.as_object().unwrap().iter().chain(more.as_object().unwrap())
        {
            ran.record.environment.insert(key.clone(), value.clone());
        }
        ran
    };
    let own = |digits: &str, differs: Option<u64>| {
        json!({
            "image_sha256": digits.repeat(64), "image_config_differs": differs,
            "image_config_options": ["CONFIG_A: n / y", "CONFIG_B: 1 / 2"],
        })
    };
    let cells = [
        image("6.12.117+deb12-cloud-amd64", "old", own("a", Some(0))),
        image("6.12.117+deb12-cloud-amd64+p1", "old", own("a", Some(0))),
        image("new", "new", own("b", Some(20))),
        image("third", "third", own("c", Some(0))),
        image("last", "last", own("d", None)),
    ];
    let letter = text(&cells);
    let letter_words = letter.split_whitespace().collect::<Vec<_>>().join(" ");
    for words in [
        "old: Linux 6.12.0-00042-g0123456789abcdef; commit 0123456789ab; uname -v '#1 SMP x'; \
         built with gcc 12.2.0; image sha256 aaaaaaaaaaaa new:",
        ".config of old and new: 20 options differ, the first: CONFIG_A: n / y, CONFIG_B: 1 / 2",
        ".config of old and third: the same",
        ".config of old and last: not contained in the images",
        "guest of QEMU 7.2.22, kvm on A CPU",
        "= 6.12.117+deb12-cloud-amd64: Linux",
        "major faults: ru_majflt of getrusage(RUSAGE_THREAD)",
    ] {
        assert!(letter_words.contains(words), "{words}: {letter}");
    }
    assert_eq!(letter_words.matches("old: Linux 6.12.0").count(), 1, "{letter}");
}

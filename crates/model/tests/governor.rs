//! The governor's policy in the model.

use crate::support::{Accesses, described, random_spec};
use filemap_core::decision::{Cause, Decision, Log};
use filemap_core::page_cache::PageCache;
use filemap_core::plain::PlainCache;
use filemap_job::program::JobSpec;
use filemap_job::{Counters, JobFlags, Run, SizeText};
use filemap_model::extents::ExtentCache;
use filemap_model::{Digest, Profile, Timing, trace, trace_on};

fn spec(text: &str) -> JobFlags {
    JobFlags::from_toml(text).unwrap()
}

fn counted(text: &str) -> Counters {
    let job = spec(text).validate(None).unwrap();
    trace(&job, &Profile::DEFAULT, &mut ()).unwrap().counters
}

/// A random job with a governed mapping; the sizes are in pages of its own size.
fn random_governed(seed: u64) -> JobFlags {
    let random = random_spec(seed, Accesses::Any);
    let mut random = JobFlags { elf: None, file: None, ..random };
    for phase in &mut random.phase {
        if phase.workload.as_deref() == Some("elf") {
            phase.workload = Some("sequential".to_string());
        }
        let calls = phase.workload.as_deref().is_some_and(|name| name.starts_with("exec"));
        if calls {
            phase.workload = Some("random".to_string());
        }
        phase.accesses = phase.accesses.map(|accesses| 4 * accesses);
    }
    let mib = 16 + seed % 3 * 24;
    let limit = SizeText(format!("{}m", 2 + seed % 20));
    JobFlags {
        governor: Some(true),
        file_size: Some(SizeText(format!("{mib}m"))),
        map_offset: None,
        map_len: Some(SizeText(format!("{mib}m"))),
        split: None,
        split_prot: None,
        advice: None,
        exec: None,
        private: None,
        cache_limit: random.cache_limit.map(|_| limit.clone()),
        memory_max: random.memory_max.map(|_| limit),
        ..random
    }
}

/// Counts the windows requested by a governor, and by the kernel itself.
#[derive(Default)]
struct Asked {
    by_governor: u64,
    longest: u64,
}

impl Log for Asked {
    fn record(&mut self, decision: Decision) {
        let Decision::Readahead { cause, size, .. } = decision else { return };
        assert!(!matches!(cause, Cause::ReadAround | Cause::AsyncFault), "{cause:?}");
        if cause == Cause::Governor {
            self.by_governor += 1;
            self.longest = self.longest.max(size.0);
        }
    }
}

/// All reads except single pages are requested by the governor, in calls of 512 KiB.
#[test]
fn the_kernel_reads_nothing_ahead_in_a_governed_mapping() {
    for (job, asks) in [
        ("workload = 'sequential'\nfraction = 1.0", 120),
        ("workload = 'stride:67'\naccesses = 5000", 100),
        ("workload = 'interleave:5'\naccesses = 10000", 100),
        ("workload = 'random'\naccesses = 200", 0),
        ("workload = 'reverse'\naccesses = 9000", 50),
        ("workload = 'sequential'\naccesses = 3000\nmap_offset = '20m'\nmap_len = '17m'", 20),
    ] {
        // For short windows the kernel may have to read its own.
        let job = spec(&format!("file_size = '65m'\nread_ahead_kb = 8192\ngovernor = true\n{job}"));
        let job = job.validate(None).unwrap();
        let mut asked = Asked::default();
        trace(&job, &Profile::DEFAULT, &mut asked).unwrap();
        assert!(asked.by_governor >= asks, "{}: {}", job.spec.to_toml(), asked.by_governor);
        assert!(asked.longest <= 128, "{}: {}", job.spec.to_toml(), asked.longest);
    }
}

/// With a short readahead size the kernel reads windows again if these cost less, in a job and in
/// the equivalent program.
#[test]
fn a_file_is_left_to_the_kernel_where_its_windows_cost_less() {
    let job = |file_size: &str, accesses: u64, governor: bool| {
        let text = format!(
            "file_size = '{file_size}'\nmap_len = '{file_size}'\nread_ahead_kb = 128\n\
             governor = {governor}\n[[phase]]\nworkload = 'random'\naccesses = {accesses}"
        );
        let counters = counted(&text);
        let job = spec(&text).validate(None).unwrap();
        let as_program = job.spec.validate(None).unwrap();
        let run = trace(&as_program, &Profile::DEFAULT, &mut ());
        assert_eq!(run.unwrap().counters.major_faults, counters.major_faults, "{text}");
        (counters.data_pages_read.unwrap(), counters.major_faults.unwrap())
    };
    let (all, plain) = job("64m", 30_000, false);
    let (read, faults) = job("64m", 30_000, true);
    assert!(read == all && plain < faults && faults < 3 * plain, "{faults} of {plain}, {read}");
    let (read, faults) = job("4g", 20_000, true);
    assert_eq!(read, faults, "single pages of a large file");
}

/// Both caches, and the equivalent program, make the same decisions.
#[test]
#[ignore = "sweeps 150 random jobs of a governor: 15 s of a processor"]
fn governed_jobs_agree_with_their_programs_and_on_both_caches() {
    let (mut ran, mut governed) = (0, 0);
    for seed in 1..=150 {
        let spec = random_governed(seed);
        let Ok(job) = spec.clone().validate(None) else { continue };
        assert!(job.is_governed());
        let run = |cache: &mut dyn FnMut(&mut Digest) -> String| {
            let mut digest = Digest::default();
            (cache(&mut digest), digest)
        };
        let limit = job.machine.cache_limit;
        let fast = run(&mut |log| traced(&job, ExtentCache::new(limit), log));
        let plain = run(&mut |log| traced(&job, PlainCache::new(limit), log));
        assert_eq!(fast, plain, "seed {seed}\n{}", described(&spec));
        let mut of_program = Digest::default();
        let program = job.spec.validate(None).unwrap();
        let _ = trace(&program, &Profile::DEFAULT, &mut of_program);
        assert_eq!(of_program, fast.1, "seed {seed}\n{}", described(&spec));
        let mut decisions: Vec<Decision> = Vec::new();
        let _ = trace(&job, &Profile::DEFAULT, &mut decisions);
        let is_its = |decision: &&Decision| {
            matches!(decision, Decision::Readahead { cause: Cause::Governor, .. })
        };
        governed += u64::from(decisions.iter().any(|decision| is_its(&decision)));
        ran += 1;
    }
    assert!(ran > 110 && governed > 40, "{ran} ran, {governed} were governed");
}

fn traced(job: &filemap_job::Job, cache: impl PageCache, log: &mut Digest) -> String {
    match trace_on(job, &Profile::DEFAULT, Timing::Device, cache, log) {
        Ok(traced) => format!("{:?}", traced.run),
        Err(error) => error.to_string(),
    }
}

/// A mapping that is not governed is served as without a governor.
#[test]
fn other_mappings_are_left_alone() {
    for job in [
        "file_size = '15m'",
        "file_size = '64m'\nmap_len = '15m'",
        "file_size = '64m'\nadvice = 'sequential'",
        "file_size = '64m'\nadvice = 'random,hugepage'",
        "file_size = '64m'\nexec = true",
        "file_size = '64m'\nprivate = true",
    ] {
        let job = format!("workload = 'interleave:3'\naccesses = 2000\n{job}");
        let digest = |text: &str| {
            let (mut log, job) = (Digest::default(), spec(text).validate(None).unwrap());
            let run = trace(&job, &Profile::DEFAULT, &mut log).unwrap();
            (log, run.counters, job.idle_settings())
        };
        let (plain, counters, log) = digest(&job);
        let (governed, same, why) = digest(&format!("{job}\ngovernor = true"));
        assert_eq!((governed, same), (plain, counters), "{job}");
        assert_eq!((log.len(), why.len()), (0, 1), "{why:?}");
    }
}

/// MADV_RANDOM of the program's own is governed as other mappings are, but never replaced by the
/// kernel's readahead.
#[test]
fn own_random_advice_is_governed() {
    let pages = |text: &str| {
        let job = format!("file_size = '2g'\naccesses = 4000\ngovernor = true\n{text}");
        let run = trace(&spec(&job).validate(None).unwrap(), &Profile::DEFAULT, &mut ()).unwrap();
        (run.counters.data_pages_read.unwrap(), run.counters.major_faults.unwrap())
    };
    let advised = pages("workload = 'interleave:3'\nadvice = 'random'");
    assert!(advised.0 < 8000 && advised.1 < 50, "{advised:?}");
    let lookups = pages("workload = 'random'\nadvice = 'random'");
    assert!(lookups.0 < 8000 && lookups.1 > 3000, "{lookups:?}");
}

/// Starts of `count` runs of `pages` pages in a file of `of` pages, and the pages of these runs,
/// one per line.
fn runs(count: u64, pages: u64, file_pages: u64) -> String {
    let mut state = 88_172_645_463_325_252_u64;
    let starts = (0..count).map(|_| {
        state ^= state << 13;
        state ^= state >> 7;
        state ^= state << 17;
        state % (file_pages - pages)
    });
    let starts: Vec<u64> = starts.collect();
    let listed = starts.into_iter().flat_map(|start| start..start + pages);
    listed.map(|page| format!("{page}\n")).collect()
}

/// Runs at random places. data/measured/governor-model.toml has these too.
#[test]
fn runs_cost_what_the_documentation_says() {
    for (count, pages, file_mib, expected) in
        [(655, 16, 4096, (11_435, 916)), (100, 200, 1536, (20_894, 104))]
    {
        let of_list = JobFlags {
            accesses_file: Some("list".to_string()),
            accesses_text: Some(runs(count, pages, file_mib * 256)),
            ..spec(&format!("file_size = '{file_mib}m'\ngovernor = true"))
        };
        let job = of_list.validate(None).unwrap();
        let counters = trace(&job, &Profile::DEFAULT, &mut ()).unwrap().counters;
        let found = (counters.data_pages_read.unwrap(), counters.major_faults.unwrap());
        assert_eq!(found, expected, "runs of {pages}");
    }
}

/// Pages read and major faults of the patterns that governors are meant for, as in
/// data/measured/governor-model.toml.
#[test]
fn patterns_cost_what_the_documentation_says() {
    let job = |text: &str, variant: &str| {
        let counters =
            counted(&format!("file_size = '4g'\nread_ahead_kb = 8192\n{text}\n{variant}"));
        (counters.data_pages_read.unwrap(), counters.major_faults.unwrap())
    };
    let scan = "workload = 'sequential'\nmap_len = '1g'\nfraction = 1.0";
    for (text, variant, expected) in [
        ("workload = 'random'", "governor = true", (10_429, 10_429)),
        ("workload = 'random'", "advice = 'random'", (10_429, 10_429)),
        ("workload = 'stride:1021'", "governor = true", (10_528, 55)),
        ("workload = 'stride:4099'", "governor = true", (10_519, 205)),
        ("workload = 'sequential'", "governor = true", (15_353, 2)),
        (scan, "governor = true", (262_144, 2)),
    ] {
        assert_eq!(job(text, variant), expected, "{text}, {variant}");
    }
}

fn program(text: &str) -> Run {
    let program = JobSpec::from_toml(text).unwrap().validate(None).unwrap();
    trace(&program, &Profile::DEFAULT, &mut ()).unwrap()
}

const TABLES: &str = "
read_ahead_kb = 8192
[[file]]
name = 'data'
size = '4g'
[[open]]
name = 'data'
file = 'data'
[[mapping]]
name = 'data'
open = 'data'
";

/// A scan in one thread and lookups in another, through one mapping: each page that is looked up is
/// read alone, and the scan still reads ahead.
#[test]
fn threads_share_what_is_known_of_a_mapping() {
    let thread = |name: &str, workload: &str, accesses: u64| {
        format!(
            "[[thread]]\nname = '{name}'\n[[thread.phase]]\nmapping = 'data'\n\
             workload = '{workload}'\naccesses = {accesses}\n"
        )
    };
    let scan = thread("scan", "sequential", 131_072);
    let lookups = thread("lookups", "random", 5000);
    let run = program(&format!("governor = true{TABLES}{scan}{lookups}"));
    let counters = (run.counters.data_pages_read, run.counters.major_faults);
    assert_eq!(counters, (Some(236_109), Some(4169)), "data/measured/governor-model.toml has it");
    let faults = |name: &str| {
        let thread = run.threads.iter().find(|thread| thread.name == name);
        thread.unwrap().counters.major_faults.unwrap()
    };
    assert!(faults("scan") < 100 && faults("lookups") < 5000, "{} major", faults("scan"));
}

/// The program's own advice for its mapping stays in effect from there on. A request for pages does
/// not end the governing, and MADV_RANDOM is what the governor sets itself.
#[test]
fn the_programs_own_advice_stands() {
    let with = |governor: bool, advice: &str| {
        let thread = format!(
            "[[thread]]\n{advice}[[thread.phase]]\nmapping = 'data'\nworkload = 'stride:1021'\n\
             accesses = 200\n"
        );
        let run = program(&format!("governor = {governor}{TABLES}{thread}"));
        let phase = run.phases.last().unwrap().counters;
        (phase.data_pages_read.unwrap(), phase.major_faults.unwrap())
    };
    let advised = |advice: &str| {
        format!("[[thread.phase]]\nmapping = 'data'\nmadvise = '{advice}'\nlen = '16m'\n")
    };
    for advice in ["normal", "sequential", "hugepage"] {
        let advice = advised(advice);
        assert_eq!(with(true, &advice), with(false, &advice), "{advice}");
    }
    for advice in ["random", "willneed", "dontneed"] {
        let (read, major) = with(true, &advised(advice));
        assert!(read < 300 && major < 30, "{advice}: {read} pages, {major} major faults");
    }
}

/// A mapping that is created anew has no history.
#[test]
fn what_is_known_goes_with_the_mapping() {
    let touch = "[[thread.phase]]\nmapping = 'data'\nworkload = 'sequential'\naccesses = 5\n";
    let anew = "[[thread.phase]]\nunmap = 'data'\n[[thread.phase]]\nmap = 'data'\n";
    let drop = "[[thread.phase]]\nopen = 'data'\nfadvise = 'dontneed'\n";
    let run = |between: &str| {
        let make = "[[thread]]\n[[thread.phase]]\nmap = 'data'\n";
        let run = program(&format!("governor = true{TABLES}{make}{touch}{between}{touch}"));
        run.phases.last().unwrap().counters.major_faults.unwrap()
    };
    // The first two pages of a scan fault, and the scan reaches the next ones before they are
    // mapped.
    assert_eq!((run(""), run(&format!("{anew}{drop}"))), (0, 5));
}

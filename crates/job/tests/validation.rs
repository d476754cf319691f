//! Validation of jobs without tables, from the text of a job file.

use filemap_core::rules::{Family, Kernel};
use filemap_core::series::{Series, Switch};
use filemap_core::units::{PageCount, PageIndex};
use filemap_job::program::ProgramStep;
use filemap_job::{
    Advice, DEFAULT_SEED, EngineKind, Filesystem, Job, JobFlags, Pattern, Phase, Split, SplitProt,
    Workload,
};

fn job(toml: &str) -> Result<Job, filemap_job::Error> {
    let mut spec = JobFlags::from_toml(toml)?;
    for (path, text) in spec.accesses_files() {
        *text = (path == "list").then(|| "3\n1\n".to_string());
    }
    spec.validate(None)
}

/// The accesses of a phase.
fn phase(job: &Job, at: usize) -> &Phase {
    job.accesses().nth(at).unwrap()
}

/// Bytes per read in the first phase of `job`.
fn read_bytes(job: &Job) -> u64 {
    match job.steps().next() {
        Some(ProgramStep::Read { len_bytes, .. }) => *len_bytes,
        other => panic!("{other:?}"),
    }
}

/// A job with random accesses to a file of 1 GiB, and additional keys.
fn base(more: &str) -> Result<Job, filemap_job::Error> {
    job(&format!("workload = 'random'\nfile_size = '1g'\n{more}"))
}

#[test]
fn defaults_of_missing_flags() {
    let job = base("").unwrap();
    assert_eq!(job.engine, EngineKind::Model);
    assert_eq!((job.rules.kernel, job.rules.series), (Kernel::V6_18, Series::BASELINE));
    assert_eq!((job.runs, job.seed), (1, DEFAULT_SEED));
    assert_eq!(job.accesses().count(), 1);
    assert_eq!(phase(&job, 0).pattern, Pattern::Generated(Workload::Random));
    assert_eq!(phase(&job, 0).accesses, 2621);
    assert_eq!(
        (job.mappings[0].mapping.offset, job.mappings[0].mapping.pages),
        (PageIndex(0), PageCount(262_144))
    );
    assert_eq!(
        (job.mappings[0].mapping.shift, job.mappings[0].mapping.split),
        (PageCount(0), None)
    );
    assert_eq!(
        (
            job.mappings[0].mapping.advice,
            job.mappings[0].mapping.exec,
            job.mappings[0].mapping.private
        ),
        { (Advice::NORMAL, false, false) }
    );
    assert_eq!(job.machine.cache_limit, None);
    assert_eq!((job.machine.read_ahead, job.machine.fault_around), (PageCount(32), PageCount(16)));
    assert_eq!((job.machine.arch.family, job.page_size()), (Family::X86_64, 4096));
    assert_eq!(job.machine.fs, Filesystem::Ext4);
    assert_eq!(job.touches(0, phase(&job, 0)).count(), 2621);
}

#[test]
fn limits_of_the_cache() {
    for (keys, pages) in [
        ("ram = '8g'", Some(8 * 262_144 * 762 / 800)),
        ("cache_limit = '1g'", Some(262_144)),
        ("ram = '8g'\ncache_limit = '1g'", Some(262_144)),
        ("memory_max = '1600m'\nram = '3g'", Some(409_600)),
        ("memory_max = '8g'\nram = '8g'", Some(8 * 262_144 * 762 / 800)),
        ("memory_high = '1m'", Some(256)),
        ("memory_high = '2m'\nmemory_max = '4m'", Some(512)),
    ] {
        let job = base(keys).unwrap();
        assert_eq!(job.machine.cache_limit, pages.map(PageCount), "{keys}");
    }
}

#[test]
fn mappings() {
    for (size, keys, offset, pages) in [
        ("1b", "", 0, 1),
        ("4097", "", 0, 2),
        ("1g", "map_offset = '512m'", 131_072, 131_072),
        ("1g", "map_offset = '512m'\nmap_len = '64k'", 131_072, 16),
        ("4097", "map_offset = 4096\nmap_len = 4096", 1, 1),
        ("1g", "map_offset = '1073725440'", 262_140, 4),
    ] {
        let text = format!("workload = 'first'\naccesses = 1\nfile_size = '{size}'\n{keys}");
        let mapping = job(&text).unwrap().mappings[0].mapping;
        assert_eq!((mapping.offset.0, mapping.pages.0), (offset, pages), "{size} {keys}");
    }
    let read = "workload = 'read-sequential'\naccesses = 1\nfile_size = 10000\nmap_offset = 4096";
    assert_eq!(read_bytes(&job(read).unwrap()), 5904);
    let split = base("split = 64\nsplit_prot = 'exec'").unwrap().mappings[0].mapping.split;
    assert_eq!(split, Some(Split { pages: PageCount(64), prot: SplitProt::Exec }));
    assert_eq!(
        base("split = 64").unwrap().mappings[0].mapping.split.unwrap().prot,
        SplitProt::Write
    );
}

#[test]
fn page_sizes() {
    let job = |size| base(&format!("arch = 'arm64'\npage_size = '{size}'")).unwrap();
    for (size, read_ahead, fault_around) in [("4k", 32, 16), ("16k", 8, 4), ("64k", 2, 1)] {
        let machine = job(size).machine;
        assert_eq!((machine.read_ahead.0, machine.fault_around.0), (read_ahead, fault_around));
    }
    assert_eq!(base("fault_around = '512b'").unwrap().machine.fault_around, PageCount(1));
    assert_eq!(base("read_ahead_kb = 0").unwrap().machine.read_ahead, PageCount(0));
}

#[test]
fn kernels_and_series() {
    let spec = |kernel: &str| JobFlags {
        kernel: Some(kernel.to_string()),
        workload: Some("random".to_string()),
        file_size: Some("1g".into()),
        ..JobFlags::default()
    };
    let host = |release| spec("host").validate(release).map(|job| job.rules.kernel);
    assert_eq!(host(Some("6.18.3-amd64")), Ok(Kernel::V6_18));
    assert_eq!(host(Some("6.12.1")), Ok(Kernel::V6_12));
    let error = host(None).unwrap_err().to_string();
    assert!(error.contains("give --kernel 6.1 or 6.6 or 6.12 or 6.18"), "{error}");
    assert!(host(Some("unknown")).unwrap_err().to_string().contains("'unknown'"));
    assert_eq!(spec("6.12").validate(None).unwrap().rules.kernel, Kernel::V6_12);
    for (version, nearest) in
        [("6.2", "6.1 or 6.6"), ("6.12.3", "6.12"), ("5.15", "6.1"), ("7.4", "7.3")]
    {
        let error = spec(version).validate(None).unwrap_err().to_string();
        let expected = format!("Linux {version} is not modelled; give {nearest}, the nearest");
        assert!(error.ends_with(&expected), "{error}");
    }
    for kernel in ["6.1", "6.6"] {
        let retrying = JobFlags { with: Some("p1+vma-retry".into()), ..spec(kernel) };
        let error = retrying.validate(None).unwrap_err().to_string();
        assert!(error.contains("vma-retry") && error.contains("--kernel 6.12 or 6.18"), "{error}");
    }
    for (with, expected) in [
        ("vma-bound+mmap-miss", "mmap-miss (miss-fault-address and miss-no-retry) has"),
        ("vma-bound+p2", "p2 (miss-no-retry) has"),
        ("exec-order", "exec-order (exec-bypass and thp-order) has"),
        ("thp-order", "thp-order has"),
    ] {
        let merged = JobFlags { with: Some(with.into()), ..spec("7.2") };
        let error = merged.validate(None).unwrap_err().to_string();
        let expected = format!("--with: {expected} no place in Linux 7.2");
        assert!(error.starts_with(&expected), "{error}");
    }
    let both = Series::BASELINE.with(Switch::MissFaultAddress).with(Switch::MissNoRetry);
    for with in ["mmap-miss", "p1,p2", "p1+p2", "miss-no-retry,miss-fault-address"] {
        assert_eq!(base(&format!("with = '{with}'")).unwrap().rules.series, both, "{with}");
    }
}

#[test]
fn runs_of_many_phases_are_bounded() {
    let phases = "[[phase]]\nworkload = 'first'\naccesses = 1\n".repeat(1000);
    let valid = |runs: u64| {
        let spec = JobFlags::from_toml(&format!("file_size = '1m'\nruns = {runs}\n{phases}"));
        spec.unwrap().validate(None)
    };
    assert!(valid(1000).is_ok());
    let error = valid(1001).unwrap_err().to_string();
    assert!(error.contains("--runs: 1001 is out of range; give 1 to 1000"), "{error}");
}

#[test]
fn warns_of_split_without_effect() {
    let job = |keys: &str| {
        let keys = format!("workload = 'first'\naccesses = 1\nfile_size = '1m'\n{keys}");
        JobFlags::from_toml(&keys).unwrap().validate(None)
    };
    for (keys, words) in [
        ("private = true\nsplit = 16", "can be written already"),
        ("private = true\nsplit = 16\nsplit_prot = 'write'", "--split 16 changes nothing"),
        ("exec = true\nsplit = 16\nsplit_prot = 'exec'", "can be executed already"),
    ] {
        let warnings = job(keys).unwrap().idle_settings();
        assert!(warnings.len() == 1 && warnings[0].contains(words), "{keys}: {warnings:?}");
    }
    for keys in ["private = true\nsplit = 16\nsplit_prot = 'exec'", "exec = true\nsplit = 255"] {
        assert_eq!(job(keys).unwrap().idle_settings(), [""; 0], "{keys}");
    }
    for pages in [256, 1000] {
        let warnings = job(&format!("split = {pages}")).unwrap().idle_settings();
        assert!(
            warnings[0].contains("256 pages") && warnings[0].contains(&pages.to_string()),
            "{warnings:?}"
        );
    }
}

#[test]
fn fractions_of_reads_are_of_bytes() {
    for (keys, accesses) in [
        // A tenth of the bytes of the file, not of its pages times 1 MiB.
        ("file_size = '1g'\nbs = '1m'\nfraction = 0.1", 102),
        ("file_size = '1g'\nbs = '1m'\nfraction = 1.0", 1024),
        ("file_size = '1g'\nbs = '1m'\nfraction = 2.5", 2560),
        ("file_size = '1g'\nbs = '1m'", 10),
        ("file_size = '1g'\nfraction = 0.1", 26214),
        ("file_size = '1g'\nbs = '512b'\nfraction = 0.1", 209715),
        ("file_size = '1000b'\nbs = '1b'\nfraction = 0.1", 100),
        ("file_size = '1000b'\nbs = '300b'\nfraction = 1.0", 3),
        // The bytes of the mapping count, up to the end of the file.
        ("file_size = '1m'\nmap_offset = '512k'\nbs = '64k'\nfraction = 1.0", 8),
        ("file_size = '1m'\nmap_len = '256k'\nbs = '64k'\nfraction = 1.0", 4),
        ("file_size = '10000'\nmap_offset = '8k'\nbs = '100b'\nfraction = 1.0", 18),
        ("file_size = '1p'\nbs = '1b'\nfraction = 1e-15", 1),
    ] {
        for workload in ["read-random", "read-sequential"] {
            let spec = JobFlags::from_toml(&format!("workload = '{workload}'\n{keys}"));
            let job = spec.unwrap().validate(None).unwrap();
            assert_eq!(phase(&job, 0).accesses, accesses, "{keys}");
        }
    }
    for (keys, words) in [
        ("file_size = '64m'\nbs = '1m'", "0.01 of a mapping of 64m is less than one read of 1m"),
        ("file_size = '1m'\nfraction = 1e-9", "less than one read of 4k; give --accesses N"),
        ("file_size = '1b'\nbs = '1b'\nfraction = 1e-300", "less than one read of 1b"),
        ("file_size = '1p'\nbs = '1b'\nfraction = 1e9", "1000000000 of 1p"),
    ] {
        let spec = JobFlags::from_toml(&format!("workload = 'read-random'\n{keys}"));
        let error = spec.unwrap().validate(None).unwrap_err().to_string();
        assert!(error.contains(words), "{keys}: {error}");
    }
}

#[test]
fn fractions_are_exact() {
    for (fraction, pages, accesses) in [
        ("0.01", 5_242_880, 52_428),
        ("0.01", 262_144, 2_621),
        ("0.29", 100, 29),
        ("1", 7, 7),
        ("1.0", 7, 7),
        ("2.5", 4, 10),
        ("1e-3", 1000, 1),
        ("0.3333333333333333", 3, 0),
        ("1e-300", 1 << 47, 0),
        ("5e-324", 1 << 47, 0),
    ] {
        let size = pages * 4096u64;
        let text = format!("workload = 'first'\nfile_size = {size}\nfraction = {fraction}");
        match job(&text) {
            Ok(job) => assert_eq!(phase(&job, 0).accesses, accesses, "{fraction} of {pages}"),
            Err(error) => {
                assert_eq!(accesses, 0, "{fraction} of {pages}: {error}");
                assert!(error.to_string().contains("is less than one access; give --accesses N"));
            }
        }
    }
}

#[test]
fn phases() {
    let job = job("file_size = '1m'\nseed = 7\n[[phase]]\nworkload = 'read-sequential'\n\
         bs = '16k'\naccesses = 3\n[[phase]]\naccesses_file = 'list'\n[[phase]]\n\
         workload = 'random'\nfraction = 0.5\nseed = 9")
    .unwrap();
    let pages = |at| job.touches(0, phase(&job, at)).collect::<Vec<_>>();
    assert_eq!(pages(1), [3, 1]);
    assert_eq!(pages(2).len(), 128);
    assert!(phase(&job, 0).is_read() && !phase(&job, 1).is_read());
    let reads: Vec<_> =
        job.reads(read_bytes(&job), phase(&job, 0)).map(|read| read.offset_bytes).collect();
    assert_eq!(reads, [0, 16384, 32768]);
    assert_eq!((phase(&job, 0).seed, phase(&job, 2).seed), (7, 9));
    let other = job.with_seed(8);
    assert_eq!((other.seed, phase(&other, 0).seed, phase(&other, 2).seed), (8, 8, 9));
}

#[test]
fn flags_override_the_file() {
    let file = JobFlags::from_toml(
        "workload = 'random'\nfraction = 0.1\nfile_size = '1g'\nexec = true\nruns = 3",
    );
    let flags = JobFlags { accesses: Some(5), runs: Some(2), ..JobFlags::default() };
    let job = file.unwrap().overlay(flags).validate(None).unwrap();
    assert_eq!((phase(&job, 0).accesses, job.runs, job.mappings[0].mapping.exec), (5, 2, true));

    let file = JobFlags::from_toml("file_size = '1m'\n[[phase]]\nworkload = 'first'").unwrap();
    let flags = JobFlags { workload: Some("reverse".to_string()), ..JobFlags::default() };
    let job = file.overlay(flags).validate(None).unwrap();
    assert_eq!(phase(&job, 0).pattern, Pattern::Generated(Workload::Reverse));
}

/// Keys (lines joined by ` ; `), then after ` => ` the required parts of the error message,
/// separated by ` | `: the value and the remedy.
const BAD: &str = include_str!("bad_keys.txt");

#[test]
fn invalid_keys_have_a_remedy() {
    for line in BAD.lines() {
        let (keys, words) = line.split_once(" => ").expect("keys => words");
        let keys = &keys.replace(" ; ", "\n");
        let error = base(keys).expect_err(keys).to_string();
        assert!(!error.contains('\n'), "{keys}: {error}");
        for word in words.split(" | ") {
            assert!(error.contains(word), "{keys}: {error}");
        }
    }
}

#[test]
fn refuses_invalid_workloads_and_files() {
    let one = |workload: &str| format!("file_size = '1m'\nworkload = '{workload}'");
    for (text, words) in [
        (String::new(), "--file-size is missing; give a size such as 1g"),
        ("file_size = '1m'".into(), "--workload is missing; give a pattern such as random"),
        ("workload = 'random'\nfile_size = 0".into(), "--file-size: 0 is out of range; give 1b"),
        ("workload = 'random'\nfile_size = '2000p'".into(), "--file-size: 2000p is out of"),
        ("workload = 'random'\nfile_size = '4k'".into(), "0.01 of a mapping of 1 pages"),
        (one("rndm"), "--workload: unknown workload 'rndm'; known: random, stride:N"),
        (one("stride:0"), "--workload: 0 is not allowed; give a stride in pages"),
        (one("interleave:0"), "--workload: 0 is not allowed; give a number of streams"),
        (one("interleave:257"), "257 is out of range; give 1 to 256"),
        ("file_size = '1m'\naccesses_file = 'gone'".into(), "'gone' was not read"),
        ("file_size = '4k'\naccesses_file = 'list'".into(), "line 1: page 3 is beyond"),
        ("file_size = '1m'\n[[phase]]\nworkload = 'first'\n[[phase]]\n".into(), "phase 2: --work"),
        ("file_size = '1m'\n[[phase]]\nworkload = 'first'\nseed = 0".into(), "phase 1: --seed"),
        (one("read-random") + "\nbs = 0", "--bs: 0 is out of range; give 1b to 1g"),
        (one("read-random") + "\nbs = '2g'", "--bs: 2g is out of range"),
    ] {
        let error = job(&text).expect_err(&text).to_string();
        assert!(error.contains(words) && !error.contains('\n'), "{text}: {error}");
    }
}

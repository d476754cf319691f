//! The setup section of a report: file, mapping, accesses and machine of the job.

use filemap_job::program::{FileSpec, MappingSpec, ThreadPhaseSpec};
use filemap_job::{
    Advice, DEFAULT_SEED, EngineKind, JobSpec, Record, SizeText, SplitProt, parse_size,
};
use serde_json::Value;

use crate::spread;
use filemap_report::Part;
use filemap_report::units::{bytes, number};

/// Label of the line about accesses.
const ACCESSES: &str = "Accesses";

/// Label of the line about the threads of a job with tables.
const THREADS: &str = "Threads";

/// Maximum number of distinct values listed in one line.
const MAX_LISTED_VALUES: usize = 4;

/// Block size of `read(2)` in a job without `bs`, in bytes.
const DEFAULT_READ_BYTES: f64 = 4096.0;

/// Maximum number of phases that are named.
const MAX_NAMED_PHASES: usize = 3;

/// A label and the parts of its text. Parts have fixed positions, so that several jobs can be
/// merged part by part; an empty part is not printed.
pub(crate) type SetupLine = (&'static str, Vec<String>);

/// The setup of the job of `record`.
pub fn record_setup(record: &Record) -> Part {
    facts(record_lines(record, record.job.with.as_deref()))
}

/// The setup of a resolved job that runs both in the model and on a kernel: the running one, or the
/// job's image.
pub fn job_setup(job: &JobSpec) -> Part {
    let which = if job.image.is_some() { "booted" } else { "running" };
    let series = job.with.as_deref().filter(|with| *with != "baseline");
    let with = series.map_or(String::new(), |series| format!(" with {series}"));
    let rules = format!("rules of Linux {}{with}, and the {which} kernel", text(&job.kernel));
    facts(lines(job, rules))
}

/// The setup of several records; a part that differs lists its distinct values.
pub fn records_setup(records: &[Record]) -> Part {
    let own_lines = |record: &Record| {
        // The columns are named by series already.
        record_lines(record, None)
    };
    let all: Vec<Vec<SetupLine>> = records.iter().map(own_lines).collect();
    let mut merged = all[0].clone();
    for (line, (_, parts)) in merged.iter_mut().enumerate() {
        for (place, part) in parts.iter_mut().enumerate() {
            let mut distinct: Vec<&str> = Vec::new();
            for lines in &all {
                let own = match lines[line].1[place].as_str() {
                    "" => "not so",
                    own => own,
                };
                if !distinct.contains(&own) {
                    distinct.push(own);
                }
            }
            *part = match distinct.len() {
                1 => continue,
                2..=MAX_LISTED_VALUES => format!("by variant: {}", distinct.join(" / ")),
                more => format!("by variant: {} and {} more", distinct[0], more - 1),
            };
        }
    }
    facts(merged)
}

/// Joins the non-empty parts of each line.
pub(crate) fn facts(lines: Vec<SetupLine>) -> Part {
    let fact = |(label, parts): SetupLine| {
        let shown: Vec<String> = parts.into_iter().filter(|part| !part.is_empty()).collect();
        (label.to_string(), shown.join(", "))
    };
    Part::Facts(lines.into_iter().map(fact).collect())
}

/// The lines about `record`; `series` are named with its kernel.
fn record_lines(record: &Record, series: Option<&str>) -> Vec<SetupLine> {
    let mut lines = lines(&record.job, kernel(record, series));
    let seeds = spread::seeds(record);
    if seeds > 1 {
        let accesses = lines.iter_mut().filter(|(label, _)| [ACCESSES, THREADS].contains(label));
        accesses.for_each(|(_, parts)| parts.push(format!("the first of {seeds} seeds")));
    }
    lines
}

fn lines(job: &JobSpec, kernel: String) -> Vec<SetupLine> {
    let own = if job.is_single_mapping() {
        let (file_spec, mapping_spec) = (&job.file[0], &job.mapping[0]);
        vec![
            ("File", file(job, file_spec)),
            ("Mapping", mapping(job, mapping_spec)),
            (ACCESSES, vec![accesses(job)]),
        ]
    } else {
        tables(job)
    };
    own.into_iter().chain(machine_lines(job, kernel)).collect()
}

/// The lines about the tables of a job.
fn tables(job: &JobSpec) -> Vec<SetupLine> {
    let seed = job.seed.filter(|seed| *seed != DEFAULT_SEED);
    let seed = seed.map_or(String::new(), |seed| format!("seed {seed}"));
    let cpus = job.cpus.map_or(String::new(), |cpus| format!("on {cpus} CPUs"));
    let governed = text_if(job.governor == Some(true), "governed");
    vec![
        ("Files", vec![files_text(job), filesystem(job), governed]),
        (THREADS, vec![threads_text(job), cpus, seed]),
    ]
}

/// `2 files`.
pub(crate) fn files_text(program: &JobSpec) -> String {
    match program.file.iter().map(|file| file.count.unwrap_or(1)).sum() {
        1u64 => "1 file".to_string(),
        files => format!("{files} files"),
    }
}

/// `8 threads`.
pub(crate) fn threads_text(program: &JobSpec) -> String {
    match program.thread.iter().map(|thread| thread.count.unwrap_or(1)).sum() {
        1u64 => "1 thread".to_string(),
        threads => format!("{threads} threads"),
    }
}

/// The lines about the machine that a job runs on.
fn machine_lines(job: &JobSpec, kernel: String) -> [SetupLine; 3] {
    let read_ahead = format!("{} KiB", job.read_ahead_kb.unwrap_or(0));
    let fault_around = size(&job.fault_around).map_or_else(String::new, bytes);
    let [arch, page_size] = architecture(job);
    [
        ("Readahead", vec![read_ahead, format!("fault-around {fault_around}")]),
        ("Memory", vec![memory(job), held(job), start(job)]),
        ("Kernel", vec![kernel, arch, page_size]),
    ]
}

/// `text` if `holds`, otherwise an empty part.
fn text_if(holds: bool, text: impl Into<String>) -> String {
    if holds { text.into() } else { String::new() }
}

fn file(job: &JobSpec, file: &FileSpec) -> Vec<String> {
    let is_elf = job.mapping.iter().any(|mapping| mapping.elf);
    vec![
        size(&file.size).filter(|_| !is_elf).map_or_else(String::new, bytes),
        file.path.as_ref().map_or_else(String::new, |path| format!("'{path}'")),
        text_if(file.sparse, "sparse"),
        filesystem(job),
    ]
}

/// `xfs with blocks of 16.0 KiB`.
fn filesystem(job: &JobSpec) -> String {
    let name = job.fs.clone().unwrap_or_default();
    match size(&job.block_size) {
        Some(block) => format!("{name} with blocks of {}", bytes(block)),
        None => name,
    }
}

fn mapping(job: &JobSpec, mapping: &MappingSpec) -> Vec<String> {
    let file_size = size(&job.file[0].size);
    let offset = size(&mapping.offset).unwrap_or(0.0);
    let len = size(&mapping.len).or(file_size.map(|all| all - offset));
    let place = match len {
        _ if mapping.elf => "the segments of the program".to_string(),
        Some(len) if offset == 0.0 && file_size.is_none_or(|all| len >= all) => {
            "the whole file".to_string()
        }
        len => format!("{} from {} on", len.map_or_else(String::new, bytes), bytes(offset)),
    };
    let shift = mapping.shift.unwrap_or(0);
    let split = mapping.split.map_or_else(String::new, |pages| {
        let prot = match mapping.split_prot.as_deref() {
            Some(name) if name == SplitProt::Exec.name() => "executable",
            _ => "writable",
        };
        format!("in VMAs of {pages} pages, every second one {prot}")
    });
    let advice = mapping.advice.as_deref().unwrap_or(Advice::NORMAL.name());
    vec![
        place,
        text_if(shift > 0, format!("{shift} pages into its page-table page")),
        text_if(mapping.private, "private and written to"),
        text_if(mapping.exec, "executable"),
        split,
        format!("advice {advice}"),
        text_if(job.governor == Some(true), "governed"),
    ]
}

/// Describes the accesses of a job with a single mapping.
fn accesses(job: &JobSpec) -> String {
    match &job.thread[0].phase[..] {
        [only] => phase(only, only.seed.or(job.seed)),
        [cold, random] if is_exec(cold, random) => {
            let both = ThreadPhaseSpec { workload: Some("exec".to_string()), ..random.clone() };
            phase(&both, job.seed)
        }
        phases => {
            let mut words: Vec<String> =
                phases.iter().take(MAX_NAMED_PHASES).map(|own| phase(own, own.seed)).collect();
            if phases.len() > MAX_NAMED_PHASES {
                words.push(format!("{} phases more", phases.len() - MAX_NAMED_PHASES));
            }
            words.join("; then ")
        }
    }
}

/// Whether both phases come from the workload `exec`.
fn is_exec(cold: &ThreadPhaseSpec, random: &ThreadPhaseSpec) -> bool {
    let names = [cold, random].map(|phase| phase.workload.as_deref());
    names == [Some("exec:cold"), Some("exec:random")]
        && cold.seed.is_none()
        && random.seed.is_none()
}

fn phase(phase: &ThreadPhaseSpec, seed: Option<u64>) -> String {
    if let Some(path) = &phase.accesses_file {
        return format!("those of '{path}'");
    }
    if let Some(pages) = phase.pages.as_ref().or(phase.offsets.as_ref()) {
        return format!("{} listed", number(pages.len() as f64));
    }
    let workload = text(&phase.workload);
    let mut text = match phase.accesses {
        Some(accesses) => format!("{} {workload}", number(accesses as f64)),
        None => workload.to_string(),
    };
    if workload.starts_with("read") {
        text += &format!(" of {}", bytes(size(&phase.bs).unwrap_or(DEFAULT_READ_BYTES)));
    }
    // The job has a seed even if its pattern draws nothing.
    let drawn = workload.contains("random") || workload.starts_with("exec");
    if let Some(seed) = seed.filter(|_| drawn) {
        text += &format!(", seed {seed}");
    }
    text
}

fn memory(job: &JobSpec) -> String {
    let limits = [
        ("RAM", &job.ram),
        ("page cache at most", &job.cache_limit),
        ("memory.high", &job.memory_high),
        ("memory.max", &job.memory_max),
    ];
    let set_limits = limits
        .into_iter()
        .filter_map(|(name, text)| size(text).map(|limit| format!("{name} {}", bytes(limit))));
    let set_limits: Vec<String> = set_limits.collect();
    if set_limits.is_empty() { "no limit".to_string() } else { set_limits.join(", ") }
}

/// The share of the files that is cached at the beginning, if the job says so.
fn start(job: &JobSpec) -> String {
    match job.start.as_deref() {
        None => String::new(),
        Some("cold") => "cold at the beginning".to_string(),
        Some("warm") => "all files cached at the beginning".to_string(),
        Some("recorded") => "files cached at the beginning as recorded".to_string(),
        Some(part) => format!("{part} of each file cached at the beginning"),
    }
}

/// The anonymous memory of the job.
fn held(job: &JobSpec) -> String {
    let phases = || job.thread.iter().flat_map(|thread| &thread.phase);
    let allocated = phases().any(|phase| size(&phase.allocate).is_some_and(|bytes| bytes > 0.0));
    match size(&job.anonymous).filter(|bytes| *bytes > 0.0) {
        Some(held) if allocated => format!("{} of anonymous memory at the beginning", bytes(held)),
        Some(held) => format!("{} of anonymous memory", bytes(held)),
        None => text_if(allocated, "anonymous memory as the phases allocate it"),
    }
}

/// The kernel of `record`, with the names of `series`.
pub(crate) fn kernel(record: &Record, series: Option<&str>) -> String {
    let environment = |key: &str| record.environment.get(key).and_then(Value::as_str);
    if record.engine != EngineKind::Model.name() {
        let release = environment("kernel").unwrap_or("of unknown release");
        let switches = record.environment.get("series_switches").and_then(Value::as_object);
        let held = |(name, value): (&String, &Value)| {
            format!(" with {name} = {}", value.as_str().unwrap_or_default())
        };
        let switches: String = switches.into_iter().flatten().map(held).collect();
        return match environment("image") {
            Some(image) => format!("Linux {release}{switches}, booted from '{image}'"),
            None => format!("Linux {release}{switches}, the running one"),
        };
    }
    let series = match series {
        None => String::new(),
        Some("baseline") => ", baseline".to_string(),
        Some(series) => format!(" with {}", series.replace('+', " + ")),
    };
    format!("rules of Linux {}{series}", text(&record.job.kernel))
}

/// Architecture and page size, each empty if it is the usual one.
fn architecture(job: &JobSpec) -> [String; 2] {
    let page = size(&job.page_size).unwrap_or(4096.0);
    let arch = job.arch.as_deref().filter(|&arch| arch != "x86-64").unwrap_or_default();
    [arch.to_string(), text_if(page != 4096.0, format!("pages of {}", bytes(page)))]
}

fn text(value: &Option<String>) -> &str {
    value.as_deref().unwrap_or("unknown")
}

fn size(text: &Option<SizeText>) -> Option<f64> {
    text.as_ref().and_then(|text| parse_size(&text.0).ok()).map(|bytes| bytes as f64)
}

#[cfg(test)]
mod tests {
    use filemap_job::JobFlags;

    use super::*;

    fn facts(toml: &str) -> String {
        let job = JobFlags::from_toml(toml).unwrap().validate(None).unwrap();
        let record = Record::new(&job, "model", serde_json::Map::new(), Vec::new());
        let Part::Facts(facts) = record_setup(&record) else { panic!("facts") };
        facts.into_iter().map(|(label, text)| format!("{label}: {text}\n")).collect()
    }

    #[test]
    fn a_plain_job() {
        let expected = "File: 20 GiB, ext4\n\
                        Mapping: the whole file, advice normal\n\
                        Accesses: 52 428 random, seed 88172645463325252\n\
                        Readahead: 8192 KiB, fault-around 64 KiB\n\
                        Memory: RAM 8 GiB\n\
                        Kernel: rules of Linux 6.18, baseline\n";
        let job = "workload = 'random'\nfile_size = '20g'\nram = '8g'\nread_ahead_kb = 8192";
        assert_eq!(facts(job), expected);
    }

    #[test]
    fn setup_lists_unusual_settings() {
        let job = "workload = 'read-sequential'\nbs = '64k'\naccesses = 3\nfile_size = '1m'\n\
                   map_offset = '256k'\nmap_len = '512k'\nmap_shift = 3\nsplit = 16\n\
                   split_prot = 'exec'\nadvice = 'random'\nmemory_max = '4m'\nsparse = true\n\
                   with = 'mmap-miss'\narch = 'arm64'\npage_size = '16k'\nfs = 'xfs'";
        let expected = "File: 1 MiB, sparse, xfs\n\
                        Mapping: 512 KiB from 256 KiB on, 3 pages into its page-table page, in \
                        VMAs of 16 pages, every second one executable, advice random\n\
                        Accesses: 3 read-sequential of 64 KiB\n\
                        Readahead: 128 KiB, fault-around 64 KiB\n\
                        Memory: memory.max 4 MiB\n\
                        Kernel: rules of Linux 6.18 with miss-fault-address + miss-no-retry, \
                        arm64, pages of 16 KiB\n";
        assert_eq!(facts(job), expected);
    }

    #[test]
    fn setup_lists_differences_by_variant() {
        let job = |keys: &str| {
            let toml = format!("workload = 'first'\nfile_size = '1m'\n{keys}");
            let job = JobFlags::from_toml(&toml).unwrap().validate(None).unwrap();
            Record::new(&job, "model", serde_json::Map::new(), Vec::new())
        };
        let texts = |keys: &[&str]| {
            let records: Vec<Record> = keys.iter().map(|keys| job(keys)).collect();
            let Part::Facts(facts) = records_setup(&records) else { panic!("facts") };
            facts.into_iter().map(|(label, text)| format!("{label}: {text}\n")).collect::<String>()
        };
        let text = texts(&["", "advice = 'random'\nram = '1g'", "kernel = '6.12'\nwith = 'p1'"]);
        for line in [
            "Mapping: the whole file, by variant: advice normal / advice random\n",
            "Memory: by variant: no limit / RAM 1 GiB\n",
            "Kernel: by variant: rules of Linux 6.18 / rules of Linux 6.12\n",
            "Readahead: 128 KiB, fault-around 64 KiB\n",
        ] {
            assert!(text.contains(line), "{text}");
        }
        let sizes = [16, 32, 64, 128, 256].map(|kb| format!("read_ahead_kb = {kb}"));
        let text = texts(&sizes.each_ref().map(String::as_str));
        assert!(text.contains("Readahead: by variant: 16 KiB and 4 more, fault-around"), "{text}");
    }

    #[test]
    fn a_kernel_has_its_switches() {
        let job = JobFlags::from_toml("workload = 'first'\nfile_size = '1m'").unwrap();
        let mut environment = serde_json::Map::new();
        environment.insert("kernel".into(), "6.12.1".into());
        let facts = |environment: &serde_json::Map<String, Value>| {
            let job = job.clone().validate(None).unwrap();
            kernel(&Record::new(&job, "kernel", environment.clone(), Vec::new()), None)
        };
        assert_eq!(facts(&environment), "Linux 6.12.1, the running one");
        environment.insert("image".into(), "bzImage".into());
        environment.insert("series_switches".into(), serde_json::json!({ "vma_retry": "1" }));
        assert_eq!(facts(&environment), "Linux 6.12.1 with vma_retry = 1, booted from 'bzImage'");
    }

    #[test]
    fn phases_follow_each_other() {
        let job = "file_size = '1m'\n[[phase]]\nworkload = 'sequential'\naccesses = 5\n\
                   [[phase]]\nworkload = 'random'\naccesses = 7\nseed = 3";
        assert!(facts(job).contains("Accesses: 5 sequential; then 7 random, seed 3\n"));
    }
}

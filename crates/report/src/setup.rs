//! What a report is of: the file, the mapping, the accesses and the machine that were used.

use filemap_job::{
    Advice, EngineKind, JobSpec, PhaseSpec, Record, SizeText, SplitProt, parse_size,
};
use serde_json::Value;

use crate::report::Part;
use crate::units::{bytes, number};

/// Distinct values of one line that are listed.
const MOST_LISTED: usize = 4;

/// Phases that are named.
const MOST_PHASES: usize = 3;

/// The lines on the job of `record`.
pub fn of_record(record: &Record) -> Part {
    Part::Facts(lines(&record.job, &kernel(record)))
}

/// The lines on a job that says everything, where both the running kernel and the model's rules
/// decide.
pub fn of_job(job: &JobSpec) -> Part {
    let rules = format!("rules of Linux {}, and the running kernel", text(&job.kernel));
    Part::Facts(lines(job, &rules))
}

/// The lines on several records. What differs among them is said with each of its values.
pub fn of_records(records: &[Record]) -> Part {
    let of = |record: &Record| {
        // The series are the names of the columns.
        let mut record = record.clone();
        record.job.with = None;
        lines(&record.job, &kernel(&record))
    };
    let all: Vec<_> = records.iter().map(of).collect();
    let mut facts = all[0].clone();
    for (at, (_, text)) in facts.iter_mut().enumerate() {
        let mut distinct: Vec<&str> = Vec::new();
        for lines in &all {
            if !distinct.contains(&lines[at].1.as_str()) {
                distinct.push(&lines[at].1);
            }
        }
        *text = match distinct.len() {
            1 => continue,
            2..=MOST_LISTED => format!("by variant: {}", distinct.join("; ")),
            more => format!("{more} by variant, the first: {}", distinct[0]),
        };
    }
    Part::Facts(facts)
}

fn lines(job: &JobSpec, kernel: &str) -> Vec<(String, String)> {
    let read_ahead = job.read_ahead_kb.unwrap_or(0);
    let fault_around = size(&job.fault_around).map_or_else(String::new, bytes);
    let lines = [
        ("File", file(job)),
        ("Mapping", mapping(job)),
        ("Accesses", accesses(job)),
        ("Readahead", format!("{read_ahead} KiB, fault-around {fault_around}")),
        ("Memory", memory(job)),
        ("Kernel", format!("{kernel}{}", architecture(job))),
    ];
    lines.map(|(label, text)| (label.to_string(), text)).into()
}

fn file(job: &JobSpec) -> String {
    let mut words = Vec::new();
    words.extend(size(&job.file_size).map(bytes));
    words.extend(job.file.as_ref().map(|path| format!("'{path}'")));
    if job.sparse == Some(true) {
        words.push("sparse".to_string());
    }
    words.extend(job.fs.clone());
    words.join(", ")
}

fn mapping(job: &JobSpec) -> String {
    let mut words = vec![match (size(&job.map_len), size(&job.map_offset)) {
        (None, _) => "the segments of the program".to_string(),
        (Some(len), None | Some(0.0)) if size(&job.file_size).is_none_or(|all| len >= all) => {
            "the whole file".to_string()
        }
        (Some(len), offset) => format!("{} from {} on", bytes(len), bytes(offset.unwrap_or(0.0))),
    }];
    if let Some(shift @ 1..) = job.map_shift {
        words.push(format!("{shift} pages into its page-table page"));
    }
    if job.private == Some(true) {
        words.push("private, written to".to_string());
    }
    if job.exec == Some(true) {
        words.push("executable".to_string());
    }
    if let Some(pages) = job.split {
        let prot = match job.split_prot.as_deref() {
            Some(name) if name == SplitProt::Exec.name() => "executable",
            _ => "writable",
        };
        words.push(format!("in VMAs of {pages} pages, every second one {prot}"));
    }
    let advice = job.advice.as_deref().unwrap_or(Advice::Normal.name());
    words.push(format!("advice {advice}"));
    words.join(", ")
}

fn accesses(job: &JobSpec) -> String {
    if !job.phase.is_empty() {
        let named = job.phase.iter().take(MOST_PHASES).map(phase);
        let mut words: Vec<String> = named.collect();
        if job.phase.len() > MOST_PHASES {
            words.push(format!("{} phases more", job.phase.len() - MOST_PHASES));
        }
        return words.join("; then ");
    }
    let own = PhaseSpec {
        workload: job.workload.clone(),
        accesses: job.accesses,
        accesses_file: job.accesses_file.clone(),
        seed: job.seed,
        bs: job.bs.clone(),
        ..PhaseSpec::default()
    };
    phase(&own)
}

fn phase(phase: &PhaseSpec) -> String {
    if let Some(path) = &phase.accesses_file {
        return format!("those of '{path}'");
    }
    let workload = text(&phase.workload);
    let mut text = match phase.accesses {
        Some(accesses) => format!("{} {workload}", number(accesses as f64)),
        None => workload.to_string(),
    };
    if let Some(block) = size(&phase.bs) {
        text += &format!(" of {}", bytes(block));
    }
    // A job file says the seed of patterns too that draw nothing.
    let drawn = workload.contains("random") || workload.starts_with("exec");
    if let Some(seed) = phase.seed.filter(|_| drawn) {
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
    let given = limits
        .into_iter()
        .filter_map(|(name, text)| size(text).map(|limit| format!("{name} {}", bytes(limit))));
    let given: Vec<String> = given.collect();
    if given.is_empty() { "no limit".to_string() } else { given.join(", ") }
}

/// By which kernel `record` came about.
fn kernel(record: &Record) -> String {
    let environment = |key: &str| record.environment.get(key).and_then(Value::as_str);
    if record.engine != EngineKind::Model.name() {
        let release = environment("kernel").unwrap_or("of unknown release");
        return match environment("image") {
            Some(image) => format!("Linux {release}, booted from '{image}'"),
            None => format!("Linux {release}, the running one"),
        };
    }
    let series = match record.job.with.as_deref() {
        None => String::new(),
        Some("baseline") => ", baseline".to_string(),
        Some(series) => format!(" with {}", series.replace('+', " + ")),
    };
    format!("rules of Linux {}{series}", text(&record.job.kernel))
}

/// What is not as on most machines.
fn architecture(job: &JobSpec) -> String {
    let page = size(&job.page_size).unwrap_or(4096.0);
    let mut text = String::new();
    if let Some(arch) = job.arch.as_deref().filter(|&arch| arch != "x86-64") {
        text += &format!(", {arch}");
    }
    if page != 4096.0 {
        text += &format!(", pages of {}", bytes(page));
    }
    text
}

fn text(value: &Option<String>) -> &str {
    value.as_deref().unwrap_or("unknown")
}

fn size(text: &Option<SizeText>) -> Option<f64> {
    text.as_ref().and_then(|text| parse_size(&text.0).ok()).map(|bytes| bytes as f64)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn facts(toml: &str) -> String {
        let job = JobSpec::from_toml(toml).unwrap().validate(None).unwrap();
        let record = Record::new(&job, "model", serde_json::Map::new(), Vec::new());
        let Part::Facts(facts) = of_record(&record) else { panic!("facts") };
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
    fn what_is_unusual_is_said() {
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
    fn phases_follow_each_other() {
        let job = "file_size = '1m'\n[[phase]]\nworkload = 'sequential'\naccesses = 5\n\
                   [[phase]]\nworkload = 'random'\naccesses = 7\nseed = 3";
        assert!(facts(job).contains("Accesses: 5 sequential; then 7 random, seed 3\n"));
    }
}

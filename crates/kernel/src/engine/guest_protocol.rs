//! Messages to and from a booted kernel.

use filemap_core::series::{Series, Switch};
use filemap_job::program::{Job, JobSpec, Madvise, ProgramStep, Rounds, Thread};
use filemap_job::{EngineKind, JobRuns, Pattern, Run};
use serde::de::DeserializeOwned;
use serde::{Deserialize, Serialize};
use serde_json::{Map, Value, json};

use crate::image::Error as ImageError;
use crate::probe::cpus;
use crate::{Error, page_size};

/// Keys of an answer: the runs, the observation of a program, or the limit that the job exceeded
/// (memory, or the end of a file). Every other failure is a plain message.
const RAN: &str = "ran";
const WHERE: &str = "where";
const OUT_OF_MEMORY: &str = "out_of_memory";
const BEYOND_FILE: &str = "beyond_file";
const UNAVAILABLE: &str = "unavailable";
const DISTURBED: &str = "disturbed";
const LOST_EVENTS: &str = "lost_events";

/// The key of the job in a message.
const PROGRAM: &str = "program";

/// Other keys of a message: the switches to set on and off before the job runs, the readahead of
/// the disk, the required length of the active list, and how the kernel's decisions are observed,
/// if at all.
const SWITCHES: &str = "switches";
const READ_AHEAD_KB: &str = "read_ahead_kb";
const ACTIVE_LIST_BYTES: &str = "active_list_bytes";
const OBSERVED: &str = "observed";

/// Most of the memory is left to the job.
const MAX_LIST_BYTES: u64 = 256 << 20;

/// Maximum number of CPUs that QEMU emulates.
const MAX_EMULATED_CPUS: u64 = 255;

/// Slowdown of an emulated machine whose CPUs take turns.
const EMULATED_FACTOR: u64 = 30;

/// The answer of a guest.
#[derive(Debug, Serialize, Deserialize)]
pub(super) struct Returned {
    /// Environment of the runs.
    pub(super) environment: Map<String, Value>,
    /// All runs.
    pub(super) runs: Vec<Run>,
}

/// CPUs of the booted machine: as given by the program, else one per thread up to the CPUs of this
/// machine.
pub(super) fn cpus(program: &Job) -> u64 {
    program.cpus.map_or((program.threads.len() as u64).min(cpus::allowed_cpus()), u64::from)
}

/// Maximum number of CPUs of its machine.
pub(super) fn most_cpus(program: &Job) -> u64 {
    if takes_turns(program) { MAX_EMULATED_CPUS } else { cpus::allowed_cpus() }
}

/// Whether virtual CPUs take turns on an emulated machine, each executing equally many
/// instructions. As threads of this machine they would not share a common time, since some may wait
/// for a host CPU. That matters for threads that run rounds for a fixed duration, whose number of
/// rounds is compared.
pub(super) fn takes_turns(program: &Job) -> bool {
    program.threads.len() > 1 && program.threads.iter().any(|thread| thread.rounds.is_timed())
}

/// Minimum duration of a run in nanoseconds, on any machine.
pub(super) fn program_ns(program: &Job) -> u64 {
    let each_ns =
        program.threads.iter().map(|thread| thread.stagger_ns.saturating_add(thread_ns(thread)));
    if takes_turns(program) {
        each_ns.max().unwrap_or(0).saturating_mul(EMULATED_FACTOR)
    } else {
        each_ns.fold(0, u64::saturating_add)
    }
}

/// Name of the job in errors: its workload or files, and its seed.
pub(super) fn words(program: &Job) -> String {
    let names = program.spec.file.iter().map(|file| file.name.as_str());
    let heading = program.spec.heading().filter(|_| program.is_single_mapping());
    let does = heading.unwrap_or_else(|| format!("files {}", names.collect::<Vec<_>>().join(", ")));
    format!("{does}, --seed {}", program.seed)
}

/// The message to the guest: the job with its lists, without the machine around it.
pub(super) fn job(program: &Job) -> Value {
    let mut spec = program.spec.clone();
    (spec.image, spec.modules, spec.ram, spec.machine) = (None, None, None, None);
    // The kernel already has the series it was built with.
    spec.with = None;
    (spec.on, spec.kernel) = (Some(EngineKind::Kernel.to_string()), Some("host".into()));
    // The guest has no files with lists of accesses.
    for (table, own) in program.tables.threads.iter().zip(&program.threads) {
        let thread = &mut spec.thread[*table];
        for (phase, step) in thread.phase.iter_mut().zip(&own.steps) {
            if let (Some(_), Some(Pattern::Listed(list))) =
                (phase.accesses_file.take(), step.phase().map(|accesses| &accesses.pattern))
            {
                phase.pages = Some(list.pages.clone());
            }
        }
    }
    json!({ PROGRAM: spec })
}

/// Parses and validates the program in a request, for the kernel `release`.
///
/// # Errors
/// One line about the invalid request.
pub(super) fn received(sent: &Value, release: &str) -> Result<Job, String> {
    let spec: JobSpec = from_json(&sent[PROGRAM])?;
    spec.validate(Some(release)).map_err(|error| error.to_string())
}

/// Number of bytes that may leave the cache between the page-out and the refault of a page of
/// `program`, as the kernel's clock counts them: each page once when it is evicted, and again when
/// it is activated. Zero if the job names the RAM: then all of it belongs to the job, and the job's
/// own active list decides about refaults.
pub(super) fn active_list_bytes(program: &Job) -> u64 {
    if program.machine.ram_bytes.is_some() {
        return 0;
    }
    let pages = program.steps().map(|step| match step {
        ProgramStep::Madvise { advice: Madvise::PageOut, pages, .. } => pages.0.saturating_mul(2),
        _ => 0,
    });
    let pages = pages.fold(0, u64::saturating_add);
    pages.saturating_mul(page_size()).min(MAX_LIST_BYTES)
}

/// Removes the times from a run.
pub(super) fn forget_times(run: &mut Run) {
    run.elapsed_ns = None;
    run.threads.iter_mut().for_each(|thread| thread.elapsed_ns = None);
    run.phases.iter_mut().for_each(|phase| phase.elapsed_ns = None);
    run.waits.clear();
    run.calls.clear();
    run.traced_ns = None;
}

/// Minimum duration of a thread of a program, in nanoseconds.
fn thread_ns(thread: &Thread) -> u64 {
    let round_ns = thread.steps.iter().map(ProgramStep::takes_ns).fold(0, u64::saturating_add);
    match thread.rounds {
        Rounds::Times(times) => round_ns.saturating_mul(times),
        Rounds::For(ns) => ns.saturating_add(round_ns),
    }
}

/// A job as sent to the guest, with the settings that the guest applies for it.
#[derive(Debug)]
pub(super) struct Message {
    /// The job, as made by [`job`].
    pub(super) job: Value,
    /// Series that the guest switches: the ones in `on` on, the others off.
    pub(super) named: Series,
    pub(super) on: Series,
    /// Readahead of the disk with its files.
    pub(super) read_ahead_kb: u64,
    /// See [`active_list_bytes`].
    pub(super) active_list_bytes: u64,
    /// How the kernel's decisions are observed, if at all.
    pub(super) observed: Option<Value>,
}

impl Message {
    pub(super) fn to_json(&self) -> String {
        let switches = self.named.switches();
        let switches =
            switches.map(|switch| (switch.name().to_string(), self.on.has(switch).into()));
        let mut sent = self.job.clone();
        sent[SWITCHES] = Value::Object(switches.collect());
        sent[READ_AHEAD_KB] = self.read_ahead_kb.into();
        sent[ACTIVE_LIST_BYTES] = self.active_list_bytes.into();
        sent[OBSERVED] = self.observed.clone().unwrap_or_default();
        sent.to_string()
    }

    /// Parses a message.
    ///
    /// # Errors
    /// The reason.
    pub(super) fn from_json(text: &str) -> Result<Self, String> {
        let job: Value = serde_json::from_str(text).map_err(|error| error.to_string())?;
        let none = (Series::BASELINE, Series::BASELINE);
        let (named, on) = Switch::ALL.into_iter().fold(none, |(named, on), switch| {
            match job[SWITCHES][switch.name()].as_bool() {
                Some(true) => (named.with(switch), on.with(switch)),
                Some(false) => (named.with(switch), on),
                None => (named, on),
            }
        });
        let read_ahead_kb = job[READ_AHEAD_KB].as_u64().ok_or("it names no readahead")?;
        let active_list_bytes =
            job[ACTIVE_LIST_BYTES].as_u64().ok_or("it lacks the length of the active list")?;
        let observed = Some(job[OBSERVED].clone()).filter(|how| !how.is_null());
        Ok(Message { job, named, on, read_ahead_kb, active_list_bytes, observed })
    }
}

fn from_json<T: DeserializeOwned>(sent: &Value) -> Result<T, String> {
    serde_json::from_value(sent.clone()).map_err(|error| error.to_string())
}

/// Encodes the guest's answer with the result of its job.
///
/// # Errors
/// One line for the host.
pub(super) fn answer(ran: Result<JobRuns, Error>) -> Result<String, String> {
    match ran {
        Ok(JobRuns { environment, runs, .. }) => {
            Ok(json!({ RAN: Returned { environment, runs } }).to_string())
        }
        Err(error) => refusal(error),
    }
}

/// Encodes the guest's answer for an observed program, whose log is sent separately.
pub(super) fn answer_observed(environment: Map<String, Value>) -> String {
    json!({ WHERE: environment }).to_string()
}

/// Encodes the guest's answer for a job that `error` ended or prevented.
///
/// # Errors
/// One line for the host.
pub(super) fn refusal(error: Error) -> Result<String, String> {
    let answer = match error {
        Error::OutOfMemory { limit_bytes } => json!({ OUT_OF_MEMORY: limit_bytes }),
        Error::BeyondFile { step, page, mapping, file } => {
            json!({ BEYOND_FILE: [step, mapping, file], "page": page })
        }
        Error::Unavailable { what, remedy } => json!({ UNAVAILABLE: [what, remedy] }),
        Error::Disturbed { path, runs } => {
            json!({ DISTURBED: runs, "path": path.to_string_lossy() })
        }
        Error::LostEvents { lost, buffer_kib } => json!({ LOST_EVENTS: [lost, buffer_kib] }),
        error => return Err(error.to_string()),
    };
    Ok(answer.to_string())
}

/// Parses the environment and the runs in `answer`.
///
/// # Errors
/// The guest failed, or the answer cannot be parsed.
pub(super) fn opened(answer: &str) -> Result<Returned, Error> {
    let damaged = |error| ImageError::Damaged { reason: format!("it is not a record ({error})") };
    let mut answer: Value = serde_json::from_str(answer).map_err(damaged)?;
    if let Some(limit_bytes) = answer[OUT_OF_MEMORY].as_u64() {
        return Err(Error::OutOfMemory { limit_bytes });
    }
    if let Some([feature, remedy]) = answer[UNAVAILABLE].as_array().map(Vec::as_slice) {
        let text = |value: &Value| value.as_str().unwrap_or_default().to_owned();
        return Err(Error::unavailable(text(feature), text(remedy)));
    }
    if let (Some([step, mapping, file]), Some(page)) =
        (answer[BEYOND_FILE].as_array().map(Vec::as_slice), answer["page"].as_u64())
    {
        let text = |value: &Value| value.as_str().unwrap_or_default().to_owned();
        let (step, mapping, file) = (text(step), text(mapping), text(file));
        return Err(Error::BeyondFile { step, page, mapping, file });
    }
    if let (Some(runs), Some(path)) = (answer[DISTURBED].as_u64(), answer["path"].as_str()) {
        let runs = u32::try_from(runs).unwrap_or(u32::MAX);
        return Err(Error::Disturbed { path: path.into(), runs });
    }
    if let Some([lost, buffer_kib]) = answer[LOST_EVENTS].as_array().map(Vec::as_slice) {
        let number = |value: &Value| value.as_u64().unwrap_or_default();
        return Err(Error::LostEvents { lost: number(lost), buffer_kib: number(buffer_kib) });
    }
    if let Value::Object(environment) = answer[WHERE].take() {
        return Ok(Returned { environment, runs: Vec::new() });
    }
    Ok(serde_json::from_value(answer[RAN].take()).map_err(damaged)?)
}

#[cfg(test)]
mod tests {
    use super::*;

    const PROGRAM: &str = "on = 'kernel'\nimage = 'vmlinuz'\nram = '2g'\nmemory_max = '24m'\n\
        [[file]]\nname = 'data'\nsize = '32m'\n[[open]]\nname = 'o'\nfile = 'data'\n\
        [[mapping]]\nname = 'm'\nopen = 'o'\n[[thread]]\n[[thread.phase]]\nmapping = 'm'\n\
        pages = [3, 1]\nthink_ns = 500\n[[thread.phase]]\nopen = 'o'\n\
        workload = 'read-random'\nbs = '4k'\naccesses = 5\n";

    fn program() -> Job {
        JobSpec::from_toml(PROGRAM).unwrap().validate(None).unwrap().with_seed(9)
    }

    #[test]
    fn a_program_arrives_as_it_was_sent() {
        let program = program();
        let sent: Value = serde_json::from_str(&job(&program).to_string()).unwrap();
        let received = received(&sent, "6.12.1").unwrap();
        let alike = Job {
            spec: program.spec.clone(),
            image: program.image.clone(),
            rules: program.rules,
            machine: program.machine.clone(),
            ..received.clone()
        };
        assert_eq!(alike, program);
        assert_eq!(received.rules.kernel.name(), "6.12");
        assert_eq!((received.image, received.machine.ram_bytes), (None, None));
        assert_eq!(received.machine.memory_max_bytes, Some(24 << 20));
        assert_eq!((cpus(&program), program_ns(&program)), (1, 1000));
    }

    #[test]
    fn paged_out_pages_lengthen_active_list_unless_ram_is_given() {
        let bytes = |ram: &str, size: &str| {
            let advice = "[[thread.phase]]\nmapping = 'm'\nmadvise = 'pageout'\n";
            let text = PROGRAM.replace("ram = '2g'\n", ram).replace("'32m'", size) + advice;
            active_list_bytes(&JobSpec::from_toml(&text).unwrap().validate(None).unwrap())
        };
        assert_eq!((bytes("", "'32m'"), bytes("", "'1t'")), (64 << 20, MAX_LIST_BYTES));
        assert_eq!((bytes("ram = '2g'\n", "'32m'"), active_list_bytes(&program())), (0, 0));
    }

    #[test]
    fn guest_records_have_all_runs() {
        let runs = vec![Run { elapsed_ns: Some(3), ..Run::default() }; 2];
        let engine = EngineKind::Kernel;
        let ran = JobRuns { engine, environment: Map::new(), runs: runs.clone() };
        let mut back = opened(&answer(Ok(ran)).unwrap()).unwrap();
        assert_eq!(back.runs, runs);
        forget_times(&mut back.runs[0]);
        assert_eq!(back.runs[0], Run::default());
    }

    #[test]
    fn guest_reports_too_large_jobs_like_the_host() {
        let out = Error::OutOfMemory { limit_bytes: 4096 };
        let beyond = Error::BeyondFile {
            step: "phase 1".into(),
            page: 7,
            mapping: "m".into(),
            file: "data".into(),
        };
        let unavailable = Error::unavailable("a switch", "leave it out");
        let disturbed = Error::Disturbed { path: "/data/file0".into(), runs: 12 };
        let lost = Error::LostEvents { lost: 7, buffer_kib: 1024 };
        for error in [out, beyond, unavailable, disturbed, lost] {
            let text = error.to_string();
            let back = opened(&answer(Err(error)).unwrap()).unwrap_err();
            assert_eq!(back.to_string(), text);
            assert!(!matches!(back, Error::Image(_)));
        }
        let other = Error::InvalidProcess("no".into());
        assert_eq!(answer(Err(other)).unwrap_err(), "the probe cannot run this: no");
        let damaged = opened("{}").unwrap_err();
        assert!(matches!(damaged, Error::Image(ImageError::Damaged { .. })), "{damaged}");
    }
}

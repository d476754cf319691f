//! What came out of a job.

use std::collections::BTreeMap;
use std::ops::Range;

use filemap_core::units::PageIndex;
use serde::{Deserialize, Serialize};
use serde_json::{Map, Value};

use crate::engine::Ran;
use crate::flags::JobSpec;
use crate::job::Job;
use crate::program::{MappedParts, ProgramRun};
use crate::spread::Spread;
use crate::waits::Wait;

/// Version of the record's layout.
pub const SCHEMA: u32 = 1;

/// One job on one engine: every run, and a summary of them.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct Record {
    /// [`SCHEMA`].
    pub schema: u32,
    /// The job as a job file would say it; it replays the same runs.
    pub job: JobSpec,
    /// What ran it: `model` or `kernel`.
    pub engine: String,
    /// Where it ran.
    #[cfg_attr(feature = "schema", schemars(with = "crate::schema::Environment"))]
    pub environment: Map<String, Value>,
    /// Every run, in order.
    pub runs: Vec<Run>,
    /// Each counter, the time and the pages cached over all runs.
    pub summary: Summary,
    /// What a reader of it should know, one sentence each.
    #[serde(skip_serializing_if = "Vec::is_empty", default)]
    pub warnings: Vec<String>,
}

impl Record {
    /// The record of what came of `job` as the program that it is.
    pub fn of(job: &Job, ran: Ran) -> Self {
        let runs = ran.runs.into_iter().map(|run| Run::of(job, run)).collect();
        Record::new(job, ran.engine.name(), ran.environment, runs)
    }

    /// The record of `runs`, with their summary.
    pub fn new(job: &Job, engine: &str, environment: Map<String, Value>, runs: Vec<Run>) -> Self {
        Record {
            schema: SCHEMA,
            job: job.to_spec(),
            engine: engine.to_string(),
            environment,
            summary: Summary::of(&runs),
            runs,
            warnings: Vec::new(),
        }
    }
}

/// One run of a job. What the engine cannot see is `None`, and `null` in JSON.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct Run {
    /// The seed of its random patterns; in JSON also as text.
    #[serde(flatten, with = "crate::seed")]
    #[cfg_attr(feature = "schema", schemars(with = "crate::seed::SeedTwice"))]
    pub seed: u64,
    /// Time for all accesses, in nanoseconds: measured, or by the model predicted.
    pub elapsed_ns: Option<u64>,
    /// What it counted.
    pub counters: Counters,
    /// What the page cache held at the end.
    pub cached: Cached,
    /// Each phase by itself, in order, of a job of more than one.
    #[serde(skip_serializing_if = "Vec::is_empty", default)]
    pub phases: Vec<PhaseRun>,
    /// Of a program, in a comparison: where the time of its threads went.
    #[serde(skip)]
    pub waits: Vec<Wait>,
    /// By how much each counter of `/proc/vmstat` changed meanwhile, whoever did it: counters of
    /// the whole machine that changed. For a real kernel.
    #[serde(skip_serializing_if = "Option::is_none", default)]
    pub vmstat: Option<BTreeMap<String, i64>>,
}

impl Run {
    /// What `run` of `job`, as the program that it is, says of its one file.
    pub fn of(job: &Job, run: ProgramRun) -> Run {
        let file = run.files.into_iter().next().unwrap_or_default();
        let mmap_miss = run.phases.last().and_then(|phase| phase.counters.mmap_miss);
        let phases = job.phases.iter().zip(&run.phases).map(|(phase, of)| PhaseRun {
            workload: phase.name(),
            elapsed_ns: of.elapsed_ns,
            counters: of.counters,
        });
        let phases: Vec<PhaseRun> = phases.collect();
        Run {
            seed: run.seed,
            elapsed_ns: phases.iter().map(|phase| phase.elapsed_ns).sum(),
            counters: Counters { mmap_miss, ..run.counters },
            cached: file.cached_parts.unwrap_or_default(),
            phases: if phases.len() > 1 { phases } else { Vec::new() },
            waits: Vec::new(),
            vmstat: run.vmstat,
        }
    }
}

/// One phase of a run.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct PhaseRun {
    /// What it does: its workload, or the path of its accesses file.
    pub workload: String,
    /// Time for its accesses, in nanoseconds.
    pub elapsed_ns: Option<u64>,
    /// What it counted: `mmap_miss` at its end, `mmap_miss_max` since its beginning.
    pub counters: Counters,
}

/// Pages of the file in the page cache at the end of a run.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct Cached {
    /// Those of the mapping.
    pub inside: Option<u64>,
    /// Those before its first page.
    pub before: Option<u64>,
    /// Those after its last page.
    pub after: Option<u64>,
    /// Those between what is mapped, of a file of which several parts are, such as the segments of
    /// an ELF file.
    #[serde(skip_serializing_if = "Option::is_none", default)]
    pub between: Option<u64>,
}

impl Cached {
    /// Where what is cached of a file lies of which so much is mapped, where `count` says how many
    /// of a range of pages are cached. Of a file that is not mapped all of it is before the first
    /// page.
    ///
    /// # Errors
    /// Those of `count`.
    pub fn of<E>(
        mapped: &MappedParts,
        mut count: impl FnMut(Range<PageIndex>) -> Result<u64, E>,
    ) -> Result<Cached, E> {
        let MappedParts { ranges, end, has_segments } = mapped;
        let mut count = |range: Range<PageIndex>| match range.is_empty() {
            true => Ok(0),
            false => count(range),
        };
        let (mut inside, mut between) = (0, 0);
        for (number, range) in ranges.iter().enumerate() {
            inside += count(range.clone())?;
            if let Some(next) = ranges.get(number + 1) {
                between += count(range.end..next.start)?;
            }
        }
        let first = ranges.first().map_or(*end, |range| range.start);
        let last = ranges.last().map_or(*end, |range| range.end);
        Ok(Cached {
            inside: Some(inside),
            before: Some(count(PageIndex(0)..first)?),
            after: Some(count(last..*end)?),
            between: (*has_segments || ranges.len() > 1).then_some(between),
        })
    }

    /// All of them; `None` where the kernel does not tell.
    pub fn pages(&self) -> Option<u64> {
        Some(self.inside? + self.before? + self.after? + self.between.unwrap_or(0))
    }
}

/// The counters of one run; `None` = the engine cannot see it.
pub type Counters = PerCounter<Option<u64>>;

/// What runs say, over all of them; `None` = no run saw it.
#[derive(Clone, Copy, Debug, Default, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct Summary {
    /// Each counter.
    #[serde(flatten)]
    pub counters: PerCounter<Option<Spread>>,
    /// Time for all accesses, in nanoseconds.
    #[serde(default)]
    pub elapsed_ns: Option<Spread>,
    /// Pages in the page cache at the end.
    #[serde(default)]
    pub cached: CachedSummary,
}

/// [`Cached`] over all runs.
#[derive(Clone, Copy, Debug, Default, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct CachedSummary {
    /// Pages of the mapping.
    pub inside: Option<Spread>,
    /// Pages before its first page.
    pub before: Option<Spread>,
    /// Pages after its last page.
    pub after: Option<Spread>,
    /// Pages between the segments of an ELF file.
    #[serde(skip_serializing_if = "Option::is_none", default)]
    pub between: Option<Spread>,
}

impl Summary {
    /// The summary of `runs`.
    pub fn of(runs: &[Run]) -> Summary {
        let counters: Vec<_> = runs.iter().map(|run| run.counters).collect();
        let cached = |pages: fn(&Cached) -> Option<u64>| {
            Spread::of(runs.iter().filter_map(|run| pages(&run.cached)))
        };
        Summary {
            counters: PerCounter::summary(&counters),
            elapsed_ns: Spread::of(runs.iter().filter_map(|run| run.elapsed_ns)),
            cached: CachedSummary {
                inside: cached(|cached| cached.inside),
                before: cached(|cached| cached.before),
                after: cached(|cached| cached.after),
                between: cached(|cached| cached.between),
            },
        }
    }
}

macro_rules! counters {
    ($( $(#[$doc:meta])* $name:ident, )+) => {
        /// One value for each counter, in the order of the record.
        #[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
        #[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
        pub struct PerCounter<T> {
            $( $(#[$doc])* pub $name: T, )+
        }

        impl<T> PerCounter<T> {
            /// The names, in order.
            pub const NAMES: &'static [&'static str] = &[$(stringify!($name)),+];

            /// Each name with its value, in order.
            pub fn iter(&self) -> impl Iterator<Item = (&'static str, &T)> {
                [$((stringify!($name), &self.$name)),+].into_iter()
            }
        }

        impl Counters {
            /// What both counted: nothing where one of them does not say. Of a highest value it is
            /// the higher one.
            pub fn and(&self, other: &Counters) -> Counters {
                let sum = PerCounter {
                    $( $name: self.$name.zip(other.$name).map(|(one, other)| one + other), )+
                };
                let mmap_miss_max = self.mmap_miss_max.max(other.mmap_miss_max);
                // None is left out where nobody sleeps.
                let sleeps = [self.throttled, other.throttled];
                let throttled = sleeps.into_iter().flatten().reduce(|one, other| one + other);
                Counters { mmap_miss: None, mmap_miss_max, throttled, ..sum }
            }
        }

        impl PerCounter<Option<Spread>> {
            /// Each counter over the runs that saw it.
            pub(crate) fn summary(runs: &[Counters]) -> Self {
                PerCounter {
                    $( $name: Spread::of(runs.iter().filter_map(|run| run.$name)), )+
                }
            }
        }
    };
}

counters! {
    /// Accesses done.
    accesses,
    /// Pages of the file added to the page cache.
    data_pages_read,
    /// Bytes read from the device.
    bytes_read,
    /// The kernel's `PGMAJFAULT` events.
    major_faults,
    /// Faults that were not major.
    minor_faults,
    /// Readahead windows submitted, whatever began them.
    readahead_calls,
    /// Those of them that were read-around.
    read_around,
    /// Those of them that were asynchronous.
    async_readahead,
    /// Pages of the file that reclaim took from the page cache.
    evicted_pages,
    /// The file's `mmap_miss` at the end.
    mmap_miss,
    /// The highest value that it reached.
    mmap_miss_max,
    /// Faults that dropped their lock to wait, each once.
    retry_mmap_drop,
    /// Retries that found the folio gone.
    retry_io_miss,
    /// Rounds that threads have completed which repeat their phases: in all, of those whose rounds
    /// have accesses.
    rounds,
    /// Tries of faults that dropped their lock to wait: a fault can do so more than once. Every
    /// one of them arrives at the retry path.
    retry_arrival,
    /// Of the retries that found the folio gone, those that may not drop their lock again.
    retry_io_miss_tried,
    /// Tries of faults that could not have the lock of their VMA, and took `mmap_lock` instead.
    vma_lock_refused,
    /// Times that `mmap_lock` was taken to share it: by faults, and by calls that only look at what
    /// is mapped. Of a program of several threads.
    mmap_lock_shared,
    /// Times that a thread waited for `mmap_lock`, to share it or to have it alone. Of a program of
    /// several threads.
    mmap_lock_waits,
    /// Times that a task slept as it was above `memory.high`.
    throttled,
    /// Calls that missed the first level of the instruction TLB.
    itlb_misses,
    /// Those of them that walked the page tables.
    itlb_walks,
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_record_is_the_json_of_the_contract() {
        let spec = JobSpec::from_toml("workload = \"first\"\naccesses = 3\nfile_size = \"1m\"");
        let job = spec.unwrap().validate(None).unwrap();
        let counters = |pages| Counters { data_pages_read: Some(pages), ..Counters::default() };
        let cached = Cached { inside: Some(4), ..Cached::default() };
        let elapsed_ns = Some(7);
        let run = |pages| Run {
            seed: 5,
            counters: counters(pages),
            cached,
            elapsed_ns,
            ..Run::default()
        };
        let record = Record::new(&job, "model", Map::new(), vec![run(10), run(13)]);
        let json = serde_json::to_value(&record).unwrap();
        assert_eq!(json["schema"], 1);
        assert_eq!(json["job"]["workload"], "first");
        assert_eq!(json["runs"][0]["counters"]["data_pages_read"], 10);
        assert_eq!(json["runs"][0]["counters"]["evicted_pages"], Value::Null);
        assert_eq!(
            (&json["runs"][0]["seed"], &json["runs"][0]["seed_text"]),
            (&5.into(), &"5".into())
        );
        assert_eq!(json["runs"][0]["elapsed_ns"], 7);
        assert_eq!(json["runs"][0]["cached"]["before"], Value::Null);
        assert_eq!(json["summary"]["elapsed_ns"]["median"], 7);
        assert_eq!(json["summary"]["cached"]["inside"]["max"], 4);
        assert_eq!(json["summary"]["cached"]["after"], Value::Null);
        let summary = serde_json::json!({ "median": 11.5, "mad": 1.5, "min": 10, "max": 13 });
        assert_eq!(json["summary"]["data_pages_read"], summary);
        assert_eq!(json["summary"]["evicted_pages"], Value::Null);
        let text = serde_json::to_string(&record).unwrap();
        assert_eq!(serde_json::from_str::<Record>(&text).unwrap(), record);
        let at = |name: &str| text.find(&format!("\"{name}\"")).unwrap();
        assert!(Counters::NAMES.is_sorted_by_key(|name| at(name)), "order of the contract");
    }

    #[test]
    fn a_seed_that_a_reader_rounded_is_read_from_its_text() {
        let seed = 88172645463325252;
        let text = serde_json::to_string(&Run { seed, ..Run::default() }).unwrap();
        assert!(text.starts_with(r#"{"seed":88172645463325252,"seed_text":"88172645463325252","#));
        let rounded = text.replacen("88172645463325252", "88172645463325250", 1);
        assert_eq!(serde_json::from_str::<Run>(&rounded).unwrap().seed, seed);
    }
}

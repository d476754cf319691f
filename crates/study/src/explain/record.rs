//! The record of `explain`.

use filemap_job::record::{RecordKind, SCHEMA};
use filemap_job::{Counters, Job, JobSpec, Record, Run, Summary};
use serde::{Deserialize, Serialize};

use super::answer;
use super::counter::{Counter, CounterMoves, CounterVisibility};
use super::explainer::Explanation;
use super::history::{CounterPoint, RunHistory};
use super::map::FileMap;
use super::origin::{CausePages, Origin, PerOrigin, SourceTotal};
use super::remedies::Remedies;
use crate::footer::Footer;
use crate::json::in_one_line;

/// The record of `explain`.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, schemars::JsonSchema)]
pub struct ExplainRecord {
    #[serde(default)]
    schema: u32,
    /// The kind of record.
    kind: RecordKind,
    pub(super) job: JobSpec,
    pub(super) engine: String,
    #[serde(default)]
    pub(super) page_bytes: u64,
    #[serde(default)]
    pub(super) pages_read: u64,
    #[serde(default)]
    pub(super) bytes_read: u64,
    /// Bytes read as counted by the engine.
    #[serde(default)]
    pub(super) bytes_counted: Option<u64>,
    /// Pages of all files by cause, which add up to `pages_read`.
    pub(super) causes: Vec<CausePages>,
    /// The same pages by the cause that read them.
    #[serde(default)]
    pub(super) brought_in: Vec<SourcePages>,
    /// By file, in the order of the job.
    #[serde(default)]
    pub(super) files: Vec<FileRecord>,
    /// By mapping, in the order of the job.
    #[serde(default)]
    pub(super) mappings: Vec<MappingRecord>,
    /// By open file description, in the order of the job.
    #[serde(default)]
    pub(super) opens: Vec<OpenRecord>,
    /// The counters of the first run.
    #[serde(default)]
    pub(super) counters: Counters,
    #[serde(default)]
    runs: Vec<Run>,
    /// Null if no settings were tried.
    #[serde(default)]
    pub(super) remedies: Option<Remedies>,
    #[serde(default)]
    pub(super) warnings: Vec<String>,
    #[serde(default)]
    evicted_pages: u64,
    pub(super) answer: String,
    /// The history of the first run.
    #[serde(
        default,
        serialize_with = "in_one_line",
        deserialize_with = "RunHistory::deserialize_checked"
    )]
    #[schemars(with = "Option<RunHistory>")]
    pub(super) history: Option<RunHistory>,
    #[serde(flatten)]
    pub(super) footer: Footer,
}

/// Pages by the cause that read them.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, schemars::JsonSchema)]
pub(super) struct SourcePages {
    pub(super) by: String,
    pub(super) calls: u64,
    pub(super) pages: u64,
    /// Absent in counts by mapping and by open file.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(super) accessed: Option<u64>,
}

/// Counts of a file.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, schemars::JsonSchema)]
pub(super) struct FileRecord {
    pub(super) name: String,
    pub(super) pages_read: u64,
    evicted_pages: u64,
    /// Pages by cause, which add up to `pages_read`.
    pub(super) causes: Vec<CausePages>,
    /// The same pages by the cause that read them.
    brought_in: Vec<SourcePages>,
    /// Null for files that are not among those with the most pages read.
    pub(super) map: Option<FileMap>,
}

/// Counts of a mapping.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, schemars::JsonSchema)]
pub(super) struct MappingRecord {
    pub(super) name: String,
    /// The file that it maps.
    file: String,
    /// Pages that its faults and advice read.
    pub(super) brought_in: Vec<SourcePages>,
}

/// Counts of an open file description.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, schemars::JsonSchema)]
pub(super) struct OpenRecord {
    pub(super) name: String,
    /// Its file.
    file: String,
    /// Pages that `read(2)` and `posix_fadvise(2)` read.
    pub(super) brought_in: Vec<SourcePages>,
    /// Null if it never entered readahead.
    pub(super) mmap_miss: Option<MissCounter>,
}

/// The values of `mmap_miss` of an open file description.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, schemars::JsonSchema)]
#[serde(default)]
pub(super) struct MissCounter {
    /// Whether the log shows each change.
    pub(super) complete: bool,
    /// A miss reads a single page while the counter is above this, by the rules that ran.
    pub(super) threshold: u16,
    /// Null if no tracepoint shows it.
    pub(super) last: Option<u16>,
    /// Null if no tracepoint shows it.
    pub(super) max: Option<u16>,
    pub(super) moves: Option<CounterMoves>,
    pub(super) misses: u64,
    /// Misses that read a single page because of the counter.
    pub(super) misses_above_threshold: u64,
    retries: u64,
    /// Number of the access, from 0, whose miss was the first of these.
    pub(super) first_above_threshold: Option<u64>,
    rises_above_threshold: u64,
    pub(super) course: Vec<CounterPoint>,
}

impl ExplainRecord {
    /// The record of `explanation`, which is about the first run of `record`, a record of `job`.
    /// `remedies` are the settings that were tried; `command` repeats it all.
    pub fn new(
        explanation: Explanation,
        job: &Job,
        record: &Record,
        remedies: Option<Remedies>,
        command: String,
    ) -> Self {
        let page_bytes = job.page_size();
        let counters = record.runs.first().map_or_else(Counters::default, |run| run.counters);
        let answer = answer::explain_answer(&explanation, job);
        let pages_read = explanation.pages_read();
        let evicted_pages = explanation.files.iter().map(|file| file.evicted).sum();
        let (causes, brought_in) = (
            CausePages::from_totals(&explanation.totals(), page_bytes),
            SourcePages::from_totals(&explanation.sources(), true),
        );
        let file_of = |open: usize| job.files[job.opens[open].file].name.clone();
        let mappings = job.mappings.iter().zip(&explanation.mappings);
        let mappings = mappings.map(|(mapping, sources)| MappingRecord {
            name: mapping.name.clone(),
            file: file_of(mapping.open),
            brought_in: SourcePages::from_totals(sources, false),
        });
        let opens = job.opens.iter().zip(&explanation.opens).enumerate();
        let opens = opens.map(|(open, (named, sources))| OpenRecord {
            name: named.name.clone(),
            file: file_of(open),
            brought_in: SourcePages::from_totals(sources, false),
            mmap_miss: explanation.counters.get(&open).map(MissCounter::new),
        });
        let (mappings, opens) = (mappings.collect(), opens.collect());
        let files = job.files.iter().zip(explanation.files).map(|(file, explained)| FileRecord {
            name: file.name.clone(),
            pages_read: explained.pages_read(),
            evicted_pages: explained.evicted,
            causes: CausePages::from_totals(&explained.totals, page_bytes),
            brought_in: SourcePages::from_totals(&explained.sources, true),
            map: explained.map,
        });
        // The record has causes and counters already.
        let mut history = explanation.history;
        for file in &mut history.files {
            (file.history.causes, file.history.mmap_miss) = (None, None);
            file.history.mmap_miss_threshold = None;
        }
        ExplainRecord {
            schema: SCHEMA,
            kind: RecordKind::Explain,
            job: record.job.clone(),
            engine: record.engine.clone(),
            page_bytes,
            pages_read,
            bytes_read: pages_read * page_bytes,
            bytes_counted: counters.bytes_read,
            causes,
            brought_in,
            files: files.collect(),
            mappings,
            opens,
            counters,
            runs: record.runs.clone(),
            remedies,
            warnings: record.warnings.clone(),
            evicted_pages,
            answer,
            history: Some(history),
            footer: Footer::new(std::slice::from_ref(record), command),
        }
    }

    /// The record of the runs alone.
    pub(super) fn record(&self) -> Record {
        Record {
            schema: SCHEMA,
            kind: RecordKind::Run,
            job: self.job.clone(),
            engine: self.engine.clone(),
            environment: self.footer.environment.clone(),
            summary: Summary::from_runs(&self.runs),
            runs: self.runs.clone(),
            warnings: self.warnings.clone(),
        }
    }

    /// Whether it is about several files.
    pub(super) fn has_several_files(&self) -> bool {
        self.files.len() > 1
    }
}

impl SourcePages {
    /// Pages by cause; `with_accessed` tells whether the number of accessed pages is known.
    fn from_totals(sources: &PerOrigin<SourceTotal>, with_accessed: bool) -> Vec<SourcePages> {
        let source_pages = |(origin, total): (Origin, &SourceTotal)| SourcePages {
            by: origin.key().to_string(),
            calls: total.calls,
            pages: total.pages,
            accessed: with_accessed.then_some(total.used),
        };
        sources.iter().map(source_pages).collect()
    }

    /// Whether anything was requested or read.
    pub(super) fn is_any(&self) -> bool {
        self.calls > 0 || self.pages > 0
    }
}

impl MissCounter {
    fn new(counter: &Counter) -> Self {
        let is_shown = counter.visibility != CounterVisibility::Hidden;
        let is_complete = counter.visibility == CounterVisibility::Every;
        MissCounter {
            complete: is_complete,
            threshold: counter.threshold,
            last: is_shown.then_some(counter.last),
            max: is_shown.then_some(counter.max),
            moves: is_complete.then_some(counter.moves),
            misses: counter.moves.misses,
            misses_above_threshold: counter.moves.misses_above,
            retries: counter.moves.retries,
            first_above_threshold: counter.first_above.map(|(access, _)| access),
            rises_above_threshold: counter.rises,
            course: if is_shown { counter.points() } else { Vec::new() },
        }
    }
}

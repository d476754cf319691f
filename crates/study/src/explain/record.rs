//! What `explain` says of a job: its record, and the report that it makes.

use filemap_job::record::SCHEMA;
use filemap_job::{Counters, Job, Record, Run, Summary, Written};
use serde::{Deserialize, Serialize};

use super::answer;
use super::counter::{Misses, Moves, Sight};
use super::courses::Courses;
use super::explanation::Explanation;
use super::history::Point;
use super::map::Map;
use super::origin::{Brought, CausePages, Origin, PerOrigin};
use super::remedies::Remedies;
use crate::footer::Footer;
use crate::json::in_one_line;

/// What `explain` says of a job. Of a job with tables it says less: neither what would help, nor
/// which of its pages were in.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, schemars::JsonSchema)]
pub struct Explained {
    #[serde(default)]
    schema: u32,
    pub(super) job: Written,
    pub(super) engine: String,
    #[serde(default)]
    pub(super) pages_read: u64,
    #[serde(default)]
    pub(super) bytes_read: u64,
    /// By the engine's own count.
    #[serde(default)]
    pub(super) bytes_counted: Option<u64>,
    /// By origin; the sums are those of the whole.
    #[serde(default)]
    pub(super) causes: Vec<CausePages>,
    #[serde(default)]
    pub(super) brought_in: Vec<BroughtPages>,
    #[serde(default)]
    pub(super) files: Vec<OfFile>,
    /// Through each mapping and open file; of a program of one thread.
    #[serde(default)]
    pub(super) through: Vec<OfThrough>,
    /// Those of the first run.
    #[serde(default)]
    pub(super) counters: Counters,
    #[serde(default)]
    runs: Vec<Run>,
    /// Null where nothing was tried.
    #[serde(default)]
    pub(super) remedies: Option<Remedies>,
    #[serde(default)]
    pub(super) warnings: Vec<String>,
    #[serde(default)]
    evicted_pages: u64,
    /// Null of a job with tables.
    #[serde(default)]
    pub(super) mmap_miss: Option<MissCounter>,
    pub(super) answer: String,
    /// Null of a job with tables.
    #[serde(default)]
    pub(super) map: Option<Map>,
    /// The course of the run; null of a job with tables.
    #[serde(default, serialize_with = "in_one_line")]
    #[schemars(with = "Option<Courses>")]
    pub(super) history: Option<Courses>,
    #[serde(flatten)]
    pub(super) footer: Footer,
}

/// Pages by what brought them in.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, schemars::JsonSchema)]
pub(super) struct BroughtPages {
    pub(super) by: String,
    pub(super) calls: u64,
    pub(super) pages: u64,
    /// Not told of one mapping or open file.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(super) accessed: Option<u64>,
}

/// Pages of one file.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, schemars::JsonSchema)]
pub(super) struct OfFile {
    pub(super) name: String,
    /// By origin; the sums are those of the whole.
    pub(super) causes: Vec<CausePages>,
}

/// Pages that one mapping or open file brought in.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, schemars::JsonSchema)]
pub(super) struct OfThrough {
    /// `mapping` or `open`.
    pub(super) what: String,
    pub(super) name: String,
    pub(super) brought_in: Vec<BroughtPages>,
}

/// The course of `mmap_miss`.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, schemars::JsonSchema)]
#[serde(default)]
pub(super) struct MissCounter {
    /// Whether the log shows each change.
    pub(super) complete: bool,
    /// Null where no tracepoint shows it.
    last: Option<u16>,
    /// Null where no tracepoint shows it.
    pub(super) max: Option<u16>,
    pub(super) moves: Option<Moves>,
    misses: u64,
    misses_above_threshold: u64,
    retries: u64,
    first_above_threshold: Option<u64>,
    rises_above_threshold: u64,
    pub(super) course: Vec<Point>,
}

impl Explained {
    /// What `explanation` says, which is of the first run of `record`, of `job`; with what
    /// `remedies` there are. `command` repeats it.
    pub fn new(
        explanation: &Explanation,
        job: &Job,
        record: &Record,
        remedies: Option<Remedies>,
        command: String,
    ) -> Self {
        let page_bytes = job.page_size();
        let counters = record.runs.first().map_or_else(Counters::default, |run| run.counters);
        let files = job.files.iter().zip(&explanation.files);
        let mappings = job.mappings.iter().map(|of| &of.name).zip(&explanation.mappings);
        let opens = job.opens.iter().map(|of| &of.name).zip(&explanation.opens);
        let of = |what: &str, (name, brought): (&String, &PerOrigin<Brought>)| OfThrough {
            what: what.to_string(),
            name: name.clone(),
            brought_in: BroughtPages::all(brought, false),
        };
        let through =
            mappings.map(|own| of("mapping", own)).chain(opens.map(|own| of("open", own)));
        Explained {
            schema: SCHEMA,
            job: record.job.clone(),
            engine: record.engine.clone(),
            pages_read: explanation.pages_read(),
            bytes_read: explanation.pages_read() * page_bytes,
            bytes_counted: counters.bytes_read,
            causes: CausePages::all(&explanation.amounts, page_bytes),
            brought_in: BroughtPages::all(&explanation.brought, true),
            files: files
                .map(|(file, amounts)| OfFile {
                    name: file.name.clone(),
                    causes: CausePages::all(amounts, page_bytes),
                })
                .collect(),
            through: through.filter(|_| explanation.knows_accesses).collect(),
            counters,
            runs: record.runs.clone(),
            remedies,
            warnings: record.warnings.clone(),
            evicted_pages: explanation.evicted,
            mmap_miss: explanation.misses.as_ref().map(MissCounter::of),
            answer: match &explanation.misses {
                Some(misses) => answer::of_one_file(misses, &explanation.brought, job),
                None => answer::of_tables(job, &record.runs[0]),
            },
            map: explanation.map.clone(),
            history: explanation.history.clone(),
            footer: Footer::new(std::slice::from_ref(record), command),
        }
    }

    /// The record of the runs alone.
    pub(super) fn record(&self) -> Record {
        Record {
            schema: SCHEMA,
            job: self.job.clone(),
            engine: self.engine.clone(),
            environment: self.footer.environment.clone(),
            summary: Summary::of(&self.runs),
            runs: self.runs.clone(),
            warnings: self.warnings.clone(),
        }
    }

    /// The job has tables.
    pub(super) fn is_of_tables(&self) -> bool {
        self.job.tables().is_some()
    }

    /// Bytes of a page.
    pub(super) fn page_bytes(&self) -> u64 {
        match &self.history {
            Some(Courses::OneFile(history)) => history.page_bytes,
            _ => self.bytes_read.checked_div(self.pages_read).unwrap_or(4096),
        }
    }
}

impl BroughtPages {
    /// What all brought in; `knows_accessed` says whether that is told from the rest.
    fn all(brought: &PerOrigin<Brought>, knows_accessed: bool) -> Vec<BroughtPages> {
        let of = |(origin, brought): (Origin, &Brought)| BroughtPages {
            by: origin.key().to_string(),
            calls: brought.calls,
            pages: brought.pages,
            accessed: knows_accessed.then_some(brought.used),
        };
        brought.iter().map(of).collect()
    }

    /// Whether there is anything of it.
    pub(super) fn is_any(&self) -> bool {
        self.calls > 0 || self.pages > 0
    }
}

impl MissCounter {
    fn of(misses: &Misses) -> Self {
        let is_shown = misses.sight != Sight::Nothing;
        let is_complete = misses.sight == Sight::Every;
        MissCounter {
            complete: is_complete,
            last: is_shown.then_some(misses.last),
            max: is_shown.then_some(misses.max),
            moves: is_complete.then_some(misses.moves),
            misses: misses.moves.misses,
            misses_above_threshold: misses.moves.misses_above,
            retries: misses.moves.retries,
            first_above_threshold: misses.first_above.map(|(done, _)| done),
            rises_above_threshold: misses.rises,
            course: if is_shown { misses.course.points().collect() } else { Vec::new() },
        }
    }
}

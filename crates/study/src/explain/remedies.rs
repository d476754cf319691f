//! Remedies for a job: settings that a user can change, tried in the model.

use filemap_core::address::vma::{Advice, AdviceFlag};
use filemap_core::units::PageCount;
use filemap_job::bounds::MAX_READ_AHEAD_KB;
use filemap_job::program::{Madvise, ProgramStep};
use filemap_job::{EngineKind, Job, Record, Run};
use filemap_model::{Profile, trace};
use filemap_report::units::{bytes, bytes_instead, number, time};
use filemap_report::{Bar, BarTable, Part};
use serde::{Deserialize, Serialize};

use crate::error::Error;
use crate::{parallel, seeds};

/// A setting helps if it saves more than this share of the bytes read or of the time.
pub(crate) const MIN_SHARE: f64 = 0.05;

/// Maximum number of helpful settings that the text describes.
const MAX_DESCRIBED: usize = 4;

/// Maximum number of mappings, by pages read, whose advice is tried individually.
const MAX_ADVISED: usize = 3;

/// Factors by which the readahead size is divided and multiplied.
const READ_AHEAD_STEPS: [u64; 2] = [4, 16];

/// The largest readahead size that is tried, in KiB.
const MAX_TRIED_READ_AHEAD_KB: u64 = 65536;

/// The model's figures for the unchanged job, and with each setting that was tried.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, schemars::JsonSchema)]
pub struct Remedies {
    /// Rules of the model: `Linux 6.12, baseline`.
    #[serde(default)]
    rules: String,
    /// The unchanged job.
    now: RemedyFigures,
    tried: Vec<Remedy>,
}

/// A setting that was tried.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, schemars::JsonSchema)]
struct Remedy {
    /// As a variant of `compare`, such as `advice=random`.
    setting: String,
    /// From 1 for the best; null where it does not help.
    rank: Option<u64>,
    figures: RemedyFigures,
}

/// Costs of a run.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, schemars::JsonSchema)]
struct RemedyFigures {
    #[serde(default)]
    data_pages_read: Option<u64>,
    bytes_read: Option<u64>,
    major_faults: Option<u64>,
    elapsed_ns: Option<u64>,
}

impl RemedyFigures {
    fn new(run: &Run) -> Self {
        RemedyFigures {
            data_pages_read: run.counters.data_pages_read,
            bytes_read: run.counters.bytes_read,
            major_faults: run.counters.major_faults,
            elapsed_ns: run.elapsed_ns,
        }
    }

    /// Bytes read and time, each divided by the value in `now`.
    fn shares(&self, now: &RemedyFigures) -> [f64; 2] {
        let count = |value: Option<u64>| value.unwrap_or(0) as f64;
        let pairs =
            [(self.data_pages_read, now.data_pages_read), (self.elapsed_ns, now.elapsed_ns)];
        pairs.map(|(own, now)| match (count(own), count(now)) {
            (0.0, 0.0) => 1.0,
            (own, now) => own / now,
        })
    }

    /// Product of both [`RemedyFigures::shares`]; below 1 is better. A setting that costs as much
    /// time as it saves bytes does not help.
    fn score(&self, now: &RemedyFigures) -> f64 {
        self.shares(now).iter().product()
    }

    fn helps(&self, now: &RemedyFigures) -> bool {
        let least = 1.0 - MIN_SHARE;
        self.shares(now).iter().any(|share| *share < least) && self.score(now) < least
    }
}

impl Remedy {
    /// The action that a user takes, such as `MADV_RANDOM`.
    fn label(&self) -> String {
        match self.setting.split_once('=') {
            Some(("advice", advice)) => format!("MADV_{}", advice.to_uppercase()),
            Some((key, advice)) if key.starts_with("advice@") => {
                let mapping = key.trim_start_matches("advice@");
                format!("MADV_{} for {mapping}", advice.to_uppercase())
            }
            _ => self.setting.clone(),
        }
    }

    /// `MADV_RANDOM: 13.5 instead of 766.7 MiB read, ...`
    fn line(&self, now: &RemedyFigures, page_bytes: u64) -> String {
        let count = |value: Option<u64>| value.unwrap_or(0) as f64;
        let own = &self.figures;
        let [read, ns] = own.shares(now);
        let price = match () {
            () if ns > 1.0 + MIN_SHARE => " It takes longer.",
            () if read > 1.0 + MIN_SHARE => " It reads more.",
            () => "",
        };
        let bytes = |figures: &RemedyFigures| count(figures.data_pages_read) * page_bytes as f64;
        format!(
            "{}: {}, {} instead of {} major faults, {} instead of {}.{price}",
            self.label(),
            bytes_instead(bytes(own), bytes(now)),
            number(count(own.major_faults)),
            number(count(now.major_faults)),
            time(count(own.elapsed_ns)),
            time(count(now.elapsed_ns)),
        )
    }

    /// A bar of the bytes read with a setting.
    fn bar(name: &str, figures: &RemedyFigures, rank: Option<u64>, class: &'static str) -> Bar {
        let text = |value: Option<u64>, unit: fn(f64) -> String| {
            value.map_or("-".to_string(), |value| unit(value as f64))
        };
        Bar {
            name: name.to_string(),
            value: figures.bytes_read.map(|read| read as f64),
            class,
            texts: vec![
                text(figures.bytes_read, bytes),
                text(figures.major_faults, number),
                text(figures.elapsed_ns, time),
                rank.map_or("-".to_string(), |rank| rank.to_string()),
            ],
        }
    }
}

impl Remedies {
    /// Tries advice and readahead sizes for `job`, whose first run is in `record` and reads
    /// `pages_read` pages through each mapping. `None` if that would take more than a few seconds.
    /// Settings with which the job does not fit into memory are omitted.
    ///
    /// # Errors
    /// When the model cannot run the unchanged job.
    pub(super) fn try_settings(
        job: &Job,
        profile: &Profile,
        record: &Record,
        pages_read: &[u64],
    ) -> Result<Option<Remedies>, Error> {
        let now = Job { engine: EngineKind::Model, runs: 1, ..job.clone() };
        let settings = settings(&now, profile, pages_read);
        if !seeds::is_cheap(record, settings.len() as u64 + 1) {
            return Ok(None);
        }
        let run_now = trace(&now, profile, &mut ())?;
        let run = |(setting, job): (String, Job)| {
            Ok::<_, Error>(trace(&job, profile, &mut ()).ok().map(|run| (setting, run)))
        };
        let tried = parallel::map(settings, run)?.into_iter().flatten().collect();
        let rules = format!("Linux {}, {}", job.rules.kernel.name(), job.rules.series);
        Ok(Some(Remedies::new(rules, &run_now, tried)))
    }

    /// Ranks the runs with each setting against the run without.
    fn new(rules: String, now: &Run, tried: Vec<(String, Run)>) -> Self {
        let now = RemedyFigures::new(now);
        let remedy = |(setting, run): (String, Run)| Remedy {
            setting,
            rank: None,
            figures: RemedyFigures::new(&run),
        };
        let mut tried: Vec<Remedy> = tried.into_iter().map(remedy).collect();
        let mut helping: Vec<&mut Remedy> =
            tried.iter_mut().filter(|own| own.figures.helps(&now)).collect();
        helping.sort_by(|a, b| a.figures.score(&now).total_cmp(&b.figures.score(&now)));
        for (rank, remedy) in (1..).zip(helping) {
            remedy.rank = Some(rank);
        }
        Remedies { rules, now, tried }
    }

    /// The settings that help, best first.
    fn helpful_remedies(&self) -> Vec<&Remedy> {
        let mut helping: Vec<&Remedy> =
            self.tried.iter().filter(|own| own.rank.is_some()).collect();
        helping.sort_by_key(|own| own.rank);
        helping
    }

    /// The remedies; without any trials, how to try settings.
    pub(super) fn parts(remedies: Option<&Remedies>, page_bytes: u64) -> Vec<Part> {
        let mut parts = vec![Part::Heading("What would help".to_string())];
        let Some(remedies) = remedies else {
            let text = "Nothing was tried, because the job is too large to run several times. \
                        filemap compare takes settings as variants, such as \
                        --variants baseline,advice=random,read_ahead_kb=128.";
            parts.push(Part::Paragraph(text.to_string()));
            return parts;
        };
        let tried: Vec<String> = remedies.tried.iter().map(Remedy::label).collect();
        let (tried, rules) = (tried.join(", "), &remedies.rules);
        parts.push(Part::Bars(remedies.bars()));
        let helping = remedies.helpful_remedies();
        if helping.is_empty() {
            parts.push(Part::Paragraph(format!(
                "None of the settings that were tried in the model, by the rules of {rules}: \
                 {tried}."
            )));
            return parts;
        }
        let named = helping.iter().take(MAX_DESCRIBED);
        parts.push(Part::List(named.map(|own| own.line(&remedies.now, page_bytes)).collect()));
        parts.push(Part::Paragraph(format!(
            "Tried in the model on the same accesses, by the rules of {rules}: {tried}."
        )));
        parts
    }

    fn bars(&self) -> BarTable {
        let now = Remedy::bar("as it is", &self.now, None, "u0");
        let tried = self.tried.iter().map(|own| {
            let class = if own.rank.is_some() { "u4" } else { "none" };
            Remedy::bar(&own.setting, &own.figures, own.rank, class)
        });
        let heads = ["setting", "read", "major faults", "elapsed, predicted", "rank"];
        BarTable::new("Bytes read, by setting", &heads, [now].into_iter().chain(tried).collect())
            .with_note(
                "Settings that were tried in the model; the best has rank 1, and those without a \
                 rank do not help.",
            )
    }
}

/// Each setting as a variant of `compare`, with its job: every other advice, for all mappings and
/// for each mapping with the most `pages_read`, and other readahead sizes.
fn settings(job: &Job, profile: &Profile, pages_read: &[u64]) -> Vec<(String, Job)> {
    let mut settings = Vec::new();
    let all: Vec<usize> = (0..job.mappings.len()).collect();
    let possible = || {
        let known = Advice::ALL.into_iter();
        known.filter(|advice| *advice != Advice::HUGEPAGE || profile.huge_pages)
    };
    let mut advise = |key: &str, mappings: &[usize]| {
        for advice in possible() {
            let is_other = |&mapping: &usize| job.mappings[mapping].mapping.advice != advice;
            if mappings.iter().any(is_other) {
                settings
                    .push((format!("{key}={}", advice.name()), with_advice(job, mappings, advice)));
            }
        }
    };
    advise("advice", &all);
    // A table with a count stands for several mappings, which share their advice.
    if job.mappings.len() > 1 && !job.is_counted() {
        let mut most = all;
        let pages = |mapping: usize| pages_read.get(mapping).copied().unwrap_or(0);
        most.sort_by_key(|&mapping| std::cmp::Reverse(pages(mapping)));
        for mapping in most.into_iter().take(MAX_ADVISED).filter(|&mapping| pages(mapping) > 0) {
            advise(&format!("advice@{}", job.mappings[mapping].name), &[mapping]);
        }
    }
    settings.extend(read_ahead_sizes(job).into_iter().map(|kb| {
        let mut job = job.clone();
        job.machine.read_ahead = PageCount(kb * 1024 / job.page_size());
        (format!("read_ahead_kb={kb}"), job)
    }));
    settings
}

/// `job` with `advice` for `mappings` from the start, also replacing read advice in later steps.
fn with_advice(job: &Job, mappings: &[usize], advice: Advice) -> Job {
    let mut job = job.clone();
    for &mapping in mappings {
        job.mappings[mapping].mapping.advice = advice;
    }
    for step in job.threads.iter_mut().flat_map(|thread| &mut thread.steps) {
        if let ProgramStep::Madvise { mapping, advice: Madvise::Flag(flag), .. } = step
            && mappings.contains(mapping)
            && let AdviceFlag::Read(read) = flag
        {
            *read = advice.read;
        }
    }
    job
}

/// Readahead sizes around the one of `job`, in KiB, ascending, in whole pages.
fn read_ahead_sizes(job: &Job) -> Vec<u64> {
    let now = job.machine.read_ahead.bytes(job.page_size()) / 1024;
    let smaller = READ_AHEAD_STEPS.iter().rev().map(|step| now / step);
    let larger = READ_AHEAD_STEPS.iter().map(|step| now.max(8) * step);
    let most = MAX_TRIED_READ_AHEAD_KB.min(MAX_READ_AHEAD_KB);
    let page_kb = job.page_size() / 1024;
    let possible = |kb: &u64| (page_kb..=most).contains(kb) && kb.is_multiple_of(page_kb);
    smaller.chain(larger).filter(possible).collect()
}

#[cfg(test)]
mod tests {
    use filemap_job::Counters;

    use super::*;

    fn run(pages: u64, major: u64, ms: u64) -> Run {
        Run {
            counters: Counters {
                data_pages_read: Some(pages),
                major_faults: Some(major),
                ..Counters::default()
            },
            elapsed_ns: Some(ms * 1_000_000),
            ..Run::default()
        }
    }

    fn settings(now: Run, tried: &[(&str, Run)]) -> Vec<String> {
        let tried = tried.iter().map(|(setting, run)| (setting.to_string(), run.clone()));
        let remedies = Remedies::new(String::new(), &now, tried.collect());
        remedies.helpful_remedies().iter().map(|own| own.setting.clone()).collect()
    }

    #[test]
    fn ranks_the_best_setting_first_and_leaves_out_what_costs_more_than_it_saves() {
        let tried = [
            ("half", run(5000, 100, 100)),
            ("same", run(9999, 100, 100)),
            ("tenth", run(1000, 900, 200)),
            ("slow", run(9000, 9000, 6000)),
            ("faster", run(10_500, 50, 50)),
        ];
        assert_eq!(settings(run(10_000, 100, 100), &tried), ["tenth", "half", "faster"]);
        assert_eq!(settings(run(0, 0, 0), &[("a", run(0, 0, 0))]), ["a"; 0]);
    }

    #[test]
    fn describes_gain_and_price() {
        let tried = vec![("advice=random".to_string(), run(3456, 3456, 250))];
        let remedies =
            Remedies::new("Linux 6.18, baseline".to_string(), &run(196_275, 207, 190), tried);
        assert_eq!(
            remedies.tried[0].line(&remedies.now, 4096),
            "MADV_RANDOM: 13.5 instead of 766.7 MiB, 3456 instead of 207 major faults, 250 ms \
             instead of 190 ms. It takes longer."
        );
    }

    #[test]
    fn says_when_nothing_helps() {
        let tried = vec![("advice=random".to_string(), run(10, 10, 10))];
        let remedies = Remedies::new("Linux 6.18, baseline".to_string(), &run(10, 10, 10), tried);
        let parts = Remedies::parts(Some(&remedies), 4096);
        let [_, _, Part::Paragraph(text)] = &parts[..] else { panic!("a sentence") };
        assert_eq!(
            text,
            "None of the settings that were tried in the model, by the rules of Linux 6.18, \
             baseline: MADV_RANDOM."
        );
    }
}

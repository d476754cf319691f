//! Settings that a user can change, tried in the model on the job that is explained.

use filemap_core::address::vma::Advice;
use filemap_core::units::PageCount;
use filemap_job::bounds::MAX_READ_AHEAD_KB;
use filemap_job::{EngineKind, Job, Record};
use filemap_model::{Profile, trace};
use filemap_study::explain::{Remedies, Trial};

use crate::error::Error;
use filemap_study::parallel;
use filemap_study::seeds;

/// What the readahead size is divided and multiplied by.
const READ_AHEAD_STEPS: [u64; 2] = [4, 16];

/// Readahead sizes that are tried are not above this, in KiB.
const MOST_READ_AHEAD_KB: u64 = 65536;

/// What of advice and readahead size helps `job`, which came to `record`. Nothing is tried where
/// that takes more than a few seconds. A setting that the model cannot run, because the memory is
/// too small for it, is left out.
///
/// # Errors
/// When the model cannot run the job as it is.
pub fn of(job: &Job, profile: &Profile, record: &Record) -> Result<Remedies, Error> {
    let now = Job { engine: EngineKind::Model, runs: 1, ..job.clone() };
    let settings = settings(&now, profile);
    if !seeds::is_cheap(record, settings.len() as u64 + 1) {
        return Ok(Remedies::TooLarge);
    }
    let now = Box::new(trace(&now, profile, &mut ())?);
    let trial = |setting: Setting| {
        let run = trace(&setting.job, profile, &mut ()).ok();
        let Setting { label, variant: setting, .. } = setting;
        Ok::<_, Error>(run.map(|run| Trial { label, setting, run }))
    };
    let trials = parallel::map(settings, trial)?.into_iter().flatten().collect();
    let rules = format!("Linux {}, {}", job.rules.kernel.name(), job.rules.series);
    Ok(Remedies::Tried { rules, now, trials })
}

/// A job with one setting changed.
struct Setting {
    label: String,
    variant: String,
    job: Job,
}

/// Every other advice, and readahead sizes around that of `job`.
fn settings(job: &Job, profile: &Profile) -> Vec<Setting> {
    let possible = |advice: &Advice| {
        *advice != job.mappings[0].mapping.advice
            && (*advice != Advice::HUGEPAGE || profile.huge_pages)
    };
    let advised = Advice::ALL.into_iter().filter(possible).map(|advice| {
        let mut job = job.clone();
        job.mappings[0].mapping.advice = advice;
        let name = advice.name();
        let label = format!("MADV_{}", name.to_uppercase());
        Setting { label, variant: format!("advice={name}"), job }
    });
    let read_ahead = read_ahead_sizes(job).into_iter().map(|kb| {
        let mut job = job.clone();
        job.machine.read_ahead = PageCount(kb * 1024 / job.page_size());
        let variant = format!("read_ahead_kb={kb}");
        Setting { label: variant.clone(), variant, job }
    });
    advised.chain(read_ahead).collect()
}

/// In KiB, from the smallest: whole pages.
fn read_ahead_sizes(job: &Job) -> Vec<u64> {
    let now = job.machine.read_ahead.bytes(job.page_size()) / 1024;
    let smaller = READ_AHEAD_STEPS.iter().rev().map(|step| now / step);
    let larger = READ_AHEAD_STEPS.iter().map(|step| now.max(8) * step);
    let most = MOST_READ_AHEAD_KB.min(MAX_READ_AHEAD_KB);
    let page_kb = job.page_size() / 1024;
    let possible = |kb: &u64| (page_kb..=most).contains(kb) && kb.is_multiple_of(page_kb);
    smaller.chain(larger).filter(possible).collect()
}

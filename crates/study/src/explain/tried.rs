//! Settings that a user can change, tried in the model on the job that is explained.

use filemap_core::address::vma::Advice;
use filemap_core::units::PageCount;
use filemap_job::bounds::MAX_READ_AHEAD_KB;
use filemap_job::{EngineKind, Job, Record};
use filemap_model::{Profile, trace};

use super::remedies::Remedies;
use crate::error::Error;
use crate::{parallel, seeds};

/// What the readahead size is divided and multiplied by.
const READ_AHEAD_STEPS: [u64; 2] = [4, 16];

/// Readahead sizes that are tried are not above this, in KiB.
const MOST_READ_AHEAD_KB: u64 = 65536;

/// What of advice and readahead size helps `job`, which came to `record`; `None` where trying takes
/// more than a few seconds. A setting that the model cannot run, because the memory is too small
/// for it, is left out.
///
/// # Errors
/// When the model cannot run the job as it is.
pub(super) fn remedies(
    job: &Job,
    profile: &Profile,
    record: &Record,
) -> Result<Option<Remedies>, Error> {
    let now = Job { engine: EngineKind::Model, runs: 1, ..job.clone() };
    let settings = settings(&now, profile);
    if !seeds::is_cheap(record, settings.len() as u64 + 1) {
        return Ok(None);
    }
    let now = trace(&now, profile, &mut ())?;
    let run = |(setting, job): (String, Job)| {
        Ok::<_, Error>(trace(&job, profile, &mut ()).ok().map(|run| (setting, run)))
    };
    let tried = parallel::map(settings, run)?.into_iter().flatten().collect();
    Ok(Some(Remedies::new(&now, tried)))
}

/// Every other advice, and readahead sizes around that of `job`, each as a variant of `compare`
/// with the job that has it.
fn settings(job: &Job, profile: &Profile) -> Vec<(String, Job)> {
    let possible = |advice: &Advice| {
        *advice != job.mappings[0].mapping.advice
            && (*advice != Advice::HUGEPAGE || profile.huge_pages)
    };
    let advised = Advice::ALL.into_iter().filter(possible).map(|advice| {
        let mut job = job.clone();
        job.mappings[0].mapping.advice = advice;
        (format!("advice={}", advice.name()), job)
    });
    let read_ahead = read_ahead_sizes(job).into_iter().map(|kb| {
        let mut job = job.clone();
        job.machine.read_ahead = PageCount(kb * 1024 / job.page_size());
        (format!("read_ahead_kb={kb}"), job)
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

//! Pages that stay in the page cache when files are dropped from it: other programs map them.

use std::fs::File;
use std::path::PathBuf;

use filemap_core::units::PageIndex;
use filemap_job::merge_ranges;
use filemap_job::program::Job;
use filemap_kernel::residency::cached_ranges;
use filemap_kernel::{Error as KernelError, cold_cache};

use crate::error::Error;

/// Drops the files of `job` from the page cache, and has `job` begin with the pages that stay, as
/// each run on this machine does. Returns a warning about these pages, if any.
///
/// # Errors
/// A signal ends this command.
pub fn keep_retained_pages(job: &mut Job) -> Result<Option<String>, Error> {
    let mut names = Vec::new();
    let mut pages = 0;
    for named in &mut job.files {
        let Some(path) = named.file.path.as_ref().map(PathBuf::from) else { continue };
        let Some(file) = path.is_file().then(|| File::open(&path).ok()).flatten() else { continue };
        match cold_cache::drop_open_file(&file, &path) {
            Err(KernelError::StillCached { .. }) => {}
            Err(error @ KernelError::ShuttingDown) => return Err(error.into()),
            // A run says so of files that cannot be dropped.
            Ok(()) | Err(_) => continue,
        }
        let ranges = cached_ranges(&file).unwrap_or_default();
        pages += ranges.iter().map(|[_, count]| count).sum::<u64>();
        names.push(named.name.clone());
        let kept = ranges.iter().map(|[first, count]| PageIndex(*first)..PageIndex(first + count));
        named.file.cached.extend(kept);
        named.file.cached = merge_ranges(std::mem::take(&mut named.file.cached));
    }
    let others = names.len().saturating_sub(1);
    Ok(names.into_iter().next().filter(|_| pages > 0).map(|first| {
        let more = if others > 0 { format!(" and {others} more") } else { String::new() };
        format!(
            "{pages} pages of {first}{more} stay in the page cache, as other programs map them; \
             the predictions have them cached too"
        )
    }))
}

//! The phases of a job, access by access.

use filemap_core::decision::Log;
use filemap_core::fault::Access;
use filemap_core::page_cache::PageCache;
use filemap_job::{Job, Phase};

use crate::Error;
use crate::governor::{Governed, Governor};
use crate::open::OpenFile;
use crate::process::Row;
use crate::task::Task;

/// Makes the accesses of `phase` through `row`, a mapping of `open`, which may be governed.
///
/// # Errors
/// When the memory is too small to hold what one access needs.
pub fn phase<C: PageCache, L: Log>(
    job: &Job,
    phase: &Phase,
    row: &mut Row,
    governed: &mut Option<(Governed, Governor)>,
    open: &mut OpenFile,
    task: &mut Task<'_, '_, C, L>,
) -> Result<(), Error> {
    if phase.is_read() {
        let base = job.mapping.offset.0 * job.page_size();
        for block in job.reads(phase) {
            task.read(base + block.offset_bytes, block.len_bytes, open)?;
            task.world.settle();
        }
        return Ok(());
    }
    if phase.is_exec() {
        for page in job.accesses(phase) {
            task.call(&row.locate(page), open)?;
            task.world.settle();
        }
        return Ok(());
    }
    let access = if job.mapping.private { Access::WritePrivate } else { Access::Read };
    for page in job.accesses(phase) {
        let seen = task.touch(&row.locate(page), access, open)?;
        if let (Some(seen), Some((governed, governor))) = (seen, &mut *governed) {
            governor.fault(seen, governed, row.only(), open, task);
        }
        task.world.settle();
    }
    Ok(())
}

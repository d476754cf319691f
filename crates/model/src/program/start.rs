//! Fills the page cache with the pages that a program begins with.

use filemap_core::page_cache::PageCache;
use filemap_core::units::FileId;
use filemap_job::program::Job;

use crate::Error;
use crate::device::Device;
use crate::log::RunLog;
use crate::memory::{Flushes, Memory};
use crate::open::{self, OpenFile};
use crate::pending::PendingRead;
use crate::process::Process;
use crate::profile::Profile;
use crate::task::Task;
use crate::tlb::Tlb;
use crate::wait_queue::Pause;
use crate::world::{Timing, World};

/// Bytes of one read, as on kernels.
const READ_BYTES: u64 = 128 << 10;

/// Time to wait if nothing is being read.
const RETRY_NS: u64 = 1_000;

/// Reads the pages that are cached when `job` begins into `memory`, as a process does that reads
/// them once with POSIX_FADV_RANDOM. The run itself begins at time 0 after that.
///
/// # Errors
/// If memory is too small for a page.
pub fn read_cached<C: PageCache>(
    job: &Job,
    profile: &Profile,
    mut memory: Memory<C>,
) -> Result<Memory<C>, Error> {
    if !job.starts_warm() {
        return Ok(memory);
    }
    let flushes = memory.replace_flushes(Flushes::TIMED);
    let device = |sparse| Device::new(open::device(sparse, profile), job.page_size());
    let (devices, log) = (vec![device(false), device(true)], &mut ());
    let mut world = World::new(profile, Timing::Device, memory, devices, RunLog::new(log));
    let mut process = Process::new(Tlb::new(profile.itlb, job.page_size()));
    for (number, named) in job.files.iter().enumerate() {
        let file = &named.file;
        let limits = open::limits(job.rules, &job.machine, job.file_pages(number), profile);
        let id = FileId::new(number as u32);
        let mut open = OpenFile::new(id, file, limits);
        open.ra.is_random = true;
        for range in &file.cached {
            let end = (range.end.0 * job.page_size()).min(file.size_bytes);
            let from = range.start.0 * job.page_size();
            for at in (from..end).step_by(READ_BYTES as usize) {
                let task = &mut Task { world: &mut world, process: &mut process };
                let mut read = task.begin_read(at, READ_BYTES.min(end - at), &open);
                finish_read(&mut read, task, &mut open)?;
            }
        }
    }
    world.finish_io();
    let mut memory = world.memory;
    memory.cache.flush_statistics();
    memory.replace_flushes(flushes);
    Ok(memory)
}

/// Runs a read to its end, and repays what it charged above `memory.high`.
fn finish_read<C: PageCache>(
    read: &mut PendingRead,
    task: &mut Task<'_, '_, C>,
    open: &mut OpenFile,
) -> Result<(), Error> {
    while let Some(pause) = read.run(task, open)? {
        wait(pause, task.world);
    }
    while task.world.has_debt() {
        match task.world.repay(&task.process.tables) {
            Some(pause) => wait(pause, task.world),
            None => break,
        }
    }
    Ok(())
}

fn wait<C: PageCache>(pause: Pause, world: &mut World<'_, C>) {
    let until_ns = match pause {
        Pause::Sleep(until_ns) | Pause::Throttled(until_ns) => until_ns,
        _ => world.now_ns() + RETRY_NS,
    };
    world.advance_to(until_ns.max(world.now_ns()));
}

//! The child side: fills its memory, performs the operation, and replies with the times.

use std::io::stdin;

use filemap_job::folio_ops::Operation;
use filemap_job::{seeds, xorshift64};
use rustix::process::{Signal, set_parent_process_death_signal};

use super::super::child::{fail, reply};
use super::super::wire::{Reply, read};
use super::FolioProbe;
use super::family::{ForkedProcess, StartGate, exit, fork, reap, send};
use super::frames::Frames;
use super::memory::Memory;
use crate::clock::thread_cpu_ns;
use crate::probe::folio_sample::{FolioSample, Timing};
use crate::{Error, page_size};

/// Maximum number of attempts to get folios of the requested size. The kernel compacts memory each
/// time.
const MAX_ATTEMPTS: usize = 3;

/// Runs the probe received on standard input. Returns the exit code.
pub(in super::super) fn main() -> i32 {
    // Die with the parent if it is killed.
    let _ = set_parent_process_death_signal(Some(Signal::KILL));
    let Ok(probe) = read::<FolioProbe>(&mut stdin().lock()) else { return 1 };
    match run(&probe) {
        Ok(sample) => i32::from(reply(&Reply::Folios(sample)).is_err()),
        Err(error) => fail(&error),
    }
}

fn run(probe: &FolioProbe) -> Result<FolioSample, Error> {
    // Inherited settings must neither prevent huge pages nor merge pages.
    set(libc::PR_SET_THP_DISABLE, false);
    set(libc::PR_SET_MEMORY_MERGE, false);
    let folios = probe.bytes / probe.folio_bytes;
    let (mut given, mut left) = (0, MAX_ATTEMPTS);
    loop {
        let memory = Memory::fill(probe.bytes, probe.folio_bytes)?;
        let frames = Frames::read(&memory)?;
        given = given.max(folios_given(probe, &memory, frames.as_ref()));
        if FolioSample::is_enough(folios, given) {
            // Otherwise khugepaged may collapse small folios.
            set(libc::PR_SET_THP_DISABLE, true);
            let timing = time(probe, memory, frames)?;
            return Ok(FolioSample { folios, given, timing: Some(timing) });
        }
        memory.unmap()?;
        left -= 1;
        if left == 0 {
            return Ok(FolioSample { folios, given, timing: None });
        }
    }
}

/// Sets a process flag; kernels without it ignore the call.
fn set(switch: i32, on: bool) {
    // SAFETY: these flags take integers only.
    unsafe { libc::prctl(switch, libc::c_ulong::from(on), 0, 0, 0) };
}

/// Number of folios of the requested size: by their frames if visible, else by the number of
/// faults.
fn folios_given(probe: &FolioProbe, memory: &Memory, frames: Option<&Frames>) -> u64 {
    let pages = (probe.folio_bytes / page_size()) as usize;
    let folios = probe.bytes / probe.folio_bytes;
    match frames.and_then(|frames| frames.folios(pages)) {
        Some(given) => given,
        None if memory.faults < folios => 0,
        None => folios.saturating_sub((memory.faults - folios).saturating_sub(OTHER_FAULTS)),
    }
}

/// Maximum number of unrelated faults of the process.
const OTHER_FAULTS: u64 = 8;

fn time(probe: &FolioProbe, memory: Memory, frames: Option<Frames>) -> Result<Timing, Error> {
    match probe.operation {
        Operation::Munmap => Ok(without_writes(timed(|| memory.unmap())?, &memory)),
        Operation::Fork => {
            drop(frames);
            Ok(without_writes(time_of_fork()?, &memory))
        }
        Operation::CowByte => {
            let mut child = ForkedProcess::start(|sender| send(sender, &()))?;
            child.receive::<()>()?;
            write(&memory, frames.as_ref(), || memory.write_all())
        }
        Operation::ReuseByte => {
            match fork()? {
                Some(child) => reap(child)?,
                None => exit(0),
            }
            write(&memory, frames.as_ref(), || memory.write_all())
        }
        Operation::ChildReuseByte => {
            child_writes(&memory, || write(&memory, frames.as_ref(), || memory.write_all()))
        }
        Operation::AnonCowSeq => {
            children_write(probe, |_| write(&memory, frames.as_ref(), || memory.write_all()))
        }
        Operation::AnonCowRand => {
            let seeds: Vec<u64> = seeds(probe.seed, probe.children).collect();
            let orders = seeds.into_iter().map(|seed| shuffled(memory.pages(), seed));
            let orders: Vec<Vec<u32>> = orders.collect();
            let writes: Vec<_> = orders.iter().map(|order| memory.writes(order)).collect();
            children_write(probe, |child| write(&memory, frames.as_ref(), &writes[child]))
        }
    }
}

/// CPU time of `fork(2)` in the parent. The child exits immediately.
fn time_of_fork() -> Result<u64, Error> {
    let start = thread_cpu_ns();
    let Some(child) = fork()? else { exit(0) };
    let time_ns = thread_cpu_ns() - start;
    reap(child)?;
    Ok(time_ns)
}

/// A child writes after its parent has unmapped the memory.
fn child_writes(
    memory: &Memory,
    work: impl FnOnce() -> Result<Timing, Error>,
) -> Result<Timing, Error> {
    let mut gate = StartGate::new()?;
    let mut child = ForkedProcess::start(|sender| {
        gate.wait()?;
        send(sender, &work()?)
    })?;
    memory.unmap()?;
    gate.release(1)?;
    child.receive()
}

/// Children write in parallel while their parent, which also maps the memory, waits.
fn children_write(
    probe: &FolioProbe,
    work: impl Fn(usize) -> Result<Timing, Error>,
) -> Result<Timing, Error> {
    let mut gate = StartGate::new()?;
    let start = |child| {
        ForkedProcess::start(|sender| {
            send(sender, &())?;
            gate.wait()?;
            send(sender, &work(child)?)
        })
    };
    let children = (0..probe.children as usize).map(start);
    let mut children = children.collect::<Result<Vec<_>, _>>()?;
    for child in &mut children {
        child.receive::<()>()?;
    }
    gate.release(children.len())?;
    // All children stay until the last has written, so that pages keep their owners.
    let timings = children.iter_mut().map(ForkedProcess::receive);
    let timings = timings.collect::<Result<Vec<Timing>, _>>()?;
    let sum = |field: fn(&Timing) -> Option<u64>| timings.iter().map(field).sum::<Option<u64>>();
    Ok(Timing {
        time_ns: timings.iter().map(|timing| timing.time_ns).sum(),
        pages: timings.iter().map(|timing| timing.pages).sum(),
        copied: sum(|timing| timing.copied),
        reused: sum(|timing| timing.reused),
    })
}

/// Times writes to `memory`, and counts copies relative to the earlier `frames`.
fn write(memory: &Memory, frames: Option<&Frames>, write: impl FnOnce()) -> Result<Timing, Error> {
    let time_ns = timed(|| {
        write();
        Ok(())
    })?;
    let after = Frames::read(memory)?;
    let counts = frames.zip(after.as_ref()).map(|(frames, after)| frames.copied_and_kept(after));
    Ok(Timing {
        time_ns,
        pages: memory.pages() as u64,
        copied: counts.map(|(copied, _)| copied),
        reused: counts.map(|(_, reused)| reused),
    })
}

/// The timing of an operation without writes.
fn without_writes(time_ns: u64, memory: &Memory) -> Timing {
    Timing { time_ns, pages: memory.pages() as u64, copied: None, reused: None }
}

/// CPU time of this thread for `work`, in nanoseconds.
fn timed(work: impl FnOnce() -> Result<(), Error>) -> Result<u64, Error> {
    let start = thread_cpu_ns();
    work()?;
    Ok(thread_cpu_ns() - start)
}

/// The numbers of `pages` pages in random order.
fn shuffled(pages: usize, seed: u64) -> Vec<u32> {
    let mut order: Vec<u32> = (0..pages as u32).collect();
    let mut state = seed;
    for last in (1..pages).rev() {
        state = xorshift64(state);
        order.swap(last, (state % (last as u64 + 1)) as usize);
    }
    order
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn random_orders_have_every_page_once() {
        let mut order = shuffled(1000, 7);
        assert_eq!(order, shuffled(1000, 7));
        assert_ne!(order, shuffled(1000, 8));
        assert_ne!(order[..10], [0, 1, 2, 3, 4, 5, 6, 7, 8, 9]);
        order.sort_unstable();
        assert!(order.into_iter().eq(0..1000));
    }
}

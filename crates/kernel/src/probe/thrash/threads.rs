//! The child's side of a thrash.

use std::fs::File;
use std::hint::spin_loop;
use std::io::{BufReader, Read, stdin};
use std::path::PathBuf;
use std::process::exit;
use std::ptr::null_mut;
use std::sync::Barrier;
use std::thread::{self, Builder, Scope};
use std::time::Duration;

use rustix::io::Errno;
use rustix::mm::{
    Advice, MapFlags, MprotectFlags, ProtFlags, madvise, mmap, mmap_anonymous, mprotect, munmap,
};
use rustix::process::{Signal, set_parent_process_death_signal};

use super::super::child::{fail, reply};
use super::super::cpus;
use super::super::files::raise_limit;
use super::super::wire::{Reply, read};
use super::counts::{Count, Counts};
use super::{Sent, Thrash, WRITER_BYTES};
use crate::{Error, page_size};

/// Stack of each thread.
const STACK_BYTES: usize = 64 << 10;

/// Descriptors that the child has beside its files.
const OTHER_DESCRIPTORS: u64 = 64;

/// How long a writer sleeps after each change.
const WRITER_SLEEPS: Duration = Duration::from_millis(1);

/// Runs the thrash that comes in on standard input until somebody ends it; an exit code if it
/// cannot be understood.
pub(in super::super) fn main() -> i32 {
    // The parent cannot end us when it is killed itself.
    let _ = set_parent_process_death_signal(Some(Signal::KILL));
    let mut input = BufReader::new(stdin().lock());
    let Ok(Sent { counts, thrash }) = read(&mut input) else { return 1 };
    let counts = Counts::map(counts.as_ref(), thrash.files.len());
    let counts = counts.unwrap_or_else(|error| fail(&error));
    if let Some(Err(error)) = thrash.cpus.map(cpus::bind) {
        fail(&error)
    }
    let files = open(&thrash).unwrap_or_else(|error| fail(&error));
    let all = files.len() as u64 + thrash.writers + thrash.noise;
    let barrier = Barrier::new(all as usize + 1);
    thread::scope(|scope| {
        let started = start(scope, &thrash, &files, &counts, &barrier);
        let ready = Reply::Ready { addresses: Vec::new(), forked: Vec::new() };
        if let Err(error) = started.and_then(|()| reply(&ready)) {
            fail(&error)
        }
        if input.read_exact(&mut [0]).is_err() {
            // The parent is gone, or has thought better of it.
            exit(1);
        }
        barrier.wait();
    });
    0
}

fn open(thrash: &Thrash) -> Result<Vec<File>, Error> {
    raise_limit(thrash.files.len() as u64 + OTHER_DESCRIPTORS)?;
    let open = |path: &PathBuf| File::open(path).map_err(|error| Error::os("open", path, error));
    thrash.files.iter().map(open).collect()
}

/// Starts all threads, which wait at `barrier`.
fn start<'scope, 'env>(
    scope: &'scope Scope<'scope, 'env>,
    thrash: &'env Thrash,
    files: &'env [File],
    counts: &'env Counts,
    barrier: &'env Barrier,
) -> Result<(), Error> {
    let spawn = |body: Box<dyn FnOnce() -> Result<(), Error> + Send + 'env>| {
        let body = move || {
            barrier.wait();
            body().unwrap_or_else(|error| fail(&error));
        };
        let started = Builder::new().stack_size(STACK_BYTES).spawn_scoped(scope, body);
        started.map(drop).map_err(|error| {
            let threads = files.len() as u64 + thrash.writers + thrash.noise;
            Error::unavailable(
                format!("a process of {threads} threads"),
                format!("use fewer ({error})"),
            )
        })
    };
    let bytes = thrash.pages.bytes(page_size()) as usize;
    for ((number, file), count) in files.iter().enumerate().zip(counts.iter()) {
        let delay = thrash.stagger.mul_f64(number as f64 / files.len() as f64);
        spawn(Box::new(move || {
            thread::sleep(delay);
            loop {
                round(file, bytes, count)?;
            }
        }))?;
    }
    let changes = &counts[files.len()];
    (0..thrash.writers).try_for_each(|_| {
        let base = writer_mapping()?;
        spawn(Box::new(move || write(base, changes)))
    })?;
    (0..thrash.noise).try_for_each(|_| {
        spawn(Box::new(|| {
            loop {
                spin_loop();
            }
        }))
    })
}

/// Maps the first `bytes` of `file`, reads every page, and takes the mapping away.
fn round(file: &File, bytes: usize, count: &Count) -> Result<(), Error> {
    // SAFETY: a new mapping at an address of the kernel's choice aliases nothing.
    let base = unsafe { mmap(null_mut(), bytes, ProtFlags::READ, MapFlags::SHARED, file, 0) };
    let base = base.map_err(|errno| Error::call("map a file", errno))?;
    for at in (0..bytes).step_by(page_size() as usize) {
        // SAFETY: inside the mapping; a file that changes gives another byte only.
        unsafe { base.cast::<u8>().add(at).read_volatile() };
        count.page();
    }
    // SAFETY: what was mapped above, of which nobody else knows.
    unsafe { munmap(base, bytes) }.map_err(|errno| Error::call("take a mapping away", errno))?;
    count.round();
    Ok(())
}

/// The mapping of a writer, whose pages are all there; its address.
fn writer_mapping() -> Result<usize, Error> {
    let failed = |errno| Error::call("map the memory of a writer", errno);
    let bytes = WRITER_BYTES as usize;
    let protection = ProtFlags::READ | ProtFlags::WRITE;
    // SAFETY: a new mapping at an address of the kernel's choice aliases nothing; what follows is
    // inside of it.
    unsafe {
        let base = mmap_anonymous(null_mut(), bytes, protection, MapFlags::PRIVATE);
        let base = base.map_err(failed)?;
        match madvise(base, bytes, Advice::LinuxNoHugepage) {
            // A kernel without huge pages has no such advice.
            Ok(()) | Err(Errno::INVAL) => {}
            Err(errno) => return Err(failed(errno)),
        }
        for at in (0..bytes).step_by(page_size() as usize) {
            base.cast::<u8>().add(at).read_volatile();
        }
        Ok(base as usize)
    }
}

/// Changes the protection of the mapping at `base`, for ever.
fn write(base: usize, changes: &Count) -> Result<(), Error> {
    let writable = MprotectFlags::READ | MprotectFlags::WRITE;
    for protection in [MprotectFlags::READ, writable].into_iter().cycle() {
        // SAFETY: a writer's own mapping, of which nobody else knows.
        let done = unsafe { mprotect(base as *mut _, WRITER_BYTES as usize, protection) };
        done.map_err(|errno| Error::call("protect the memory of a writer", errno))?;
        changes.change();
        thread::sleep(WRITER_SLEEPS);
    }
    Ok(())
}

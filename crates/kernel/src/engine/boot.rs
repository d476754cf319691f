//! Jobs on a kernel that is booted for them: the same engine, inside the virtual machine.

use std::time::Duration;

use filemap_job::{Engine, EngineKind, Filesystem, Image as JobImage, Ready};
use serde_json::{Map, Value};

use super::flush::LONGEST;
use super::limits::{MemoryLimits, available_bytes};
use super::needs::{Needed, Needs};
use super::sent::{Bootable, Returned, opened, with_switches};
use super::{plan, temporary_directory};
use crate::contents::Contents;
use crate::image::{self, Accelerator, Image, Outcome};
use crate::temporary::require_space;
use crate::{Error, page_size};

/// RAM beside what the file takes.
const OWN_RAM_BYTES: u64 = 768 << 20;

/// Space on the scratch disk beside what the file takes, and one byte in so many of the file for
/// what the filesystem keeps free. The file behind the disk is sparse.
const OWN_DISK_BYTES: u64 = 256 << 20;
const UNUSED_ONE_IN: u64 = 4;

/// What a machine writes beside the file: its filesystem's own blocks, and what it boots from.
const OWN_WRITTEN_BYTES: u64 = 128 << 20;

/// How much of its files a slow machine writes or reads in a second.
const SLOW_BYTES_A_SECOND: u64 = 4 << 20;

/// Kernels that are booted, each for one seed of a job that names its image.
#[derive(Clone, Copy, Debug, Default)]
pub struct Boot;

impl<W: Bootable> Engine<W> for Boot {
    type Error = Error;
    type Ready = Booted<W>;

    /// Looks whether a boot can begin: that the images are kernels, that the modules they need are
    /// there, and that there is room.
    ///
    /// # Errors
    /// See [`Error`]; [`Error::cannot_run_here`] tells what is missing from what failed.
    ///
    /// # Panics
    /// When a job names no image.
    fn prepare_all(&self, jobs: &[&W]) -> Result<Vec<Booted<W>>, Error> {
        let ready = |job: &&W| {
            let named = job.image().cloned().expect("the caller has jobs with an image");
            let needs = job.needs();
            check::<W>(&needs)?;
            machine(*job, &needs, &named)?.check()?;
            Ok(Booted { work: (*job).clone(), image: named, environment: None })
        };
        jobs.iter().map(ready).collect()
    }
}

/// A job on a kernel that is booted for each seed, and makes all runs of that seed.
#[derive(Clone, Debug)]
pub struct Booted<W> {
    work: W,
    image: JobImage,
    /// What the first boot said of itself.
    environment: Option<Map<String, Value>>,
}

impl<W: Bootable> Ready for Booted<W> {
    type Error = Error;
    type Run = W::Run;
    type Record = W::Record;

    fn seed(&self) -> u64 {
        self.work.seed()
    }

    fn take_turn(&mut self, seed: u64) -> Result<Vec<W::Run>, Error> {
        let Returned { environment, runs } = boot(&self.work.with_seed(seed), &self.image)?;
        self.environment.get_or_insert(environment);
        Ok(runs)
    }

    fn record(self, runs: Vec<W::Run>) -> W::Record {
        let environment = self.environment.unwrap_or_default();
        self.work.record(EngineKind::Kernel, environment, runs)
    }
}

/// Boots `named` and runs all runs of `job` there; returns them with where they took place.
fn boot<W: Bootable>(job: &W, named: &JobImage) -> Result<Returned<W::Run>, Error> {
    let needs = job.needs();
    let image = machine(job, &needs, named)?;
    let series = job.rules().series;
    let payload = with_switches(job.sent(), named.switches.union(series), series);
    let outcome = image.run(&payload.to_string())?;
    let mut returned = opened::<W>(&outcome.record)?;
    describe(&mut returned.environment, &image, &outcome, needs.files.len());
    if outcome.accelerator == Accelerator::Tcg {
        // What an emulator takes says nothing of any machine.
        returned.runs.iter_mut().for_each(W::forget_times);
    }
    Ok(returned)
}

/// Refuses what the machine to be booted cannot be.
fn check<W: Bootable>(needs: &Needs) -> Result<(), Error> {
    if needs.machine.governor {
        return Err(Error::unavailable(
            "a governor in a booted image",
            "leave governor out, or give --on model, or --on kernel without --image",
        ));
    }
    plan::check_architecture(&needs.machine)?;
    plan::check_accesses(needs)?;
    plan::check_cpus(needs, W::most_cpus())?;
    if cfg!(not(target_arch = "x86_64")) {
        let remedy = "boot x86-64 images on an x86-64 machine, or give --on model";
        return Err(Error::unavailable("--image", remedy));
    }
    if let Some(needed) = needs.files.iter().find(|needed| needed.file.path.is_some()) {
        return Err(of_this_machine(needed));
    }
    if needs.machine.fs == Filesystem::BasePages {
        let remedy = "give --fs ext4 or xfs, or --on model";
        return Err(Error::unavailable("a scratch disk without large folios", remedy));
    }
    Ok(())
}

/// Why a file of this machine is on no other kernel.
fn of_this_machine(needed: &Needed) -> Error {
    match (&needed.name, &needed.contents) {
        (Some(name), _) => Error::unavailable(
            format!("the existing file '{name}' on another kernel"),
            "give its size instead of its path: the booted kernel makes a file on its own disk",
        ),
        (None, Contents::CopyOf(_)) => Error::unavailable(
            "a --file of this machine on another kernel",
            "give --on kernel without --image, or --on model",
        ),
        (None, _) => Error::unavailable(
            "a --file of this machine on another kernel",
            "leave it out: the booted kernel makes a file on its own disk",
        ),
    }
}

fn machine<W: Bootable>(job: &W, needs: &Needs, named: &JobImage) -> Result<Image, Error> {
    let directory = temporary_directory()?;
    let bytes = needs.made_bytes();
    require_space(&directory, needs.written_bytes().saturating_add(OWN_WRITTEN_BYTES))
        .map_err(|error| needs.told(error.with_smaller("a smaller --file-size, or --sparse")))?;
    let needed = bytes.saturating_add(bytes / 8).saturating_add(OWN_RAM_BYTES);
    let needed = needed.saturating_add(needs.anonymous.0.saturating_mul(page_size()));
    let ram_bytes = needs.machine.ram_bytes.unwrap_or(needed);
    if available_bytes().is_some_and(|available| ram_bytes > available) {
        let files = if needs.is_program() { "smaller files" } else { "a smaller --file-size" };
        return Err(Error::unavailable(
            format!("a machine with {} MiB of RAM", ram_bytes >> 20),
            format!("give a smaller --ram, or {files}"),
        ));
    }
    let mut image = Image::new(&named.path)?;
    image.modules = named.modules.as_ref().map(Into::into);
    image.ram_bytes = ram_bytes;
    image.cpus = u32::try_from(job.cpus()).unwrap_or(u32::MAX);
    image.takes_turns = W::takes_turns();
    image.read_ahead_kb = Some(needs.machine.read_ahead.bytes(page_size()) >> 10);
    image.disk_bytes = bytes.saturating_add(bytes / UNUSED_ONE_IN).saturating_add(OWN_DISK_BYTES);
    image.filesystem = match needs.machine.fs {
        Filesystem::Xfs => image::Filesystem::Xfs,
        Filesystem::Ext4 | Filesystem::BasePages => image::Filesystem::Ext4,
    };
    image.disk_bytes = image.disk_bytes.max(image.filesystem.smallest_bytes());
    image.scratch_dir = directory;
    let thinks = Duration::from_nanos(job.think_ns().saturating_mul(job.runs()));
    image.time_limit += Duration::from_secs(bytes / SLOW_BYTES_A_SECOND) + thinks;
    if MemoryLimits::of(&needs.machine).is_some() {
        image.time_limit += LONGEST * u32::try_from(job.runs()).unwrap_or(u32::MAX);
    }
    Ok(image)
}

fn describe(environment: &mut Map<String, Value>, image: &Image, outcome: &Outcome, files: usize) {
    let words: Vec<String> = std::env::args().collect();
    environment.insert("command_line".into(), words.join(" ").into());
    environment.insert("image".into(), image.kernel.display().to_string().into());
    environment.insert("emulator".into(), format!("QEMU, {}", outcome.accelerator.name()).into());
    let files = if files > 1 { "files" } else { "file" };
    let scope =
        format!("Linux {} booted under QEMU, one child process, its {files} cold", outcome.release);
    environment.insert("scope".into(), scope.into());
}

/// TEMPORARY
pub fn observe_each<W: Bootable<Process = crate::probe::Process>, E: From<Error>>(
    jobs: &[(&W, super::Asked)],
    mut each: impl FnMut(usize, Result<crate::trace::Recording, Error>) -> Result<bool, E>,
) -> Result<(), E> {
    for (number, (job, asked)) in jobs.iter().enumerate() {
        let one = || {
            let needs = job.needs();
            let named = job.image().cloned().expect("the caller has jobs with an image");
            check::<W>(&needs)?;
            let mut image = machine(*job, &needs, &named)?;
            image.ram_bytes += asked.ram_bytes();
            let mut sent = job.sent();
            sent["observed"] = asked.sent();
            let outcome = image.run(&sent.to_string())?;
            let bytes: Vec<u8> = (0..outcome.record.len() / 2)
                .map(|at| u8::from_str_radix(&outcome.record[2 * at..2 * at + 2], 16).unwrap_or(0))
                .collect();
            crate::trace::Recording::decode(&bytes)
        };
        if !each(number, one())? {
            break;
        }
    }
    Ok(())
}

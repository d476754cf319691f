//! Profiles of devices, measured when one is first needed and kept in the state directory.

use std::fs::{self, DirBuilder, Metadata};
use std::io::Write;
use std::os::unix::fs::{DirBuilderExt, MetadataExt};
use std::path::{Path, PathBuf};
use std::time::{Duration, Instant};

use filemap_job::JobSpec;
use filemap_kernel::calibrate::is_measurable;
use filemap_kernel::engine::temporary_directory;
use filemap_kernel::storage::{Storage, layer_file};
use rustix::fs::{major, minor};

use crate::calibrate::{MachineBench, profile_text};
use crate::engine::Engines;
use crate::error::{Error, reason};
use crate::host::is_on_model;
use crate::{input, machine_profile};

/// Directory of the kept profiles in the state directory.
const DIRECTORY: &str = "filemap/profiles";

/// Size of the new file that costs are measured with.
const BYTES: u64 = 256 << 20;

/// Maximum number of rounds, and the time after which no other one begins.
const ROUNDS: u64 = 5;
const MAX_TIME: Duration = Duration::from_secs(40);

/// Identifies this machine.
const MACHINE_ID: &str = "/etc/machine-id";

/// Measures the device of the largest existing file of `spec` and keeps its profile, unless there
/// is one, `spec` names another, or it cannot be kept. It reads that file past the page cache and
/// does not change what is cached of it.
///
/// If the device cannot be measured, says why on stderr, and the default profile remains.
pub fn keep_measured(spec: &JobSpec, engines: &impl Engines) {
    if spec.machine.is_some() || spec.image.is_some() || !is_on_model(spec.on.as_deref()) {
        return;
    }
    if !machine_profile::user_profile().is_ok_and(|(name, _)| name == machine_profile::DEFAULT) {
        return;
    }
    let Some(file) = largest_file(spec, is_measurable) else { return };
    let Some(path) = kept_path(&file).filter(|path| !path.exists()) else { return };
    if !can_keep(&path) {
        return;
    }
    let tell = engines.message_sink();
    tell(&format!(
        "measuring the device of {} for predicted times, once (20 to 50 s; --machine default \
         leaves it out)",
        file.display()
    ));
    let kept = measure(&file, engines).and_then(|text| keep(&path, &text));
    match kept {
        Ok(()) => tell(&format!("its profile is in {}", path.display())),
        Err(error) => tell(&format!("the device was not measured: {error}")),
    }
}

/// The kept profile of the device of the largest existing file of `spec`.
pub fn find_for_job(spec: &JobSpec) -> Option<String> {
    find_for_file(&largest_file(spec, Metadata::is_file)?)
}

/// The kept profile of the device of `file`.
pub fn find_for_file(file: &Path) -> Option<String> {
    let path = kept_path(file).filter(|path| path.is_file())?;
    path.into_os_string().into_string().ok()
}

/// The largest of the existing files that `spec` names and that are `suitable`.
fn largest_file(spec: &JobSpec, suitable: fn(&Metadata) -> bool) -> Option<PathBuf> {
    let files = spec.file.iter().filter_map(|file| {
        let path = Path::new(file.path.as_deref()?);
        Some((fs::metadata(path).ok()?, path))
    });
    let (_, largest) =
        files.filter(|(found, _)| suitable(found)).max_by_key(|(found, _)| found.len())?;
    let layer = layer_file(largest);
    fs::canonicalize(layer.as_deref().unwrap_or(largest)).ok()
}

/// Where the profile of the device of `file` is kept; `None` without a state directory or an
/// identification of the machine.
fn kept_path(file: &Path) -> Option<PathBuf> {
    let directory = machine_profile::state_directory()?.join(DIRECTORY);
    let machine = fs::read_to_string(MACHINE_ID).ok()?;
    let machine = machine.trim();
    let is_name = |text: &str| {
        !text.is_empty() && text.chars().all(|c| c.is_ascii_alphanumeric() || "-._".contains(c))
    };
    let release = input::host_release()?;
    let name = format!("{machine}-{}-{release}.toml", disk_name(file)?);
    is_name(&name).then(|| directory.join(name))
}

/// Name of the disk that holds `file`: the same for all of its partitions.
fn disk_name(file: &Path) -> Option<String> {
    let device = fs::metadata(file).ok()?.dev();
    let block = format!("/sys/dev/block/{}:{}", major(device), minor(device));
    let name = match fs::canonicalize(block) {
        Ok(block) if block.join("partition").exists() => block.parent()?.file_name()?.to_owned(),
        Ok(block) => block.file_name()?.to_owned(),
        // Filesystems without a block device of their own are named by what is mounted.
        Err(_) => Storage::find(file).ok()?.device.into(),
    };
    let name = name.to_str()?.trim_start_matches("/dev/");
    let plain = |c: char| if c.is_ascii_alphanumeric() { c } else { '-' };
    Some(name.chars().map(plain).collect())
}

/// Whether a profile can be written at `path`: makes its directory and tries.
fn can_keep(path: &Path) -> bool {
    let Some(directory) = path.parent() else { return false };
    let made = DirBuilder::new().recursive(true).mode(0o700).create(directory);
    made.is_ok() && tempfile::tempfile_in(directory).is_ok()
}

/// Measures the device of `file`. Returns the text of its profile.
fn measure(file: &Path, engines: &impl Engines) -> Result<String, Error> {
    let (journal, _undoing) = engines.journal()?;
    let begun = Instant::now();
    let bench = MachineBench::prepare(journal, temporary_directory()?, BYTES)?;
    let mut bench = bench.of_file(file)?;
    let progress = engines.progress(Some(ROUNDS));
    for _ in 0..ROUNDS {
        bench.sample_device()?;
        bench.sample_kernel()?;
        progress.advance();
        if begun.elapsed() > MAX_TIME {
            break;
        }
    }
    let (profile, _) = bench.profile()?;
    Ok(profile_text(&profile, &Storage::find(file)?, file))
}

/// Writes `text` to `path`, all of it or nothing.
fn keep(path: &Path, text: &str) -> Result<(), Error> {
    let directory = path.parent().unwrap_or(Path::new("/"));
    let written = tempfile::NamedTempFile::new_in(directory).and_then(|mut file| {
        file.write_all(text.as_bytes())?;
        file.as_file().sync_all()?;
        file.persist(path).map_err(|error| error.error)
    });
    written
        .map(drop)
        .map_err(|error| Error::Open { path: path.display().to_string(), reason: reason(&error) })
}

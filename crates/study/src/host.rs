//! Defaults that a job takes from this machine.

use std::ops::Range;
use std::os::unix::fs::MetadataExt;
use std::path::{Path, PathBuf};

use filemap_core::rules::{Family, Kernel};
use filemap_job::program::{ExistingFile, FoundFile};
use filemap_job::{EngineKind, Filesystem, JobFlags, JobSpec, SizeText};
use filemap_kernel::engine::temporary_directory;
use filemap_kernel::holes::hole_ranges;
use filemap_kernel::image::IO_BYTES;
use filemap_kernel::page_size;
use filemap_kernel::storage::{Storage, io_bytes, layer_file};
use filemap_model::Profile;

use crate::error::Error;
use crate::input;

/// Facts about this machine that no key of a job contains.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct HostFacts {
    /// Maximum request size of the device that holds the file, in bytes.
    io_bytes: Option<u64>,
    /// Warnings for the reader of the report.
    pub warnings: Vec<String>,
}

impl HostFacts {
    /// `profile` with the maximum request size of the file's device.
    pub fn on_device(&self, mut profile: Profile) -> Profile {
        if let Some(bytes) = self.io_bytes {
            profile.device.io_bytes = bytes;
        }
        profile
    }

    /// Takes the device's facts from `other` if this has none.
    pub fn or(self, other: &HostFacts) -> HostFacts {
        HostFacts { io_bytes: self.io_bytes.or(other.io_bytes), ..self }
    }
}

/// Fills in unset keys of `spec`. A kernel image implies the kernel engine. An existing file
/// supplies its size, device and filesystem, in the model as on the running kernel; without one,
/// `--kernel host` and `--on kernel` take them from the directory where the kernel engine creates
/// files. A real kernel implies its own rules.
///
/// # Errors
/// When a file or image cannot be used, or the readahead size of its filesystem is unknown.
pub fn resolve(spec: &mut JobSpec) -> Result<HostFacts, Error> {
    if spec.image.is_some() {
        spec.on.get_or_insert(EngineKind::Kernel.to_string());
    }
    let on_kernel = is_on_kernel(spec.on.as_deref());
    let mut found = HostFacts::default();
    existing_files(spec)?;
    // The first file stands for the device of all. ELF files come last, since they are copied.
    let file = spec.existing_files().min_by_key(|file| file.is_elf);
    let file = file.map(|file| (!file.is_elf).then(|| PathBuf::from(file.path)));
    if let Some(image) = spec.image.as_deref().filter(|_| on_kernel) {
        if let Some(nearest) = Kernel::nearest(&image_release(image)?) {
            spec.kernel.get_or_insert(nearest.kernel.name().to_string());
        }
        // A guest has a virtual disk, not this machine's.
        found.io_bytes = Some(IO_BYTES);
        return Ok(found);
    }
    if on_kernel {
        spec.kernel.get_or_insert("host".to_string());
    }
    if on_kernel || file.is_some() || spec.kernel.as_deref() == Some("host") {
        let file = file.flatten();
        match find_storage(spec, file.as_deref()) {
            Ok(place) => resolve_storage(spec, &place, file.is_some(), &mut found),
            // The engine refuses the job later, unless it finds another error first.
            Err(_) if on_kernel => {}
            Err(_) if spec.read_ahead_kb.is_some() && spec.fs.is_some() => {}
            Err(error) => return Err(error),
        }
    }
    Ok(found)
}

/// Sets the number of CPUs for the workload `thrash` to this machine's, at most one per thread, if
/// the job runs on this machine or is compared with it.
pub fn resolve_cpus(spec: &mut JobFlags) {
    if !is_on_kernel(spec.on.as_deref())
        && spec.image.is_none()
        && spec.kernel.as_deref() != Some("host")
    {
        return;
    }
    let here = filemap_kernel::probe::cpus::allowed_cpus();
    let booted = spec.threads.filter(|_| spec.image.is_some()).unwrap_or(here);
    spec.cpus.get_or_insert(here.min(booted));
}

/// Whether `engines` includes the kernel.
pub fn is_on_kernel(engines: Option<&str>) -> bool {
    let mut engines = engines.iter().flat_map(|engines| engines.split(','));
    engines.any(|engine| engine == EngineKind::Kernel.name())
}

/// Whether `engines` includes the model.
pub fn is_on_model(engines: Option<&str>) -> bool {
    let engines = engines.unwrap_or(EngineKind::Model.name());
    engines.split(',').any(|engine| engine == EngineKind::Model.name())
}

/// Filesystem and maximum request size of the device for `file`, or for the directory where files
/// are created. Fails if its readahead size or filesystem is unknown.
fn find_storage(spec: &JobSpec, file: Option<&Path>) -> Result<(Storage, Option<u64>), Error> {
    let path = match file {
        // The model needs only the readahead and folios of a file of an overlay.
        Some(path) => layer_file(path)
            .filter(|_| !is_on_kernel(spec.on.as_deref()))
            .unwrap_or_else(|| path.to_owned()),
        None => temporary_directory()?,
    };
    let place = Storage::find(&path)?;
    let unknown = |reason: String| {
        Error::CannotRun(format!(
            "'{}' {reason}; give --read-ahead-kb and --fs, or a file on a disk",
            path.display()
        ))
    };
    if let Some(reason) = place.unsuitable_reason() {
        return Err(unknown(reason));
    }
    if place.read_ahead_kb.or(spec.read_ahead_kb).is_none() {
        return Err(unknown("is on a device without a known readahead size".to_string()));
    }
    Ok((place, io_bytes(&path).ok()))
}

fn resolve_storage(
    spec: &mut JobSpec,
    place: &(Storage, Option<u64>),
    is_given: bool,
    found: &mut HostFacts,
) {
    let (place, io_bytes) = place;
    let family = if cfg!(target_arch = "aarch64") { Family::Arm64 } else { Family::X86_64 };
    if spec.arch.get_or_insert(family.name().to_string()) == family.name() {
        spec.page_size.get_or_insert(SizeText::from_bytes(page_size()));
    }
    let (read_ahead_kb, fs) = (place.read_ahead_kb, place.folios().to_string());
    let is_xfs = place.folios() == Filesystem::Xfs;
    let block_bytes = if is_xfs { place.block_bytes } else { page_size() };
    let block_size_bytes = spec.block_size.as_ref().and_then(|size| size.bytes().ok());
    let other = |is_given: bool, is_same: bool| is_given && !is_same;
    // If the directory does not match the job, the kernel engine creates the file on a loop device.
    let elsewhere = other(spec.read_ahead_kb.is_some(), spec.read_ahead_kb == read_ahead_kb)
        || other(spec.fs.is_some(), spec.fs.as_ref() == Some(&fs))
        || other(block_size_bytes.is_some(), block_size_bytes == Some(block_bytes));
    found.io_bytes = if is_given || !elsewhere {
        *io_bytes
    } else {
        // The limits of a loop device are not known in advance.
        Some(IO_BYTES)
    };
    spec.read_ahead_kb = spec.read_ahead_kb.or_else(|| whole_pages(read_ahead_kb?, spec));
    spec.fs.get_or_insert(fs);
    if (is_given || !elsewhere) && block_bytes > page_size() {
        spec.block_size.get_or_insert(SizeText::from_bytes(block_bytes));
    }
}

/// Rounds a readahead size in KiB down to whole pages of `spec`.
fn whole_pages(read_ahead_kb: u64, spec: &JobSpec) -> Option<u64> {
    let page_size = spec.page_size.as_ref().and_then(|size| size.bytes().ok());
    let page_kb = (page_size.unwrap_or(4096) / 1024).max(1);
    Some(read_ahead_kb - read_ahead_kb % page_kb)
}

/// Fills in size, holes and segments of the existing files of a job.
///
/// # Errors
/// When a file cannot be used, or two names refer to the same file.
fn existing_files(spec: &mut JobSpec) -> Result<(), Error> {
    let mut seen: Vec<(u64, u64, String)> = Vec::new();
    for ExistingFile { name, path, is_elf, found } in spec.existing_files() {
        let (size_bytes, holes) = existing_file(path)?;
        if let Ok(data) = std::fs::metadata(path) {
            let same = seen.iter().find(|other| (other.0, other.1) == (data.dev(), data.ino()));
            if let Some((.., other)) = same {
                return Err(Error::Usage(format!(
                    "files '{other}' and '{name}' are the same file; give one [[file]], and an \
                     [[open]] for each time that it is opened"
                )));
            }
            seen.push((data.dev(), data.ino(), name.to_string()));
        }
        let elf = is_elf.then(|| input::segments(path)).transpose()?;
        let holes = if is_elf { Vec::new() } else { holes };
        let sparse = matches!(&holes[..], [hole] if *hole == (0..size_bytes));
        *found = Some(FoundFile { size_bytes, sparse, holes, elf });
    }
    Ok(())
}

/// The release of the kernel image at `path`.
///
/// # Errors
/// When it is not a bootable kernel.
pub fn image_release(path: &str) -> Result<String, Error> {
    let release = filemap_kernel::image::release(Path::new(path));
    release.map_err(|error| filemap_kernel::Error::from(error).into())
}

/// Size in bytes and holes of the file at `path`; fails if it cannot be read or is empty.
fn existing_file(path: &str) -> Result<(u64, Vec<Range<u64>>), Error> {
    let (file, bytes) = input::regular("file", path)?;
    match bytes {
        0 => {
            let reason = "it is empty".to_string();
            Err(Error::Read { what: "file", path: path.to_string(), reason })
        }
        bytes => Ok((bytes, hole_ranges(&file))),
    }
}

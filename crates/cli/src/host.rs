//! What a job takes from this machine where its flags do not say.

use std::path::Path;

use filemap_core::rules::Kernel;
use filemap_job::{EngineKind, Filesystem, JobSpec, SizeText};
use filemap_kernel::engine::temporary_directory;
use filemap_kernel::place::Place;

use crate::error::Error;
use crate::input;

/// Fills in what `spec` does not say. A kernel image is for the kernel engine. A file that exists
/// has its size. For a real kernel the rules are its own, and for the running one the readahead
/// and the filesystem are those of where the file lies.
///
/// # Errors
/// A file or image that cannot be used.
pub fn resolve(spec: &mut JobSpec) -> Result<(), Error> {
    if spec.image.is_some() {
        spec.on.get_or_insert(EngineKind::Kernel.to_string());
    }
    let engines = spec.on.as_deref().unwrap_or_default();
    let on_kernel = engines.split(',').any(|engine| engine == EngineKind::Kernel.name());
    // A program's segments have been read, and with them its size.
    if let Some(path) = spec.file.clone().filter(|_| !spec.maps_elf()) {
        let bytes = existing(&path)?;
        let given = spec.file_size.get_or_insert(SizeText::of(bytes));
        if given.bytes().is_ok_and(|given| given != bytes) {
            let size = SizeText::of(bytes);
            return Err(Error::Usage(format!(
                "--file-size {} is not that of '{path}', {}; leave it out",
                given.0, size.0
            )));
        }
    }
    match (on_kernel, spec.image.as_deref()) {
        (false, _) => Ok(()),
        (true, Some(image)) => {
            let release = image_release(image)?;
            if let Some(nearest) = Kernel::nearest(&release) {
                spec.kernel.get_or_insert(nearest.name().to_string());
            }
            Ok(())
        }
        (true, None) => {
            spec.kernel.get_or_insert("host".to_string());
            // Without a place the engine refuses the job, unless something else is wrong with it.
            if let Ok(place) = place_of(spec) {
                resolve_place(spec, &place);
            }
            Ok(())
        }
    }
}

/// Where the file of `spec` lies, or would be made.
fn place_of(spec: &JobSpec) -> Result<Place, filemap_kernel::Error> {
    match &spec.file {
        Some(path) if !spec.maps_elf() => Place::of(Path::new(path)),
        // A program is copied.
        _ => Place::of(&temporary_directory()?),
    }
}

fn resolve_place(spec: &mut JobSpec, place: &Place) {
    spec.read_ahead_kb = spec.read_ahead_kb.or(place.read_ahead_kb);
    let filesystem = place.filesystem.parse().unwrap_or(Filesystem::BasePages);
    spec.fs.get_or_insert(filesystem.to_string());
}

/// The release of the kernel at `path`.
///
/// # Errors
/// When it is no kernel that can be booted.
pub fn image_release(path: &str) -> Result<String, Error> {
    let release = filemap_kernel::image::release(Path::new(path));
    release.map_err(|error| filemap_kernel::Error::from(error).into())
}

/// The size in bytes of the file at `path`, which can be read and is not empty.
fn existing(path: &str) -> Result<u64, Error> {
    match input::regular("file", path)? {
        0 => {
            let reason = "it is empty".to_string();
            Err(Error::Read { what: "file", path: path.to_string(), reason })
        }
        bytes => Ok(bytes),
    }
}

//! The governor's library, and how a program is told to load it.

use std::ffi::{OsStr, OsString};
use std::os::unix::ffi::OsStrExt;
use std::path::{Path, PathBuf};

use crate::Error;

/// The library's file.
pub const LIBRARY: &str = "libfilemap_governor.so";

/// The variable that names libraries to load before all others.
pub const PRELOAD: &str = "LD_PRELOAD";

/// The library: beside this program, or where it is installed.
///
/// # Errors
/// When it is in neither place, or in one whose name cannot be said to a program.
pub fn library() -> Result<PathBuf, Error> {
    let own = std::env::current_exe().map_err(|error| Error::call("find this program", error))?;
    let beside = own.parent().unwrap_or(Path::new("/"));
    let installed = beside.parent().unwrap_or(Path::new("/")).join("lib/filemap");
    let found = [beside, &installed].map(|place| place.join(LIBRARY));
    let Some(path) = found.iter().find(|path| path.is_file()) else {
        return Err(Error::unavailable(
            format!(
                "{LIBRARY}, which is neither in '{}' nor in '{}'",
                beside.display(),
                installed.display()
            ),
            "build it with cargo build --release, or install filemap with cargo xtask install",
        ));
    };
    // The loader takes the first two for separators, and what follows the third for a name.
    if path.as_os_str().as_bytes().iter().any(|byte| b" :$".contains(byte)) {
        return Err(Error::unavailable(
            format!("preloading '{}', since a blank, : or $ is in its path", path.display()),
            "install filemap elsewhere",
        ));
    }
    Ok(path.clone())
}

/// The value of [`PRELOAD`] with `library` behind what is there `already`.
pub fn preloaded(library: &Path, already: Option<&OsStr>) -> OsString {
    let library = library.as_os_str();
    let Some(already) = already.filter(|already| !already.is_empty()) else {
        return library.to_owned();
    };
    let mut words = already.as_bytes().split(|byte| b" :".contains(byte));
    if words.any(|word| word == library.as_bytes()) {
        return already.to_owned();
    }
    let mut all = already.to_owned();
    all.push(":");
    all.push(library);
    all
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_library_stands_behind_others_once() {
        let of = |already: Option<&str>| preloaded(Path::new("/l.so"), already.map(OsStr::new));
        for (already, all) in [
            (None, "/l.so"),
            (Some(""), "/l.so"),
            (Some("/a.so"), "/a.so:/l.so"),
            (Some("/l.so"), "/l.so"),
            (Some("/l.so /a.so"), "/l.so /a.so"),
            (Some("/l.so.1"), "/l.so.1:/l.so"),
        ] {
            assert_eq!(of(already), all, "{already:?}");
        }
    }
}

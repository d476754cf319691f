//! Patterns of paths.

use std::ffi::{CString, OsString};
use std::os::unix::ffi::OsStrExt;
use std::path::Path;

/// Whether one of `patterns`, as for fnmatch(3), is one of `path`.
pub fn any_matches(patterns: &[OsString], path: &Path) -> bool {
    let Ok(path) = CString::new(path.as_os_str().as_bytes()) else { return false };
    patterns.iter().filter_map(|text| CString::new(text.as_bytes()).ok()).any(|pattern| {
        // SAFETY: both texts end with a NUL and live on.
        unsafe { libc::fnmatch(pattern.as_ptr(), path.as_ptr(), 0) == 0 }
    })
}

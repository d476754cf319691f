//! The files of the job.

use std::collections::HashSet;
use std::path::Path;

use filemap_job::SizeText;
use filemap_job::program::FileSpec;

use super::Existing;
use super::approximation::Said;
use super::gather::File;
use super::names::{self, Names};

/// The table of `file`, which is named by its path where it is still there with its size.
pub fn table(
    file: &File,
    given: &mut Names,
    existing: &dyn Fn(&Path) -> Option<Existing>,
    seen: &mut HashSet<(u64, u64)>,
    said: &mut Said,
) -> FileSpec {
    let name = given.give(&names::of_path(&file.path));
    let recorded = file.size_bytes.max(file.first_size_bytes);
    let size_bytes = recorded.max(file.needed_bytes);
    let shown = || file.path.display().to_string().replace(char::is_control, "?");
    let path = file.path.to_str();
    match existing(&file.path).zip(path) {
        None if path.is_none() => said.unnamed.push(shown()),
        None => said.gone.push(shown()),
        Some((now, _)) if now.size_bytes != size_bytes => said.changed.push(shown()),
        Some((now, _)) if !seen.insert(now.identity) => said.twins.push(shown()),
        Some((_, path)) => {
            return FileSpec { name, path: Some(path.to_string()), ..FileSpec::default() };
        }
    }
    if size_bytes > file.first_size_bytes {
        said.grown.push(shown());
    }
    FileSpec { name, size: Some(SizeText::of(size_bytes)), ..FileSpec::default() }
}

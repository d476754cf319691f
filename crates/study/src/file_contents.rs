//! The kind of a file on this machine.

use std::io::Read;
use std::path::Path;

use filemap_job::file_contents::{FIRST_BYTES, FileContents};

use crate::input;

/// Kind of the file at `path`; of the file called `name` without a path.
pub fn contents_of(path: Option<&Path>, name: &str) -> FileContents {
    let first = path.and_then(|path| {
        let (file, _) = input::regular("file", path.to_str()?).ok()?;
        let mut first = Vec::new();
        file.take(FIRST_BYTES as u64).read_to_end(&mut first).ok()?;
        Some(first)
    });
    FileContents::identify(&first.unwrap_or_default(), path.unwrap_or(Path::new(name)))
}

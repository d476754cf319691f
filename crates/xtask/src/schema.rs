//! JSON schemas as files.

use std::fs;
use std::path::Path;

use anyhow::{Context, Result};
use filemap_study::schema;

/// Writes the schemas of job files, of the JSON of each command and of the lines of a log into
/// `directory`.
///
/// # Errors
/// When a file cannot be written.
pub fn write(directory: &Path) -> Result<()> {
    let shown = || format!("no schema can be written to {}", directory.display());
    fs::create_dir_all(directory).with_context(shown)?;
    for (name, schema) in schema::all() {
        let text = serde_json::to_string_pretty(&schema)? + "\n";
        fs::write(directory.join(format!("{name}.schema.json")), text).with_context(shown)?;
    }
    Ok(())
}

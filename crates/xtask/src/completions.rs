//! Completions of the command line for shells.

use std::fs;
use std::path::Path;

use anyhow::{Context, Result};
use clap_complete::{Shell, generate_to};
use filemap_cli::command;

/// The shells that completions are made for.
const SHELLS: [Shell; 3] = [Shell::Bash, Shell::Zsh, Shell::Fish];

/// Writes a completion script for each shell into `directory`.
///
/// # Errors
/// When a file cannot be written.
pub fn write(directory: &Path) -> Result<()> {
    fs::create_dir_all(directory)
        .with_context(|| format!("{} cannot be made; give another", directory.display()))?;
    for shell in SHELLS {
        generate_to(shell, &mut command(), "filemap", directory).with_context(|| {
            format!("no completions for {shell} can be written to {}", directory.display())
        })?;
    }
    Ok(())
}

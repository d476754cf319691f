//! `cargo xtask outputs`: regenerates the sections of documents that are made from something else:
//! output of `filemap`, and tables of `data/measured`. For example,
//!
//! ```text
//! <!-- output: published mmap-miss; until: Random cells -->
//! <!-- end of output -->
//! ```
//!
//! holds what `filemap published mmap-miss` prints before the line that starts with these words.

use std::fs;
use std::process::Command;

use anyhow::{Context, Result, bail};

use crate::repository::{File, Repository, root};
use crate::{markdown, measured};

/// The kind of sections that hold the output of a command.
const KIND: &str = "output";
const UNTIL: &str = "; until: ";

/// Regenerates all sections of all documents. With `check`, changes nothing. Returns the paths of
/// the documents that differ.
///
/// # Errors
/// When a command fails, a section cannot be made, or a document cannot be written.
pub fn refresh(check: bool) -> Result<Vec<String>> {
    let repository = Repository::read()?;
    let mut differing = Vec::new();
    for file in repository.under("", ".md") {
        let text = from_data(file, &repository).and_then(|text| from_commands(&text, filemap));
        let text = text.with_context(|| file.path.clone())?;
        if text == file.text {
            continue;
        }
        differing.push(file.path.clone());
        if !check {
            let path = root().join(&file.path);
            fs::write(&path, text).with_context(|| format!("{} not written", path.display()))?;
        }
    }
    Ok(differing)
}

/// The document with the sections that are made from files of `data` regenerated.
///
/// # Errors
/// When one cannot be made.
pub fn from_data(document: &File, repository: &Repository) -> Result<String> {
    let measured = |words: &str| measured::show(words, &document.path, repository);
    markdown::regenerate(&document.text, measured::KIND, measured)
}

/// `document` with the output of each command, as `run` gives it.
fn from_commands(document: &str, run: impl Fn(&str) -> Result<String>) -> Result<String> {
    markdown::regenerate(document, KIND, |words| {
        let (args, until) = words.split_once(UNTIL).unwrap_or((words, "Scope:"));
        Ok(format!("```text\n{}\n```", truncate(&run(args)?, until)?))
    })
}

/// `output` before the line that starts with `until`.
fn truncate<'a>(output: &'a str, until: &str) -> Result<&'a str> {
    let end = output.find(&format!("\n{until}"));
    Ok(output[..end.with_context(|| format!("no line begins with '{until}'"))?].trim_end())
}

fn filemap(args: &str) -> Result<String> {
    let cargo = std::env::var("CARGO").unwrap_or("cargo".to_string());
    let output = Command::new(cargo)
        // Not --package, which would build dependencies again with fewer features.
        .args(["run", "--release", "--quiet", "--"])
        .args(args.split_whitespace())
        // Documents show the built-in machine profile, not the calibrated one of a user.
        .env("XDG_STATE_HOME", "/dev/null/no-state")
        .current_dir(root())
        .output()
        .context("cargo does not start")?;
    if !output.status.success() {
        bail!("filemap {args}: {}", String::from_utf8_lossy(&output.stderr).trim());
    }
    String::from_utf8(output.stdout).with_context(|| format!("filemap {args} prints no text"))
}

#[cfg(test)]
mod tests {
    use super::*;

    const DOCUMENT: &str = "<!-- output: run x; until: Scope -->\n<!-- end of output -->\n";

    #[test]
    fn shows_output_up_to_the_given_line() {
        let run = |args: &str| Ok(format!("{args}\n1\n\nScope: s\n"));
        let text = from_commands(DOCUMENT, run).unwrap();
        let expected = "<!-- output: run x; until: Scope -->\n\n```text\nrun x\n1\n```\n\n\
            <!-- end of output -->\n";
        assert_eq!(text, expected);
        assert_eq!(from_commands(&text, run).unwrap(), expected);
        assert_eq!(from_commands("no output\n", run).unwrap(), "no output\n");
    }

    #[test]
    fn fails_without_the_given_line() {
        let run = |_: &str| Ok("1\n".to_string());
        let error = format!("{:#}", from_commands(DOCUMENT, run).unwrap_err());
        assert!(error.ends_with("no line begins with 'Scope'"), "{error}");
    }
}

//! What documents show of other things: outputs of `filemap`, tables of what was measured, and
//! rules that are broken on purpose. An output stands between two comments:
//!
//! ```text
//! <!-- output: published mmap-miss; until: Random cells -->
//! <!-- end of output -->
//! ```
//!
//! shows what `filemap published mmap-miss` prints, up to the line that begins with these words.

use std::fs;
use std::process::Command;

use anyhow::{Context, Result, bail};

use crate::repository::{File, Repository, root};
use crate::{measured, mutations, shown};

/// Which part of a document is the output of a command.
const KIND: &str = "output";
const UNTIL: &str = "; until: ";

/// Makes every part of a document that is made of something else. Where one is another, writes the
/// document, unless this is but a check. Returns the paths of the documents that differ.
///
/// # Errors
/// When a command fails, a part cannot be made, or a document cannot be written.
pub fn refresh(check: bool) -> Result<Vec<String>> {
    let repository = Repository::read()?;
    let mut differing = Vec::new();
    for file in repository.under("", ".md") {
        let text = of_data(file, &repository).and_then(|text| with_outputs(&text, filemap));
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

/// The document with the parts that are made of files of `data`.
///
/// # Errors
/// When one cannot be made.
pub fn of_data(document: &File, repository: &Repository) -> Result<String> {
    let show = |words: &str| measured::show(words, &document.path, repository);
    let text = shown::replaced(&document.text, measured::KIND, show)?;
    shown::replaced(&text, mutations::KIND, |words| mutations::show(words, repository))
}

/// `document` with each output as `run` gives it for the words of the command.
fn with_outputs(document: &str, run: impl Fn(&str) -> Result<String>) -> Result<String> {
    shown::replaced(document, KIND, |words| {
        let (args, until) = words.split_once(UNTIL).unwrap_or((words, "Scope:"));
        Ok(format!("```text\n{}\n```", cut(&run(args)?, until)?))
    })
}

/// `output` up to the line that begins with `until`.
fn cut<'a>(output: &'a str, until: &str) -> Result<&'a str> {
    let end = output.find(&format!("\n{until}"));
    Ok(output[..end.with_context(|| format!("no line begins with '{until}'"))?].trim_end())
}

fn filemap(args: &str) -> Result<String> {
    let cargo = std::env::var("CARGO").unwrap_or("cargo".to_string());
    let output = Command::new(cargo)
        // Without a package, with which its libraries would be built for it alone.
        .args(["run", "--release", "--quiet", "--"])
        .args(args.split_whitespace())
        // Documents show the built-in machine profile, whoever refreshes them.
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
    fn outputs_are_put_in_their_places() {
        let run = |args: &str| Ok(format!("{args}\n1\n\nScope: s\n"));
        let text = with_outputs(DOCUMENT, run).unwrap();
        let shown = "<!-- output: run x; until: Scope -->\n\n```text\nrun x\n1\n```\n\n\
            <!-- end of output -->\n";
        assert_eq!(text, shown);
        assert_eq!(with_outputs(&text, run).unwrap(), shown);
        assert_eq!(with_outputs("no output\n", run).unwrap(), "no output\n");
    }

    #[test]
    fn what_is_missing_is_told() {
        let run = |_: &str| Ok("1\n".to_string());
        let error = format!("{:#}", with_outputs(DOCUMENT, run).unwrap_err());
        assert!(error.ends_with("no line begins with 'Scope'"), "{error}");
    }
}

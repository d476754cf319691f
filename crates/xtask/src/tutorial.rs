//! `cargo xtask tutorial`: follows docs/TUTORIAL.md as a reader would, in a copy of this tree. Its
//! diffs have to apply, and its commands to print what the document shows.

use anyhow::{Context, Result, bail, ensure};

use crate::markdown::{self, CodeBlock};
use crate::repository::Repository;
use crate::tree::{self, Tree};

const DOCUMENT: &str = "docs/TUTORIAL.md";

/// Stands for any number of lines, and at the end of a line for the rest of it.
const ELLIPSIS: &str = "...";

/// Takes each step and prints a line for it. Returns whether all went as the document says.
///
/// # Errors
/// When the tree cannot be copied, or the document has no steps.
pub fn run() -> Result<bool> {
    let repository = Repository::read()?;
    let steps = steps(&repository)?;
    let names = steps.iter().map(|step| {
        let name = match &step.action {
            Action::Patch(diff) => diff.lines().next().unwrap_or_default(),
            Action::Run { command, .. } => command,
        };
        (line_name(step.line), name.to_string())
    });
    tree::follow(&repository, names, |tree, number| steps[number].take(tree))
}

/// Something that the reader does.
#[derive(Clone, Debug, PartialEq, Eq)]
struct Step {
    /// Line of the document.
    line: usize,
    action: Action,
}

#[derive(Clone, Debug, PartialEq, Eq)]
enum Action {
    Patch(String),
    Run { command: String, shown: Option<Vec<String>> },
}

impl Step {
    fn take(&self, tree: &Tree) -> Result<()> {
        match &self.action {
            Action::Patch(diff) => tree.apply(diff),
            Action::Run { command, shown } => {
                let printed = tree.run(command)?;
                shown.as_ref().map_or(Ok(()), |shown| compare(shown, &printed))
            }
        }
    }
}

/// The steps of the tutorial: its blocks of `diff` and `sh`. A block of `text` is the output of the
/// command before it.
fn steps(repository: &Repository) -> Result<Vec<Step>> {
    let text = repository.text(DOCUMENT).with_context(|| format!("{DOCUMENT} is missing"))?;
    let mut steps: Vec<Step> = Vec::new();
    for CodeBlock { line, language, lines } in markdown::code_blocks(text) {
        match (language, steps.last_mut()) {
            ("diff", _) => {
                let diff = lines.iter().map(|line| format!("{line}\n")).collect();
                steps.push(Step { line, action: Action::Patch(diff) });
            }
            ("sh", _) => {
                let commands = markdown::join_commands((line..).zip(lines));
                let step =
                    |(line, command)| Step { line, action: Action::Run { command, shown: None } };
                steps.extend(commands.into_iter().map(step));
            }
            ("text", Some(Step { action: Action::Run { shown: shown @ None, .. }, .. })) => {
                *shown = Some(lines.into_iter().map(String::from).collect());
            }
            _ => bail!("{}: a block of '{language}' belongs to no step", line_name(line)),
        }
    }
    ensure!(!steps.is_empty(), "{DOCUMENT} shows no step");
    Ok(steps)
}

fn line_name(line: usize) -> String {
    format!("{DOCUMENT}:{line}")
}

/// Compares the lines `shown` with those that were `printed`.
fn compare(shown: &[impl AsRef<str>], printed: &str) -> Result<()> {
    let mut printed = printed.lines();
    let mut skips = false;
    for line in shown.iter().map(AsRef::as_ref) {
        if line == ELLIPSIS {
            skips = true;
            continue;
        }
        let matches = |other: &&str| match line.strip_suffix(ELLIPSIS) {
            Some(start) => other.starts_with(start),
            None => other.trim_end() == line.trim_end(),
        };
        let found = if skips { printed.find(matches) } else { printed.next().filter(matches) };
        found.with_context(|| format!("it does not print '{line}' where that is shown"))?;
        skips = false;
    }
    match printed.next().filter(|_| !skips) {
        Some(line) => bail!("it prints '{line}' and more after what is shown"),
        None => Ok(()),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn reads_steps_in_order() {
        let text = "```diff\n--- a/x\n+++ b/x\n```\n\n```sh\na # why\nb \\\n  -c\n```\nso\n\
                    ```text\nc\n```\n";
        let repository = Repository::from_files(&[(DOCUMENT, text)]);
        let run = |command: &str, shown| Action::Run { command: command.to_string(), shown };
        let expected = [
            Step { line: 2, action: Action::Patch("--- a/x\n+++ b/x\n".to_string()) },
            Step { line: 7, action: run("a", None) },
            Step { line: 8, action: run("b -c", Some(vec!["c".to_string()])) },
        ];
        assert_eq!(steps(&repository).unwrap(), expected);
        for wrong in ["", "```text\nc\n```\n", "```toml\nc\n```\n"] {
            assert!(steps(&Repository::from_files(&[(DOCUMENT, wrong)])).is_err(), "{wrong}");
        }
    }

    #[test]
    fn ellipses_match_lines_and_ends_of_lines() {
        let printed = "one\ntwo  \nthree: 3 ms\nfour\n";
        let matches = |shown: &str| compare(&shown.lines().collect::<Vec<_>>(), printed).is_ok();
        for shown in [
            "one\ntwo\nthree: 3 ms\nfour",
            "one\n...",
            "...\nfour",
            "...\ntwo\nthree: ...\n...",
            "one\n...\nfour",
        ] {
            assert!(matches(shown), "{shown}");
        }
        for shown in
            ["one", "two\n...", "...\none\nthree: ...\n...", "...\nfive", "...\nfour\nfive"]
        {
            assert!(!matches(shown), "{shown}");
        }
    }

    /// The part that needs no build: a diff that no longer applies fails here, in seconds.
    #[test]
    fn diffs_apply() {
        let directory = std::env::temp_dir().join(format!("tutorial-{}", std::process::id()));
        let repository = Repository::read().unwrap();
        let tree = Tree::copy(&repository, &directory).unwrap();
        let steps = steps(&repository).unwrap();
        let diffs: Vec<_> =
            steps.iter().filter(|step| matches!(step.action, Action::Patch(_))).collect();
        assert!(!diffs.is_empty());
        for diff in diffs {
            diff.take(&tree).unwrap();
        }
        assert!(tree.run("false").is_err());
        drop(tree);
        assert!(!directory.exists());
    }
}

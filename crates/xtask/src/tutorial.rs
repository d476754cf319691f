//! Does what docs/TUTORIAL.md says, as its reader would, in a copy of this tree: applies its diffs,
//! runs its commands, and compares what they print with what it shows. The same in another copy
//! with docs/MUTATIONS.md.

use std::fs::{self, File};
use std::path::{Path, PathBuf, absolute};
use std::process::{Command, Stdio};
use std::time::{Duration, Instant};

use anyhow::{Context, Result, bail, ensure};

use crate::blocks::{self, Block};
use crate::repository::{Repository, root};
use crate::shell;

const DOCUMENTS: [&str; 2] = ["docs/TUTORIAL.md", "docs/MUTATIONS.md"];

/// A command that takes longer has failed. Building takes a tenth of this on an idle machine.
const TIME_LIMIT: Duration = Duration::from_secs(3600);

/// Stands for lines that are not shown, and at the end of a line for what is left of it.
const OMITTED: &str = "...";

/// Does each step and prints a line for it. Returns whether all of them went as the documents say.
///
/// # Errors
/// When the tree cannot be copied, or a document shows no step.
pub fn run() -> Result<bool> {
    let repository = Repository::read()?;
    shell::end_on_signals();
    for document in DOCUMENTS {
        if !follow(&repository, document)? {
            return Ok(false);
        }
    }
    Ok(true)
}

/// The same for one document.
fn follow(repository: &Repository, document: &str) -> Result<bool> {
    let steps = steps(repository, document)?;
    let tree = Tree::copy(repository, &root().join("target/tutorial"))?;
    let began = Instant::now();
    for (number, step) in steps.iter().enumerate() {
        let start = Instant::now();
        let done = tree.take(step);
        let seconds = start.elapsed().as_secs_f64();
        let verdict = done.as_ref().err().map_or("as shown".to_string(), |e| format!("{e:#}"));
        println!("{document}:{}: {seconds:.1} s: {}: {verdict}", step.line, step.name());
        if done.is_err() {
            [&tree.printed, &tree.said].into_iter().for_each(|path| shell::show_end(path));
            println!("{} of {} steps were not taken", steps.len() - number - 1, steps.len());
            return Ok(false);
        }
    }
    println!("{} steps in {:.0} s", steps.len(), began.elapsed().as_secs_f64());
    Ok(true)
}

/// Something that the reader does.
#[derive(Clone, Debug, PartialEq, Eq)]
struct Step<'a> {
    line: usize,
    does: Does<'a>,
}

#[derive(Clone, Debug, PartialEq, Eq)]
enum Does<'a> {
    /// Applies a diff.
    Patch(String),
    /// Runs a command, of whose output this is shown.
    Run(String, Option<Vec<&'a str>>),
}

impl Step<'_> {
    fn name(&self) -> &str {
        match &self.does {
            Does::Patch(diff) => diff.lines().next().unwrap_or_default(),
            Does::Run(command, _) => command,
        }
    }
}

/// The steps of `document` of `repository`: its blocks of `diff` and `sh`, and those of `text`,
/// which are what the command before them prints.
fn steps<'a>(repository: &'a Repository, document: &str) -> Result<Vec<Step<'a>>> {
    let text = repository.text(document).with_context(|| format!("{document} is missing"))?;
    let mut steps: Vec<Step<'_>> = Vec::new();
    for Block { line, language, lines } in blocks::all(text) {
        match (language, steps.last_mut()) {
            ("diff", _) => {
                let diff = lines.iter().map(|line| format!("{line}\n")).collect();
                steps.push(Step { line, does: Does::Patch(diff) });
            }
            ("sh", _) => steps.extend(commands(line, &lines)),
            ("text", Some(Step { does: Does::Run(_, shown @ None), .. })) => *shown = Some(lines),
            _ => bail!("{document}:{line}: a block of '{language}' belongs to no step"),
        }
    }
    ensure!(!steps.is_empty(), "{document} shows no step");
    Ok(steps)
}

/// The commands of a block that begins at `line`.
fn commands<'a>(line: usize, lines: &[&str]) -> impl Iterator<Item = Step<'a>> {
    let commands = blocks::commands((line..).zip(lines.iter().copied()));
    commands.into_iter().map(|(line, command)| Step { line, does: Does::Run(command, None) })
}

/// A copy of the tree, which goes when this drops and when a signal ends this program.
struct Tree {
    directory: PathBuf,
    root: PathBuf,
    printed: PathBuf,
    said: PathBuf,
}

impl Tree {
    fn copy(repository: &Repository, directory: &Path) -> Result<Tree> {
        let mut left = shell::left();
        // Of one that was killed.
        let _ = fs::remove_dir_all(directory);
        left.directory = Some(directory.to_path_buf());
        let tree = Tree {
            directory: directory.to_path_buf(),
            root: directory.join("tree"),
            printed: directory.join("stdout"),
            said: directory.join("stderr"),
        };
        let written = repository.files.iter().try_for_each(|file| {
            let path = tree.root.join(&file.path);
            let write = || {
                fs::create_dir_all(path.parent().expect("a file lies in a directory"))?;
                fs::write(&path, &file.text)
            };
            write().with_context(|| format!("{} not written", path.display()))
        });
        // Before the tree goes, which asks for it.
        drop(left);
        written.map(|()| tree)
    }

    fn take(&self, step: &Step<'_>) -> Result<()> {
        match &step.does {
            Does::Patch(diff) => {
                let path = self.directory.join("diff");
                fs::write(&path, diff).context("the diff is not written")?;
                self.run("git apply ../diff").context("it does not apply")?;
            }
            Does::Run(command, shown) => {
                let printed = self.run(command)?;
                shown.as_ref().map_or(Ok(()), |shown| compare(shown, &printed))?;
            }
        }
        Ok(())
    }

    /// Runs `command` in the tree and returns what it prints.
    fn run(&self, command: &str) -> Result<String> {
        let output = |path: &Path| {
            File::create(path).with_context(|| format!("{} not written", path.display()))
        };
        let target = std::env::var_os("CARGO_TARGET_DIR");
        let mut shell = Command::new("sh");
        shell
            .args(["-c", command])
            .current_dir(&self.root)
            // What the workspace depends on is built once for both (by a Cargo before 1.91, which
            // does not know the first of these, twice). Its programs are not those of this tree.
            .env("CARGO_BUILD_BUILD_DIR", absolute(target.unwrap_or(root().join("target").into()))?)
            .env("CARGO_TARGET_DIR", self.directory.join("target"))
            .env("CARGO_TERM_COLOR", "never")
            // The tree is no part of the repository that it lies in.
            .env("GIT_CEILING_DIRECTORIES", fs::canonicalize(&self.directory)?)
            // Documents show the built-in machine profile, whoever runs them.
            .env("XDG_STATE_HOME", "/dev/null/no-state")
            .stdin(Stdio::null())
            .stdout(output(&self.printed)?)
            .stderr(output(&self.said)?);
        let status = shell::wait(&mut shell, TIME_LIMIT)?;
        let status =
            status.with_context(|| format!("not done after {} s", TIME_LIMIT.as_secs()))?;
        ensure!(status.success(), "it failed ({status})");
        fs::read_to_string(&self.printed).context("what it printed cannot be read")
    }
}

impl Drop for Tree {
    fn drop(&mut self) {
        let mut left = shell::left();
        let _ = fs::remove_dir_all(&self.directory);
        left.directory = None;
    }
}

/// Compares the lines `shown` with those that were `printed`.
fn compare(shown: &[&str], printed: &str) -> Result<()> {
    let mut printed = printed.lines();
    let mut omits = false;
    for &line in shown {
        if line == OMITTED {
            omits = true;
            continue;
        }
        let is_it = |other: &&str| match line.strip_suffix(OMITTED) {
            Some(start) => other.starts_with(start),
            None => other.trim_end() == line.trim_end(),
        };
        let found = if omits { printed.find(is_it) } else { printed.next().filter(is_it) };
        found.with_context(|| format!("it does not print '{line}' where that is shown"))?;
        omits = false;
    }
    match printed.next().filter(|_| !omits) {
        Some(line) => bail!("it prints '{line}' and more behind what is shown"),
        None => Ok(()),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn blocks_are_steps_in_order() {
        let text = "```diff\n--- a/x\n+++ b/x\n```\n\n```sh\na # why\nb \\\n  -c\n```\nso\n\
                    ```text\nc\n```\n";
        let document = DOCUMENTS[0];
        let repository = Repository::of(&[(document, text)]);
        let steps = steps(&repository, document).unwrap();
        let does: Vec<_> = steps.iter().map(|step| (step.line, step.does.clone())).collect();
        let expected = [
            (2, Does::Patch("--- a/x\n+++ b/x\n".to_string())),
            (7, Does::Run("a".to_string(), None)),
            (8, Does::Run("b -c".to_string(), Some(vec!["c"]))),
        ];
        assert_eq!(does, expected);
        for wrong in ["", "```text\nc\n```\n", "```toml\nc\n```\n"] {
            assert!(
                super::steps(&Repository::of(&[(document, wrong)]), document).is_err(),
                "{wrong}"
            );
        }
    }

    #[test]
    fn what_is_shown_is_what_is_printed() {
        let printed = "one\ntwo  \nthree: 3 ms\nfour\n";
        let same = |shown: &str| compare(&shown.lines().collect::<Vec<_>>(), printed).is_ok();
        for shown in [
            "one\ntwo\nthree: 3 ms\nfour",
            "one\n...",
            "...\nfour",
            "...\ntwo\nthree: ...\n...",
            "one\n...\nfour",
        ] {
            assert!(same(shown), "{shown}");
        }
        for shown in
            ["one", "two\n...", "...\none\nthree: ...\n...", "...\nfive", "...\nfour\nfive"]
        {
            assert!(!same(shown), "{shown}");
        }
    }

    /// What takes seconds of it: a diff that no longer applies is told without a build.
    #[test]
    fn the_diffs_of_the_documents_apply() {
        let directory = std::env::temp_dir().join(format!("tutorial-{}", std::process::id()));
        let repository = Repository::read().unwrap();
        for document in DOCUMENTS {
            let tree = Tree::copy(&repository, &directory).unwrap();
            let steps = steps(&repository, document).unwrap();
            let diffs: Vec<_> =
                steps.iter().filter(|step| matches!(step.does, Does::Patch(_))).collect();
            assert!(!diffs.is_empty(), "{document} has no diff");
            for diff in diffs {
                tree.take(diff).unwrap();
            }
            assert!(tree.run("false").is_err());
            drop(tree);
            assert!(!directory.exists());
        }
    }
}

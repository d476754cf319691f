//! Does what docs/TUTORIAL.md says, as its reader would, in a copy of this tree: applies its diffs,
//! runs its commands, and compares what they print with what it shows. In other copies it plants
//! the broken series of `data/mutations`, which searches have to find, and breaks rules, which
//! tests have to notice.

use std::fs::{self, File};
use std::path::{Path, PathBuf, absolute};
use std::process::{Command, Stdio};
use std::time::{Duration, Instant};

use anyhow::{Context, Result, bail, ensure};

use crate::blocks::{self, Block};
use crate::mutations::{self, Mutant};
use crate::repository::{Repository, root};
use crate::shell;

const DOCUMENT: &str = "docs/TUTORIAL.md";

/// A command that takes longer has failed. Building takes a tenth of this on an idle machine.
const TIME_LIMIT: Duration = Duration::from_secs(3600);

/// Stands for lines that are not shown, and at the end of a line for what is left of it.
const OMITTED: &str = "...";

/// Does each step and prints a line for it. Returns whether all of them went as the documents say.
///
/// # Errors
/// When the tree cannot be copied, or there is no step.
pub fn run() -> Result<bool> {
    let repository = Repository::read()?;
    shell::end_on_signals();
    Ok(follow(&repository, &steps(&repository)?)? && follow(&repository, &searches(&repository)?)?)
}

/// Breaks each rule that a test has to notice, and prints a line for it. Returns whether all of
/// them were noticed.
///
/// # Errors
/// When the tree cannot be copied.
pub fn break_rules() -> Result<bool> {
    let repository = Repository::read()?;
    shell::end_on_signals();
    follow(&repository, &mutants(&repository)?)
}

/// Does `steps` in a copy of the tree.
fn follow(repository: &Repository, steps: &[Step]) -> Result<bool> {
    let tree = Tree::copy(repository, &root().join("target/tutorial"))?;
    let began = Instant::now();
    for (number, step) in steps.iter().enumerate() {
        let start = Instant::now();
        let done = tree.take(step, repository);
        let seconds = start.elapsed().as_secs_f64();
        let verdict = done.as_ref().err().map_or("as shown".to_string(), |e| format!("{e:#}"));
        println!("{}: {seconds:.1} s: {}: {verdict}", step.place, step.name());
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
struct Step {
    /// Where it is said: a file, and a line where it is a document.
    place: String,
    does: Does,
}

#[derive(Clone, Debug, PartialEq, Eq)]
enum Does {
    /// Applies a diff.
    Patch(String),
    /// Runs a command, of whose output this is shown.
    Run(String, Option<Vec<String>>),
    /// Breaks a rule, runs the test of it, and mends the rule again.
    Break(Mutant),
}

impl Step {
    fn name(&self) -> &str {
        match &self.does {
            Does::Patch(diff) => diff.lines().next().unwrap_or_default(),
            Does::Run(command, _) => command,
            Does::Break(mutant) => &mutant.test,
        }
    }
}

/// The steps of the tutorial in `repository`: its blocks of `diff` and `sh`, and those of `text`,
/// which are what the command before them prints.
fn steps(repository: &Repository) -> Result<Vec<Step>> {
    let text = repository.text(DOCUMENT).with_context(|| format!("{DOCUMENT} is missing"))?;
    let mut steps: Vec<Step> = Vec::new();
    for Block { line, language, lines } in blocks::all(text) {
        match (language, steps.last_mut()) {
            ("diff", _) => {
                let diff = lines.iter().map(|line| format!("{line}\n")).collect();
                steps.push(Step { place: at(line), does: Does::Patch(diff) });
            }
            ("sh", _) => steps.extend(commands(line, &lines)),
            ("text", Some(Step { does: Does::Run(_, shown @ None), .. })) => {
                *shown = Some(lines.into_iter().map(String::from).collect());
            }
            _ => bail!("{DOCUMENT}:{line}: a block of '{language}' belongs to no step"),
        }
    }
    ensure!(!steps.is_empty(), "{DOCUMENT} shows no step");
    Ok(steps)
}

fn at(line: usize) -> String {
    format!("{DOCUMENT}:{line}")
}

/// The commands of a block that begins at `line`.
fn commands(line: usize, lines: &[&str]) -> impl Iterator<Item = Step> {
    let commands = blocks::commands((line..).zip(lines.iter().copied()));
    commands
        .into_iter()
        .map(|(line, command)| Step { place: at(line), does: Does::Run(command, None) })
}

/// Plants the rules that searches have to find, and searches.
fn searches(repository: &Repository) -> Result<Vec<Step>> {
    let diff = repository.text(mutations::DIFF).context("the diff of the searches is missing")?;
    let patch = Step { place: mutations::DIFF.into(), does: Does::Patch(diff.to_string()) };
    let search = |searched: mutations::Searched| {
        let shown = searched.shows.lines().map(String::from).collect();
        let does = Does::Run(searched.command, Some(shown));
        Step { place: mutations::SEARCHED.into(), does }
    };
    let searches = mutations::searched(repository)?.into_iter().map(search);
    Ok([patch].into_iter().chain(searches).collect())
}

/// Breaks the rules that tests have to notice, one after the other.
fn mutants(repository: &Repository) -> Result<Vec<Step>> {
    let mutants = mutations::mutants(repository)?.into_iter();
    let step = |mutant| Step { place: mutations::MUTANTS.into(), does: Does::Break(mutant) };
    Ok(mutants.map(step).collect())
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

    fn take(&self, step: &Step, repository: &Repository) -> Result<()> {
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
            Does::Break(mutant) => self.notices(mutant, repository)?,
        }
        Ok(())
    }

    /// Whether the test of a rule fails once that is broken, and for no other reason.
    fn notices(&self, mutant: &Mutant, repository: &Repository) -> Result<()> {
        let path = self.root.join(&mutant.file);
        let whole = repository.text(&mutant.file).context("the file is missing")?;
        let write = |text: &str| fs::write(&path, text).context("the rule is not written");
        write(&mutant.broken(repository)?)?;
        // To compile takes longer than the test.
        let command = format!("CARGO_PROFILE_TEST_OPT_LEVEL=0 {}", mutant.command(repository)?);
        let passed = self.run(&command);
        write(whole)?;
        ensure!(passed.is_err(), "the test passes although the rule is broken");
        let printed = fs::read_to_string(&self.printed).context("what it printed is lost")?;
        let failed = format!("{} ... FAILED", mutant.test);
        ensure!(printed.contains(&failed), "the test does not run: the rule may not be Rust");
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
fn compare(shown: &[impl AsRef<str>], printed: &str) -> Result<()> {
    let mut printed = printed.lines();
    let mut omits = false;
    for line in shown.iter().map(AsRef::as_ref) {
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
        let repository = Repository::of(&[(DOCUMENT, text)]);
        let steps = steps(&repository).unwrap();
        let does: Vec<_> =
            steps.iter().map(|step| (step.place.clone(), step.does.clone())).collect();
        let expected = [
            (at(2), Does::Patch("--- a/x\n+++ b/x\n".to_string())),
            (at(7), Does::Run("a".to_string(), None)),
            (at(8), Does::Run("b -c".to_string(), Some(vec!["c".to_string()]))),
        ];
        assert_eq!(does, expected);
        for wrong in ["", "```text\nc\n```\n", "```toml\nc\n```\n"] {
            assert!(super::steps(&Repository::of(&[(DOCUMENT, wrong)])).is_err(), "{wrong}");
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
        for steps in [steps(&repository).unwrap(), searches(&repository).unwrap()] {
            let tree = Tree::copy(&repository, &directory).unwrap();
            let diffs: Vec<_> =
                steps.iter().filter(|step| matches!(step.does, Does::Patch(_))).collect();
            assert!(!diffs.is_empty());
            for diff in diffs {
                tree.take(diff, &repository).unwrap();
            }
            assert!(tree.run("false").is_err());
            drop(tree);
            assert!(!directory.exists());
        }
    }

    /// The same of rules that tests have to notice: each is there, and so is its test.
    #[test]
    fn the_rules_that_are_broken_are_there() {
        let repository = Repository::read().unwrap();
        let mutants = mutations::mutants(&repository).unwrap();
        assert!(mutants.len() >= 20);
        for mutant in mutants {
            mutant.broken(&repository).unwrap();
            mutant.command(&repository).unwrap();
        }
    }
}

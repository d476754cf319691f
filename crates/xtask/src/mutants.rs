//! `cargo xtask mutants`: applies each mutation of `data/mutants.toml` to a copy of the tree, one
//! at a time, and checks that the test named with it fails. docs/MUTATIONS.md is generated from the
//! same file.

use std::fs;

use anyhow::{Context, Result, bail, ensure};
use serde::Deserialize;

use crate::markdown;
use crate::repository::{File, Repository};
use crate::tree::{self, Tree};

/// The list of mutations.
const LIST: &str = "data/mutants.toml";

/// The kind of generated sections that are made from `LIST`.
pub const KIND: &str = "mutants";

/// A mutation of one rule, with the test that has to fail.
#[derive(Clone, Debug, PartialEq, Eq, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Mutant {
    /// The rule that the mutation breaks.
    rule: String,
    /// The file of the rule.
    file: String,
    /// The text that is replaced; it occurs once in the file.
    before: String,
    /// Its replacement.
    after: String,
    /// The test function that has to fail.
    test: String,
}

#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
struct List {
    mutant: Vec<Mutant>,
}

/// Runs every mutant and prints a line for each. Returns whether all of them were caught.
///
/// # Errors
/// When the tree cannot be copied.
pub fn run() -> Result<bool> {
    let repository = Repository::read()?;
    let mutants = read(&repository)?;
    let steps = mutants.iter().map(|mutant| (LIST.to_string(), mutant.test.clone()));
    tree::follow(&repository, steps, |tree, number| mutants[number].run(tree, &repository))
}

fn read(repository: &Repository) -> Result<Vec<Mutant>> {
    let text = repository.text(LIST).with_context(|| format!("{LIST} does not exist"))?;
    let list: List = toml::from_str(text).context(LIST)?;
    Ok(list.mutant)
}

impl Mutant {
    /// Applies the mutation in `tree`, runs its test, and reverts it.
    ///
    /// # Errors
    /// When the test passes, or fails for another reason than the mutation.
    fn run(&self, tree: &Tree, repository: &Repository) -> Result<()> {
        let path = tree.root().join(&self.file);
        let original = repository.text(&self.file).context("the file is missing")?;
        let write = |text: &str| fs::write(&path, text).context("the mutation is not written");
        write(&self.mutate(repository)?)?;
        // Compiling takes longer than the test runs.
        let command = format!("CARGO_PROFILE_TEST_OPT_LEVEL=0 {}", self.command(repository)?);
        let result = tree.run(&command);
        write(original)?;
        ensure!(result.is_err(), "the test passes although the rule is broken");
        let failure = format!("{} ... FAILED", self.test);
        ensure!(tree.stdout()?.contains(&failure), "the test does not run: is the mutant Rust?");
        Ok(())
    }

    /// The text of the file with the mutation applied.
    fn mutate(&self, repository: &Repository) -> Result<String> {
        let text = repository.text(&self.file);
        let text = text.with_context(|| format!("{} does not exist", self.file))?;
        let count = text.matches(&self.before).count();
        ensure!(count == 1, "'{}' occurs {count} times in {}, not once", self.before, self.file);
        Ok(text.replace(&self.before, &self.after))
    }

    /// The command that runs the test.
    ///
    /// # Errors
    /// When the crate has no such test, or more than one.
    fn command(&self, repository: &Repository) -> Result<String> {
        let (package, target) = self.test_target(repository)?;
        Ok(format!("cargo test -p filemap-{package} --test {target} {}", self.test))
    }

    /// The crate of the rule and the test target with the test: `of_` and the crate's name if all
    /// tests are modules of `tests/main.rs`.
    fn test_target(&self, repository: &Repository) -> Result<(String, String)> {
        let package = self.file.split('/').nth(1).context("the file lies in no crate")?;
        let tests = format!("crates/{package}/tests/");
        let declaration = format!("fn {}()", self.test);
        let files = repository.under(&tests, ".rs");
        let files: Vec<&File> = files.filter(|file| file.text.contains(&declaration)).collect();
        let [file] = files[..] else {
            bail!("{} files in {tests} have the test '{}'", files.len(), self.test);
        };
        let target = match repository.text(&format!("{tests}main.rs")) {
            Some(_) => format!("of_{package}"),
            None => {
                let name = file.path[tests.len()..].split('/').next().unwrap_or_default();
                name.trim_end_matches(".rs").to_string()
            }
        };
        Ok((package.to_string(), target))
    }
}

/// The table of mutants, for documents.
///
/// # Errors
/// When the list is missing or malformed.
pub fn table(repository: &Repository) -> Result<String> {
    let row = |mutant: Mutant| {
        let module = mutant.file.split_once("/src/").map_or("", |(_, module)| module);
        vec![mutant.rule, format!("`{module}`"), format!("`{}`", mutant.test)]
    };
    let rows: Vec<Vec<String>> = read(repository)?.into_iter().map(row).collect();
    let columns = ["The rule that is broken", "In", "The test that fails"];
    Ok(markdown::table(&columns.map(String::from), &rows))
}

#[cfg(test)]
mod tests {
    use super::*;

    const TOML: &str = "[[mutant]]\nrule = 'r'\nfile = 'crates/core/src/a.rs'\n\
        before = 'x < 1'\nafter = 'x <= 1'\ntest = 'it_holds'\n";
    const TEST: &str = "#[test]\nfn it_holds() {}\n";

    fn repository(code: &str, tests: &[(&str, &str)]) -> Repository {
        let mut files = vec![(LIST, TOML), ("crates/core/src/a.rs", code)];
        files.extend(tests);
        Repository::from_files(&files)
    }

    #[test]
    fn mutates_exactly_one_place() {
        let mutate = |code| {
            let repository = repository(code, &[]);
            read(&repository).unwrap()[0].mutate(&repository)
        };
        assert_eq!(mutate("if x < 1 {}").unwrap(), "if x <= 1 {}");
        assert!(mutate("x < 1; x < 1").is_err());
        assert!(mutate("").is_err());
    }

    #[test]
    fn finds_the_target_of_its_test() {
        let command = |tests: &[(&str, &str)]| {
            let repository = repository("", tests);
            read(&repository).unwrap()[0].command(&repository)
        };
        for path in ["crates/core/tests/rules.rs", "crates/core/tests/rules/a.rs"] {
            let expected = "cargo test -p filemap-core --test rules it_holds";
            assert_eq!(command(&[(path, TEST)]).unwrap(), expected);
        }
        let merged = [("crates/core/tests/main.rs", "mod a;"), ("crates/core/tests/a.rs", TEST)];
        let expected = "cargo test -p filemap-core --test of_core it_holds";
        assert_eq!(command(&merged).unwrap(), expected);
        assert!(command(&[]).is_err());
        let twice = [("crates/core/tests/a.rs", TEST), ("crates/core/tests/b.rs", TEST)];
        assert!(command(&twice).is_err());
    }

    /// Without a build: each mutation applies to the tree as it is, and its test exists.
    #[test]
    fn listed_mutants_apply() {
        let repository = Repository::read().unwrap();
        let mutants = read(&repository).unwrap();
        assert!(mutants.len() >= 20);
        for mutant in mutants {
            mutant.mutate(&repository).unwrap();
            mutant.command(&repository).unwrap();
        }
    }
}

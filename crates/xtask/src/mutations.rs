//! Rules that are broken on purpose: what `data/mutations` says of them. `cargo xtask mutants` and
//! `cargo xtask tutorial` break them in copies of the tree, and docs/MUTATIONS.md is made of the
//! same files.

use anyhow::{Context, Result, bail, ensure};
use serde::Deserialize;

use crate::repository::{File, Repository};
use crate::shown;

/// Rules that a test has to notice.
pub const MUTANTS: &str = "data/mutations/mutants.toml";

/// Rules that a search has to find.
pub const SEARCHED: &str = "data/mutations/searched.toml";

/// Plants the rules that a search has to find.
pub const DIFF: &str = "data/mutations/searched.diff";

/// Which part of a document is made of these files: `mutants` or `searched`.
pub const KIND: &str = "mutations";

/// A rule that is broken, and the test that notices.
#[derive(Clone, Debug, PartialEq, Eq, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Mutant {
    /// What holds as long as it is not broken.
    pub rule: String,
    /// Where it is written.
    pub file: String,
    /// What is written there, once.
    pub before: String,
    /// What stands there instead.
    pub after: String,
    /// The function that tests it.
    pub test: String,
}

/// A rule that is broken by a series of its own, and the search that finds it.
#[derive(Clone, Debug, PartialEq, Eq, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Searched {
    /// How it is broken.
    pub rule: String,
    /// The search.
    pub command: String,
    /// What it prints.
    pub shows: String,
}

#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
struct Mutants {
    #[serde(rename = "mutant")]
    all: Vec<Mutant>,
}

#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
struct Searches {
    #[serde(rename = "searched")]
    all: Vec<Searched>,
}

/// The rules that a test has to notice.
///
/// # Errors
/// When the file is missing, or does not list them.
pub fn mutants(repository: &Repository) -> Result<Vec<Mutant>> {
    let listed: Mutants = toml::from_str(text(repository, MUTANTS)?).context(MUTANTS)?;
    Ok(listed.all)
}

/// The rules that a search has to find.
///
/// # Errors
/// When the file is missing, or does not list them.
pub fn searched(repository: &Repository) -> Result<Vec<Searched>> {
    let listed: Searches = toml::from_str(text(repository, SEARCHED)?).context(SEARCHED)?;
    Ok(listed.all)
}

fn text<'a>(repository: &'a Repository, path: &str) -> Result<&'a str> {
    repository.text(path).with_context(|| format!("{path} does not exist"))
}

impl Mutant {
    /// The file with the rule broken.
    ///
    /// # Errors
    /// When what is to be replaced does not stand there once.
    pub fn broken(&self, repository: &Repository) -> Result<String> {
        let text = text(repository, &self.file)?;
        let times = text.matches(&self.before).count();
        ensure!(times == 1, "'{}' stands in {} {times} times, not once", self.before, self.file);
        Ok(text.replace(&self.before, &self.after))
    }

    /// The command that runs the test.
    ///
    /// # Errors
    /// When there is no such test in the crate, or more than one.
    pub fn command(&self, repository: &Repository) -> Result<String> {
        let (package, binary) = self.binary(repository)?;
        Ok(format!("cargo test -p filemap-{package} --test {binary} {}", self.test))
    }

    /// The crate of the rule, and which of its test programs has the test. A crate with a
    /// `tests/main.rs` has all its tests in one program, `of_` and its name.
    fn binary(&self, repository: &Repository) -> Result<(String, String)> {
        let package = self.file.split('/').nth(1).context("the file lies in no crate")?;
        let tests = format!("crates/{package}/tests/");
        let declares = format!("fn {}()", self.test);
        let has_it = |file: &&File| file.text.contains(&declares);
        let files: Vec<&File> = repository.under(&tests, ".rs").filter(has_it).collect();
        let [file] = files[..] else {
            bail!("{} files in {tests} have the test '{}'", files.len(), self.test);
        };
        let binary = match repository.text(&format!("{tests}main.rs")) {
            Some(_) => format!("of_{package}"),
            None => {
                let name = file.path[tests.len()..].split('/').next().unwrap_or_default();
                name.trim_end_matches(".rs").to_string()
            }
        };
        Ok((package.to_string(), binary))
    }
}

/// What `words` of a document ask for.
///
/// # Errors
/// When a file is missing, or is not what it should be.
pub fn show(words: &str, repository: &Repository) -> Result<String> {
    match words {
        "mutants" => {
            let row = |mutant: Mutant| {
                let module = mutant.file.split_once("/src/").map_or("", |(_, module)| module);
                vec![mutant.rule, format!("`{module}`"), format!("`{}`", mutant.test)]
            };
            let rows: Vec<Vec<String>> = mutants(repository)?.into_iter().map(row).collect();
            let columns = ["The rule that is broken", "In", "The test that fails"];
            Ok(shown::table(&columns.map(String::from), &rows))
        }
        "searched" => {
            let item = |Searched { rule, command, .. }: Searched| {
                let (_, flags) = command.split_once(" -- ").unwrap_or(("", &command));
                format!("- {rule}:\n  `filemap {flags}`\n")
            };
            Ok(searched(repository)?.into_iter().map(item).collect())
        }
        _ => bail!("neither 'mutants' nor 'searched'"),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const LIST: &str = "[[mutant]]\nrule = 'r'\nfile = 'crates/core/src/a.rs'\n\
        before = 'x < 1'\nafter = 'x <= 1'\ntest = 'it_holds'\n";
    const TEST: &str = "#[test]\nfn it_holds() {}\n";

    fn repository(code: &str, tests: &[(&str, &str)]) -> Repository {
        let mut files = vec![(MUTANTS, LIST), ("crates/core/src/a.rs", code)];
        files.extend(tests);
        Repository::of(&files)
    }

    #[test]
    fn a_mutant_breaks_one_place() {
        let of = |code| {
            let repository = repository(code, &[]);
            mutants(&repository).unwrap()[0].broken(&repository)
        };
        assert_eq!(of("if x < 1 {}").unwrap(), "if x <= 1 {}");
        assert!(of("x < 1; x < 1").is_err());
        assert!(of("").is_err());
    }

    #[test]
    fn its_test_is_found_where_it_lies() {
        let of = |tests: &[(&str, &str)]| {
            let repository = repository("", tests);
            mutants(&repository).unwrap()[0].command(&repository)
        };
        for path in ["crates/core/tests/rules.rs", "crates/core/tests/rules/a.rs"] {
            let command = of(&[(path, TEST)]).unwrap();
            assert_eq!(command, "cargo test -p filemap-core --test rules it_holds");
        }
        let merged = [("crates/core/tests/main.rs", "mod a;"), ("crates/core/tests/a.rs", TEST)];
        let command = of(&merged).unwrap();
        assert_eq!(command, "cargo test -p filemap-core --test of_core it_holds");
        assert!(of(&[]).is_err());
        assert!(of(&[("crates/core/tests/a.rs", TEST), ("crates/core/tests/b.rs", TEST)]).is_err());
    }
}

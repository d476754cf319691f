//! Items that mirror a kernel function name it, with the versions and a test.

use super::Finding;
use crate::repository::{File, Repository};

/// An item whose documentation says which kernel function it mirrors.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Mirror {
    /// First line of its documentation, from 1.
    pub line: usize,
    /// Its documentation, joined to one line.
    pub documentation: String,
    /// Its name.
    pub name: String,
}

impl Mirror {
    /// The kernel functions that it mirrors.
    pub fn kernel_functions(&self) -> Vec<&str> {
        let (_, rest) = self.documentation.split_once("irrors ").unwrap_or_default();
        let sentence = rest.split("Test:").next().unwrap_or_default();
        sentence.split('`').skip(1).step_by(2).collect()
    }

    /// The path of its test, from its crate's directory.
    pub fn test(&self) -> Option<&str> {
        self.documentation.split_once("Test: `")?.1.split('`').next()
    }
}

pub fn check(repository: &Repository) -> Vec<Finding> {
    let mut findings = Vec::new();
    for file in repository.under("crates/", ".rs") {
        let Some((krate, _)) = file.path.split_once("/src/") else { continue };
        for mirror in mirrors(file) {
            for message in problems(&mirror, krate, repository) {
                findings.push(Finding::error(&file.path, mirror.line, message));
            }
        }
    }
    findings
}

/// The mirrors in `file`.
pub fn mirrors(file: &File) -> Vec<Mirror> {
    let mut found = Vec::new();
    let (mut line, mut documentation) = (0, String::new());
    for (index, text) in file.text.lines().enumerate() {
        let text = text.trim_start();
        if let Some(words) = text.strip_prefix("///") {
            if documentation.is_empty() {
                line = index + 1;
            }
            documentation += words;
        } else if !text.starts_with("#[") {
            let documentation = std::mem::take(&mut documentation);
            if documentation.contains("irrors `") {
                found.push(Mirror { line, documentation, name: name(text).to_string() });
            }
        }
    }
    found
}

/// The name declared by the first line of an item.
fn name(item: &str) -> &str {
    let words = item.split(|c: char| !c.is_alphanumeric() && c != '_');
    let keywords = ["pub", "crate", "const", "fn", "struct", "enum", "super", ""];
    words.into_iter().find(|word| !keywords.contains(word)).unwrap_or_default()
}

fn problems(mirror: &Mirror, krate: &str, repository: &Repository) -> Vec<String> {
    let mut problems = Vec::new();
    let (name, documentation) = (&mirror.name, &mirror.documentation);
    if mirror.kernel_functions().is_empty() {
        problems.push(format!("{name} mirrors no function in backquotes"));
    }
    if !["6.1", "6.6"].iter().any(|version| documentation.contains(version)) {
        problems.push(format!("{name} names no kernel version"));
    }
    match mirror.test() {
        None => problems.push(format!("{name} names no test: 'Test: `tests/name.rs`'")),
        Some(test) if repository.text(&format!("{krate}/{test}")).is_none() => {
            problems.push(format!("{name} names {krate}/{test}, which does not exist"));
        }
        Some(_) => {}
    }
    problems
}

#[cfg(test)]
mod tests {
    use super::*;

    fn messages(code: &str) -> Vec<String> {
        let files = [("crates/core/src/a.rs", code), ("crates/core/tests/a.rs", "")];
        check(&Repository::from_files(&files)).iter().map(ToString::to_string).collect()
    }

    #[test]
    fn requires_function_version_and_test() {
        let good = "/// Does.\n///\n/// Mirrors `f` and `g`, 6.12 and 6.18.\n\
                    /// Test: `tests/a.rs`.\n#[derive(Debug)]\npub const fn rule() {\n";
        assert_eq!(messages(good), [""; 0]);
        let file = File { path: String::new(), text: good.to_string() };
        let [mirror] = mirrors(&file).try_into().unwrap();
        assert_eq!((mirror.name.as_str(), mirror.line), ("rule", 1));
        assert_eq!(mirror.kernel_functions(), ["f", "g"]);
        assert_eq!(mirror.test(), Some("tests/a.rs"));

        let at = "crates/core/src/a.rs:1: error: rule names";
        let no_version = good.replace("6.12 and 6.18", "always");
        assert_eq!(messages(&no_version), [format!("{at} no kernel version")]);
        let no_test = good.replace("Test:", "See");
        assert_eq!(messages(&no_test), [format!("{at} no test: 'Test: `tests/name.rs`'")]);
        let gone = good.replace("a.rs", "b.rs");
        assert_eq!(messages(&gone), [format!("{at} crates/core/tests/b.rs, which does not exist")]);
    }

    #[test]
    fn ignores_other_items() {
        assert_eq!(messages("/// Does.\npub fn rule() {}\n"), [""; 0]);
        assert_eq!(messages("pub fn rule() {}\n"), [""; 0]);
    }
}

//! Every modelled rule names the kernel function that it mirrors, the versions, and its test.

use super::Finding;
use crate::repository::{File, Repository};

/// A function or type whose documentation says what it mirrors.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Mirror {
    /// Line of its first word of documentation, from 1.
    pub line: usize,
    /// Its documentation in one line.
    pub documentation: String,
    /// Its name.
    pub name: String,
}

impl Mirror {
    /// The functions of the kernel that it mirrors.
    pub fn kernel_functions(&self) -> Vec<&str> {
        let (_, behind) = self.documentation.split_once("irrors ").unwrap_or_default();
        let sentence = behind.split("Test:").next().unwrap_or_default();
        sentence.split('`').skip(1).step_by(2).collect()
    }

    /// The file of its test, in the directory of its crate.
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

/// What in `file` mirrors something of the kernel.
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

/// The name that the first line of an item declares.
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
        check(&Repository::of(&files)).iter().map(ToString::to_string).collect()
    }

    #[test]
    fn a_rule_names_function_version_and_test() {
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
    fn other_items_may_have_none() {
        assert_eq!(messages("/// Does.\npub fn rule() {}\n"), [""; 0]);
        assert_eq!(messages("pub fn rule() {}\n"), [""; 0]);
    }
}

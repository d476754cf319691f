//! Line and file lengths, module names, and words that do not belong.

use super::Finding;
use crate::repository::{File, Repository};

/// Maximum line length in characters.
const MAX_COLUMNS: usize = 100;

/// A file with more lines, tests excluded, gets a warning.
const LONG_BODY: usize = 400;

/// A file with more lines, tests excluded, is an error.
const MAX_BODY: usize = 800;

/// Module names that name no concept.
const EMPTY_NAMES: [&str; 6] = ["common", "helper", "helpers", "manager", "util", "utils"];

/// Paths of one machine, and markers of unfinished work. Concatenated, so that this file does not
/// contain them.
const FORBIDDEN_WORDS: [&str; 6] =
    [concat!("/wo", "rk/"), concat!("/ho", "me/"), concat!("/ro", "ot/"), TO_DO, FIX, MARK];
const TO_DO: &str = concat!("TO", "DO");
const FIX: &str = concat!("FIX", "ME");
const MARK: &str = concat!("XX", "X");

pub fn check(repository: &Repository) -> Vec<Finding> {
    let mut findings = Vec::new();
    for file in &repository.files {
        words(file, &mut findings);
        if has_line_limit(file) {
            columns(file, &mut findings);
        }
        if file.path.ends_with(".rs") {
            body(file, &mut findings);
            name(file, &mut findings);
        }
    }
    findings
}

fn has_line_limit(file: &File) -> bool {
    let by_line = [".rs", ".md", ".toml", ".ci/run"].iter().any(|end| file.path.ends_with(end));
    by_line && !file.path.starts_with("data/")
}

fn words(file: &File, findings: &mut Vec<Finding>) {
    for (number, line) in numbered(&file.text) {
        for word in FORBIDDEN_WORDS.into_iter().filter(|word| line.contains(word)) {
            findings.push(Finding::error(&file.path, number, format!("'{word}' does not belong")));
        }
    }
}

fn columns(file: &File, findings: &mut Vec<Finding>) {
    for (number, line) in numbered(&file.text) {
        let columns = line.chars().count();
        if columns > MAX_COLUMNS && !is_unbreakable(&file.path, line.trim_start()) {
            let message = format!("{columns} columns; at most {MAX_COLUMNS}");
            findings.push(Finding::error(&file.path, number, message));
        }
    }
}

/// String literals in code; in documents table rows (also in diffs), links at the start of a line,
/// and the comments around generated sections.
fn is_unbreakable(path: &str, line: &str) -> bool {
    if path.ends_with(".md") {
        return line.trim_start_matches('+').starts_with(['|', '[']) || line.starts_with("<!-- ");
    }
    !line.starts_with("//") && line.contains('"')
}

fn body(file: &File, findings: &mut Vec<Finding>) {
    let lines = file.text.lines().take_while(|line| *line != "#[cfg(test)]").count();
    if lines > MAX_BODY {
        let message = format!("{lines} lines; more than {MAX_BODY} are refused: split it");
        findings.push(Finding::error(&file.path, 0, message));
    } else if lines > LONG_BODY {
        let message = format!("{lines} lines; more than {LONG_BODY} ask for a split");
        findings.push(Finding::warning(&file.path, 0, message));
    }
}

fn name(file: &File, findings: &mut Vec<Finding>) {
    let path = file.path.trim_end_matches(".rs").trim_end_matches("/mod");
    let name = path.rsplit('/').next().unwrap_or(path);
    if EMPTY_NAMES.contains(&name) {
        let message = format!("a module called '{name}': name it after its concept");
        findings.push(Finding::error(&file.path, 0, message));
    }
}

fn numbered(text: &str) -> impl Iterator<Item = (usize, &str)> {
    text.lines().enumerate().map(|(index, line)| (index + 1, line))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn messages(path: &str, text: &str) -> Vec<String> {
        check(&Repository::from_files(&[(path, text)])).iter().map(ToString::to_string).collect()
    }

    #[test]
    fn limits_line_length() {
        let long = "x".repeat(101);
        let found = ["a.rs:1: error: 101 columns; at most 100"];
        assert_eq!(messages("a.rs", &long), found);
        assert_eq!(messages("a.rs", &"x".repeat(100)), [""; 0]);
        assert_eq!(messages("a.rs", &format!("\"{long}\"")), [""; 0]);
        assert_eq!(messages("a.rs", &format!("// \"{long}\"")).len(), 1);
        assert_eq!(messages("a.md", &format!("| {long} |")), [""; 0]);
        assert_eq!(messages("a.md", &format!("<!-- output: {long} -->")), [""; 0]);
        assert_eq!(messages("a.md", &format!("\"{long}\"")).len(), 1);
        assert_eq!(messages("data/a.toml", &long), [""; 0]);
        assert_eq!(messages("a.json", &long), [""; 0]);
    }

    #[test]
    fn limits_file_length() {
        let lines = |count: usize| "x\n".repeat(count);
        assert_eq!(messages("a.rs", &lines(400)), [""; 0]);
        assert_eq!(
            messages("a.rs", &lines(401)),
            ["a.rs: warning: 401 lines; more than 400 ask for a split"]
        );
        assert_eq!(
            messages("a.rs", &lines(801)),
            ["a.rs: error: 801 lines; more than 800 are refused: split it"]
        );
        let tested = format!("{}#[cfg(test)]\n{}", lines(300), lines(900));
        assert_eq!(messages("a.rs", &tested), [""; 0]);
        assert_eq!(messages("a.json", &lines(900)), [""; 0]);
    }

    #[test]
    fn refuses_empty_names_and_forbidden_words() {
        assert_eq!(messages("src/utils.rs", "").len(), 1);
        assert_eq!(messages("src/common/mod.rs", "").len(), 1);
        assert_eq!(messages("src/commons.rs", ""), [""; 0]);
        let found = format!("a.json:2: error: '{TO_DO}' does not belong");
        assert_eq!(messages("a.json", &format!("\n// {TO_DO}: x")), [found]);
    }
}

//! docs/MODEL.md names existing items and tests, and covers every mirror and every switch.

use filemap_core::series::Switch;

use super::Finding;
use super::mirrors::mirrors;
use crate::repository::{File, Repository};

pub const PATH: &str = "docs/MODEL.md";

pub const SOURCE: &str = "crates/core/src/";

const TESTS: &str = "crates/core/tests/";

/// Sources and tests of the mapcounts.
const COUNTERS: [&str; 2] = ["crates/mapcount/src/", "crates/mapcount/tests/"];

/// Headings of the tables that are checked.
const RULE_COLUMNS: [&str; 5] = ["Rule", "Kernel function", "Versions", "Ours", "Test"];
const COUNTER_COLUMNS: [&str; 5] = ["Rule", "Kernel function", "Versions", "Counters", "Test"];
const SWITCH_COLUMNS: [&str; 3] = ["Switch", "Changes", "Branch in"];

pub fn check(repository: &Repository) -> Vec<Finding> {
    let Some(text) = repository.text(PATH) else {
        return vec![Finding::error(PATH, 0, "is missing".to_string())];
    };
    let mut findings = Vec::new();
    for (columns, places) in [(&RULE_COLUMNS, [SOURCE, TESTS]), (&COUNTER_COLUMNS, COUNTERS)] {
        let rows = rows(text, columns);
        for row in &rows {
            targets(row, places, repository, &mut findings);
        }
        every_mirror(&rows, places[0], repository, &mut findings);
    }
    every_switch(&rows(text, &SWITCH_COLUMNS), &mut findings);
    findings
}

/// A row of a table.
pub struct TableRow<'a> {
    pub line: usize,
    pub cells: Vec<&'a str>,
}

/// The rows of all tables with these headings.
pub fn rows<'a>(text: &'a str, columns: &[&str]) -> Vec<TableRow<'a>> {
    let mut rows = Vec::new();
    let mut within = false;
    for (index, line) in text.lines().enumerate() {
        let Some(line) = line.strip_prefix('|') else {
            within = false;
            continue;
        };
        let cells: Vec<&str> = line.trim_end().trim_end_matches('|').split('|').collect();
        let cells: Vec<&str> = cells.into_iter().map(str::trim).collect();
        if cells == columns {
            within = true;
        } else if within && !cells[0].starts_with('-') && cells.len() == columns.len() {
            rows.push(TableRow { line: index + 1, cells });
        } else if within && cells.len() != columns.len() {
            rows.push(TableRow { line: index + 1, cells: vec![""; columns.len()] });
        }
    }
    rows
}

/// The words in backquotes.
pub fn quoted(cell: &str) -> impl Iterator<Item = &str> {
    cell.split('`').skip(1).step_by(2)
}

/// A row names existing items, and has something in every column.
fn targets(
    row: &TableRow<'_>,
    [source, tests]: [&str; 2],
    repository: &Repository,
    findings: &mut Vec<Finding>,
) {
    let mut missing = |message: String| findings.push(Finding::error(PATH, row.line, message));
    for column in [1, 3, 4].into_iter().filter(|&column| quoted(row.cells[column]).count() == 0) {
        missing(format!("a row names nothing under '{}'", RULE_COLUMNS[column]));
    }
    for (column, directory) in [(3, source), (4, tests)] {
        for name in quoted(row.cells[column]) {
            match locate(name, directory, repository) {
                None => {
                    let module = module_path(name).join("/");
                    missing(format!("'{name}': {directory}{module}.rs does not exist"));
                }
                Some(file) if !item_names(name).all(|item| declares(&file.text, item)) => {
                    missing(format!("'{name}': {} does not declare it", file.path));
                }
                Some(_) => {}
            }
        }
    }
}

/// The file of the module that `name` names an item of: `a::b::Item` is declared in `a/b.rs` or
/// `a/b/mod.rs`, and `a::function` in `a.rs` or `a/mod.rs`.
fn locate<'a>(name: &str, directory: &str, repository: &'a Repository) -> Option<&'a File> {
    let module = module_path(name).join("/");
    let paths = [format!("{directory}{module}.rs"), format!("{directory}{module}/mod.rs")];
    repository.files.iter().find(|file| paths.contains(&file.path))
}

/// The module path of `name`: the parts before the item, which starts at the first capital.
fn module_path(name: &str) -> Vec<&str> {
    let parts: Vec<&str> = name.split("::").collect();
    let is_module = |part: &&&str| part.starts_with(|c: char| c.is_ascii_lowercase());
    let modules = parts[..parts.len() - 1].iter().take_while(is_module);
    modules.copied().collect()
}

/// The parts of `name` after its module path.
fn item_names(name: &str) -> impl Iterator<Item = &str> {
    name.split("::").skip(module_path(name).len())
}

/// The module path of a source file: `a::b` for `a/b.rs` and `a/b/mod.rs`.
pub fn module_at(path: &str) -> String {
    let (_, module) = path.split_once("/src/").unwrap_or(("", path));
    let module = module.trim_end_matches(".rs").trim_end_matches("/mod");
    module.replace('/', "::")
}

fn declares(code: &str, item: &str) -> bool {
    let kinds = ["fn", "struct", "enum", "const", "trait"];
    let mut lines = code.lines().map(str::trim_start);
    lines.any(|line| {
        kinds.iter().any(|kind| {
            line.split_once(&format!("{kind} {item}")).is_some_and(|(_, rest)| {
                !rest.starts_with(|c: char| c.is_alphanumeric() || c == '_')
            })
        })
    })
}

/// Each mirror under `source` has a row with its name and its kernel functions.
fn every_mirror(
    rows: &[TableRow<'_>],
    source: &str,
    repository: &Repository,
    findings: &mut Vec<Finding>,
) {
    for file in repository.under(source, ".rs") {
        let module = module_at(&file.path);
        for mirror in mirrors(file) {
            let names_it = |row: &&TableRow<'_>| {
                quoted(row.cells[3]).any(|ours| {
                    module_path(ours).join("::") == module
                        && item_names(ours).any(|item| item == mirror.name)
                })
            };
            let rows: Vec<_> = rows.iter().filter(names_it).collect();
            for function in mirror.kernel_functions() {
                if !rows.iter().any(|row| quoted(row.cells[1]).any(|named| named == function)) {
                    let name = &mirror.name;
                    let message =
                        format!("{name} mirrors {function}, but no row of {PATH} says so");
                    findings.push(Finding::error(&file.path, mirror.line, message));
                }
            }
        }
    }
}

/// Each switch has a row. Its readers are checked by `catalog`.
fn every_switch(rows: &[TableRow<'_>], findings: &mut Vec<Finding>) {
    for switch in Switch::ALL {
        if !rows.iter().any(|row| quoted(row.cells[0]).any(|named| named == switch.name())) {
            let message = format!("no row for the switch {}", switch.name());
            findings.push(Finding::error(PATH, 0, message));
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const CODE: &str = "/// Mirrors `kernel_does`, 6.12. Test: `tests/a.rs`.\npub fn does() {}\n";
    const TEST: &str = "#[test]\nfn it_does() {}\n";

    /// The messages about a table with this row, except about switches.
    fn messages(row: &str) -> Vec<String> {
        messages_in(&RULE_COLUMNS, "crates/core", row)
    }

    /// The same for a table with these `columns` about the crate `krate`.
    fn messages_in(columns: &[&str], krate: &str, row: &str) -> Vec<String> {
        let head = format!("| {} |\n{}|\n", columns.join(" | "), "|---".repeat(columns.len()));
        let model = format!("{head}{row}\n");
        let [code, test] = ["src", "tests"].map(|place| format!("{krate}/{place}/a.rs"));
        let files = [(PATH, model.as_str()), (&code, CODE), (&test, TEST)];
        let findings = check(&Repository::from_files(&files));
        let messages = findings.iter().map(ToString::to_string);
        messages.filter(|message| !message.contains("no row for the switch")).collect()
    }

    #[test]
    fn rows_name_existing_items() {
        assert_eq!(messages("| r | `kernel_does` | 6.12 | `a::does` | `a::it_does` |"), [""; 0]);
        let at = "docs/MODEL.md:3: error:";
        assert_eq!(
            messages("| r | `kernel_does` | 6.12 | `a::does` | `a::it_doe` |"),
            [format!("{at} 'a::it_doe': crates/core/tests/a.rs does not declare it")]
        );
        assert_eq!(
            messages("| r | `kernel_does` | 6.12 | `a::does`, `b::does` | `a::it_does` |"),
            [format!("{at} 'b::does': crates/core/src/b.rs does not exist")]
        );
        assert_eq!(
            messages("| r | `kernel_does` | 6.12 | `a::does` |  |"),
            [format!("{at} a row names nothing under 'Test'")]
        );
    }

    #[test]
    fn resolves_module_paths() {
        let at = |name: &str| module_path(name).join("/");
        assert_eq!(at("a::does"), "a");
        assert_eq!(at("a::b::does"), "a/b");
        assert_eq!(at("a::b::Type::does"), "a/b");
        assert_eq!(at("a::CONSTANT"), "a");
        assert_eq!(module_at("crates/core/src/a/mod.rs"), "a");
        assert_eq!(module_at("crates/core/src/a/b.rs"), "a::b");
        let files = [("crates/core/src/a/mod.rs", CODE), ("crates/core/src/a/b.rs", CODE)];
        let repository = Repository::from_files(&files);
        let found = |name| locate(name, SOURCE, &repository).map(|file| file.path.as_str());
        assert_eq!(found("a::does"), Some(files[0].0));
        assert_eq!(found("a::b::does"), Some(files[1].0));
        assert_eq!(found("a::c::does"), None);
    }

    #[test]
    fn every_mirror_has_a_row() {
        assert_eq!(
            messages("| r | `kernel_did` | 6.12 | `a::does` | `a::it_does` |"),
            ["crates/core/src/a.rs:1: error: does mirrors kernel_does, but no row of \
              docs/MODEL.md says so"]
        );
        assert_eq!(messages("").len(), 1);
    }

    #[test]
    fn every_counter_has_a_row() {
        let count = |row| messages_in(&COUNTER_COLUMNS, "crates/mapcount", row).len();
        assert_eq!(count("| r | `kernel_does` | 6.12 | `a::does` | `a::it_does` |"), 0);
        assert_eq!(count("| r | `kernel_did` | 6.12 | `a::does` | `a::it_does` |"), 1);
        assert_eq!(count("| r | `kernel_does` | 6.12 | `a::does` | `a::it_doe` |"), 1);
    }

    /// A missing table would otherwise pass unchecked.
    #[test]
    fn finds_the_tables_of_the_repository() {
        let repository = Repository::read().unwrap();
        let text = repository.text(PATH).unwrap();
        assert!(rows(text, &RULE_COLUMNS).len() >= 34);
        assert_eq!(rows(text, &SWITCH_COLUMNS).len(), Switch::ALL.len());
        assert!(rows(text, &COUNTER_COLUMNS).len() >= 11);
        for (source, least) in [(SOURCE, 30), (COUNTERS[0], 10)] {
            let mirrored = repository.under(source, ".rs").map(|file| mirrors(file).len());
            assert!(mirrored.sum::<usize>() >= least);
        }
    }

    #[test]
    fn every_switch_has_a_row() {
        let row =
            "| Switch | Changes | Branch in |\n|---|---|---|\n| `vma-bound` | x | `a::does` |\n";
        let count = |text: &str| {
            let findings = check(&Repository::from_files(&[(PATH, text)]));
            findings.into_iter().filter(|f| f.message.contains("vma-bound")).count()
        };
        assert_eq!(count(row), 0);
        assert_eq!(count(""), 1);
    }
}

//! docs/MODEL.md names every rule, constant and switch of core, docs/KERNELS.md every field of
//! `Rules`, each with the functions that read it.

use std::collections::BTreeSet;

use filemap_core::rules::{Kernel, Rules};
use filemap_core::series::{Series, Switch};

use super::Finding;
use super::model::{PATH, SOURCE, TableRow, module_at, quoted, rows};
use super::outline::{Item, Kind, outline};
use crate::repository::Repository;

/// Modules of core without rules: inputs and results of rules.
const NO_RULES: [&str; 15] = [
    "address",
    "address::entries",
    "address::mapping",
    "address::reverse_map",
    "address::vma",
    "cache",
    "decision",
    "lib",
    "plain",
    "plain::file",
    "rules",
    "rules::kernel",
    "series",
    "units",
    "word",
];

/// Of these, the modules whose constants are facts about kernels.
const FACT_MODULES: [&str; 1] = ["rules"];

/// Headings of the tables that are checked.
const CONSTANT_COLUMNS: [&str; 3] = ["Constant", "Value", "Kernel"];
const FIRST_FIELD_COLUMN: &str = "Field";
const LAST_FIELD_COLUMN: &str = "Read in";
const SWITCH_COLUMNS: [&str; 3] = ["Switch", "Changes", "Branch in"];

/// The document with the table of kernels.
const KERNELS: &str = "docs/KERNELS.md";

/// Headings of the table of kernels: the field, a column for each kernel, and its readers.
fn field_columns() -> Vec<&'static str> {
    let kernels = Kernel::ALL.into_iter().map(Kernel::name);
    [FIRST_FIELD_COLUMN].into_iter().chain(kernels).chain([LAST_FIELD_COLUMN]).collect()
}

/// Fields of `Rules` that are no differences between kernels.
const NOT_IN_TABLE: [&str; 2] = ["kernel", "series"];

pub fn check(repository: &Repository) -> Vec<Finding> {
    let Some(text) = repository.text(PATH) else { return Vec::new() };
    let modules: Vec<Module<'_>> = repository.under(SOURCE, ".rs").map(Module::parse).collect();
    let mut findings = Vec::new();
    for module in &modules {
        functions(module, text, &mut findings);
        constants(module, &rows(text, &CONSTANT_COLUMNS), &mut findings);
    }
    let kernels = repository.text(KERNELS).unwrap_or_default();
    fields(&modules, &rows(kernels, &field_columns()), &mut findings);
    switches(&modules, &rows(text, &SWITCH_COLUMNS), &mut findings);
    findings
}

/// A file of the core.
struct Module<'a> {
    path: &'a str,
    name: String,
    items: Vec<Item>,
}

impl<'a> Module<'a> {
    fn parse(file: &'a crate::repository::File) -> Module<'a> {
        Module { path: &file.path, name: module_at(&file.path), items: outline(&file.text) }
    }
}

/// Public functions are named.
fn functions(module: &Module<'_>, text: &str, findings: &mut Vec<Finding>) {
    if NO_RULES.contains(&module.name.as_str()) {
        return;
    }
    for item in module.items.iter().filter(|item| item.public && item.kind == Kind::Function) {
        let name = format!("{}::{}", module.name, item.name);
        if !text.contains(&format!("`{name}`")) {
            let message = format!("{PATH} does not name the rule `{name}`");
            findings.push(Finding::error(module.path, item.line, message));
        }
    }
}

/// Constants have a row with their value.
fn constants(module: &Module<'_>, rows: &[TableRow<'_>], findings: &mut Vec<Finding>) {
    if NO_RULES.contains(&module.name.as_str()) && !FACT_MODULES.contains(&module.name.as_str()) {
        return;
    }
    for item in module.items.iter().filter(|item| item.kind == Kind::Constant) {
        // Associated constants are lists of variants and initial values.
        if item.name.contains("::") {
            continue;
        }
        let name = format!("{}::{}", module.name, item.name);
        let row = rows.iter().find(|row| quoted(row.cells[0]).any(|named| named == name));
        let value = |row: &&TableRow<'_>| quoted(row.cells[1]).next().map(|v| v.replace(' ', ""));
        let message = match row.as_ref().map(value) {
            None => format!("{PATH} has no row for the constant `{name}`"),
            Some(value) if value.as_deref() != Some(item.body.as_str()) => {
                format!("`{name}` is {}, but {PATH} has another value", item.body)
            }
            Some(_) => continue,
        };
        findings.push(Finding::error(module.path, item.line, message));
    }
}

/// Each difference between kernels has a row with the value of each kernel and the functions that
/// read it.
fn fields(modules: &[Module<'_>], rows: &[TableRow<'_>], findings: &mut Vec<Finding>) {
    let by_kernel = Kernel::ALL.map(|kernel| values(&Rules::new(kernel, Series::BASELINE)));
    for (index, (field, _)) in by_kernel[0].iter().enumerate() {
        if NOT_IN_TABLE.contains(&field.as_str()) {
            continue;
        }
        let Some(row) = rows.iter().find(|row| quoted(row.cells[0]).any(|named| named == field))
        else {
            let message = format!("has no row for `{field}`, in which kernels differ");
            findings.push(Finding::error(KERNELS, 0, message));
            continue;
        };
        for (kernel, values) in by_kernel.iter().enumerate() {
            let value = &values[index].1;
            if !is_shown_as(value, row.cells[kernel + 1]) {
                let name = Kernel::ALL[kernel].name();
                let message = format!("`{field}` of {name} is {value}");
                findings.push(Finding::error(KERNELS, row.line, message));
            }
        }
        let in_rules = format!("self.{field}");
        let readers = readers(modules, |module, body| {
            holds_word(body, &format!("rules.{field}"))
                || module == "rules" && holds_word(body, &in_rules)
        });
        let message = compare_readers(&readers, row, Kernel::ALL.len() + 1, field);
        findings.extend(message.map(|message| Finding::error(KERNELS, row.line, message)));
    }
}

/// Each switch has a row with the functions that read it.
fn switches(modules: &[Module<'_>], rows: &[TableRow<'_>], findings: &mut Vec<Finding>) {
    for switch in Switch::ALL {
        // A missing row is reported by `model`.
        let Some(row) = rows.iter().find(|row| quoted(row.cells[0]).any(|n| n == switch.name()))
        else {
            continue;
        };
        let readers =
            readers(modules, |_, body| body.contains(&format!("has(Switch::{switch:?})")));
        let message = compare_readers(&readers, row, 2, switch.name());
        findings.extend(message.map(|message| Finding::error(PATH, row.line, message)));
    }
}

/// Functions of core for whose module and body `reads` is true.
fn readers(modules: &[Module<'_>], reads: impl Fn(&str, &str) -> bool) -> BTreeSet<String> {
    let readers_in = |module: &Module<'_>| -> Vec<String> {
        let items = module.items.iter().filter(|item| item.kind != Kind::Constant);
        let found = items.filter(|item| reads(&module.name, &item.body));
        found.map(|item| format!("{}::{}", module.name, item.name)).collect()
    };
    modules.iter().flat_map(readers_in).collect()
}

/// The message if a row's column does not name exactly these functions.
fn compare_readers(
    readers: &BTreeSet<String>,
    row: &TableRow<'_>,
    column: usize,
    name: &str,
) -> Option<String> {
    let named: BTreeSet<String> = quoted(row.cells[column]).map(str::to_string).collect();
    (named != *readers).then(|| {
        let readers = readers.iter().map(|name| format!("`{name}`")).collect::<Vec<_>>();
        format!("`{name}` is read in {}", readers.join(", "))
    })
}

/// The fields of `rules` with their values, in order.
fn values(rules: &Rules) -> Vec<(String, String)> {
    let text = format!("{rules:#?}");
    let indented = text.lines().filter(|line| line.starts_with("    "));
    let mut values: Vec<(String, String)> = Vec::new();
    for line in indented {
        match line.strip_prefix("    ").and_then(|line| line.split_once(": ")) {
            Some((field, value)) if !field.starts_with(' ') => {
                values.push((field.to_string(), value.trim_end_matches(',').to_string()));
            }
            // A nested line belongs to the value before it.
            _ => {
                if let Some((_, value)) = values.last_mut() {
                    *value += line.trim().trim_end_matches(',');
                }
            }
        }
    }
    values
}

/// Whether a table's cell shows this value.
fn is_shown_as(value: &str, cell: &str) -> bool {
    let shown = match value {
        "true" => "yes",
        "false" => "no",
        "EveryWindow" => "every window",
        "AsyncWindow" => "an async one",
        "Absent" => "nothing",
        "FaultAround" => "fault-around",
        "WholeFault" => "the fault",
        "Pmd" => "of a PMD",
        "OfFile" => "the largest of the file",
        "DroppedToRead" => "to read",
        "DroppedToWait" => "to wait",
        "Never" => "never",
        "OnX86_64" => "on x86-64",
        "Always" => "always",
        "SplitByPage" => "all, by the page met",
        "SplitByFirstPage" => "all, by the first page",
        "KeepByEntries" => "in part, by entries",
        "KeepByProcesses" => "in part, by processes",
        value => value.trim_start_matches("PageCount(").trim_end_matches(')'),
    };
    cell == shown
}

/// Whether `text` has `word`, with no letter after it.
fn holds_word(text: &str, word: &str) -> bool {
    text.match_indices(word).any(|(at, _)| {
        let next = text[at + word.len()..].chars().next();
        !next.is_some_and(|c| c.is_alphanumeric() || c == '_')
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    const CODE: &str = "
const MAX_SIZE: u64 = 5;
pub fn rule(limits: &Limits) -> bool {
    limits.rules.maps_whole_folio
}
fn branch(series: Series) -> bool { series.has(Switch::VmaBound) }
";
    const TABLES: &str = "
| Rule | Kernel function | Versions | Ours | Test |
|---|---|---|---|---|
| r | `k` | 6.12 | `a::rule` | `a::t` |

| Constant | Value | Kernel |
|---|---|---|
| `a::MAX_SIZE` | `5` | `K` |

| Switch | Changes | Branch in |
|---|---|---|
| `vma-bound` | x | `a::branch` |
";

    /// A table of kernels with one field.
    fn kernels() -> String {
        let columns = field_columns();
        let values = Kernel::ALL.map(|kernel| if kernel < Kernel::V6_18 { "no" } else { "yes" });
        let head = columns.join(" | ");
        let line = vec!["---"; columns.len()].join(" | ");
        format!(
            "| {head} |\n| {line} |\n| `maps_whole_folio`: x | {} | `a::rule` |\n",
            values.join(" | ")
        )
    }

    /// The messages, except about the other fields of `Rules`.
    fn messages(code: &str, tables: &str) -> Vec<String> {
        messages_by(code, tables, &kernels())
    }

    fn messages_by(code: &str, tables: &str, kernels: &str) -> Vec<String> {
        let files = [(PATH, tables), (KERNELS, kernels), ("crates/core/src/a.rs", code)];
        let findings = check(&Repository::from_files(&files)).into_iter().map(|f| f.message);
        findings.filter(|message| !message.starts_with("has no row for")).collect()
    }

    #[test]
    fn accepts_complete_tables() {
        assert_eq!(messages(CODE, TABLES), [""; 0]);
    }

    #[test]
    fn requires_rules_to_be_named() {
        let added = format!("{CODE}pub fn other() {{}}\n");
        let found = ["docs/MODEL.md does not name the rule `a::other`"];
        assert_eq!(messages(&added, TABLES), found);
        let private = format!("{CODE}fn other() {{}}\n");
        assert_eq!(messages(&private, TABLES), [""; 0]);
    }

    #[test]
    fn requires_constants_with_their_value() {
        let changed = CODE.replace("= 5", "= 6");
        assert_eq!(
            messages(&changed, TABLES),
            ["`a::MAX_SIZE` is 6, but docs/MODEL.md has another value"]
        );
        let added = format!("{CODE}pub const MIN_SIZE: u64 = 1;\n");
        let found = ["docs/MODEL.md has no row for the constant `a::MIN_SIZE`"];
        assert_eq!(messages(&added, TABLES), found);
    }

    #[test]
    fn requires_the_readers_of_fields_and_switches() {
        let read = "fn more(l: &Limits) { l.rules.maps_whole_folio; x.has(Switch::VmaBound) }";
        let found = messages(&format!("{CODE}{read}"), TABLES);
        assert_eq!(
            found,
            [
                "`maps_whole_folio` is read in `a::more`, `a::rule`",
                "`vma-bound` is read in `a::branch`, `a::more`"
            ]
        );
        let other = kernels().replace("| no | no | no |", "| no | no | yes |");
        assert_eq!(messages_by(CODE, TABLES, &other), ["`maps_whole_folio` of 6.12 is false"]);
    }

    #[test]
    fn every_field_has_a_row() {
        let kernels = kernels();
        let files = [(PATH, TABLES), (KERNELS, &kernels), ("crates/core/src/a.rs", CODE)];
        let findings = check(&Repository::from_files(&files));
        let missing = findings.iter().filter(|f| f.message.starts_with("has no row for"));
        let fields = values(&Rules::new(Kernel::V6_12, Series::BASELINE)).len();
        assert_eq!(missing.count(), fields - NOT_IN_TABLE.len() - 1);
    }
}

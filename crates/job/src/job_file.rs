//! Job file syntax: which form a file has, and errors in one line.

use toml::Spanned;
use toml::de::{DeTable, DeValue};

use crate::Error;
use crate::size::{shorten, shorten_to};

/// Maximum length of a message about one value.
const MAX_MESSAGE: usize = 450;

/// The form of a job file, which decides about its top-level keys.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Form {
    /// Flags of a job with a single file.
    OneFile,
    /// A job file with tables.
    Program {
        /// Top-level keys.
        keys: &'static [&'static str],
    },
}

/// Tables that only job files with tables have.
const TABLES: [&str; 4] = ["file", "open", "mapping", "thread"];

/// Whether a job file has tables of files, opens, mappings or threads.
pub(crate) fn has_tables(text: &str) -> bool {
    let Ok(table) = text.parse::<toml::Table>() else { return has_headers(text) };
    let tables = TABLES.map(|key| table.get(key));
    tables.into_iter().flatten().any(|value| value.is_array() || value.is_table())
}

/// The same for invalid TOML: whether a line is the header of such a table.
fn has_headers(text: &str) -> bool {
    let headers = text.lines().filter_map(|line| {
        let name = line.trim_start().strip_prefix('[')?;
        let name = name.strip_prefix('[').unwrap_or(name).split_once(']')?.0;
        name.split('.').next()
    });
    headers.map(str::trim).any(|name| TABLES.contains(&name))
}

/// Converts `error` to one line with the line number, table and key.
pub(crate) fn in_one_line(text: &str, form: Form, error: &toml::de::Error) -> Error {
    let start = error.span().map_or(0, |span| span.start).min(text.len());
    let line = text.as_bytes()[..start].iter().filter(|byte| **byte == b'\n').count();
    let (file, _) = DeTable::parse_recoverable(text);
    let place = Position::find(file.get_ref(), start, Position::default()).unwrap_or_default();
    let message =
        shorten_to(MAX_MESSAGE, &place.describe_parse_error(error.message().trim(), form));
    let shown = shorten(text.lines().nth(line).unwrap_or_default().trim());
    Error::JobFile { line: line + 1, text: shown, message }
}

/// The position of a value in a job file.
#[derive(Clone, Debug, Default)]
struct Position {
    /// Names of the enclosing tables, outermost first.
    headers: Vec<String>,
    /// The same for messages: `file 'data'`.
    names: Vec<String>,
    /// Key of the value.
    key: String,
}

impl Position {
    /// The innermost value in `table` at byte offset `at`. `outer` is the position of the table.
    fn find(table: &DeTable<'_>, at: usize, outer: Position) -> Option<Position> {
        for (key, value) in table {
            let of_key = || Position { key: key.get_ref().to_string(), ..outer.clone() };
            if key.span().contains(&at) {
                return Some(of_key());
            }
            if let Some(place) = Position::find_inside(value.get_ref(), at, &of_key()) {
                return Some(place);
            }
            if value.span().contains(&at) {
                return Some(of_key());
            }
        }
        None
    }

    /// The same for tables that are the value at `position`.
    fn find_inside(value: &DeValue<'_>, at: usize, position: &Position) -> Option<Position> {
        let tables: &[Spanned<DeValue<'_>>] = match value {
            DeValue::Table(table) => {
                return Position::find(table, at, position.in_table(table, 0, 1));
            }
            DeValue::Array(values) => values,
            _ => return None,
        };
        tables.iter().enumerate().find_map(|(number, value)| match value.get_ref() {
            DeValue::Table(table) => {
                Position::find(table, at, position.in_table(table, number, tables.len()))
            }
            _ => None,
        })
    }

    /// The position of table `number`, from 0, of `all` tables at this key. The only thread of a
    /// job is not named, as in other messages.
    fn in_table(&self, table: &DeTable<'_>, number: usize, all: usize) -> Position {
        let name = table.get("name").and_then(|name| name.get_ref().as_str());
        let number = number + 1;
        let words = match (self.key.as_str(), name) {
            ("phase", _) => Some(format!("phase {number}")),
            ("thread", _) if all == 1 => None,
            ("thread", name) => {
                let name = name.map_or(number.to_string(), shorten);
                Some(format!("thread '{name}'"))
            }
            (key, Some(name)) => Some(format!("{} '{}'", shorten(key), shorten(name))),
            (key, None) => Some(format!("[[{}]] number {number}", shorten(key))),
        };
        Position {
            headers: self.headers.iter().chain([&self.key]).cloned().collect(),
            names: self.names.iter().cloned().chain(words).collect(),
            key: String::new(),
        }
    }

    /// Adds the position and a remedy to `message` of the TOML parser.
    fn describe_parse_error(&self, message: &str, form: Form) -> String {
        let names: String = self.names.iter().map(|name| format!("{name}: ")).collect();
        if let Some((unknown, known)) = message.split_once(", expected")
            && let Some(key) = unknown.strip_prefix("unknown field ")
        {
            let key = key.trim_matches('`');
            if let Some(feature) = not_modelled(key) {
                return format!("{names}'{}': {feature}; leave it out", shorten(key));
            }
            return format!(
                "{names}unknown key '{}'; {}",
                shorten(key),
                self.keys(key, known, form)
            );
        }
        if let Some((wrong, wanted)) = message.split_once(", expected ")
            && !self.key.is_empty()
        {
            let key = shorten(&self.key);
            return format!("{names}'{key}': {wrong}; give {}", self.remedy(wanted));
        }
        names + &message.replace("duplicate key", "duplicate key; give it once")
    }

    /// Describes the valid keys in place of the unknown `key`; `known` is the TOML parser's list.
    fn keys(&self, key: &str, known: &str, form: Form) -> String {
        let misplaced = match form {
            Form::Program { keys } if keys.contains(&key) => {
                format!("; '{key}' is a key of the program, and belongs before its first table")
            }
            _ => String::new(),
        };
        let known = known.split('`').skip(1).step_by(2).collect::<Vec<_>>().join(", ");
        match (self.headers.as_slice(), form) {
            ([], Form::OneFile) => {
                "the keys are the flags that say what a job is, with underscores".to_string()
            }
            ([], Form::Program { keys }) => format!(
                "a program takes the tables [[file]], [[open]], [[mapping]] and [[thread]], and {}",
                keys.join(", ")
            ),
            (headers, _) => format!("[[{}]] takes {known}{misplaced}", headers.join(".")),
        }
    }

    /// What to give, if the TOML parser expects `wanted`.
    fn remedy(&self, wanted: &str) -> String {
        match wanted {
            "u64" => "a whole number, 0 or more".to_string(),
            "f64" => "a number such as 0.01".to_string(),
            "a boolean" => "true or false".to_string(),
            "a string" => "a text in quotes".to_string(),
            "a sequence" if self.key == "pages" => "a list such as [0, 7, 42]".to_string(),
            wanted if wanted == "a sequence" || wanted.starts_with("struct ") => {
                let header: Vec<_> = self.headers.iter().chain([&self.key]).cloned().collect();
                format!("[[{}]] tables", header.join("."))
            }
            wanted => wanted.to_string(),
        }
    }
}

/// Why `key` is not supported, for options that affect reads but are not modelled.
fn not_modelled(key: &str) -> Option<&'static str> {
    Some(match key {
        "locked" | "mlock" | "mlockall" => {
            "locked memory (VM_LOCKED) is not modelled, and reclaim would evict its pages"
        }
        "dirty" | "dirty_pages" | "writeback" | "msync" => {
            "dirty pages and their writeback are not modelled, nor the readahead that writeback stops"
        }
        "swap" | "swappiness" => {
            "swap is not modelled, nor how reclaim weighs it against the page cache"
        }
        "io_latency" | "io_cost" | "io_max" => {
            "limits of the block cgroup are not modelled, nor the readahead that congestion stops"
        }
        _ => return None,
    })
}

//! Names of tables: from paths, each once.

use std::collections::HashSet;
use std::path::Path;

/// Longest name, in characters, without what tells it from others.
const MAX_LENGTH: usize = 60;

/// Names that were given.
#[derive(Debug, Default)]
pub struct Names {
    given: HashSet<String>,
}

impl Names {
    /// A name of one line that nobody else has: `wanted`, or with a number behind it.
    pub fn give(&mut self, wanted: &str) -> String {
        let clean = |c: char| if c.is_control() { '?' } else { c };
        let wanted: String = wanted.chars().map(clean).take(MAX_LENGTH).collect();
        let wanted = match wanted.trim() {
            "" => "unnamed",
            wanted => wanted,
        };
        let mut name = wanted.to_string();
        let mut number = 1;
        while !self.given.insert(name.clone()) {
            number += 1;
            name = format!("{wanted} {number}");
        }
        name
    }
}

/// The last part of `path`, as a text.
pub fn of_path(path: &Path) -> String {
    let name = path.file_name().unwrap_or(path.as_os_str());
    name.to_string_lossy().into_owned()
}

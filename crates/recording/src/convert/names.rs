//! Names of tables: from paths, each once.

use std::collections::{HashMap, HashSet};
use std::path::Path;

/// Longest name, in characters, without what tells it from others.
const MAX_LENGTH: usize = 60;

/// Names that were given.
#[derive(Debug, Default)]
pub struct Names {
    given: HashSet<String>,
    /// The last number after each of them that several have wanted.
    numbers: HashMap<String, u64>,
}

impl Names {
    /// A name of one line that nobody else has: `wanted`, or with a number after it.
    pub fn give(&mut self, wanted: &str) -> String {
        let clean = |c: char| if c.is_control() { '?' } else { c };
        let wanted: String = wanted.chars().map(clean).take(MAX_LENGTH).collect();
        let wanted = match wanted.trim() {
            "" => "unnamed",
            wanted => wanted,
        };
        if self.given.insert(wanted.to_string()) {
            return wanted.to_string();
        }
        let number = self.numbers.entry(wanted.to_string()).or_insert(1);
        loop {
            *number += 1;
            let name = format!("{wanted} {number}");
            if self.given.insert(name.clone()) {
                return name;
            }
        }
    }
}

/// The last part of `path`, as a text.
pub fn of_path(path: &Path) -> String {
    let name = path.file_name().unwrap_or(path.as_os_str());
    name.to_string_lossy().into_owned()
}

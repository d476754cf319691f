//! The modules of the core use each other in one direction.

use super::Finding;
use crate::repository::{File, Repository};

const SOURCE: &str = "crates/core/src/";

/// The modules of the core, each after all that it may use. The list is that of docs/DESIGN.md.
const ROOMS: [&str; 13] = [
    "units",
    "word",
    "series",
    "rules",
    "decision",
    "cache",
    "address",
    "lru",
    "readahead",
    "fault",
    "page_cache",
    "advised",
    "plain",
];

pub fn check(repository: &Repository) -> Vec<Finding> {
    repository.under(SOURCE, ".rs").flat_map(|file| uses_of(file, &ROOMS)).collect()
}

/// The uses of a module that stands after that of `file`, or that `rooms` does not know.
fn uses_of(file: &File, rooms: &[&str]) -> Vec<Finding> {
    let place = |room: &str| rooms.iter().position(|known| *known == room);
    let room = file.path.trim_start_matches(SOURCE).trim_end_matches(".rs");
    let room = room.split('/').next().unwrap_or_default();
    if room == "lib" {
        return Vec::new();
    }
    let Some(own) = place(room) else {
        let message = format!("{room} is not among the modules that the lint knows");
        return vec![Finding::error(&file.path, 0, message)];
    };
    let lines = file.text.lines().enumerate();
    let uses = lines.filter_map(|(number, line)| {
        let used = line.strip_prefix("use crate::").or(line.strip_prefix("pub use crate::"))?;
        let used = used.split([':', ';']).next().unwrap_or_default();
        let allowed = place(used).is_some_and(|used| used <= own);
        let message = format!("{room} uses {used}, which stands behind it");
        (!allowed).then(|| Finding::error(&file.path, number + 1, message))
    });
    uses.collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn messages(path: &str, text: &str) -> Vec<String> {
        let path = format!("{SOURCE}{path}");
        let findings = check(&Repository::of(&[(&path, text)]));
        findings.iter().map(|finding| finding.message.clone()).collect()
    }

    #[test]
    fn modules_use_what_stands_before_them() {
        let text = "use crate::units::Order;\nuse super::map;\n";
        assert_eq!(messages("fault/around.rs", text), [""; 0]);
        let text = "use crate::cache::Folio;\nuse crate::fault::View;\n";
        assert_eq!(
            messages("readahead/sync.rs", text),
            ["readahead uses fault, which stands behind it"]
        );
        assert_eq!(messages("helper.rs", "").len(), 1);
    }
}

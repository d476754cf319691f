//! What documents show of files of `data` is what these files say, and documents stay short.

use super::Finding;
use crate::measured;
use crate::outputs;
use crate::repository::Repository;

/// Bytes of all documents for readers, and of each that a reader is to read at once.
const LIMITS: [(&str, usize); 6] = [
    ("README.md", 8 << 10),
    ("CHANGELOG.md", 14 << 10),
    ("docs/DESIGN.md", 15 << 10),
    ("docs/METHOD.md", 20 << 10),
    ("docs/MODEL.md", 50 << 10),
    ("docs/MUTATIONS.md", 6 << 10),
];

pub fn check(repository: &Repository) -> Vec<Finding> {
    let mut findings = Vec::new();
    for file in repository.under(measured::DIRECTORY, ".toml") {
        if let Err(error) = measured::read(&file.path, &file.text) {
            findings.push(Finding::error(&file.path, 0, format!("{error:#}")));
        }
    }
    for file in repository.under("", ".md") {
        let message = match outputs::of_data(file, repository) {
            Ok(text) if text == file.text => continue,
            Ok(_) => "is not as its data: cargo xtask outputs".to_string(),
            Err(error) => format!("{error:#}"),
        };
        findings.push(Finding::error(&file.path, 0, message));
    }
    for (path, limit) in LIMITS {
        let bytes = repository.text(path).map_or(0, str::len);
        if bytes > limit {
            let message = format!("{bytes} bytes are more than {limit}: what can go?");
            findings.push(Finding::error(path, 0, message));
        }
    }
    findings
}

#[cfg(test)]
mod tests {
    use super::*;

    const DATA: &str = "title = 't'\nsays = 's'\nmachine = 'm'\ndate = '2026-11-21'\n\
        command = 'c'\nnotes = ''\n";
    const LIST: &str =
        "<!-- measured: list -->\n\n- `f`, 2026-11-21: s.\n\n<!-- end of measured -->\n";

    fn messages(document: &str, data: &str) -> Vec<String> {
        let files = [("docs/A.md", document), ("data/measured/f.toml", data)];
        check(&Repository::of(&files)).iter().map(ToString::to_string).collect()
    }

    #[test]
    fn documents_show_what_the_data_says() {
        assert_eq!(messages(LIST, DATA), [""; 0]);
        let found = messages(LIST, &DATA.replace("'s'", "'more'"));
        assert_eq!(found, ["docs/A.md: error: is not as its data: cargo xtask outputs"]);
        assert_eq!(messages("", &DATA.replace("2026-11-21", "today")).len(), 1);
        assert_eq!(messages("<!-- measured: g a -->\n<!-- end of measured -->\n", DATA).len(), 1);
    }

    #[test]
    fn documents_stay_short() {
        let long = "a\n".repeat(5 << 10);
        let of = |path| check(&Repository::of(&[(path, long.as_str())])).len();
        assert_eq!((of("README.md"), of("docs/DESIGN.md")), (1, 0));
    }
}

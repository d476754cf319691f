//! Documents: their commands parse, their links and files exist, their generated sections are up to
//! date, and they stay short.

use super::Finding;
use crate::repository::{File, Repository};
use crate::{markdown, measured, outputs};

const README: &str = "README.md";
const CI: &str = ".ci/run";

/// Maximum sizes of documents, in bytes.
const MAX_BYTES: [(&str, usize); 6] = [
    ("README.md", 8 << 10),
    ("CHANGELOG.md", 14 << 10),
    ("docs/DESIGN.md", 15 << 10),
    ("docs/METHOD.md", 20 << 10),
    ("docs/MODEL.md", 50 << 10),
    ("docs/MUTATIONS.md", 6 << 10),
];

pub fn check(repository: &Repository) -> Vec<Finding> {
    let mut findings = Vec::new();
    for file in repository.under("", ".md") {
        commands(file, &mut findings);
        job_files(file, repository, &mut findings);
        links(file, repository, &mut findings);
    }
    ci_runs_the_tests(repository, &mut findings);
    generated(repository, &mut findings);
    findings
}

/// `filemap` commands in shell blocks are accepted by the command line.
fn commands(file: &File, findings: &mut Vec<Finding>) {
    for (line, text) in markdown::join_commands(markdown::code_lines(&file.text, "sh")) {
        let Some(command) = markdown::filemap_command(&text) else { continue };
        let words = command.split_whitespace().take_while(|word| !["|", ">"].contains(word));
        if let Err(error) = filemap_cli::command().try_get_matches_from(words) {
            // --help and --version.
            if !error.use_stderr() {
                continue;
            }
            let reason = error.to_string();
            let reason = reason.lines().next().unwrap_or_default().to_string();
            findings.push(Finding::error(&file.path, line, format!("'{text}': {reason}")));
        }
    }
}

/// Job files in `filemap` commands are in the repository, shown in the document, or written by an
/// earlier command.
fn job_files(file: &File, repository: &Repository, findings: &mut Vec<Finding>) {
    let mut available: Vec<String> =
        markdown::shown_files(&file.text).into_iter().map(|(name, _)| name.to_string()).collect();
    for (line, text) in markdown::join_commands(markdown::code_lines(&file.text, "sh")) {
        let Some(command) = markdown::filemap_command(&text) else { continue };
        let mut words = command.split_whitespace();
        while let Some(word) = words.next() {
            if word == ">" {
                available.extend(words.next().map(str::to_string));
            } else if word.ends_with(".toml") && !available.iter().any(|name| name == word) {
                let in_repository = repository.files.iter().any(|file| file.path == word);
                let message = format!("the reader has no {word}; show it, or write it first");
                let finding = Finding::error(&file.path, line, message);
                findings.extend((!in_repository).then_some(finding));
            }
        }
    }
}

/// Relative links lead to files of the repository.
fn links(file: &File, repository: &Repository, findings: &mut Vec<Finding>) {
    let directory = file.path.rsplit_once('/').map_or("", |(directory, _)| directory);
    for (index, line) in file.text.lines().enumerate() {
        for link in line.split("](").skip(1).filter_map(|rest| rest.split(')').next()) {
            let target = link.split('#').next().unwrap_or_default();
            if target.is_empty() || target.contains("://") {
                continue;
            }
            let path = resolve(directory, target);
            let exists = repository.files.iter().any(|f| f.path == path)
                || repository.under(&format!("{path}/"), "").next().is_some();
            if !exists {
                let message = format!("a link to {path}, which does not exist");
                findings.push(Finding::error(&file.path, index + 1, message));
            }
        }
    }
}

/// The path of `target` relative to `directory`, from the repository's root.
fn resolve(directory: &str, target: &str) -> String {
    let mut parts: Vec<&str> = directory.split('/').filter(|part| !part.is_empty()).collect();
    for part in target.trim_end_matches('/').split('/') {
        match part {
            "." => {}
            ".." => drop(parts.pop()),
            part => parts.push(part),
        }
    }
    parts.join("/")
}

/// CI runs the test command that README.md gives.
fn ci_runs_the_tests(repository: &Repository, findings: &mut Vec<Finding>) {
    let (Some(readme), Some(ci)) = (repository.text(README), repository.text(CI)) else {
        return;
    };
    let tests: Vec<_> = markdown::code_lines(readme, "sh")
        .into_iter()
        .map(|(number, line)| (number, markdown::strip_comment(line)))
        .filter(|(_, line)| line.starts_with("cargo test"))
        .collect();
    if tests.is_empty() {
        findings.push(Finding::error(README, 0, "gives no command for the tests".to_string()));
    }
    for (number, test) in tests {
        if !ci.lines().any(|line| line.ends_with(test)) {
            findings.push(Finding::error(README, number, format!("{CI} does not run '{test}'")));
        }
    }
}

/// Generated sections are up to date, measurements are well-formed, and documents are short.
fn generated(repository: &Repository, findings: &mut Vec<Finding>) {
    for file in repository.under(measured::DIRECTORY, ".toml") {
        if let Err(error) = measured::read(&file.path, &file.text) {
            findings.push(Finding::error(&file.path, 0, format!("{error:#}")));
        }
    }
    for file in repository.under("", ".md") {
        let message = match outputs::from_data(file, repository) {
            Ok(text) if text == file.text => continue,
            Ok(_) => "differs from its data; run cargo xtask outputs".to_string(),
            Err(error) => format!("{error:#}"),
        };
        findings.push(Finding::error(&file.path, 0, message));
    }
    for (path, limit) in MAX_BYTES {
        let bytes = repository.text(path).map_or(0, str::len);
        if bytes > limit {
            let message = format!("{bytes} bytes are more than {limit}: shorten it");
            findings.push(Finding::error(path, 0, message));
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn messages(files: &[(&str, &str)]) -> Vec<String> {
        check(&Repository::from_files(files)).iter().map(ToString::to_string).collect()
    }

    #[test]
    fn commands_parse() {
        let document = |command: &str| format!("x\n```sh\n{command}\n```\nfilemap nonsense\n");
        let check_command = |command: &str| messages(&[("docs/A.md", &document(command))]);
        for good in [
            "filemap run --workload random --file-size 1g",
            "cargo run --release -- published   # the table",
            "filemap run --workload random --log - | head",
            "cargo test --workspace -- --ignored",
            "ls",
        ] {
            assert_eq!(check_command(good), [""; 0], "{good}");
        }
        let found = check_command("filemap run --wrkload random");
        assert!(found[0].starts_with("docs/A.md:3: error: 'filemap run --wrkload"), "{found:?}");
        assert_eq!(check_command("cargo run --release -- publish").len(), 1);
        assert_eq!(check_command("filemap run --workload random \\\n    --file-size 1g"), [""; 0]);
        let found = check_command("filemap run --workload random \\\n    --fle-size 1g");
        assert!(found[0].starts_with("docs/A.md:3: error: 'filemap run --workload"), "{found:?}");
        assert_eq!(check_command("filemap --version"), [""; 0]);
    }

    #[test]
    fn job_files_are_available() {
        let check = |document: &str| messages(&[("docs/A.md", document), ("data/b.toml", "")]);
        let run =
            |before: &str, path: &str| check(&format!("{before}```sh\nfilemap run {path}\n```\n"));
        let shown = "```toml\n# a.toml\n```\n";
        let written = "```sh\nfilemap run --workload random --show-job > a.toml\n```\n";
        for before in [shown, written] {
            assert_eq!(run(before, "a.toml"), [""; 0], "{before}");
        }
        assert_eq!(run("", "data/b.toml"), [""; 0]);
        let missing = "docs/A.md:2: error: the reader has no a.toml; show it, or write it first";
        assert_eq!(run("", "a.toml"), [missing]);
    }

    #[test]
    fn links_lead_to_files() {
        let check = |link: &str| {
            messages(&[("docs/A.md", &format!("see [x]({link}) and")), ("src/lib.rs", "")])
        };
        for good in ["../src/lib.rs", "../src", "A.md#part", "#part", "https://a.example/b"] {
            assert_eq!(check(good), [""; 0], "{good}");
        }
        assert_eq!(
            check("B.md"),
            ["docs/A.md:1: error: a link to docs/B.md, which does not exist"]
        );
    }

    #[test]
    fn ci_runs_the_readme_test_command() {
        let readme = "```sh\ncargo test --workspace # all\n```\n";
        let check = |ci| messages(&[(README, readme), (CI, ci)]);
        assert_eq!(check("step cargo test --workspace"), [""; 0]);
        assert_eq!(check("cargo test").len(), 1);
        assert_eq!(messages(&[(README, ""), (CI, "")]).len(), 1);
    }

    const DATA: &str = "title = 't'\nsays = 's'\nmachine = 'm'\ndate = '2026-11-21'\n\
        command = 'c'\nnotes = ''\n";
    const LIST: &str =
        "<!-- measured: list -->\n\n- `f`, 2026-11-21: s.\n\n<!-- end of measured -->\n";

    fn data_messages(document: &str, data: &str) -> Vec<String> {
        let files = [("docs/A.md", document), ("data/measured/f.toml", data)];
        check(&Repository::from_files(&files)).iter().map(ToString::to_string).collect()
    }

    #[test]
    fn generated_sections_follow_their_data() {
        assert_eq!(data_messages(LIST, DATA), [""; 0]);
        let found = data_messages(LIST, &DATA.replace("'s'", "'more'"));
        assert_eq!(found, ["docs/A.md: error: differs from its data; run cargo xtask outputs"]);
        assert_eq!(data_messages("", &DATA.replace("2026-11-21", "today")).len(), 1);
        assert_eq!(
            data_messages("<!-- measured: g a -->\n<!-- end of measured -->\n", DATA).len(),
            1
        );
    }

    #[test]
    fn documents_stay_short() {
        let text = "a\n".repeat(5 << 10);
        let count = |path| check(&Repository::from_files(&[(path, text.as_str())])).len();
        assert_eq!((count("README.md"), count("docs/DESIGN.md")), (1, 0));
    }
}

//! What documents say about commands and files is so.

use super::Finding;
use crate::blocks;
use crate::repository::{File, Repository};

const README: &str = "README.md";
const CI: &str = ".ci/run";

pub fn check(repository: &Repository) -> Vec<Finding> {
    let mut findings = Vec::new();
    for file in repository.under("", ".md") {
        commands(file, &mut findings);
        job_files(file, repository, &mut findings);
        links(file, repository, &mut findings);
    }
    ci_runs_the_tests(repository, &mut findings);
    findings
}

/// Each `filemap` command in a shell block is one that the command line takes.
fn commands(file: &File, findings: &mut Vec<Finding>) {
    for (line, text) in blocks::commands(blocks::lines(&file.text, "sh")) {
        let Some(command) = blocks::filemap_command(&text) else { continue };
        let words = command.split_whitespace().take_while(|word| !["|", ">"].contains(word));
        if let Err(error) = filemap_cli::command().try_get_matches_from(words) {
            // Help and version are answers, not mistakes.
            if !error.use_stderr() {
                continue;
            }
            let reason = error.to_string();
            let reason = reason.lines().next().unwrap_or_default().to_string();
            findings.push(Finding::error(&file.path, line, format!("'{text}': {reason}")));
        }
    }
}

/// Each job file in a `filemap` command is one that the reader has: the repository holds it, the
/// document shows it, or a command before wrote it.
fn job_files(file: &File, repository: &Repository, findings: &mut Vec<Finding>) {
    let mut had: Vec<String> =
        blocks::files(&file.text).into_iter().map(|(name, _)| name.to_string()).collect();
    for (line, text) in blocks::commands(blocks::lines(&file.text, "sh")) {
        let Some(command) = blocks::filemap_command(&text) else { continue };
        let mut words = command.split_whitespace();
        while let Some(word) = words.next() {
            if word == ">" {
                had.extend(words.next().map(str::to_string));
            } else if word.ends_with(".toml") && !had.iter().any(|name| name == word) {
                let held = repository.files.iter().any(|file| file.path == word);
                let message = format!("the reader has no {word}; show it, or write it first");
                let finding = Finding::error(&file.path, line, message);
                findings.extend((!held).then_some(finding));
            }
        }
    }
}

/// Each link to a file of the repository leads to one.
fn links(file: &File, repository: &Repository, findings: &mut Vec<Finding>) {
    let directory = file.path.rsplit_once('/').map_or("", |(directory, _)| directory);
    for (index, line) in file.text.lines().enumerate() {
        for link in line.split("](").skip(1).filter_map(|rest| rest.split(')').next()) {
            let target = link.split('#').next().unwrap_or_default();
            if target.is_empty() || target.contains("://") {
                continue;
            }
            let path = resolved(directory, target);
            let leads = repository.files.iter().any(|f| f.path == path)
                || repository.under(&format!("{path}/"), "").next().is_some();
            if !leads {
                let message = format!("a link to {path}, which does not exist");
                findings.push(Finding::error(&file.path, index + 1, message));
            }
        }
    }
}

/// `target` as seen from `directory`, from the repository's root.
fn resolved(directory: &str, target: &str) -> String {
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

/// CI runs the tests by the command that README.md gives.
fn ci_runs_the_tests(repository: &Repository, findings: &mut Vec<Finding>) {
    let (Some(readme), Some(ci)) = (repository.text(README), repository.text(CI)) else {
        return;
    };
    let tests: Vec<_> = blocks::lines(readme, "sh")
        .into_iter()
        .map(|(number, line)| (number, blocks::without_comment(line)))
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

#[cfg(test)]
mod tests {
    use super::*;

    fn messages(files: &[(&str, &str)]) -> Vec<String> {
        check(&Repository::of(files)).iter().map(ToString::to_string).collect()
    }

    #[test]
    fn commands_are_taken_by_the_command_line() {
        let document = |command: &str| format!("x\n```sh\n{command}\n```\nfilemap nonsense\n");
        let of = |command: &str| messages(&[("docs/A.md", &document(command))]);
        for good in [
            "filemap run --workload random --file-size 1g",
            "cargo run --release -- published   # the table",
            "filemap run --workload random --log - | head",
            "cargo test --workspace -- --ignored",
            "ls",
        ] {
            assert_eq!(of(good), [""; 0], "{good}");
        }
        let found = of("filemap run --wrkload random");
        assert!(found[0].starts_with("docs/A.md:3: error: 'filemap run --wrkload"), "{found:?}");
        assert_eq!(of("cargo run --release -- publish").len(), 1);
        assert_eq!(of("filemap run --workload random \\\n    --file-size 1g"), [""; 0]);
        let found = of("filemap run --workload random \\\n    --fle-size 1g");
        assert!(found[0].starts_with("docs/A.md:3: error: 'filemap run --workload"), "{found:?}");
        assert_eq!(of("filemap --version"), [""; 0]);
    }

    #[test]
    fn job_files_are_at_hand() {
        let of = |document: &str| messages(&[("docs/A.md", document), ("data/b.toml", "")]);
        let run =
            |before: &str, path: &str| of(&format!("{before}```sh\nfilemap run {path}\n```\n"));
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
    fn links_lead_somewhere() {
        let of = |link: &str| {
            messages(&[("docs/A.md", &format!("see [x]({link}) and")), ("src/lib.rs", "")])
        };
        for good in ["../src/lib.rs", "../src", "A.md#part", "#part", "https://a.example/b"] {
            assert_eq!(of(good), [""; 0], "{good}");
        }
        assert_eq!(of("B.md"), ["docs/A.md:1: error: a link to docs/B.md, which does not exist"]);
    }

    #[test]
    fn ci_runs_what_the_readme_gives() {
        let readme = "```sh\ncargo test --workspace # all\n```\n";
        let of = |ci| messages(&[(README, readme), (CI, ci)]);
        assert_eq!(of("step cargo test --workspace"), [""; 0]);
        assert_eq!(of("cargo test").len(), 1);
        assert_eq!(messages(&[(README, ""), (CI, "")]).len(), 1);
    }
}

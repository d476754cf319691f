//! Man pages and completions cover every command and flag.

use std::fs;

use filemap_cli::{command, examples};

use crate::{Scratch, filemap, stderr, stdout};

#[test]
fn every_command_has_a_man_page_with_its_flags() {
    let scratch = Scratch::new("man");
    let pages = scratch.path("man1");
    assert_eq!(stdout(&format!("man -o {pages}")), "");
    let read = |name: &str| fs::read_to_string(format!("{pages}/{name}.1")).unwrap();
    let top = read("filemap");
    assert_eq!(stdout("man"), top);
    assert_eq!(stdout("man run"), read("filemap-run"));
    for command in command().get_subcommands() {
        let name = command.get_name();
        let shown = name.replace('-', "\\-");
        assert!(top.contains(&format!("filemap\\-{shown}")), "{name} is not in filemap.1");
        let page = read(&format!("filemap-{name}"));
        for flag in command.get_arguments().filter_map(|flag| flag.get_long()) {
            let flag = format!("\\-\\-{}", flag.replace('-', "\\-"));
            assert!(page.contains(&flag), "{flag} is not in filemap-{name}.1");
        }
        for section in ["EXIT STATUS", "ENVIRONMENT", "FILES", "EXAMPLES", "SEE ALSO"] {
            let heading =
                if section.contains(' ') { format!("\"{section}\"") } else { section.into() };
            assert!(page.contains(&format!(".SH {heading}")), "filemap-{name}.1 has no {section}");
        }
        let example = examples::examples_for(name)[0].command.replace('-', "\\-");
        assert!(page.contains(&example), "'{example}' is not in filemap-{name}.1");
    }
}

#[test]
fn completions_know_every_flag() {
    for shell in ["bash", "zsh", "fish"] {
        let script = stdout(&format!("completions {shell}"));
        for command in command().get_subcommands() {
            for flag in command.get_arguments().filter_map(|flag| flag.get_long()) {
                assert!(script.contains(flag), "--{flag} is not in those of {shell}");
            }
        }
    }
}

#[test]
fn schemas_are_printed_and_written() {
    let scratch = Scratch::new("schemas");
    let directory = scratch.path("new");
    assert_eq!(stdout(&format!("schema -o {directory}")), "");
    for name in ["job", "run", "log"] {
        let text = fs::read_to_string(format!("{directory}/{name}.schema.json")).unwrap();
        assert_eq!(stdout(&format!("schema {name}")), text);
        assert!(text.starts_with('{') && text.ends_with("}\n"), "{name}");
    }
}

#[test]
fn unknown_pages_shells_and_schemas_are_refused_with_the_known_ones() {
    for (args, words) in [
        ("man walk", &["no command 'walk'", "run"][..]),
        ("schema walk", &["no schema 'walk'", "job, run"]),
        ("schema", &["required", "--output"]),
        ("completions tcsh", &["'tcsh'", "bash"]),
        ("man -o /dev/null", &["/dev/null"]),
    ] {
        let output = filemap(args).output().unwrap();
        let message = stderr(&output);
        let code = if args.contains("/dev/null") { 1 } else { 2 };
        assert_eq!(output.status.code(), Some(code), "{args}: {message}");
        assert!(words.iter().all(|word| message.contains(word)), "{args}: {message}");
        assert_eq!(message.lines().count(), 1, "{args}: {message}");
    }
}

//! Man pages and completions have every command and flag.

use std::fs;
use std::path::{Path, PathBuf};

use filemap_cli::{command, examples};
use xtask::{completions, man};

/// A directory that goes when the test ends.
struct Scratch(PathBuf);

impl Scratch {
    fn new(name: &str) -> Scratch {
        let path = Path::new(env!("CARGO_TARGET_TMPDIR")).join(name);
        Scratch(path)
    }
}

impl Drop for Scratch {
    fn drop(&mut self) {
        let _ = fs::remove_dir_all(&self.0);
    }
}

#[test]
fn every_command_has_a_man_page_with_its_flags() {
    let scratch = Scratch::new("man");
    man::write(&scratch.0).unwrap();
    let top = fs::read_to_string(scratch.0.join("filemap.1")).unwrap();
    for command in command().get_subcommands() {
        let name = command.get_name();
        let shown = name.replace('-', "\\-");
        assert!(top.contains(&format!("filemap\\-{shown}")), "{name} is not in filemap.1");
        let page = fs::read_to_string(scratch.0.join(format!("filemap-{name}.1"))).unwrap();
        for flag in command.get_arguments().filter_map(|flag| flag.get_long()) {
            let flag = format!("\\-\\-{}", flag.replace('-', "\\-"));
            assert!(page.contains(&flag), "{flag} is not in filemap-{name}.1");
        }
        for section in ["EXIT STATUS", "ENVIRONMENT", "FILES", "EXAMPLES", "SEE ALSO"] {
            let heading =
                if section.contains(' ') { format!("\"{section}\"") } else { section.into() };
            assert!(page.contains(&format!(".SH {heading}")), "filemap-{name}.1 has no {section}");
        }
        let example = examples::of(name)[0].command.replace('-', "\\-");
        assert!(page.contains(&example), "'{example}' is not in filemap-{name}.1");
    }
}

#[test]
fn completions_know_every_flag() {
    let scratch = Scratch::new("completions");
    completions::write(&scratch.0).unwrap();
    for file in ["filemap.bash", "_filemap", "filemap.fish"] {
        let script = fs::read_to_string(scratch.0.join(file)).unwrap();
        for command in command().get_subcommands() {
            for flag in command.get_arguments().filter_map(|flag| flag.get_long()) {
                assert!(script.contains(flag), "--{flag} is not in {file}");
            }
        }
    }
}

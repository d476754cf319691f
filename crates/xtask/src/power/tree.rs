//! A copy of this tree whose core has a switch at each site: what of it is no Rust is left out, and
//! what measures with it is built.

use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;

use anyhow::{Context, Result, bail, ensure};
use serde_json::Value;

use super::loops;
use super::mutant::Mutant;
use super::sites::{self, LeftOut};
use super::variants::{Variants, variants};
use crate::repository::{File, Repository, root};

/// Modules of the core that have rules. The others hold types, what is cached, and the log.
const RULES: [&str; 6] = ["address", "advised", "fault", "lru", "readahead", "rules"];

/// Where the sources of the core lie.
const CORE: &str = "crates/core/src/";

/// Where those of the model lie, whose loops go by what the rules say.
const MODEL: &str = "crates/model/src/";

/// What a switch is, in the copy.
const SWITCHED: &str = include_str!("switched.rs");

/// The program that measures, in the copy.
const PROGRAM: &str = include_str!("program.rs");

/// Its package.
const PACKAGE: &str = "\
[package]
name = \"filemap-power\"
version = \"0.1.0\"
edition.workspace = true

[dependencies]
filemap-core.workspace = true
filemap-job.workspace = true
filemap-model.workspace = true
anyhow.workspace = true
schemars.workspace = true
serde.workspace = true
serde_json.workspace = true
toml.workspace = true
";

/// How it is built: what runs much is optimised.
const PROFILE: &str = "
[profile.power]
inherits = \"dev\"
opt-level = 0
debug = false
overflow-checks = false
debug-assertions = false

[profile.power.package]
filemap-core.opt-level = 3
filemap-job.opt-level = 3
filemap-model.opt-level = 3
filemap-policy.opt-level = 3
filemap-power.opt-level = 3
smallvec.opt-level = 3
";

/// So many rounds of leaving out are never needed.
const MOST_ROUNDS: usize = 60;

/// The copy.
pub struct Tree {
    root: PathBuf,
    target: PathBuf,
}

/// The core with its switches.
struct Switched {
    files: Vec<File>,
    mutants: Vec<Mutant>,
}

impl Tree {
    /// Where it lies.
    pub fn new() -> Tree {
        let directory = root().join("target/power");
        Tree { root: directory.join("tree"), target: directory.join("target") }
    }

    /// Writes and builds it. Returns the program that measures, and what it can make wrong.
    ///
    /// # Errors
    /// When something cannot be written, or what is left does not compile.
    pub fn build(&self, repository: &Repository) -> Result<(PathBuf, Vec<Mutant>)> {
        for file in &repository.files {
            if file.path == "Cargo.toml" {
                self.write(&file.path, &(file.text.clone() + PROFILE))?;
            } else if file.path.starts_with(MODEL) && !file.path.ends_with("/tests.rs") {
                self.write(&file.path, &loops::counted(&file.path, &file.text)?)?;
            } else if !file.path.starts_with(CORE) {
                self.write(&file.path, &file.text)?;
            }
        }
        self.write("crates/power/Cargo.toml", PACKAGE)?;
        self.write("crates/power/src/main.rs", PROGRAM)?;
        self.remove_old(&self.root.join("crates"), repository)?;
        let mutants = self.prune(repository)?;
        println!("{} wrong rules compile; building", mutants.len());
        let status = self.cargo(&["build", "--profile", "power", "-p", "filemap-power"]).status();
        ensure!(status.context("cargo does not start")?.success(), "the copy does not build");
        Ok((self.target.join("power/filemap-power"), mutants))
    }

    /// Removes the sources in `directory` that the repository does not have any more.
    fn remove_old(&self, directory: &Path, repository: &Repository) -> Result<()> {
        for entry in fs::read_dir(directory)? {
            let path = entry?.path();
            let name = path.strip_prefix(&self.root)?.to_string_lossy().into_owned();
            if path.is_dir() {
                self.remove_old(&path, repository)?;
            } else if name.ends_with(".rs")
                && !name.starts_with("crates/power/")
                && name != format!("{CORE}switched.rs")
                && repository.text(&name).is_none()
            {
                fs::remove_file(&path)?;
            }
        }
        Ok(())
    }

    /// Leaves out what does not compile, until the core does.
    fn prune(&self, repository: &Repository) -> Result<Vec<Mutant>> {
        let mut left_out = LeftOut::new();
        for _ in 0..MOST_ROUNDS {
            let core = switched(repository, &left_out)?;
            for file in &core.files {
                self.write(&file.path, &file.text)?;
            }
            let before = left_out.len();
            let errors = self.errors()?;
            if errors.is_empty() {
                return Ok(core.mutants);
            }
            // Some only follow from others.
            left_out.extend(errors.iter().filter_map(|error| error.place(&core)));
            println!("{} errors, {} ways left out", errors.len(), left_out.len());
            ensure!(left_out.len() > before, "{}", errors[0].text);
        }
        bail!("what is left does not compile")
    }

    fn write(&self, path: &str, text: &str) -> Result<()> {
        let path = self.root.join(path);
        // What is as it was is not built again.
        if fs::read_to_string(&path).is_ok_and(|old| old == text) {
            return Ok(());
        }
        fs::create_dir_all(path.parent().expect("a file lies in a directory"))?;
        fs::write(&path, text).with_context(|| format!("{} not written", path.display()))
    }

    fn cargo(&self, words: &[&str]) -> Command {
        let mut cargo = Command::new("cargo");
        cargo
            .args(words)
            .current_dir(&self.root)
            .env("CARGO_TARGET_DIR", &self.target)
            .env("RUSTFLAGS", "-Awarnings")
            // The tree is no part of the workspace that it lies in.
            .env("GIT_CEILING_DIRECTORIES", &self.root);
        cargo
    }

    /// What the compiler says against the core.
    fn errors(&self) -> Result<Vec<CompileError>> {
        let words = ["check", "-q", "-p", "filemap-core", "--message-format", "json"];
        let output = self.cargo(&words).output().context("cargo does not start")?;
        let text = String::from_utf8_lossy(&output.stdout);
        let messages = text.lines().filter_map(|line| serde_json::from_str::<Value>(line).ok());
        let errors: Vec<_> = messages.filter_map(|message| CompileError::of(&message)).collect();
        let said = String::from_utf8_lossy(&output.stderr);
        ensure!(output.status.success() || !errors.is_empty(), "cargo check fails: {said}");
        Ok(errors)
    }
}

/// The core with a switch at each site, without those of `left_out`.
fn switched(repository: &Repository, left_out: &LeftOut) -> Result<Switched> {
    let sources: Vec<&File> = repository.under(CORE, ".rs").collect();
    let mut known = Variants::new();
    for file in &sources {
        known.extend(variants(&file.text)?);
    }
    let (mut files, mut mutants, mut next) = (Vec::new(), Vec::new(), 0);
    for file in sources {
        let name = &file.path[CORE.len()..];
        let module = name.split(['/', '.']).next().unwrap_or_default();
        let mut text = file.text.clone();
        if RULES.contains(&module) {
            (text, next) = sites::switched(name, &text, &known, left_out, next, &mut mutants)?;
        } else if name == "lib.rs" {
            text += "\n#[allow(missing_docs)]\npub mod switched;\n";
        }
        files.push(File { path: file.path.clone(), text });
    }
    let path = format!("{CORE}switched.rs");
    files.push(File { path, text: format!("{SWITCHED}\npub const SITES: usize = {next};\n") });
    Ok(Switched { files, mutants })
}

/// What the compiler says of places, the first of which is where the error is.
struct CompileError {
    spans: Vec<(String, usize, usize)>,
    text: String,
}

impl CompileError {
    fn of(message: &Value) -> Option<CompileError> {
        let message = message.get("message")?;
        if message["level"] != "error" {
            return None;
        }
        let span = |span: &Value| {
            let number = |key: &str| span[key].as_u64().map(|number| number as usize);
            let file = span["file_name"].as_str()?.to_string();
            Some((span["is_primary"] == true, (file, number("byte_start")?, number("byte_end")?)))
        };
        let mut spans: Vec<_> = message["spans"].as_array()?.iter().filter_map(span).collect();
        spans.sort_by_key(|(is_primary, _)| !is_primary);
        let spans: Vec<_> = spans.into_iter().map(|(_, span)| span).collect();
        let text = message["rendered"].as_str()?.to_string();
        // The last line only counts them.
        (!spans.is_empty()).then_some(CompileError { spans, text })
    }

    /// The site that it lies in, and the way of that: the innermost, as the generator marks them.
    /// Where a site has made something else wrong, its last way is taken for the reason.
    fn place(&self, core: &Switched) -> Option<(usize, u8)> {
        let mut places = self.spans.iter().filter_map(|(path, start, end)| {
            let file = core.files.iter().find(|file| file.path == *path)?;
            enclosing(&file.text, *start, *end)
        });
        let (site, way) = places.next()?;
        let (path, start, end) = &self.spans[0];
        let file = core.files.iter().find(|file| file.path == *path);
        let is_inside = file.is_some_and(|file| enclosing(&file.text, *start, *end).is_some());
        if is_inside {
            return Some((site, way));
        }
        let last = core.mutants.iter().rfind(|mutant| mutant.site == site);
        Some((site, last.map_or(0, |mutant| mutant.way)))
    }
}

/// The innermost marked range of `text` around the bytes `start..end`.
fn enclosing(text: &str, start: usize, end: usize) -> Option<(usize, u8)> {
    let mut open: Vec<(usize, (usize, u8))> = Vec::new();
    let mut found: Option<(usize, (usize, u8))> = None;
    let mut at = 0;
    while let Some(begins) = text[at..].find("/*") {
        let from = at + begins;
        let until = from + text[from..].find("*/")? + 2;
        let mark = &text[from + 2..until - 2];
        at = until;
        if let Some(site) = mark.strip_prefix('[') {
            open.push((from, (site.parse().ok()?, 0)));
        } else if let Some(way) = mark.strip_prefix('(') {
            let (site, way) = way.split_once('.')?;
            open.push((from, (site.parse().ok()?, way.parse().ok()?)));
        } else if mark == ")" || mark.ends_with(']') {
            let (from, place) = open.pop()?;
            let length = until - from;
            if from <= start && end <= until && found.is_none_or(|(least, _)| length < least) {
                found = Some((length, place));
            }
        }
    }
    found.map(|(_, place)| place)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_innermost_place_is_found() {
        let text = "a /*[1*/b /*[2*/c, /*(2.1*/d/*)*/ e/*2]*/ f/*1]*/ g";
        let at = |word: &str| {
            let start = text.find(word).unwrap();
            enclosing(text, start, start + word.len())
        };
        assert_eq!(at("d"), Some((2, 1)));
        assert_eq!(at("c"), Some((2, 0)));
        assert_eq!(at("f"), Some((1, 0)));
        assert_eq!(at("g"), None);
    }

    /// What is generated of this core is Rust, as far as a parser can tell, and much.
    #[test]
    fn every_rule_has_its_switch() {
        let repository = Repository::read().unwrap();
        let core = switched(&repository, &LeftOut::new()).unwrap();
        for file in &core.files {
            syn::parse_file(&file.text).unwrap_or_else(|error| panic!("{}: {error}", file.path));
        }
        assert!(core.mutants.len() > 1000, "{}", core.mutants.len());
    }
}

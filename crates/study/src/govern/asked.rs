//! A program is run plain and governed in turn.

use std::ffi::OsString;
use std::path::{Path, PathBuf};
use std::{fs, iter};

use filemap_attach::program::Program;
use filemap_job::record::SCHEMA;

use super::compare::{Comparison, File};
use super::governed::Governed;
use super::measured::{Measured, Variant};
use crate::engine::Engines;
use crate::error::Error;
use crate::footer::Footer;
use crate::trial::{self, Ran};

/// How often a program is run in each way where nothing is said.
const RUNS: u64 = 5;

/// A comparison that is asked for.
#[allow(missing_docs, reason = "their names say it")]
pub struct Asked<'a> {
    pub program: &'a Program,
    /// The program and its arguments, as they were given.
    pub words: &'a [OsString],
    /// The flags of what is governed.
    pub flags: &'a [String],
    /// How often it is run in each way.
    pub runs: Option<u64>,
}

/// Runs a program plain and governed in turn. `check` is given the files that are governed before
/// they are dropped from the page cache.
///
/// # Errors
/// A program that cannot be run; no place for what the runs tell; those of `check`.
pub fn compare(
    asked: &Asked,
    engines: &impl Engines,
    footer: Footer,
    check: impl FnOnce(&[String]) -> Result<(), Error>,
) -> Result<Comparison, Error> {
    let trial =
        Trial { program: asked.program, governed: Governed::of(asked.program, asked.flags)? };
    let pairs = asked.runs.unwrap_or(RUNS);
    let progress = engines.progress(Some(2 * pairs + 1));
    // Which files it maps is known when it has mapped them.
    let first = trial.run(Variant::Governed, 0)?;
    let told = trial.governed.told();
    check(&told.paths)?;
    let (files, notes) = governed_files(&told.paths);
    progress.advance();
    let mut compared = Comparison {
        schema: SCHEMA,
        footer,
        program: asked.words.iter().map(|word| word.to_string_lossy().into_owned()).collect(),
        ungoverned: told.ungoverned,
        notes,
        first: Some(first),
        ..Comparison::default()
    };
    for variant in in_turn().take(2 * pairs as usize) {
        let paths = files.iter().map(|(path, _)| path.as_path());
        let cached_bytes = trial::drop_all(paths, &mut compared.notes)?;
        compared.runs.push(trial.run(variant, cached_bytes)?);
        progress.advance();
    }
    let file = |(path, bytes): (PathBuf, u64)| File { path: path.display().to_string(), bytes };
    compared.files = files.into_iter().map(file).collect();
    Ok(compared.concluded())
}

/// The two ways of pairs of runs, in order. They take turns in going first, so that what the run
/// before leaves behind favours neither.
fn in_turn() -> impl Iterator<Item = Variant> {
    use Variant::{Governed, Plain};
    iter::repeat([Plain, Governed, Governed, Plain]).flatten()
}

/// A program that is run again and again.
struct Trial<'a> {
    program: &'a Program,
    governed: Governed,
}

impl Trial<'_> {
    /// Runs the program once, with so much of its files in the page cache.
    fn run(&self, variant: Variant, cached_bytes: u64) -> Result<Measured, Error> {
        let metered = match variant {
            Variant::Governed => self.governed.run()?,
            Variant::Plain => trial::run(self.program)?,
        };
        let (bytes_read, ran) = (metered.bytes_read, Ran::of(&metered, cached_bytes));
        Ok(Measured { variant, bytes_read, ran })
    }
}

/// The files at `paths`, of which mappings were governed, with their bytes, and what is to be said
/// of those that cannot be found again.
fn governed_files(paths: &[String]) -> (Vec<(PathBuf, u64)>, Vec<String>) {
    let (mut files, mut notes) = (Vec::new(), Vec::new());
    for path in paths {
        match fs::metadata(path) {
            Ok(data) if data.is_file() && Path::new(path).is_absolute() => {
                files.push((PathBuf::from(path), data.len()));
            }
            _ => notes.push(format!(
                "'{path}' was governed and is not there any more, so that it is not dropped from \
                 the page cache."
            )),
        }
    }
    (files, notes)
}

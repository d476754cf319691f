//! `filemap govern --compare`: a program runs plain and governed in turn.

use std::collections::BTreeSet;
use std::ffi::OsString;
use std::fs;
use std::path::{Path, PathBuf};

use filemap_attach::program::Program;
use filemap_job::record::{RecordKind, SCHEMA};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use super::exits::{self, ExitCount, count_exits};
use crate::engine::Engines;
use crate::error::Error;
use crate::footer::Footer;
use crate::trial::{
    DEFAULT_RUNS, Measure, MeasureComparison, OUTPUTS, Observable, RunSample, Treatment, Trial,
    all_agree, differs_from_plain, named_files, watch_mapped_files,
};

/// Options of [`compare`].
#[allow(missing_docs, reason = "their names say it")]
pub struct GovernCompareOptions<'a> {
    pub program: &'a Program,
    /// The program and its arguments.
    pub words: &'a [OsString],
    /// Flags of `filemap govern`.
    pub flags: &'a [String],
    /// Runs of each variant.
    pub runs: Option<u64>,
}

/// How a program was run.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord)]
#[derive(Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "lowercase")]
pub enum GovernVariant {
    /// Without the governor.
    #[default]
    Plain,
    /// With its file mappings governed.
    Governed,
}

/// A run of one variant.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct GovernSample {
    /// How the program was run.
    pub variant: GovernVariant,
    /// Its figures.
    #[serde(flatten)]
    pub run: RunSample,
}

/// What [`compare`] measured.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[schemars(rename = "GovernCompare")]
#[allow(missing_docs, reason = "their names say it")]
pub struct GovernCompareRecord {
    pub schema: u32,
    /// The kind of record.
    pub kind: RecordKind,
    #[serde(flatten)]
    pub footer: Footer,
    /// The program and its arguments.
    pub program: Vec<String>,
    /// Files that the program maps or that its command line names: they are dropped from the page
    /// cache before each run.
    pub files: Vec<GovernedFile>,
    /// Why no file was governed, if known, as the end of a sentence.
    pub ungoverned: Option<String>,
    /// Sentences for the reader.
    pub notes: Vec<String>,
    /// Differences in behaviour between governed and plain runs. There should be none.
    pub differences: Vec<String>,
    /// Exits of the runs of each variant, with their counts.
    pub(super) endings: Vec<ExitCount>,
    pub(super) cells: Vec<MeasureComparison>,
    /// The runs, in the order in which they were made.
    pub runs: Vec<GovernSample>,
    /// The initial governed run, which determines the files to drop from the cache; null in old
    /// records.
    #[serde(default)]
    pub first: Option<GovernSample>,
}

/// A file that is cold at the beginning of each run.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[allow(missing_docs, reason = "their names say it")]
pub struct GovernedFile {
    pub path: String,
    pub bytes: u64,
}

/// Runs a program plain and governed in turn. `check_files` gets the files that the program maps or
/// is given before they are dropped from the page cache.
///
/// # Errors
/// When the program cannot be run or there is no directory for reports; errors of `check_files`.
pub fn compare(
    options: &GovernCompareOptions,
    engines: &impl Engines,
    footer: Footer,
    check_files: impl Fn(&[String]) -> Result<(), Error>,
) -> Result<GovernCompareRecord, Error> {
    let governed = Treatment::Governed { flags: options.flags.to_vec() };
    let treatments = [Treatment::Plain, governed];
    let pairs = options.runs.unwrap_or(DEFAULT_RUNS);
    let progress = engines.progress(Some(2 * pairs + 1));
    // What the command line names is cold from the first run on.
    let mut known: BTreeSet<String> = named_files(options.words).into_iter().map(shown).collect();
    check_files(&Vec::from_iter(known.clone()))?;
    let mut trial = Trial {
        engines,
        program: options.program,
        files: Vec::new(),
        cached: Vec::new(),
        notes: Vec::new(),
        governed: None,
    };
    trial.drop_files(&known);
    // The first run determines which files the program maps. It is repeated with these cold.
    let (first, mapped) = watch_mapped_files(|| trial.run(&treatments[1]));
    let mut first = first?;
    let named = known.len();
    known.extend(mapped.into_iter().map(shown));
    known.extend(first.governed.paths.iter().cloned());
    check_files(&Vec::from_iter(known.clone()))?;
    let files = trial.drop_files(&known);
    if known.len() > named {
        first = trial.run(&treatments[1])?;
    }
    progress.advance();
    let mut runs = Vec::new();
    trial.run_in_turn(&treatments, pairs, &*progress, |index, run| {
        let variant = [GovernVariant::Plain, GovernVariant::Governed][index];
        runs.push(GovernSample { variant, run: run.sample });
        Ok(())
    })?;
    let record = GovernCompareRecord {
        schema: SCHEMA,
        kind: RecordKind::GovernCompare,
        footer,
        program: options.words.iter().map(|word| word.to_string_lossy().into_owned()).collect(),
        files,
        ungoverned: first.governed.ungoverned,
        notes: trial.notes,
        runs,
        first: Some(GovernSample { variant: GovernVariant::Governed, run: first.sample }),
        ..GovernCompareRecord::default()
    };
    Ok(record.with_results())
}

fn shown(path: PathBuf) -> String {
    path.to_string_lossy().into_owned()
}

impl<E: Engines> Trial<'_, E> {
    /// Makes each run start with the files at `paths` dropped from the page cache, and returns them
    /// with their sizes.
    fn drop_files(&mut self, paths: &BTreeSet<String>) -> Vec<GovernedFile> {
        let mut files = Vec::new();
        self.files.clear();
        for path in paths {
            match fs::metadata(path) {
                Ok(data) if data.is_file() && Path::new(path).is_absolute() => {
                    self.files.push(PathBuf::from(path));
                    files.push(GovernedFile { path: path.clone(), bytes: data.len() });
                }
                _ => self.notes.push(format!(
                    "'{path}' was mapped and is not there any more, so that it is not dropped \
                     from the page cache."
                )),
            }
        }
        files
    }
}

impl GovernCompareRecord {
    /// Adds the comparison of the runs.
    ///
    /// # Panics
    /// Unless each variant has a run.
    pub fn with_results(mut self) -> Self {
        self.cells = {
            let plain = self.measured_runs(GovernVariant::Plain);
            let governed = self.measured_runs(GovernVariant::Governed);
            let compare =
                |measure| MeasureComparison::new(measure, plain.clone(), governed.clone());
            Measure::ALL.into_iter().map(compare).collect()
        };
        self.endings = count_exits(&self.runs);
        self.differences = self.differences();
        self
    }

    pub(super) fn measured_runs(
        &self,
        variant: GovernVariant,
    ) -> impl Iterator<Item = &RunSample> + Clone {
        let own = self.runs.iter().filter(move |sample| sample.variant == variant);
        own.map(|sample| &sample.run)
    }

    /// Differences in behaviour. The program's output is compared only if it is the same in all
    /// plain runs.
    fn differences(&self) -> Vec<String> {
        let exit = exits::differ(&self.endings).then(|| {
            format!(
                "the exit code of governed runs differs from that of plain runs: {}",
                exits::text(&self.endings)
            )
        });
        let differs = |output: &&Observable| {
            let governed = self.measured_runs(GovernVariant::Governed);
            differs_from_plain(governed, self.measured_runs(GovernVariant::Plain), **output)
        };
        let outputs = OUTPUTS.iter().filter(differs);
        let outputs = outputs
            .map(|(name, _)| format!("{name} of governed runs differs from that of plain runs"));
        exit.into_iter().chain(outputs).collect()
    }

    /// Sentences about output that cannot be compared because plain runs differ among themselves.
    pub(super) fn unsteady_outputs(&self) -> impl Iterator<Item = String> {
        let is_unsteady =
            |output: &&Observable| !all_agree(self.measured_runs(GovernVariant::Plain), **output);
        OUTPUTS.iter().filter(is_unsteady).map(|(name, _)| {
            format!("{name} differs among the plain runs already, and is not compared.")
        })
    }
}

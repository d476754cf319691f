//! Errors of studies, their exit codes and messages.

pub use filemap_attach::reason;
use filemap_govern::recorder::RecordError;
use filemap_recording::Problem;
use filemap_recording::import::ImportError;

/// Maximum length of a message in characters.
const MAX_MESSAGE: usize = 600;

/// Exit code if a booted kernel crashed or warned.
const BROKEN_KERNEL: u8 = 3;

/// Why a command failed: one line that names the value and the remedy.
#[derive(Debug, thiserror::Error)]
#[allow(missing_docs, reason = "their names say it")]
pub enum Error {
    /// Invalid or contradictory flags.
    #[error("{0}")]
    Usage(String),
    /// An invalid job.
    #[error(transparent)]
    Job(#[from] filemap_job::Error),
    /// An error in a file.
    #[error("{path}: {error}")]
    InFile { path: String, error: Box<Error> },
    /// An error in one variant of a comparison.
    #[error("--variants {variant}: {error}")]
    InVariant { variant: String, error: Box<Error> },
    /// Not one of the published series.
    #[error("unknown published series '{name}'; known: {known}")]
    UnknownSeries {
        /// The name given.
        name: String,
        /// The known names.
        known: String,
    },
    /// The input of a page is not a record.
    #[error("it is no record of filemap: {reason}; give what --json wrote")]
    NoRecord {
        /// Why it could not be read.
        reason: String,
    },
    /// The input of a page is of another kind or schema version.
    #[error(
        "there is no page of this record{}; give what --json of run, compare, explain, advise, \
         published, conform, search, folio-ops, govern, calibrate or doctor wrote",
        schema_text(*schema, *known)
    )]
    NoPage {
        /// Its schema version, if it has one.
        schema: Option<u64>,
        /// The supported version.
        known: u32,
    },
    /// The model cannot run the job.
    #[error(transparent)]
    Model(#[from] filemap_model::Error),
    /// The kernel engine cannot run the job.
    #[error(transparent)]
    Kernel(#[from] filemap_kernel::Error),
    /// A process that cannot be followed.
    #[error(transparent)]
    Attach(#[from] filemap_attach::Error),
    /// A recording that cannot be read.
    #[error(transparent)]
    Recording(#[from] filemap_recording::Error),
    /// A trace that cannot be imported.
    #[error(transparent)]
    Import(#[from] ImportError),
    /// A file that cannot be read.
    #[error("{what} '{path}' cannot be read: {reason}; give a readable file")]
    Read { what: &'static str, path: String, reason: String },
    /// A file that cannot be written to.
    #[error("'{path}' cannot be opened: {reason}; give a file that can be written, or -")]
    Open { path: String, reason: String },
    /// An output that could not be written completely.
    #[error("'{path}' cannot be written: {reason}; {}", remedy(reason))]
    Write { path: String, reason: String },
    /// The reader of stdout has closed it.
    #[error("the reader of stdout has closed it")]
    ReaderLeft,
    /// The user's profile, written by `filemap calibrate`, is invalid.
    #[error(
        "the machine profile of this user cannot be used: {error}; run filemap calibrate again, \
         remove the file, or give --machine default"
    )]
    UserProfile { error: Box<Error> },
    /// The mm of the mapcount crate cannot run the operation.
    #[error(transparent)]
    Mapcount(#[from] filemap_mapcount::Error),
    /// A program that cannot be run.
    #[error(transparent)]
    Program(#[from] filemap_attach::program::LaunchError),
    /// An error in one of several patterns.
    #[error("pattern {pattern}: {error}")]
    InPattern { pattern: String, error: Box<Error> },
    /// A booted kernel warned and continued.
    #[error(
        "the kernel warned {}: {first}; its figures are in the report, and all that it said is in \
         --json",
        if *others == 0 { "once".to_string() } else { format!("{} times, first", others + 1) }
    )]
    KernelWarned { first: String, others: usize },
    /// Not possible on this machine or with this build.
    #[error("{0}")]
    CannotRun(String),
}

impl From<RecordError> for Error {
    fn from(error: RecordError) -> Error {
        match error {
            RecordError::Attach(error) => error.into(),
            RecordError::Kernel(error) => error.into(),
            RecordError::Program(error) => error.into(),
            RecordError::Recording(error) => error.into(),
            RecordError::CannotRun(message) => Error::CannotRun(message),
        }
    }
}

impl Error {
    /// Exit code of the command.
    pub fn exit_code(&self) -> u8 {
        match self {
            Error::Write { .. } | Error::ReaderLeft => 1,
            Error::Recording(error) | Error::Import(ImportError::Recording(error))
                if matches!(error.problem, Problem::Write { .. }) =>
            {
                1
            }
            // A process number that is wrong, or too old.
            Error::Attach(filemap_attach::Error::Gone { .. }) => 2,
            Error::CannotRun(_)
            | Error::Attach(_)
            | Error::Mapcount(filemap_mapcount::Error::Memory { .. })
            | Error::Model(filemap_model::Error::TooLarge { .. }) => 4,
            Error::KernelWarned { .. } => BROKEN_KERNEL,
            Error::Kernel(error) if error.is_kernel_failure() => BROKEN_KERNEL,
            Error::Kernel(error) => match error.root_cause() {
                filemap_kernel::Error::InvalidProcess(_)
                | filemap_kernel::Error::OutOfMemory { .. }
                | filemap_kernel::Error::BeyondFile { .. }
                | filemap_kernel::Error::Image(filemap_kernel::image::Error::Kernel { .. }) => 2,
                error if error.cannot_run_here() => 4,
                _ => 1,
            },
            Error::Program(refused) => refused.code,
            Error::InFile { error, .. }
            | Error::InVariant { error, .. }
            | Error::InPattern { error, .. } => error.exit_code(),
            _ => 2,
        }
    }

    /// The message as a single line of at most `MAX_MESSAGE` characters.
    pub fn one_line(&self) -> String {
        let text = without_numbers(&self.to_string());
        // Blanks inside a line may belong to a value.
        let lines = text.lines().map(str::trim).filter(|line| !line.is_empty());
        let line = lines.collect::<Vec<_>>().join(" ").replace('\t', " ");
        let line: String = line.chars().filter(|c| !c.is_control()).collect();
        if line.chars().count() <= MAX_MESSAGE {
            return line;
        }
        let half = MAX_MESSAGE / 2;
        let (start, end) =
            (line.chars().take(half), line.chars().skip(line.chars().count() - half));
        format!("{} ... {}", start.collect::<String>(), end.collect::<String>())
    }
}

/// Removes the `(os error N)` suffixes: the error's name precedes them.
fn without_numbers(text: &str) -> String {
    let mut parts = text.split(" (os error ");
    let mut kept = parts.next().unwrap_or_default().to_string();
    for part in parts {
        kept += part.split_once(')').map_or("", |(_, rest)| rest);
    }
    kept
}

/// Remedy for a write that failed for `reason`.
fn remedy(reason: &str) -> &'static str {
    match reason {
        "it is closed" => "leave it open, or send it to a file",
        _ => "give it room, or another place",
    }
}

/// How a message names an unsupported schema version.
fn schema_text(schema: Option<u64>, known: u32) -> String {
    match schema {
        Some(schema) if schema != u64::from(known) => {
            format!(
                " (its schema is {schema}, and this filemap reads {known}: make it again with this one)"
            )
        }
        _ => String::new(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn system_errors_are_named_and_not_numbered() {
        let error = Error::CannotRun("cannot boot x: No such file (os error 2); give y".into());
        assert_eq!(error.one_line(), "cannot boot x: No such file; give y");
        let error = Error::CannotRun("a (os error 5)".into());
        assert_eq!(error.one_line(), "a");
        assert_eq!(Error::CannotRun("a (b) c".into()).one_line(), "a (b) c");
    }
}

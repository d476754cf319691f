//! Why a question has no answer.

pub use filemap_attach::reason;
use filemap_govern::recorder::RecordError;
use filemap_recording::Problem;
use filemap_recording::import::Error as ImportError;

/// Longest message, in characters.
const MAX_MESSAGE: usize = 600;

/// The exit code of a command whose booted kernel broke down or warned of itself.
const BROKEN_KERNEL: u8 = 3;

/// Why a question has no answer: one line that names the value and the remedy.
#[derive(Debug, thiserror::Error)]
#[allow(missing_docs, reason = "their names say it")]
pub enum Error {
    /// Flags that make no sense.
    #[error("{0}")]
    Usage(String),
    /// A job that makes no sense.
    #[error(transparent)]
    Job(#[from] filemap_job::Error),
    /// What is in a file makes no sense.
    #[error("{path}: {error}")]
    InFile { path: String, error: Box<Error> },
    /// What is wrong with one variant of a comparison.
    #[error("--variants {variant}: {error}")]
    InVariant { variant: String, error: Box<Error> },
    /// A name is not one of the published series.
    #[error("unknown published series '{name}'; known: {known}")]
    UnknownSeries {
        /// The name given.
        name: String,
        /// The names there are.
        known: String,
    },
    /// What a page was to be made of is no record.
    #[error("it is no record of filemap: {reason}; give what --json wrote")]
    NoRecord {
        /// What is wrong with it.
        reason: String,
    },
    /// What a page was to be made of is an object of another kind or version.
    #[error(
        "there is no page of this record{}; give what --json of run, compare, explain, advise, \
         published, conform, search, folio-ops, govern, calibrate or doctor wrote",
        of_schema(*schema, *known)
    )]
    NoPage {
        /// The version of its layout, where it says one.
        schema: Option<u64>,
        /// The version that is known.
        known: u32,
    },
    /// What the model could not run.
    #[error(transparent)]
    Model(#[from] filemap_model::Error),
    /// What the kernel could not run.
    #[error(transparent)]
    Kernel(#[from] filemap_kernel::Error),
    /// A process that cannot be followed.
    #[error(transparent)]
    Attach(#[from] filemap_attach::Error),
    /// A recording that cannot be read.
    #[error(transparent)]
    Recording(#[from] filemap_recording::Error),
    /// A trace of which there is no recording.
    #[error(transparent)]
    Import(#[from] filemap_recording::import::Error),
    /// A file that cannot be read.
    #[error("{what} '{path}' cannot be read: {reason}; give a readable file")]
    Read { what: &'static str, path: String, reason: String },
    /// A file that cannot be written to.
    #[error("'{path}' cannot be opened: {reason}; give a file that can be written, or -")]
    Open { path: String, reason: String },
    /// What came out did not reach its file.
    #[error("'{path}' cannot be written: {reason}; {}", remedy(reason))]
    Write { path: String, reason: String },
    /// Whoever read stdout has closed it, and knows.
    #[error("the reader of stdout has left")]
    ReaderLeft,
    /// What `filemap calibrate` left for this user is no profile.
    #[error(
        "the machine profile of this user cannot be used: {error}; run filemap calibrate again, \
         remove the file, or give --machine default"
    )]
    UserProfile { error: Box<Error> },
    /// What the small mm of anonymous memory could not run.
    #[error(transparent)]
    Mapcount(#[from] filemap_mapcount::Error),
    /// A program that cannot be run.
    #[error(transparent)]
    Program(#[from] filemap_attach::program::Refused),
    /// What went wrong in one of several patterns.
    #[error("pattern {pattern}: {error}")]
    InPattern { pattern: String, error: Box<Error> },
    /// A kernel that was booted warned of itself, and went on.
    #[error(
        "the kernel warned {}: {first}; its figures are in the report, and all that it said is in \
         --json",
        if *others == 0 { "once".to_string() } else { format!("{} times, first", others + 1) }
    )]
    KernelWarned { first: String, others: usize },
    /// What this machine or this build cannot do.
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
    /// The exit code of a command that it ends.
    pub fn exit_code(&self) -> u8 {
        match self {
            Error::Write { .. } | Error::ReaderLeft => 1,
            Error::Recording(error) | Error::Import(ImportError::Recording(error))
                if matches!(error.problem, Problem::Write { .. }) =>
            {
                1
            }
            Error::CannotRun(_)
            | Error::Attach(_)
            | Error::Mapcount(filemap_mapcount::Error::Memory { .. })
            | Error::Model(filemap_model::Error::TooLarge { .. }) => 4,
            Error::KernelWarned { .. } => BROKEN_KERNEL,
            Error::Kernel(error) if error.is_kernel_failure() => BROKEN_KERNEL,
            Error::Kernel(error) => match error.root_cause() {
                filemap_kernel::Error::InvalidProcess(_)
                | filemap_kernel::Error::OutOfMemory { .. }
                | filemap_kernel::Error::BeyondFile { .. } => 2,
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

    /// The message in one line of readable length.
    pub fn one_line(&self) -> String {
        let text = without_numbers(&self.to_string());
        // Blanks in a line may be those of a value.
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

/// The text without the numbers of system errors, whose names stand before them.
fn without_numbers(text: &str) -> String {
    let mut parts = text.split(" (os error ");
    let mut kept = parts.next().unwrap_or_default().to_string();
    for part in parts {
        kept += part.split_once(')').map_or("", |(_, rest)| rest);
    }
    kept
}

/// What to do about what cannot be written for `reason`.
fn remedy(reason: &str) -> &'static str {
    match reason {
        "it is closed" => "leave it open, or send it to a file",
        _ => "give it room, or another place",
    }
}

/// What is said of a version that is not known.
fn of_schema(schema: Option<u64>, known: u32) -> String {
    match schema {
        Some(schema) if schema != u64::from(known) => {
            format!(" (its schema is {schema}, and {known} is known)")
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

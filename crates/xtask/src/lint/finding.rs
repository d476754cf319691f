//! Something that is not as it should be.

use std::fmt;

/// Whether a finding fails the lint.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Severity {
    /// It does not: a question to whoever reads it.
    Warning,
    /// It does.
    Error,
}

/// Something that is not as it should be.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Finding {
    /// The file.
    pub path: String,
    /// The line, from 1; 0 for the file as a whole.
    pub line: usize,
    /// What is wrong, and what would be right.
    pub message: String,
    /// Whether it fails the lint.
    pub severity: Severity,
}

impl Finding {
    pub(super) fn error(path: &str, line: usize, message: String) -> Finding {
        Finding { path: path.to_string(), line, message, severity: Severity::Error }
    }

    pub(super) fn warning(path: &str, line: usize, message: String) -> Finding {
        Finding { severity: Severity::Warning, ..Finding::error(path, line, message) }
    }
}

impl fmt::Display for Finding {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let kind = match self.severity {
            Severity::Warning => "warning",
            Severity::Error => "error",
        };
        match self.line {
            0 => write!(f, "{}: {kind}: {}", self.path, self.message),
            line => write!(f, "{}:{line}: {kind}: {}", self.path, self.message),
        }
    }
}

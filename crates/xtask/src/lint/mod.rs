//! `cargo xtask lint`: what the compiler and clippy do not check.

mod boundaries;
mod catalog;
mod documents;
mod mirrors;
mod model;
mod outline;
mod style;

use std::fmt;

use crate::repository::Repository;

/// Everything that is wrong in `repository`.
pub fn check(repository: &Repository) -> Vec<Finding> {
    let mut findings = style::check(repository);
    findings.extend(mirrors::check(repository));
    findings.extend(model::check(repository));
    findings.extend(catalog::check(repository));
    findings.extend(boundaries::check(repository));
    findings.extend(documents::check(repository));
    findings
}

/// Whether a finding fails the lint.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Severity {
    /// It does not; a reader decides.
    Warning,
    /// It does.
    Error,
}

/// A problem, with its place.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Finding {
    /// The file.
    pub path: String,
    /// The line, from 1; 0 for the file as a whole.
    pub line: usize,
    /// The problem, and what would be right.
    pub message: String,
    /// Whether it fails the lint.
    pub severity: Severity,
}

impl Finding {
    fn error(path: &str, line: usize, message: String) -> Finding {
        Finding { path: path.to_string(), line, message, severity: Severity::Error }
    }

    fn warning(path: &str, line: usize, message: String) -> Finding {
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

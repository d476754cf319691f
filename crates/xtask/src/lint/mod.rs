//! What the compiler and clippy do not look at.

mod documents;
mod finding;
mod made;
mod model;
mod named;
mod outline;
mod purity;
mod rooms;
mod rules;
mod text;

pub use self::finding::{Finding, Severity};
use crate::repository::Repository;

/// Everything that is wrong in `repository`.
pub fn check(repository: &Repository) -> Vec<Finding> {
    let mut findings = text::check(repository);
    findings.extend(rules::check(repository));
    findings.extend(model::check(repository));
    findings.extend(named::check(repository));
    findings.extend(purity::check(repository));
    findings.extend(rooms::check(repository));
    findings.extend(documents::check(repository));
    findings.extend(made::check(repository));
    findings
}

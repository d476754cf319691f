//! The lint, on this repository.

use xtask::lint::{Severity, check};
use xtask::repository::Repository;

#[test]
fn the_repository_is_clean() {
    let findings = check(&Repository::read().unwrap());
    let errors = findings.iter().filter(|finding| finding.severity == Severity::Error);
    let errors: Vec<String> = errors.map(ToString::to_string).collect();
    assert!(errors.is_empty(), "{}", errors.join("\n"));
}

//! What `cargo xtask` does: installation with man pages and completions, a Debian package, outputs
//! shown in documents, the tour of its commands, and the repository's own lint.
#![forbid(unsafe_code)]

pub mod install;
pub mod lint;
pub mod markdown;
pub mod measured;
pub mod outputs;
pub mod repository;
pub mod shell;
pub mod tour;
pub mod tree;
pub mod tutorial;

/// README.md's example, compiled and run as a test.
#[cfg(doctest)]
#[doc = include_str!("../../../README.md")]
pub struct Readme;

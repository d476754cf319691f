//! What `cargo xtask` does: man pages, completions, outputs shown in documents, and the
//! repository's own lint.
#![forbid(unsafe_code)]

pub mod command_line;
pub mod lint;
pub mod outputs;
pub mod repository;
pub mod schema;

/// README.md's example, compiled and run as a test.
#[cfg(doctest)]
#[doc = include_str!("../../../README.md")]
pub struct Readme;

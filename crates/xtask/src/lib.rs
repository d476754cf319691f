//! What `cargo xtask` does: man pages, completions, outputs shown in documents, and the
//! repository's own lint.
#![forbid(unsafe_code)]

// The package of the command is a binary, so its definition is read here a second time.
#[allow(dead_code, missing_docs)]
#[path = "../../cli/src/args.rs"]
mod args;
#[allow(dead_code, missing_docs)]
#[path = "../../cli/src/job_flags.rs"]
mod job_flags;

pub mod command_line;
pub mod lint;
pub mod outputs;
pub mod repository;

/// README.md's example, compiled and run as a test.
#[cfg(doctest)]
#[doc = include_str!("../../../README.md")]
pub struct Readme;

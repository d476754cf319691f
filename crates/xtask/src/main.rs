//! `cargo xtask TASK`.

use std::path::PathBuf;
use std::process::ExitCode;

use anyhow::Result;
use clap::{Parser, Subcommand};
use xtask::lint::{self, Severity};
use xtask::repository::Repository;
use xtask::{command_line, outputs, schema};

/// Tasks of this repository.
#[derive(Debug, Parser)]
#[command(name = "cargo xtask", subcommand_required = true)]
struct Tasks {
    #[command(subcommand)]
    task: Task,
}

#[derive(Debug, Subcommand)]
enum Task {
    /// Man pages of filemap and its commands.
    Man {
        /// Where they are written to.
        #[arg(default_value = "target/man")]
        directory: PathBuf,
    },
    /// Completions for bash, zsh and fish.
    Completions {
        /// Where they are written to.
        #[arg(default_value = "target/completions")]
        directory: PathBuf,
    },
    /// JSON schemas of job files, of the JSON of each command, and of the lines of a log.
    Schema {
        /// Where they are written to.
        #[arg(default_value = "target/schema")]
        directory: PathBuf,
    },
    /// What the compiler and clippy do not look at: lengths, names, and whether the documents
    /// agree with the code.
    Lint,
    /// Runs the commands whose outputs the documents show, and puts the outputs there.
    Outputs {
        /// Change nothing; fail where an output differs from what is shown.
        #[arg(long)]
        check: bool,
    },
}

fn main() -> Result<ExitCode> {
    match Tasks::parse().task {
        Task::Man { directory } => command_line::man(&directory)?,
        Task::Completions { directory } => command_line::completions(&directory)?,
        Task::Schema { directory } => schema::write(&directory)?,
        Task::Lint => return lint(),
        Task::Outputs { check } => return refresh_outputs(check),
    }
    Ok(ExitCode::SUCCESS)
}

fn lint() -> Result<ExitCode> {
    let findings = lint::check(&Repository::read()?);
    for finding in &findings {
        println!("{finding}");
    }
    let failed = findings.iter().any(|finding| finding.severity == Severity::Error);
    Ok(if failed { ExitCode::FAILURE } else { ExitCode::SUCCESS })
}

fn refresh_outputs(check: bool) -> Result<ExitCode> {
    let differing = outputs::refresh(check)?;
    for path in &differing {
        println!("{path}: {}", if check { "shows another output" } else { "refreshed" });
    }
    let failed = check && !differing.is_empty();
    Ok(if failed { ExitCode::FAILURE } else { ExitCode::SUCCESS })
}

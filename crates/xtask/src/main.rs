//! `cargo xtask TASK`.

use std::path::PathBuf;
use std::process::ExitCode;

use anyhow::Result;
use clap::{Args, Parser, Subcommand};
use xtask::lint::{self, Severity};
use xtask::repository::Repository;
use xtask::{install, outputs, tour, tutorial};

/// Tasks of this repository.
#[derive(Debug, Parser)]
#[command(name = "cargo xtask", subcommand_required = true)]
struct Tasks {
    #[command(subcommand)]
    task: Task,
}

#[derive(Debug, Subcommand)]
enum Task {
    /// Builds filemap and installs it with man pages, completions and licences.
    Install {
        #[command(flatten)]
        place: Installation,
    },
    /// Removes what install installed.
    Uninstall {
        #[command(flatten)]
        place: Installation,
    },
    /// Builds a Debian package. Needs cargo-deb.
    Deb,
    /// Checks lengths, names, layering, and that documents agree with the code.
    Lint,
    /// Runs every filemap command in README.md and the guides. Each has to work, or to say what
    /// this machine lacks.
    Tour,
    /// Follows docs/TUTORIAL.md in a copy of this tree: its diffs have to apply, and its commands
    /// to print what it shows.
    Tutorial,
    /// Regenerates the sections of documents that show outputs of commands and tables of
    /// data/measured.
    Outputs {
        /// Change nothing; fail if a section differs.
        #[arg(long)]
        check: bool,
    },
}

/// Where filemap is installed.
#[derive(Debug, Args)]
struct Installation {
    /// Directory of bin and share.
    #[arg(long, default_value = "/usr/local")]
    prefix: PathBuf,
    /// Directory that stands for /, for packages.
    #[arg(long, value_name = "DIR")]
    destdir: Option<PathBuf>,
}

fn main() -> Result<ExitCode> {
    match Tasks::parse().task {
        Task::Install { place } => {
            let binary = install::build_packaged()?;
            print_all(&install::install(&binary, &place.prefix, place.destdir.as_deref())?);
        }
        Task::Uninstall { place } => {
            print_all(&install::uninstall(&place.prefix, place.destdir.as_deref())?);
        }
        Task::Deb => print_all(&[install::debian_package()?]),
        Task::Lint => return lint(),
        Task::Tutorial => return Ok(exit_code(tutorial::run()?)),
        Task::Tour => return Ok(exit_code(tour::run()?)),
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
    Ok(exit_code(!failed))
}

fn refresh_outputs(check: bool) -> Result<ExitCode> {
    let differing = outputs::refresh(check)?;
    for path in &differing {
        println!("{path}: {}", if check { "shows another output" } else { "refreshed" });
    }
    Ok(exit_code(!check || differing.is_empty()))
}

fn print_all(paths: &[PathBuf]) {
    for path in paths {
        println!("{}", path.display());
    }
}

fn exit_code(passed: bool) -> ExitCode {
    if passed { ExitCode::SUCCESS } else { ExitCode::FAILURE }
}

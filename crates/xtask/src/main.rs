//! `cargo xtask TASK`.

use std::path::PathBuf;
use std::process::ExitCode;

use anyhow::Result;
use clap::{Args, Parser, Subcommand};
use xtask::lint::{self, Severity};
use xtask::repository::Repository;
use xtask::{completions, install, man, outputs, power, schema, tour, tutorial};

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
    /// Builds filemap and installs it with man pages, completions and licences.
    Install {
        #[command(flatten)]
        place: Installation,
    },
    /// Removes what install put there.
    Uninstall {
        #[command(flatten)]
        place: Installation,
    },
    /// Builds a Debian package. Needs cargo-deb.
    Deb,
    /// JSON schemas of job files, of the JSON of each command, and of the lines of a log.
    Schema {
        /// Where they are written to.
        #[arg(default_value = "target/schema")]
        directory: PathBuf,
    },
    /// What the compiler and clippy do not look at: lengths, names, and whether the documents
    /// agree with the code.
    Lint,
    /// Runs every filemap command that README.md and the guides show. Each has to work, or to say
    /// what this machine lacks.
    Tour,
    /// Does what docs/TUTORIAL.md says in a copy of this tree: its diffs have to apply, and its
    /// commands to print what it shows. Then plants the broken series of data/mutations, which
    /// searches have to find.
    Tutorial,
    /// Breaks the rules of data/mutations one by one in a copy of this tree: tests have to notice.
    Mutants,
    /// Makes each rule of the core wrong in each place, and counts what the patterns of conform
    /// tell of that, and what any of many jobs does.
    Power {
        /// So many jobs beside the patterns.
        #[arg(long, default_value_t = 1000)]
        jobs: u64,
    },
    /// Puts into the documents what they show of other things: outputs of commands, tables of
    /// data/measured, and the rules of data/mutations.
    Outputs {
        /// Change nothing; fail where an output differs from what is shown.
        #[arg(long)]
        check: bool,
    },
}

/// Where filemap is installed.
#[derive(Debug, Args)]
struct Installation {
    /// The directory below which bin, lib and share are.
    #[arg(long, default_value = "/usr/local")]
    prefix: PathBuf,
    /// A directory that stands for /, for packages.
    #[arg(long, value_name = "DIR")]
    destdir: Option<PathBuf>,
}

fn main() -> Result<ExitCode> {
    match Tasks::parse().task {
        Task::Man { directory } => man::write(&directory)?,
        Task::Completions { directory } => completions::write(&directory)?,
        Task::Install { place } => {
            let binary = install::packaged()?;
            print_all(&install::install(&binary, &place.prefix, place.destdir.as_deref())?);
        }
        Task::Uninstall { place } => {
            print_all(&install::uninstall(&place.prefix, place.destdir.as_deref())?);
        }
        Task::Deb => print_all(&[install::debian_package()?]),
        Task::Schema { directory } => schema::write(&directory)?,
        Task::Lint => return lint(),
        Task::Tutorial => return Ok(exit_code(tutorial::run()?)),
        Task::Mutants => return Ok(exit_code(tutorial::break_rules()?)),
        Task::Power { jobs } => power::run(jobs)?,
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

//! The `filemap` command: flags, files and terminals around the model and its reports.

mod args;
mod commands;
mod engine;
mod error;
mod host;
mod input;
mod interrupt;
mod job_flags;
mod log;
mod output;
mod progress;
mod seeds;
mod variants;

use std::io::{self, Write};
use std::process::ExitCode;

use clap::{CommandFactory, Parser};
use filemap_kernel::image::guest;
use filemap_kernel::journal;

use crate::args::{Cli, Command};
use crate::error::Error;

/// What a command that has done its work comes to.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Outcome {
    Done,
    CheckFailed,
}

/// The definition of the command line, from which the man page and the completions are made.
pub fn command() -> clap::Command {
    Cli::command()
}

/// The whole program. A process that was started as a probe's child, or as the first one of a
/// guest, does not return from here.
pub fn main() -> ExitCode {
    filemap_kernel::probe::main_if_child();
    if guest::is_guest() {
        guest::main(filemap_kernel::engine::in_guest);
    }
    interrupt::exit_on_interrupt();
    let cli = match Cli::try_parse() {
        Ok(cli) => cli,
        Err(error) if !error.use_stderr() => {
            // Help and version; to a closed pipe too.
            let _ = error.print();
            return ExitCode::SUCCESS;
        }
        Err(error) => return fail(&Error::from_clap(&error)),
    };
    undo_what_was_left();
    let outcome = match cli.command {
        Command::Published(args) => commands::published::run(&args),
        Command::Run(args) => commands::run::run(args),
        Command::Compare(args) => commands::compare::run(args),
        Command::Conform(args) => commands::conform::run(args),
        Command::Doctor(args) => commands::doctor::run(&args),
        Command::Explain(args) => commands::explain::run(args),
        Command::Calibrate(args) => commands::calibrate::run(&args),
    };
    match outcome {
        Ok(Outcome::Done) => ExitCode::SUCCESS,
        Ok(Outcome::CheckFailed) => ExitCode::from(1),
        Err(error) => fail(&error),
    }
}

/// Undoes what a killed run changed. That it failed is no reason not to run.
fn undo_what_was_left() {
    let directory = journal::state_directory();
    let failed = match journal::recover(&directory) {
        Ok(recovery) => recovery.failed,
        Err(error) => vec![error],
    };
    for error in failed {
        let _ = writeln!(io::stderr(), "filemap: cannot undo what a killed run left: {error}");
    }
}

fn fail(error: &Error) -> ExitCode {
    interrupt::wait_if_ending();
    // Nobody is left to be told if stderr is closed.
    let _ = writeln!(io::stderr(), "filemap: {}", error.one_line());
    ExitCode::from(error.exit_code())
}

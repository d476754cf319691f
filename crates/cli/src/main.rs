//! The `filemap` command: flags, files and terminals around the model and its reports.

mod args;
mod commands;
mod engine;
mod error;
mod input;
mod interrupt;
mod job_flags;
mod log;
mod output;
mod progress;

use std::io::{self, Write};
use std::process::ExitCode;

use clap::Parser;

use crate::args::{Cli, Command};
use crate::error::Error;

/// What a command that has done its work comes to.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Outcome {
    Done,
    CheckFailed,
}

fn main() -> ExitCode {
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
    let outcome = match cli.command {
        Command::Published(args) => commands::published::run(&args),
        Command::Run(args) => commands::run::run(args),
        Command::Compare(args) => commands::compare::run(args),
    };
    match outcome {
        Ok(Outcome::Done) => ExitCode::SUCCESS,
        Ok(Outcome::CheckFailed) => ExitCode::from(1),
        Err(error) => fail(&error),
    }
}

fn fail(error: &Error) -> ExitCode {
    // Nobody is left to be told if stderr is closed.
    let _ = writeln!(io::stderr(), "filemap: {}", error.one_line());
    ExitCode::from(error.exit_code())
}

//! The `filemap` command: command line, files and terminal handling for the model and its reports.

mod args;
mod commands;
mod engines;
mod error;
pub mod examples;
mod exit_status;
mod export;
mod govern;
mod interrupt;
mod job_flags;
mod job_input;
mod log;
mod output;
mod progress;
mod recording;
mod search;

use std::fmt::Display;
use std::io::{self, Write};
use std::process::ExitCode;

use clap::{CommandFactory, Parser};
use filemap_kernel::image::guest;
use filemap_kernel::journal;

use crate::args::{Cli, Command};
use crate::error::Error;
use crate::output::OutputFile;

pub use commands::reference::{write_completions, write_man_pages};

/// Result of a successful command.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Outcome {
    Done,
    CheckFailed,
    /// Interrupted by SIGINT; partial results were printed.
    Interrupted,
    /// Exit code of the program that was run.
    Ended(u8),
}

/// The command line, from which man pages and completions are generated.
pub fn command() -> clap::Command {
    Cli::command()
}

/// The main function. Does not return in a child process of a probe, or as init of a guest.
pub fn main() -> ExitCode {
    filemap_kernel::probe::main_if_child();
    if guest::is_guest() {
        guest::main(filemap_kernel::engine::run_in_guest);
    }
    // Signals are meant for the program in this case.
    let runs_program = govern::is_govern_command(std::env::args_os());
    if !runs_program {
        interrupt::exit_on_signals();
    }
    output::fail_at_size_limit();
    let cli = match Cli::try_parse() {
        Ok(cli) => cli,
        Err(error) if !error.use_stderr() => {
            return match print(&error) {
                Ok(()) => ExitCode::SUCCESS,
                Err(error) => fail(&error),
            };
        }
        Err(error) => {
            return fail(&error::from_clap(&error));
        }
    };
    if !runs_program {
        undo_what_was_left();
    }
    let outcome = match cli.command {
        Command::Published(args) => commands::published::run(&args),
        Command::Run(args) => commands::run::run(args),
        Command::Compare(args) => commands::compare::run(args),
        Command::Conform(args) => commands::conform::run(args),
        Command::Search(args) => commands::search::run(args),
        Command::Man(args) => commands::reference::man(&args),
        Command::Completions(args) => commands::reference::completions(&args),
        Command::Schema(args) => commands::reference::schema(&args),
        Command::Doctor(args) => commands::doctor::run(&args),
        Command::FolioOps(args) => commands::folio_ops::run(&args),
        Command::Explain(args) => commands::explain::run(args),
        Command::Report(args) => commands::report::run(&args),
        Command::Advise(args) => commands::advise::run(args),
        Command::Calibrate(args) => commands::calibrate::run(&args),
        Command::Record(args) => commands::record::run(&args),
        Command::Govern(args) => commands::govern::run(&args),
    };
    interrupt::wait_if_ending();
    match outcome {
        Ok(Outcome::Done) => ExitCode::SUCCESS,
        Ok(Outcome::CheckFailed) => ExitCode::from(1),
        Ok(Outcome::Interrupted) => ExitCode::from(interrupt::INTERRUPTED),
        Ok(Outcome::Ended(code)) => ExitCode::from(code),
        Err(error) => fail(&error),
    }
}

/// Undoes the changes left behind by a killed run and reports restored settings. Failures are not
/// fatal.
fn undo_what_was_left() {
    let recovered = journal::recover(&journal::state_directory());
    let lines: Vec<String> = match recovered {
        Ok(recovery) => {
            let failed = recovery.failed.iter().map(not_undone);
            recovery.restored().into_iter().chain(recovery.unrestored()).chain(failed).collect()
        }
        Err(error) => vec![not_undone(&error)],
    };
    lines.iter().for_each(print_message);
}

/// Prints `line` to stderr.
fn print_message(line: impl Display) {
    // A closed stderr is ignored.
    let _ = writeln!(io::stderr(), "filemap: {line}");
}

fn not_undone(error: &filemap_kernel::Error) -> String {
    format!("cannot undo what a killed run left: {error}")
}

/// Prints help or the version.
fn print(text: &clap::Error) -> Result<(), Error> {
    let mut target = OutputFile::stdout()?;
    let printed = text.print().and_then(|()| target.flush());
    printed.map_err(|error| target.failed(&error))
}

fn fail(error: &Error) -> ExitCode {
    interrupt::wait_if_ending();
    print_error(error);
    ExitCode::from(error.exit_code())
}

/// Exits because of `error`, where it cannot be returned.
fn end(error: &Error) -> ! {
    interrupt::wait_if_ending();
    print_error(error);
    output::abandon();
    std::process::exit(error.exit_code().into())
}

fn print_error(error: &Error) {
    // No message if the reader of stdout has exited, as `head` does.
    if !matches!(error, Error::ReaderLeft) {
        print_message(error.one_line());
    }
}

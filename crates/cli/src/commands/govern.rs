//! `filemap govern`.

use std::io::{self, Write};

use crate::Outcome;
use crate::args::GovernArgs;
use crate::error::Error;
use crate::govern::{self, Program, Wanted, environment, run_directory};

/// Runs a program governed.
pub fn run(args: &GovernArgs) -> Result<Outcome, Error> {
    if args.program.is_empty() {
        return Err(Error::Usage(
            "a program is missing; give it behind --, as in filemap govern -- PROGRAM".to_string(),
        ));
    }
    let program = govern::find(&args.program)?;
    environment::set(&variables(args, &program)?);
    Err(govern::exec(&program))
}

/// What `program` is to be told.
fn variables(args: &GovernArgs, program: &Program) -> Result<environment::Variables, Error> {
    if args.off {
        return Ok(environment::off());
    }
    if let Some(reason) = govern::obstacle(&program.path) {
        let name = program.path.display();
        // Nobody is left to be told if stderr is closed.
        let _ = writeln!(io::stderr(), "filemap: '{name}' runs ungoverned: {reason}");
        return Ok(Vec::new());
    }
    let library = govern::library()?;
    let directory = run_directory::run_directory();
    directory.iter().for_each(|directory| run_directory::sweep(directory));
    wanted(args).variables(&library, directory.as_deref())
}

fn wanted(args: &GovernArgs) -> Wanted {
    Wanted {
        min_bytes: args.min_size,
        largest_window_bytes: args.largest_window,
        include: args.include.clone(),
        exclude: args.exclude.clone(),
    }
}

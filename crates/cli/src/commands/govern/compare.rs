//! `filemap govern --compare`.

use std::path::Path;

use filemap_study::govern::{GovernCompareOptions, compare};

use crate::args::GovernArgs;
use crate::engines::RealEngines;
use crate::error::Error;
use crate::govern::{self, parent};
use crate::{Outcome, interrupt};

/// Scope of the comparison.
const SCOPE: &str = "one program without input, run alone, with what it starts; read-only \
                     mappings of regular files; files of 1 MiB or more that it maps or that its \
                     command line names are dropped from the page cache before a run";

/// Runs a program plain and governed in turn, and compares the costs.
pub fn run(args: &GovernArgs) -> Result<Outcome, Error> {
    parent::reset_sigchld();
    interrupt::exit_on_signals();
    crate::undo_what_was_left();
    let program = govern::find(&args.program)?;
    let output = super::output(args, &super::inputs(&program))?;
    let flags = super::settings_flags(args);
    let (words, runs) = (&args.program, args.runs);
    let options = GovernCompareOptions { program: &program, words, flags: &flags, runs };
    let footer = super::footer(SCOPE, super::command(args));
    let compared = compare(&options, &RealEngines, footer, |paths| {
        super::check_read(args, &super::mapped_files(paths.iter().map(Path::new)))
    })?;
    output.write(&compared.report())?;
    Ok(if compared.differences.is_empty() { Outcome::Done } else { Outcome::CheckFailed })
}

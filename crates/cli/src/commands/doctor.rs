//! `filemap doctor`.

use filemap_study::doctor::DoctorRecord;

use crate::Outcome;
use crate::args::DoctorArgs;
use crate::error::Error;
use crate::interrupt;
use crate::output::Inputs;

/// Prints the capabilities of this machine.
pub fn run(args: &DoctorArgs) -> Result<Outcome, Error> {
    let output = args.output.open(&Inputs::default(), &[])?;
    let (journal, _undoing) = interrupt::journal()?;
    output.write(&DoctorRecord::examine(&journal).report())?;
    Ok(Outcome::Done)
}

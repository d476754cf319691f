//! `filemap folio-ops`.

use filemap_job::FolioOpsSpec;
use filemap_study::folio_ops::{self, SizeSource, report};

use crate::Outcome;
use crate::args::FolioOpsArgs;
use crate::engines::RealEngines;
use crate::error::Error;
use crate::output::Inputs;
use filemap_study::engine::Engines;

/// Benchmarks operations, or counts owners, and prints the report.
pub fn run(args: &FolioOpsArgs) -> Result<Outcome, Error> {
    let spec = FolioOpsSpec {
        runs: args.runs,
        seed: args.seed,
        size: args.size.clone(),
        folio_sizes: args.folio_sizes.clone(),
        owners: args.owners,
        ..FolioOpsSpec::default()
    };
    let job = spec.validate()?;
    let output = args.output.open(&Inputs::default(), &[])?;
    let record = if job.owners {
        folio_ops::count_owners(&job)?
    } else {
        folio_ops::measure(&job, SizeSource::Flag, |total| RealEngines.progress(Some(total)))?
    };
    let page = report(&record, false, job.command());
    output.write_with_page(&report(&record, args.verbose, job.command()), &page)?;
    Ok(Outcome::Done)
}

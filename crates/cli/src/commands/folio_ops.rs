//! `filemap folio-ops`.

use filemap_job::{EngineKind, FolioOps, FolioOpsRecord, FolioOpsSpec};
use filemap_kernel::folio_ops::{FolioOpsResult, measure, sample_count};
use filemap_study::folio_ops::{self, SizeSource, report};

use crate::Outcome;
use crate::args::FolioOpsArgs;
use crate::engines::RealEngines;
use crate::error::Error;
use crate::output::Inputs;
use filemap_study::engine::Engines;
use filemap_study::provenance;

/// Benchmarks operations, or counts owners, and prints the report.
pub fn run(args: &FolioOpsArgs) -> Result<Outcome, Error> {
    let spec = FolioOpsSpec {
        on: args.on.clone(),
        runs: args.runs,
        seed: args.seed,
        size: args.size.clone(),
        folio_sizes: args.folio_sizes.clone(),
        owners: args.owners,
        ..FolioOpsSpec::default()
    };
    let job = spec.validate()?;
    if args.change_settings && job.engine == EngineKind::Model {
        let message = "--change-settings is for the running kernel; give --on kernel, or remove it";
        return Err(Error::Usage(message.to_string()));
    }
    let output = args.output.open(&Inputs::default(), &[])?;
    let record = match job.engine {
        EngineKind::Model if job.owners => folio_ops::count_owners(&job)?,
        EngineKind::Model => {
            folio_ops::measure(&job, SizeSource::Flag, |total| RealEngines.progress(Some(total)))?
        }
        EngineKind::Kernel => on_kernel(&job, args.change_settings)?,
    };
    let apply = if args.change_settings { " --change-settings" } else { "" };
    let command = format!("{}{apply}", job.command());
    let page = report(&record, false, command.clone());
    output.write_with_page(&report(&record, args.verbose, command), &page)?;
    Ok(Outcome::Done)
}

fn on_kernel(job: &FolioOps, apply: bool) -> Result<FolioOpsRecord, Error> {
    let (journal, _undoing) = RealEngines.journal()?;
    let progress = RealEngines.progress(Some(sample_count(job)));
    let FolioOpsResult { runs, warnings, mut environment } =
        measure(job, &journal, apply, || progress.advance())?;
    provenance::stamp(&mut environment, job.engine.name());
    let mut record = FolioOpsRecord::new(job, environment, runs);
    record.warnings.extend(warnings);
    Ok(record)
}

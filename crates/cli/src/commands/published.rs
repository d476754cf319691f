//! `filemap published`.

use filemap_model::Profile;
use filemap_report::published::{self, DEFAULT_SEEDS, Options};

use crate::Outcome;
use crate::args::PublishedArgs;
use crate::engine;
use crate::error::Error;
use crate::output::Output;

/// Prints the published tables beside the model's.
pub fn run(args: &PublishedArgs) -> Result<Outcome, Error> {
    let studies = published::studies(&args.series, Options { seeds: args.seeds, full: args.full })?;
    let output = Output::open(&args.output, None)?;
    let per_study: Vec<_> = studies.iter().map(|study| study.jobs()).collect();
    let records = engine::run_all(&per_study.concat(), &Profile::DEFAULT, false)?;
    let mut left = records.as_slice();
    let mut findings = Vec::new();
    for (study, jobs) in studies.iter().zip(&per_study) {
        let (own, rest) = left.split_at(jobs.len());
        findings.push(study.findings(own));
        left = rest;
    }
    let failed: usize = findings.iter().map(|findings| findings.failed).sum();
    output.write(&published::report(findings, &records, command(args)))?;
    Ok(if failed == 0 { Outcome::Done } else { Outcome::CheckFailed })
}

fn command(args: &PublishedArgs) -> String {
    let mut words = vec!["filemap published".to_string()];
    words.extend(args.series.iter().cloned());
    if args.full {
        words.push("--full".to_string());
    }
    if args.seeds != DEFAULT_SEEDS {
        words.push(format!("--seeds {}", args.seeds));
    }
    words.join(" ")
}

//! `filemap published`.

mod counting;
mod here;
mod trials;

use filemap_model::Profile;
use filemap_study::published::{self, Options, Ran, Trials};

use crate::Outcome;
use crate::args::PublishedArgs;
use crate::error::Error;
use crate::folio_ops::{self, Asked};
use crate::machine::Machine;
use crate::output::Inputs;
use filemap_study::engine::{self};

/// The series to which this machine has something to add.
const VMA_BOUND: &str = "vma-bound";

/// The series of which cells depend on a seed.
const RANDOM: [&str; 2] = ["mmap-miss", "vma-retry"];

/// Prints the published tables beside the model's.
pub fn run(args: &PublishedArgs) -> Result<Outcome, Error> {
    let is_random = |name: &String| RANDOM.contains(&name.as_str());
    if args.seeds.is_some() && !args.series.is_empty() && !args.series.iter().any(is_random) {
        return Err(Error::Usage(format!(
            "--seeds is of cells that depend on a seed, which only {} have; remove it, or add one \
             of these series",
            RANDOM.join(" and ")
        )));
    }
    let simulation = trials::simulation()?;
    let counting = counting::counted()?;
    let mut options =
        Options { seeds: args.seeds, full: args.full, here: None, simulation, counting };
    let mut studies = published::studies(&args.series, &options)?;
    let asked = Asked::Published { shorter_bytes: shorter_bytes(args, &options)? };
    // It runs last, and what ran before would be lost.
    let mut of_folios = studies.iter().filter_map(|study| study.folio_ops());
    of_folios.try_for_each(|job| folio_ops::check(&job, asked))?;
    let output = args.output.open(&Inputs::default(), &[])?;
    let with_vma_bound = args.series.is_empty() || args.series.iter().any(|name| name == VMA_BOUND);
    if args.full && with_vma_bound {
        options.here = Some(here::measured()?);
        studies = published::studies(&args.series, &options)?;
    }
    let per_study: Vec<_> = studies.iter().map(|study| study.jobs()).collect();
    let jobs = per_study.concat();
    let mut profiles = vec![Profile::DEFAULT; jobs.len()];
    let records = engine::run_jobs(&Machine, &jobs, &mut profiles, 1, false)?;
    let mut left = records.as_slice();
    let mut findings = Vec::new();
    for (study, jobs) in studies.iter().zip(&per_study) {
        let (own, rest) = left.split_at(jobs.len());
        let mut known = Trials::default();
        loop {
            let next = study.trials(&known);
            if next.is_empty() {
                break;
            }
            trials::run_all(next, &mut known)?;
        }
        // Behind the others, and alone: it is in real time.
        let of_folios = study.folio_ops().map(|job| folio_ops::record(&job, asked));
        let of_folios = of_folios.transpose()?;
        let ran = Ran { records: own, trials: &known, folio_ops: of_folios.as_ref() };
        findings.push(study.findings(&ran));
        left = rest;
    }
    let failed: usize = findings.iter().map(|findings| findings.failed).sum();
    output.write(&published::report(findings, &records, command(args)))?;
    Ok(if failed == 0 { Outcome::Done } else { Outcome::CheckFailed })
}

/// What operations over folios would take without `--full`, where that was given.
fn shorter_bytes(args: &PublishedArgs, options: &Options) -> Result<Option<u64>, Error> {
    if !args.full {
        return Ok(None);
    }
    let shorter = Options { full: false, ..options.clone() };
    let studies = published::studies(&args.series, &shorter)?;
    Ok(studies.iter().find_map(|study| study.folio_ops()).map(|job| job.bytes))
}

fn command(args: &PublishedArgs) -> String {
    let mut words = vec!["filemap published".to_string()];
    words.extend(args.series.iter().cloned());
    if args.full {
        words.push("--full".to_string());
    }
    if let Some(seeds) = args.seeds {
        words.push(format!("--seeds {seeds}"));
    }
    words.join(" ")
}

#[cfg(test)]
mod tests {
    use filemap_report::{Format, TEXT_COLUMNS};

    use super::*;

    /// One repeat of the brief form: the command itself takes longer than a test may.
    #[test]
    fn mm_owner_is_said_as_it_was_counted() {
        let simulation = trials::simulation().unwrap();
        let counting = counting::counted().unwrap();
        let options = Options { seeds: None, full: false, here: None, simulation, counting };
        let studies = published::studies(&[], &options).unwrap();
        let mut found =
            studies.iter().filter_map(|study| study.folio_ops().map(|job| (study, job)));
        let (study, mut job) = found.next().expect("mm-owner has such a job");
        job.runs = 1;
        let record = folio_ops::record(&job, Asked::Published { shorter_bytes: None }).unwrap();
        let trials = Trials::default();
        let ran = Ran { records: &[], trials: &trials, folio_ops: Some(&record) };
        let findings = study.findings(&ran);
        assert_eq!(findings.failed, 0, "copies are the same on every machine");
        let report = published::report(vec![findings], &[], "filemap published".to_string());
        let text = report.render(Format::Table);
        for line in text.lines().filter(|line| !line.starts_with("Command:")) {
            assert!(line.chars().count() <= TEXT_COLUMNS, "{line}");
        }
        let flat = text.split_whitespace().collect::<Vec<_>>().join(" ");
        for words in [
            "27 of 27 counts of copied pages are as published",
            "A fork takes one for each page and one more, the last unmap two more.",
            "page-mapcount 16 17 18 mm-owner 16 17 18 no-page-mapcount 16 1 1",
            "mm-owner 512 513 514",
            "its 0 is proven, not measured",
            "64 96.9 % 0.0 %",
            "of 12 cells",
            "What is reported wrong then, for example:",
            "0-15; 5",
        ] {
            assert!(flat.contains(words), "{words}: {text}");
        }
        let json: serde_json::Value = serde_json::from_str(&report.json).unwrap();
        let is_exact = |cell: &&serde_json::Value| cell["unit"] == "pages copied of 100";
        for cell in json["cells"].as_array().unwrap().iter().filter(|cell| !is_exact(cell)) {
            assert!(cell["ok"].is_null(), "a brief form judges no time: {cell}");
        }
    }
}

//! `filemap published`.

mod trials;

use std::path::Path;

use filemap_job::{FolioOps, FolioOpsRecord, Job, JobSpec, Record};
use filemap_model::Profile;
use filemap_study::{engine, input};
use filemap_study::published::{Engines, OF_PROGRAMS, Options, Plan, RANDOM, Trial, Trials};

use crate::Outcome;
use crate::args::PublishedArgs;
use crate::error::Error;
use crate::folio_ops::{self, Asked};
use crate::machine::Machine;
use crate::output::Inputs;

/// Programs and libraries that many machines have, from small to large.
const PROGRAMS: [&str; 8] = [
    "/bin/sh",
    "/bin/bash",
    "/usr/bin/git",
    "/usr/bin/perl",
    "/usr/bin/python3",
    "/usr/lib/x86_64-linux-gnu/libc.so.6",
    "/usr/lib/aarch64-linux-gnu/libc.so.6",
    "/usr/lib64/libc.so.6",
];

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
    let with_programs = args.series.is_empty() || args.series.iter().any(|of| of == OF_PROGRAMS);
    let programs = if args.full && with_programs { programs() } else { Vec::new() };
    let options = Options { seeds: args.seeds, full: args.full, programs, simulation };
    let plan = Plan::of(&args.series, &options)?;
    let shorter = Options { full: false, ..options };
    let shorter = args.full.then(|| Plan::of(&args.series, &shorter)).transpose()?;
    let shorter_bytes = shorter.and_then(|shorter| Some(shorter.folio_ops()?.bytes));
    let asked = Asked::Published { shorter_bytes };
    // It runs last, and what ran before would be lost.
    plan.folio_ops().iter().try_for_each(|job| folio_ops::check(job, asked))?;
    let output = args.output.open(&Inputs::default(), &[])?;
    let published = plan.run(&Here(asked), command(args))?;
    output.write(&published.report())?;
    Ok(if published.failed() == 0 { Outcome::Done } else { Outcome::CheckFailed })
}

/// Jobs that map a program, for each of [`PROGRAMS`] that is here and can be read.
fn programs() -> Vec<JobSpec> {
    let spec = |path: &&str| {
        Some(JobSpec {
            workload: Some("elf".to_string()),
            file: Some(path.to_string()),
            elf: Some(input::segments(path).ok()?),
            ..JobSpec::default()
        })
    };
    PROGRAMS.iter().filter(|path| Path::new(path).exists()).filter_map(spec).collect()
}

/// The model, and this machine for what is timed.
struct Here(Asked);

impl Engines for Here {
    type Error = Error;

    fn jobs(&self, jobs: &[Job]) -> Result<Vec<Record>, Error> {
        let mut profiles = vec![Profile::DEFAULT; jobs.len()];
        engine::run_jobs(&Machine, jobs, &mut profiles, 1, false)
    }

    fn trials(&self, trials: Vec<Trial>, known: &mut Trials) -> Result<(), Error> {
        trials::run_all(trials, known)
    }

    fn folio_ops(&self, job: &FolioOps) -> Result<FolioOpsRecord, Error> {
        folio_ops::record(job, self.0)
    }
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

    /// One repeat of little memory: the command itself takes longer than a test may.
    struct Brief;

    impl Engines for Brief {
        type Error = Error;

        fn jobs(&self, _: &[Job]) -> Result<Vec<Record>, Error> {
            Ok(Vec::new())
        }

        fn trials(&self, _: Vec<Trial>, _: &mut Trials) -> Result<(), Error> {
            unreachable!("the series has none")
        }

        fn folio_ops(&self, job: &FolioOps) -> Result<FolioOpsRecord, Error> {
            let folio_bytes = vec![16 << 10, 128 << 10, 2 << 20];
            let job = FolioOps { runs: 1, bytes: 16 << 20, folio_bytes, ..job.clone() };
            folio_ops::record(&job, Asked::Published { shorter_bytes: None })
        }
    }

    #[test]
    fn mm_owner_is_said_as_it_was_counted() {
        let plan = Plan::of(&["mm-owner".to_string()], &Options::default()).unwrap();
        let published = plan.run(&Brief, "filemap published".to_string()).unwrap();
        assert_eq!(published.failed(), 0, "copies are the same on every machine");
        let report = published.report();
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

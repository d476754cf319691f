//! `filemap published`.

use std::path::Path;

use filemap_job::JobSpec;
use filemap_study::input;
use filemap_study::published::{OF_PROGRAMS, Options, Plan, RANDOM};

use crate::Outcome;
use crate::args::PublishedArgs;
use crate::engines::RealEngines;
use crate::error::Error;
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
            "--seeds is for cells that depend on a seed, which only {} have; remove it, or add one \
             of these series",
            RANDOM.join(" and ")
        )));
    }
    let with_programs = args.series.is_empty() || args.series.iter().any(|of| of == OF_PROGRAMS);
    let programs = if args.full && with_programs { programs() } else { Vec::new() };
    let options = Options { seeds: args.seeds, full: args.full, programs };
    let plan = Plan::of(&args.series, &options)?;
    plan.check()?;
    let output = args.output.open(&Inputs::default(), &[])?;
    let published = plan.run(&RealEngines, command(args))?;
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

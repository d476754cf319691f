//! `filemap published`.

use filemap_job::JobFlags;
use filemap_study::input;
use filemap_study::published::{OF_PROGRAMS, PublishedOptions, PublishedPlan, RANDOM, list};

use crate::Outcome;
use crate::args::PublishedArgs;
use crate::engines::RealEngines;
use crate::error::Error;
use crate::output::Inputs;

/// Commonly installed programs and libraries, each with its possible paths.
const PROGRAMS: [(&str, &[&str]); 3] = [
    ("bash", &["/bin/bash", "/usr/bin/bash"]),
    ("perl", &["/usr/bin/perl"]),
    (
        "libc",
        &[
            "/usr/lib/x86_64-linux-gnu/libc.so.6",
            "/usr/lib/aarch64-linux-gnu/libc.so.6",
            "/usr/lib64/libc.so.6",
            "/usr/lib/libc.so.6",
        ],
    ),
];

/// Additional ones for `--full`.
const MORE_PROGRAMS: [(&str, &[&str]); 3] =
    [("sh", &["/bin/sh"]), ("git", &["/usr/bin/git"]), ("python3", &["/usr/bin/python3"])];

/// Prints published tables and the model's figures.
pub fn run(args: &PublishedArgs) -> Result<Outcome, Error> {
    if args.list {
        let output = args.output.open(&Inputs::default(), &[])?;
        output.write(&list(command(args)))?;
        return Ok(Outcome::Done);
    }
    let is_random = |name: &String| RANDOM.contains(&name.as_str());
    if args.seeds.is_some() && !args.series.is_empty() && !args.series.iter().any(is_random) {
        return Err(Error::Usage(format!(
            "--seeds is for cells that depend on a seed, which only {} have; remove it, or add one \
             of these series",
            RANDOM.join(" and ")
        )));
    }
    let with_programs =
        args.series.is_empty() || args.series.iter().any(|series| series == OF_PROGRAMS);
    let (programs, absent) = if with_programs { programs(args.full) } else { Default::default() };
    let options = PublishedOptions { seeds: args.seeds, full: args.full, programs, absent };
    let plan = PublishedPlan::select(&args.series, &options)?;
    plan.check()?;
    let output = args.output.open(&Inputs::default(), &[])?;
    let published = plan.run(&RealEngines, command(args))?;
    output.write(&published.report())?;
    Ok(if published.failed() == 0 { Outcome::Done } else { Outcome::CheckFailed })
}

/// Jobs that map each program that is installed and readable, and the names of the others.
fn programs(is_full: bool) -> (Vec<JobFlags>, Vec<String>) {
    let spec = |path: &&str| {
        Some(JobFlags {
            workload: Some("elf".to_string()),
            file: Some(path.to_string()),
            elf: Some(input::segments(path).ok()?),
            ..JobFlags::default()
        })
    };
    let (mut here, mut absent) = (Vec::new(), Vec::new());
    let more = if is_full { &MORE_PROGRAMS[..] } else { &[] };
    for (name, places) in PROGRAMS.iter().chain(more) {
        match places.iter().find_map(spec) {
            Some(program) => here.push(program),
            None => absent.push(name.to_string()),
        }
    }
    (here, absent)
}

fn command(args: &PublishedArgs) -> String {
    let mut words = vec!["filemap published".to_string()];
    words.extend(args.series.iter().cloned());
    if args.list {
        words.push("--list".to_string());
    }
    if args.full {
        words.push("--full".to_string());
    }
    if let Some(seeds) = args.seeds {
        words.push(format!("--seeds {seeds}"));
    }
    words.join(" ")
}

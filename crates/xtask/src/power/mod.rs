//! The power of conform: each rule of the core is made wrong in every place, and it is counted
//! which of these the patterns of conform would tell from the right one on a kernel that has it.

mod edits;
mod groups;
mod loops;
mod measure;
mod mutant;
mod places;
mod sites;
mod telling;
mod tree;
mod variants;
mod watched;
mod ways;

use std::collections::BTreeMap;
use std::fs::{self, File};
use std::process::Command;

use anyhow::{Context, Result, ensure};
use filemap_study::{conform, random_jobs};

pub use measure::measure;
pub use mutant::Mutant;
pub use telling::{On, Switches};

use self::measure::Power;
use self::tree::Tree;
use crate::repository::Repository;

/// What is measured: kernels, one with a series.
const KERNELS: [&str; 4] = ["6.12", "6.18", "6.12+mmap-miss", "7.3"];

/// Builds the copy, measures with so many jobs beside the patterns, and prints how many of the
/// wrong rules are told, and those that no job tells.
///
/// # Errors
/// When the copy does not build, or does not run.
pub fn run(jobs: u64) -> Result<()> {
    let (program, mutants) = Tree::new().build(&Repository::read()?)?;
    let path = program.with_file_name("mutants.json");
    fs::write(&path, serde_json::to_string(&mutants)?)?;
    let run = |kernel: &&str| {
        let file = program.with_file_name(format!("{kernel}.json"));
        let mut command = Command::new(&program);
        command.arg(&path).args([kernel, &jobs.to_string()[..]]).stdout(File::create(&file)?);
        Ok((file, command.spawn().context("it does not start")?))
    };
    let running = KERNELS.iter().map(run).collect::<Result<Vec<_>>>()?;
    println!(
        "| Kernel | Told by any job of one mapping | By the built-in patterns | By 20 random ones | \
         More by patterns with tables |"
    );
    println!("|---|---|---|---|---|");
    let mut all = Vec::new();
    for (file, mut child) in running {
        ensure!(child.wait()?.success(), "the copy does not run");
        let power: Power = serde_json::from_str(&fs::read_to_string(file)?)?;
        println!("{}", row(&power));
        all.push(power);
    }
    for power in &all {
        println!("\n{}: told by a job, and by no built-in pattern", power.on);
        for (job, of) in by_job(power) {
            let names = by_function(&mutants, of.into_iter());
            let names: Vec<String> =
                names.iter().map(|(place, of)| format!("{place}: {}", of.join("; "))).collect();
            println!("{}\n{}", names.join("\n"), measure::job(job).to_toml());
        }
        println!(
            "\n{}: {} that matter in some job and that none tells",
            power.on,
            untold(power).count()
        );
        for (place, of) in by_function(&mutants, untold(power)) {
            println!("{place}: {}", of.join("; "));
        }
    }
    Ok(())
}

/// A row of the table.
fn row(power: &Power) -> String {
    let any = power.any.len();
    let share = |told: usize| format!("{told} ({:.1} %)", told as f64 / any as f64 * 100.0);
    let random = power.random.iter().map(|told| told.len());
    let least = share(random.clone().min().unwrap_or(0));
    let most = share(random.max().unwrap_or(0));
    let Power { on, built_in, by_tables, .. } = power;
    let (built_in, more) = (share(built_in.len()), by_tables.len());
    format!("| {on} | {any} | {built_in} | {least} to {most} | {more} |")
}

/// Those at which it matters in some job that they are wrong, and that none tells.
fn untold(power: &Power) -> impl Iterator<Item = usize> {
    let told = |of: &usize| power.any.contains(of) || power.by_tables.contains(of);
    power.reached.iter().filter(move |of| !told(of)).copied()
}

/// Those that no built-in pattern tells, by the number of the first job that does.
fn by_job(power: &Power) -> BTreeMap<u64, Vec<usize>> {
    let mut jobs: BTreeMap<u64, Vec<usize>> = BTreeMap::new();
    for (of, job) in &power.by_job {
        jobs.entry(*job).or_default().push(*of);
    }
    jobs
}

/// What is wrong in each function.
fn by_function(
    mutants: &[Mutant],
    some: impl Iterator<Item = usize>,
) -> BTreeMap<String, Vec<String>> {
    let mut all: BTreeMap<String, Vec<String>> = BTreeMap::new();
    for Mutant { file, function, line, before, after, .. } in some.map(|of| &mutants[of]) {
        let text = format!("{line} {before} -> {after}");
        all.entry(format!("{file} {function}")).or_default().push(text);
    }
    all
}

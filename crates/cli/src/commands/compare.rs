//! `filemap compare`.

mod several;

use filemap_study::compare::{self, Asked, Plan};
use filemap_study::variants::Variant;

use crate::Outcome;
use crate::args::CompareArgs;
use crate::error::Error;
use crate::given::Given;
use crate::machine::Machine;

/// Runs a job in several variants, or several jobs, and prints what changes.
pub fn run(args: CompareArgs) -> Result<Outcome, Error> {
    if args.job_files.len() > 1 {
        return several::run(args);
    }
    let mut given = Given::new(args.job_files.first().cloned(), args.job.clone())?;
    let asked = asked(&args);
    let variants = with_variants(&mut given, &asked)?;
    let output = args.output.open_compared(&given.inputs)?;
    let mut plan = Plan::of(given.into(), &variants, &asked)?;
    let comparison = plan.run(&Machine, &asked)?;
    let apply = if asked.apply { " --apply" } else { "" };
    let command = format!("{}{apply} --format kernel", plan.command);
    let letter = comparison.letter(command, plan.job_file().as_ref());
    output.write_compared(&comparison.report(args.asked.verbose), &letter)?;
    Ok(Outcome::Done)
}

fn asked(args: &CompareArgs) -> Asked {
    Asked {
        variants: args.variants.clone(),
        images: args.job.image.clone(),
        modules: args.job.modules.clone(),
        seeds: args.asked.repeated.seeds,
        apply: args.asked.apply,
    }
}

/// The variants of a job that was `given`; their machine profiles are inputs of the command.
fn with_variants(given: &mut Given, asked: &Asked) -> Result<Vec<Variant>, Error> {
    let variants = compare::variants(given, asked)?;
    let profiles = variants.iter().filter_map(|variant| variant.value("machine"));
    profiles.for_each(|name| given.inputs.add_profile("machine of a variant", name));
    Ok(variants)
}

//! `filemap compare`.

mod several;

use filemap_study::compare::{self, Asked, Plan};
use filemap_study::variants::Variant;

use crate::Outcome;
use crate::args::CompareArgs;
use crate::error::Error;
use crate::given::{self, Given};
use crate::machine::Machine;
use crate::output::Inputs;

/// Runs a job in several variants, or several jobs, and prints what changes.
pub fn run(args: CompareArgs) -> Result<Outcome, Error> {
    if args.job_files.len() > 1 {
        return several::run(args);
    }
    let (given, mut inputs) = given::job(args.job_files.first().map(String::as_str), &args.job)?;
    let asked = asked(&args);
    let variants = with_variants(&given, &mut inputs, &asked)?;
    let output = args.output.open_compared(&inputs)?;
    let plan = Plan::of(given, &variants, &asked)?;
    let (command, job_file) = (plan.command.clone(), plan.job_file());
    let apply = if asked.apply { " --apply" } else { "" };
    let of_letter = format!("{command}{apply} --format kernel");
    let comparison = compare::run(vec![(None, plan)], &Machine, &asked, command)?;
    let letter = comparison.letter(of_letter, job_file.as_ref());
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

/// The variants of a job that was `given`; adds their machine profiles to `inputs`.
fn with_variants(given: &Given, inputs: &mut Inputs, asked: &Asked) -> Result<Vec<Variant>, Error> {
    let variants = compare::variants(given, asked)?;
    let profiles = variants.iter().filter_map(|variant| variant.value("machine"));
    profiles.for_each(|name| inputs.add_profile("machine of a variant", name));
    Ok(variants)
}

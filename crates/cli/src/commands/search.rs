//! `filemap search`.

use std::io::{IsTerminal, Write, stderr};

use filemap_job::program::THRASH;
use filemap_job::{EngineKind, JobSpec, Record, SizeText};
use filemap_model::{Model, Profile};
use filemap_study::Footer;
use filemap_study::search::{self, Goal, Study};

use crate::Outcome;
use crate::args::SearchArgs;
use crate::error::Error;
use crate::given::Given;
use crate::interrupt::Asked;
use crate::output::Output;
use crate::progress;
use crate::random_jobs::PAGE;
use crate::search::{JobFiles, Search, Space, StateFile};
use filemap_study::input;
use filemap_study::machine_profile;
use filemap_study::provenance;
use filemap_study::variants::{self, Variant};

/// Seed of the jobs where none is given.
const DEFAULT_SEED: u64 = 1;

/// Jobs that are tried where nothing says how many.
const DEFAULT_JOBS: u64 = 20_000;

/// Looks for jobs that tell two variants apart, or that the second makes worse.
pub fn run(args: SearchArgs) -> Result<Outcome, Error> {
    args.job.check_one_kernel()?;
    let asked = Given::new(None, args.job)?;
    let mut spec = asked.written.flags().into_owned();
    check(&spec, asked.is_thrash)?;
    let state = ("--state", args.state.as_deref());
    let mut output = Output::open(&args.output, &asked.inputs, &[state])?;
    if output.take("--state").is_some_and(|state| state.is_stdout()) {
        let message = "--state -: a state is read again; give it a file";
        return Err(Error::Usage(message.to_string()));
    }
    let files = args.out.map(JobFiles::new).transpose()?;
    let variants = variants::parse(&args.variants)?;
    variants::check_one_file(&variants)?;
    let [first, second] = variants.as_slice() else {
        return Err(Error::Usage(format!(
            "--variants {}: a search is between two variants; give two, as in --variants \
             baseline,vma-bound",
            args.variants
        )));
    };
    if let Some(profile) = variants.iter().find_map(|variant| variant.value("machine")) {
        return Err(Error::Usage(format!(
            "--variants {}: a search is on one machine; give --machine {profile}, or compare a job \
             on two machines with filemap compare",
            args.variants
        )));
    }
    let goal = match (args.worse, args.over, args.differ) {
        (Some(metric), ..) => Goal::Worse(metric),
        (_, Some(metric), _) => Goal::Over(metric),
        _ => Goal::Differ,
    };
    let profile = machine_profile::of(&mut spec)?;
    let seed = spec.seed.take().unwrap_or(DEFAULT_SEED);
    let records = [record_of(first, &spec, profile)?, record_of(second, &spec, profile)?];
    let search = Search {
        variants: [first, second],
        goal,
        space: Space::of(spec),
        seed,
        jobs: args.jobs.or(if args.time.is_some() { None } else { Some(DEFAULT_JOBS) }),
        limit: args.time,
        profile,
    };
    let flags = JobSpec { seed: None, ..asked.flags.clone() };
    let mut words = vec!["filemap search".to_string()];
    words.extend(flags.flags());
    words.push(format!("{} {goal} --seed {seed}", search.variants_flag()));
    let command = words.join(" ");
    let state = args.state.as_deref().map(|path| StateFile::new(path, &command));
    let wants = Asked::begin();
    let Some((mut study, drawn)) = studied(&search, state.as_ref(), &wants)? else {
        progress::tell("interrupted before a job was tried: nothing was found");
        return Ok(Outcome::Interrupted);
    };
    // A search that goes on writes them when it is done.
    let goes_on = wants.times() > 0 && state.is_some();
    if let Some(files) = files.as_ref().filter(|_| !goes_on) {
        files.write(&mut study, &search)?;
    }
    let footer = Footer::new(&records, format!("{command} --jobs {drawn}"));
    output.write(&search::report(&study, footer))?;
    Ok(if wants.times() > 0 { Outcome::Interrupted } else { Outcome::Done })
}

/// What `search` comes to, and how many jobs it has drawn; `None` where it was interrupted before
/// it had tried any.
fn studied(
    search: &Search,
    state: Option<&StateFile>,
    wants: &Asked,
) -> Result<Option<(Study, u64)>, Error> {
    let found = state.map(|state| state.read(search)).transpose()?.unwrap_or_default();
    let found = search.run(found, state, wants)?;
    let drawn = found.drawn;
    let is_interrupted = wants.times() > 0;
    if is_interrupted && drawn == 0 {
        return Ok(None);
    }
    let mut notes = Vec::new();
    if is_interrupted {
        notes.push(interrupted(drawn, state.is_some()));
        tell_terminal();
    }
    let (left_out, alike) = (found.left_out, found.alike);
    let tried = drawn - left_out - alike;
    let groups = search.groups(found, wants)?;
    if wants.times() > u32::from(is_interrupted) {
        notes.push("Not all jobs were made as small as they can be.".to_string());
    }
    let variants = search.variants.map(Variant::name);
    let (goal, seed) = (search.goal, search.seed);
    let study = Study { variants, goal, seed, tried, left_out, alike, groups, notes };
    Ok(Some((study, drawn)))
}

/// How a search goes on that was interrupted after so many jobs.
fn interrupted(drawn: u64, has_state: bool) -> String {
    let how = match has_state {
        true => "The same command goes on from there",
        false => "With --state FILE a search that is given again goes on where it was stopped",
    };
    format!("Interrupted after {drawn} jobs. {how}.")
}

/// Says what takes time still, to whoever has interrupted the search by hand.
fn tell_terminal() {
    if stderr().is_terminal() {
        let _ = writeln!(
            stderr(),
            "filemap: what was found is made smaller; interrupt again to have it as it is"
        );
    }
}

/// Refuses jobs that the search has none of.
fn check(spec: &JobSpec, is_thrash: bool) -> Result<(), Error> {
    let is_model = |on: &String| on == EngineKind::Model.name();
    if spec.image.is_some() || !spec.on.as_ref().is_none_or(is_model) {
        return Err(Error::CannotRun(
            "search tries jobs in the model; leave out --on and --image, and add them to the \
             commands that it prints"
                .to_string(),
        ));
    }
    if is_thrash {
        return Err(Error::Usage(format!(
            "--workload {THRASH} is a program, and search tries jobs of one file; compare it with \
             filemap compare"
        )));
    }
    for (flag, is_given) in [
        ("--file", spec.file.is_some()),
        ("--accesses-file", spec.accesses_file.is_some()),
        ("--runs", spec.runs.is_some()),
        ("--with", spec.with.is_some()),
    ] {
        if is_given {
            return Err(Error::Usage(format!(
                "{flag} does not go with search, which draws its own jobs and runs them in \
                 two variants; leave it out"
            )));
        }
    }
    Ok(())
}

/// A record without runs, of where the jobs of `variant` ran.
fn record_of(variant: &Variant, spec: &JobSpec, profile: Profile) -> Result<Record, Error> {
    let of_variant = variant.applied(&JobSpec::default());
    // Any job: only where it runs is told.
    let place = JobSpec {
        kernel: of_variant.kernel.or(spec.kernel.clone()),
        machine: spec.machine.clone(),
        workload: Some("first".to_string()),
        accesses: Some(1),
        file_size: Some(SizeText(PAGE.to_string())),
        ..JobSpec::default()
    };
    let job = place.validate(input::host_release().as_deref())?;
    let ran = Model { profile }.ran(&job, Vec::new());
    Ok(Record::of(&job, provenance::stamped(ran)))
}

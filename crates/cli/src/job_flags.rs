//! Job flags of the commands.

use std::marker::PhantomData;
use std::ops::Deref;

use clap::error::ErrorKind;
use clap::{Arg, ArgAction, ArgMatches, Args, Command, FromArgMatches};
use filemap_job::{Error as JobError, Flag, Group, JobFlags, SizeText, ValueKind, parse_count};

/// Values of the job flags.
#[derive(Clone, Debug, Default)]
pub struct JobFlagValues {
    /// Values by job file key.
    pub spec: JobFlags,
    /// Kernel images to boot; the first is also in `spec`.
    pub image: Vec<String>,
    /// Module directories of the images.
    pub modules: Vec<String>,
}

/// The job flags of a command.
pub trait JobCommand {
    /// Groups of flags that it accepts.
    const GROUPS: &'static [Group];
    /// Keys of these groups that it does not accept.
    const WITHOUT: &'static [&'static str] = &[];
    /// Whether it accepts several kernel images.
    const SEVERAL_KERNELS: bool = false;

    /// Its flags, in the order of help.
    fn flags() -> impl Iterator<Item = &'static Flag> {
        let in_group = |group| Flag::all().filter(move |flag| flag.group == group);
        let flags = Self::GROUPS.iter().flat_map(move |&group| in_group(group));
        flags.filter(|flag| !Self::WITHOUT.contains(&flag.key))
    }
}

/// The groups of a job that the model runs with a single run.
const MODEL_GROUPS: &[Group] = &[
    Group::Rules,
    Group::Seed,
    Group::Accesses,
    Group::File,
    Group::Mapping,
    Group::Memory,
    Group::Machine,
];

/// `filemap run`.
#[derive(Debug)]
pub enum Run {}

impl JobCommand for Run {
    const GROUPS: &'static [Group] = &Group::ALL;
}

/// `filemap compare`.
#[derive(Debug)]
pub enum Compare {}

impl JobCommand for Compare {
    const GROUPS: &'static [Group] = &Group::ALL;
    const SEVERAL_KERNELS: bool = true;
}

/// `filemap conform`: one thread, one run per engine. The governor's policy does not exist in
/// kernels.
#[derive(Debug)]
pub enum Conform {}

impl JobCommand for Conform {
    const GROUPS: &'static [Group] = &[
        Group::Engine,
        Group::Rules,
        Group::Seed,
        Group::Accesses,
        Group::File,
        Group::Mapping,
        Group::Memory,
        Group::Machine,
    ];
    const WITHOUT: &'static [&'static str] = &["on", "governor", "cpus"];
}

/// `filemap explain`, which evaluates a single run.
#[derive(Debug)]
pub enum Explain {}

impl JobCommand for Explain {
    const GROUPS: &'static [Group] = &Group::ALL;
    const WITHOUT: &'static [&'static str] = &["runs"];
}

/// `filemap advise`: a job for the model, or settings of the model for a recorded program.
#[derive(Debug)]
pub enum Advise {}

impl JobCommand for Advise {
    const GROUPS: &'static [Group] = MODEL_GROUPS;
}

/// `filemap search`: common settings of the generated jobs, in the model.
#[derive(Debug)]
pub enum Search {}

impl JobCommand for Search {
    const GROUPS: &'static [Group] = MODEL_GROUPS;
    const WITHOUT: &'static [&'static str] = &["with", "accesses_file", "file", "cold", "cpus"];
}

/// The job flags that the command `C` accepts.
#[derive(Debug)]
pub struct JobArgs<C> {
    flags: JobFlagValues,
    command: PhantomData<C>,
}

impl<C> Deref for JobArgs<C> {
    type Target = JobFlagValues;

    fn deref(&self) -> &JobFlagValues {
        &self.flags
    }
}

impl<C: JobCommand> Args for JobArgs<C> {
    fn augment_args(command: Command) -> Command {
        command.args(C::flags().map(|flag| arg(flag, C::SEVERAL_KERNELS)))
    }

    fn augment_args_for_update(command: Command) -> Command {
        Self::augment_args(command)
    }
}

/// The argument for `flag`, which may be repeated with `several_kernels` if the flag allows it.
fn arg(flag: &'static Flag, several_kernels: bool) -> Arg {
    let arg = Arg::new(flag.key).long(flag.name).help_heading(flag.group.heading());
    let (from, to) = flag.range;
    let arg = match flag.kind {
        ValueKind::Switch => return arg.help(flag.help()).action(ArgAction::SetTrue),
        ValueKind::Text => arg,
        ValueKind::Size => arg.allow_hyphen_values(true),
        ValueKind::Count => arg
            .allow_hyphen_values(true)
            .value_parser(move |text: &str| count(text, from, to).map(|count| count.to_string())),
        ValueKind::Number => arg
            .allow_hyphen_values(true)
            .value_parser(|text: &str| fraction(text).map(|()| text.to_string())),
    };
    let repeats = flag.repeats && several_kernels;
    let (action, help) = match flag.key {
        _ if !repeats => (ArgAction::Set, flag.help()),
        "modules" => (
            ArgAction::Append,
            format!(
                "{}. Give it once for all images, or once for each in their order: none for one \
                 that needs no modules",
                flag.help()
            ),
        ),
        _ => (ArgAction::Append, format!("{}. Give it once for each kernel", flag.help())),
    };
    arg.help(help).value_name(flag.value_name).action(action)
}

impl<C: JobCommand> FromArgMatches for JobArgs<C> {
    fn from_arg_matches(matches: &ArgMatches) -> Result<Self, clap::Error> {
        let mut args = JobArgs { flags: JobFlagValues::default(), command: PhantomData };
        args.update_from_arg_matches(matches)?;
        Ok(args)
    }

    fn update_from_arg_matches(&mut self, matches: &ArgMatches) -> Result<(), clap::Error> {
        let JobFlagValues { spec, image, modules } = &mut self.flags;
        for flag in C::flags() {
            let values: Vec<String> = match flag.kind {
                ValueKind::Switch => {
                    matches.get_flag(flag.key).then(|| true.to_string()).into_iter().collect()
                }
                _ => matches.get_many(flag.key).into_iter().flatten().cloned().collect(),
            };
            if let Some(value) = values.first() {
                spec.set(flag.key, value)
                    .map_err(|error| clap::Error::raw(ErrorKind::ValueValidation, error))?;
            }
            match flag.key {
                "image" => *image = values,
                "modules" => *modules = values,
                _ => {}
            }
        }
        Ok(())
    }
}

/// Parses a whole number. Error messages name the range `from` to `to`, but any 64-bit number is
/// accepted here: validation of the job rejects the others.
pub fn count(text: &str, from: u64, to: u64) -> Result<u64, String> {
    parse_count(text).map_err(|error| match error {
        JobError::OutOfRange { value, .. } => {
            format!("{value} is out of range; give {from} to {to}")
        }
        error => error.to_string(),
    })
}

/// A size, parsed on validation of the job.
pub fn size(text: &str) -> Result<SizeText, String> {
    Ok(SizeText(text.to_string()))
}

fn fraction(text: &str) -> Result<(), String> {
    let number = text.parse::<f64>().map(|_| ());
    number.map_err(|_| "give a number such as 0.01".to_string())
}

#[cfg(test)]
mod tests {
    use clap::Parser;

    use super::*;
    use crate::args::{Cli, Command};

    fn parsed(words: &[String]) -> JobFlags {
        let words = ["filemap", "run"].iter().map(|word| word.to_string()).chain(words.to_vec());
        let Command::Run(args) = Cli::try_parse_from(words).unwrap().command else {
            unreachable!("the words name it")
        };
        args.job.spec.clone()
    }

    /// Each flag is a key of job files, and an argument of the command that repeats the job.
    #[test]
    fn flag_names_are_keys() {
        for flag in Flag::all() {
            let value = match flag.kind {
                ValueKind::Switch => "true",
                ValueKind::Text => "some text",
                ValueKind::Size => "4k",
                ValueKind::Count => "7",
                ValueKind::Number => "0.5",
            };
            let mut spec = JobFlags::default();
            spec.set(flag.key, value).unwrap();
            let mut words = vec![format!("--{}", flag.name)];
            if flag.kind != ValueKind::Switch {
                words.push(value.to_string());
            }
            assert_eq!(parsed(&words), spec, "{}", flag.name);
            assert_eq!(spec.flags()[0], words[0]);
            let quote =
                matches!(flag.kind, ValueKind::Text | ValueKind::Size).then_some("'").unwrap_or("");
            let file = format!("{} = {quote}{value}{quote}", flag.key);
            assert_eq!(JobFlags::from_toml(&file).unwrap(), spec, "{file}");
            assert_eq!(flag.value_name.is_empty(), flag.kind == ValueKind::Switch, "{}", flag.name);
        }
    }

    #[test]
    fn images_are_taken_in_order() {
        let words = "filemap compare --image a --modules m --image b --modules n";
        let cli = Cli::try_parse_from(words.split(' ')).unwrap();
        let Command::Compare(args) = cli.command else { unreachable!("the words name it") };
        assert_eq!(
            (args.job.image.as_slice(), args.job.modules.as_slice()),
            (["a", "b"].map(String::from).as_slice(), ["m", "n"].map(String::from).as_slice())
        );
        assert_eq!(args.job.spec.image.as_deref(), Some("a"));
    }
}

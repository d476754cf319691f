//! The flags of a job.

use clap::error::ErrorKind;
use clap::{Arg, ArgAction, ArgMatches, Args, Command, FromArgMatches};
use filemap_job::{Error as JobError, Flag, JobSpec, Kind, SizeText, parse_count};

use crate::error::Error;

/// The flags of a job: the same as the keys of a job file.
#[derive(Clone, Debug, Default)]
pub struct JobFlags {
    /// What they say, as a job file says it.
    pub spec: JobSpec,
    /// The kernels to boot, of which `spec` has the first.
    pub image: Vec<String>,
    /// Where the modules of each are.
    pub modules: Vec<String>,
}

impl Args for JobFlags {
    fn augment_args(command: Command) -> Command {
        command.args(Flag::all().map(arg))
    }

    fn augment_args_for_update(command: Command) -> Command {
        JobFlags::augment_args(command)
    }
}

/// The argument of `flag`.
fn arg(flag: &'static Flag) -> Arg {
    let arg = Arg::new(flag.key).long(flag.name).help(flag.help()).help_heading(flag.group);
    let (from, to) = flag.range;
    let arg = match flag.kind {
        Kind::Switch => return arg.action(ArgAction::SetTrue),
        Kind::Text => arg,
        Kind::Size => arg.allow_hyphen_values(true),
        Kind::Count => arg
            .allow_hyphen_values(true)
            .value_parser(move |text: &str| count(text, from, to).map(|count| count.to_string())),
        Kind::Number => arg
            .allow_hyphen_values(true)
            .value_parser(|text: &str| fraction(text).map(|()| text.to_string())),
    };
    let action = if flag.repeats { ArgAction::Append } else { ArgAction::Set };
    arg.value_name(flag.value_name).action(action)
}

impl FromArgMatches for JobFlags {
    fn from_arg_matches(matches: &ArgMatches) -> Result<Self, clap::Error> {
        let mut flags = JobFlags::default();
        flags.update_from_arg_matches(matches)?;
        Ok(flags)
    }

    fn update_from_arg_matches(&mut self, matches: &ArgMatches) -> Result<(), clap::Error> {
        let all = |key: &str| -> Vec<String> {
            matches.get_many(key).into_iter().flatten().cloned().collect()
        };
        for flag in Flag::all() {
            let value = match flag.kind {
                Kind::Switch => matches.get_flag(flag.key).then(|| true.to_string()),
                _ => all(flag.key).into_iter().next(),
            };
            if let Some(value) = value {
                let set = self.spec.set(flag.key, &value);
                set.map_err(|error| clap::Error::raw(ErrorKind::ValueValidation, error))?;
            }
        }
        (self.image, self.modules) = (all("image"), all("modules"));
        Ok(())
    }
}

impl JobFlags {
    /// Refuses several kernels where a command takes one.
    ///
    /// # Errors
    /// Names the flag that is given several times.
    pub fn check_one_kernel(&self) -> Result<(), Error> {
        for (flag, values) in [("--image", &self.image), ("--modules", &self.modules)] {
            if values.len() > 1 {
                let message = "is given several times; give one, or filemap compare";
                return Err(Error::Usage(format!("{flag} {message}")));
            }
        }
        Ok(())
    }
}

/// A whole number, which is from `from` to `to` if it is any good.
///
/// What is outside of that and fits 64 bits passes: the job says what is wrong with it.
pub fn count(text: &str, from: u64, to: u64) -> Result<u64, String> {
    parse_count(text).map_err(|error| match error {
        JobError::OutOfRange { value, .. } => {
            format!("{value} is out of range; give {from} to {to}")
        }
        error => error.to_string(),
    })
}

/// A size, which is looked at with the rest of the job.
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

    fn parsed(words: &[String]) -> JobSpec {
        let words = ["filemap", "run"].iter().map(|word| word.to_string()).chain(words.to_vec());
        let Command::Run(args) = Cli::try_parse_from(words).unwrap().command else {
            unreachable!("the words name it")
        };
        args.job.spec
    }

    /// What is defined once is a flag, a key, and a word of the command that repeats a job.
    #[test]
    fn each_flag_is_the_key_of_its_name() {
        for flag in Flag::all() {
            let value = match flag.kind {
                Kind::Switch => "true",
                Kind::Text => "some text",
                Kind::Size => "4k",
                Kind::Count => "7",
                Kind::Number => "0.5",
            };
            let mut spec = JobSpec::default();
            spec.set(flag.key, value).unwrap();
            let mut words = vec![format!("--{}", flag.name)];
            if flag.kind != Kind::Switch {
                words.push(value.to_string());
            }
            assert_eq!(parsed(&words), spec, "{}", flag.name);
            assert_eq!(spec.flags()[0], words[0]);
            let quote = matches!(flag.kind, Kind::Text | Kind::Size).then_some("'").unwrap_or("");
            let file = format!("{} = {quote}{value}{quote}", flag.key);
            assert_eq!(JobSpec::from_toml(&file).unwrap(), spec, "{file}");
            assert!(!flag.group.is_empty(), "{}", flag.name);
            assert_eq!(flag.value_name.is_empty(), flag.kind == Kind::Switch, "{}", flag.name);
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

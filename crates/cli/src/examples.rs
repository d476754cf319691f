//! Examples of each command, for its help and its man page.

/// An example command line.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Example {
    /// What it does, as a sentence.
    pub does: &'static str,
    /// The command line.
    pub command: &'static str,
}

/// Examples of the subcommand `name`; empty for an unknown name.
pub fn examples_for(name: &str) -> Vec<Example> {
    let paragraphs = include_str!("examples.sh").split("\n\n").map(str::trim_end);
    let examples = paragraphs.filter_map(|text| text.strip_prefix("# ")?.split_once('\n'));
    let of_name = examples.filter(|(_, command)| command.split(' ').nth(1) == Some(name));
    of_name.map(|(does, command)| Example { does, command }).collect()
}

/// Examples of the subcommand `name`, as the last section of its help.
pub fn help_section(name: &str) -> String {
    examples_for(name).iter().fold("Examples:".to_string(), |text, example| {
        format!("{text}\n  {}\n    {}\n", example.does, example.command)
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_command_has_examples_that_it_takes() {
        let root = crate::command();
        for command in root.get_subcommands() {
            let name = command.get_name();
            assert!(!examples_for(name).is_empty(), "{name} has no example");
            for example in examples_for(name) {
                let words = example.command.split_whitespace();
                assert_eq!(words.clone().nth(1), Some(name), "{}", example.command);
                let taken = crate::command().try_get_matches_from(words);
                assert!(taken.is_ok(), "{}: {:?}", example.command, taken.err());
            }
            let help = command.clone().render_long_help().to_string();
            assert!(help.contains(examples_for(name)[0].does), "{name} --help shows no example");
        }
    }
}

//! Code blocks of documents, and the commands in them.

/// A code block.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Block<'a> {
    /// The number of its first line, from 1.
    pub line: usize,
    /// What is said after its first fence.
    pub language: &'a str,
    /// What is in it.
    pub lines: Vec<&'a str>,
}

/// Blocks in these languages that begin with a comment that names a file are such files.
const FILES: [&str; 2] = ["toml", "python"];

/// The code blocks of a document, in order.
pub fn all(text: &str) -> Vec<Block<'_>> {
    let mut blocks: Vec<Block<'_>> = Vec::new();
    let mut within = false;
    for (index, line) in text.lines().enumerate() {
        match line.strip_prefix("```") {
            Some(_) if within => within = false,
            Some(language) => {
                within = true;
                blocks.push(Block { line: index + 2, language, lines: Vec::new() });
            }
            None => blocks.last_mut().filter(|_| within).into_iter().for_each(|block| {
                block.lines.push(line);
            }),
        }
    }
    blocks
}

/// The lines of the blocks of this language, with their numbers, from 1.
pub fn lines<'a>(text: &'a str, language: &str) -> Vec<(usize, &'a str)> {
    let blocks = all(text).into_iter().filter(|block| block.language == language);
    blocks.flat_map(|block| (block.line..).zip(block.lines)).collect()
}

/// The commands of shell lines, with the numbers of their first lines. A `\\` at the end of a line
/// joins the next one.
pub fn commands<'a>(lines: impl IntoIterator<Item = (usize, &'a str)>) -> Vec<(usize, String)> {
    let mut commands = Vec::new();
    let mut begun: Option<(usize, String)> = None;
    for (line, text) in lines {
        let (line, before) = begun.take().unwrap_or((line, String::new()));
        match text.strip_suffix('\\') {
            Some(first) => begun = Some((line, format!("{before}{} ", first.trim()))),
            None => commands.push((line, format!("{before}{}", without_comment(text).trim()))),
        }
    }
    commands.extend(begun);
    commands
}

/// A line of a shell block without its comment.
pub fn without_comment(line: &str) -> &str {
    line.split(" #").next().unwrap_or(line).trim_end()
}

/// The files that a document shows: their names, and what is in them.
pub fn files(document: &str) -> Vec<(&str, String)> {
    let named = |block: Block<'_>| block.lines.join("\n") + "\n";
    all(document)
        .into_iter()
        .filter(|block| FILES.contains(&block.language))
        .filter_map(|block| {
            let name = block.lines.first()?.strip_prefix("# ")?;
            let is_file = !name.contains(' ') && name.contains('.');
            is_file.then(|| (name, named(block)))
        })
        .collect()
}

/// How documents run `filemap` from the source.
const FROM_SOURCE: &str = "cargo run --release -- ";

/// The command as it is written for an installed `filemap`; `None` for other commands.
pub fn filemap_command(line: &str) -> Option<String> {
    let command = without_comment(line).trim_start();
    match command.strip_prefix(FROM_SOURCE) {
        Some(rest) => Some(format!("filemap {rest}")),
        None => command.starts_with("filemap ").then(|| command.to_string()),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn blocks_are_told_apart_by_language() {
        let text = "a\n```sh\nb\nc\n```\nd\n```toml\ne\n```\n";
        assert_eq!(lines(text, "sh"), [(3, "b"), (4, "c")]);
        assert_eq!(lines(text, "toml"), [(8, "e")]);
    }

    #[test]
    fn files_are_named_in_their_first_line() {
        let text = "```toml\n# job.toml\na = 1\n```\n```toml\n# of a job\n```\n";
        assert_eq!(files(text), [("job.toml", "# job.toml\na = 1\n".to_string())]);
    }

    #[test]
    fn a_command_can_have_several_lines() {
        let lines = ["a # why", "b \\", "  -c \\", "  -d # so", "e \\"];
        let commands = commands((7..).zip(lines));
        let expected = [(7, "a"), (8, "b -c -d"), (11, "e ")];
        assert_eq!(commands, expected.map(|(line, text)| (line, text.to_string())));
    }

    #[test]
    fn commands_of_filemap() {
        let of = |line| filemap_command(line);
        assert_eq!(of("filemap doctor   # all").as_deref(), Some("filemap doctor"));
        assert_eq!(of("cargo run --release -- run x").as_deref(), Some("filemap run x"));
        assert_eq!(of("cargo test -- filemap"), None);
        assert_eq!(of("man filemap"), None);
    }
}

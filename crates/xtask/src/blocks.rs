//! Code blocks of documents, and the commands in them.

/// The lines of the blocks of this language, with their numbers, from 1.
pub fn lines<'a>(text: &'a str, language: &str) -> Vec<(usize, &'a str)> {
    let mut lines = Vec::new();
    let mut within = false;
    for (index, line) in text.lines().enumerate() {
        match line.strip_prefix("```") {
            Some(opened) => within = !within && opened == language,
            None if within => lines.push((index + 1, line)),
            None => {}
        }
    }
    lines
}

/// A line of a shell block without its comment.
pub fn without_comment(line: &str) -> &str {
    line.split(" #").next().unwrap_or(line).trim_end()
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
    fn commands_of_filemap() {
        let of = |line| filemap_command(line);
        assert_eq!(of("filemap doctor   # all").as_deref(), Some("filemap doctor"));
        assert_eq!(of("cargo run --release -- run x").as_deref(), Some("filemap run x"));
        assert_eq!(of("cargo test -- filemap"), None);
        assert_eq!(of("man filemap"), None);
    }
}

//! The parts of our Markdown that tasks read and write: code blocks with the commands and files in
//! them, generated sections, and tables.

use anyhow::{Context, Result, ensure};

/// A fenced code block.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct CodeBlock<'a> {
    /// The number of its first line inside the fence, from 1.
    pub line: usize,
    /// The word after the opening fence.
    pub language: &'a str,
    /// The lines between the fences.
    pub lines: Vec<&'a str>,
}

/// Languages whose blocks are files where the first line is a comment with a file name.
const FILE_LANGUAGES: [&str; 2] = ["toml", "python"];

/// The code blocks of a document, in order.
pub fn code_blocks(document: &str) -> Vec<CodeBlock<'_>> {
    let mut blocks: Vec<CodeBlock<'_>> = Vec::new();
    let mut is_open = false;
    for (index, line) in document.lines().enumerate() {
        match line.strip_prefix("```") {
            Some(_) if is_open => is_open = false,
            Some(language) => {
                is_open = true;
                blocks.push(CodeBlock { line: index + 2, language, lines: Vec::new() });
            }
            None => {
                if let Some(block) = blocks.last_mut().filter(|_| is_open) {
                    block.lines.push(line);
                }
            }
        }
    }
    blocks
}

/// The lines of all blocks of this language, with their line numbers from 1.
pub fn code_lines<'a>(document: &'a str, language: &str) -> Vec<(usize, &'a str)> {
    let blocks = code_blocks(document).into_iter().filter(|block| block.language == language);
    blocks.flat_map(|block| (block.line..).zip(block.lines)).collect()
}

/// The commands in shell lines, each with the number of its first line. A trailing `\\` continues a
/// command on the next line.
pub fn join_commands<'a>(
    lines: impl IntoIterator<Item = (usize, &'a str)>,
) -> Vec<(usize, String)> {
    let mut commands = Vec::new();
    let mut unfinished: Option<(usize, String)> = None;
    for (number, text) in lines {
        let (number, prefix) = unfinished.take().unwrap_or((number, String::new()));
        match text.strip_suffix('\\') {
            Some(start) => unfinished = Some((number, format!("{prefix}{} ", start.trim()))),
            None => commands.push((number, format!("{prefix}{}", strip_comment(text).trim()))),
        }
    }
    commands.extend(unfinished);
    commands
}

/// A shell line without its comment.
pub fn strip_comment(line: &str) -> &str {
    line.split(" #").next().unwrap_or(line).trim_end()
}

/// The files that a document shows in full: name and contents.
pub fn shown_files(document: &str) -> Vec<(&str, String)> {
    let blocks = code_blocks(document).into_iter();
    blocks
        .filter(|block| FILE_LANGUAGES.contains(&block.language))
        .filter_map(|block| {
            let name = block.lines.first()?.strip_prefix("# ")?;
            let is_file_name = !name.contains(' ') && name.contains('.');
            is_file_name.then(|| (name, block.lines.join("\n") + "\n"))
        })
        .collect()
}

/// How documents run `filemap` from the source tree.
const FROM_SOURCE: &str = "cargo run --release -- ";

/// The command as an installed `filemap` would be called; `None` for other programs.
pub fn filemap_command(line: &str) -> Option<String> {
    let command = strip_comment(line).trim_start();
    match command.strip_prefix(FROM_SOURCE) {
        Some(args) => Some(format!("filemap {args}")),
        None => command.starts_with("filemap ").then(|| command.to_string()),
    }
}

/// Regenerates every section of `document` of this `kind`: `generate` gets the words of the opening
/// comment and returns the body.
///
/// ```text
/// <!-- KIND: WORDS -->
/// <!-- end of KIND -->
/// ```
///
/// # Errors
/// When a section is not closed, or `generate` fails.
pub fn regenerate(
    document: &str,
    kind: &str,
    generate: impl Fn(&str) -> Result<String>,
) -> Result<String> {
    let (open, close) = (format!("<!-- {kind}: "), format!("<!-- end of {kind} -->"));
    let mut text = String::new();
    let mut lines = document.split_inclusive('\n');
    while let Some(line) = lines.next() {
        text += line;
        let words = line.trim_end().strip_prefix(&open).and_then(|l| l.strip_suffix(" -->"));
        let Some(words) = words else { continue };
        ensure!(lines.any(|line| line.trim_end() == close), "'{close}' is missing after '{words}'");
        let body = generate(words).with_context(|| format!("'{words}' cannot be shown"))?;
        text += &format!("\n{}\n\n{close}\n", body.trim_end());
    }
    Ok(text)
}

/// A table. Columns whose cells all start like numbers are aligned to the right.
pub fn table(columns: &[String], rows: &[Vec<String>]) -> String {
    let is_number = |cell: &String| {
        cell.is_empty() || cell.starts_with(|c: char| c.is_ascii_digit() || "+-<".contains(c))
    };
    let alignments = (0..columns.len()).map(|column| {
        let is_right = !rows.is_empty() && rows.iter().all(|row| is_number(&row[column]));
        if is_right { "--:" } else { "---" }.to_string()
    });
    let line = |cells: &[String]| {
        let cells: Vec<_> = cells.iter().map(|cell| cell.replace('|', "\\|")).collect();
        format!("| {} |\n", cells.join(" | "))
    };
    let alignments: Vec<String> = alignments.collect();
    let head = format!("{}|{}|\n", line(columns), alignments.join("|"));
    rows.iter().fold(head, |text, row| text + &line(row))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn selects_blocks_by_language() {
        let text = "a\n```sh\nb\nc\n```\nd\n```toml\ne\n```\n";
        assert_eq!(code_lines(text, "sh"), [(3, "b"), (4, "c")]);
        assert_eq!(code_lines(text, "toml"), [(8, "e")]);
    }

    #[test]
    fn finds_files_by_the_name_in_their_first_line() {
        let text = "```toml\n# job.toml\na = 1\n```\n```toml\n# of a job\n```\n";
        assert_eq!(shown_files(text), [("job.toml", "# job.toml\na = 1\n".to_string())]);
    }

    #[test]
    fn joins_continued_commands() {
        let lines = ["a # why", "b \\", "  -c \\", "  -d # so", "e \\"];
        let commands = join_commands((7..).zip(lines));
        let expected = [(7, "a"), (8, "b -c -d"), (11, "e ")];
        assert_eq!(commands, expected.map(|(line, text)| (line, text.to_string())));
    }

    #[test]
    fn recognizes_filemap_commands() {
        let command = filemap_command;
        assert_eq!(command("filemap doctor   # all").as_deref(), Some("filemap doctor"));
        assert_eq!(command("cargo run --release -- run x").as_deref(), Some("filemap run x"));
        assert_eq!(command("cargo test -- filemap"), None);
        assert_eq!(command("man filemap"), None);
    }

    const DOCUMENT: &str = "a\n<!-- sum: 1 2 -->\nold\n<!-- end of sum -->\nb\n";

    #[test]
    fn regenerates_sections_of_one_kind() {
        let generate = |words: &str| Ok(format!("of {words}\n\n"));
        let text = regenerate(DOCUMENT, "sum", generate).unwrap();
        assert_eq!(text, "a\n<!-- sum: 1 2 -->\n\nof 1 2\n\n<!-- end of sum -->\nb\n");
        assert_eq!(regenerate(&text, "sum", generate).unwrap(), text);
        assert_eq!(regenerate(DOCUMENT, "product", generate).unwrap(), DOCUMENT);
        let unclosed = DOCUMENT.replace("<!-- end of sum -->\n", "");
        let error = regenerate(&unclosed, "sum", generate).unwrap_err().to_string();
        assert!(error.contains("'<!-- end of sum -->' is missing"), "{error}");
    }

    #[test]
    fn aligns_numbers_to_the_right() {
        let cells = |row: [&str; 3]| row.map(String::from).to_vec();
        let rows = [cells(["x", "1,000", "a|b"]), cells(["y", "-3 %", "2"])];
        let table = table(&cells(["k", "n", "t"]), &rows);
        let expected = "| k | n | t |\n|---|--:|---|\n| x | 1,000 | a\\|b |\n| y | -3 % | 2 |\n";
        assert_eq!(table, expected);
    }
}

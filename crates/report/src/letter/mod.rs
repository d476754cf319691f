//! A report as a mail to a kernel list: plain ASCII text in short lines, with a command that can be
//! pasted.

mod shell;

use std::cell::Cell;

use crate::report::Part;
use crate::text::TEXT_COLUMNS;

/// Maximum length of a word in a paragraph. Longer ones are paths and lists of settings.
pub(crate) const MAX_WORD: usize = 48;

/// Prefix of a shortened word.
const ELLIPSIS: &str = "...";

/// A report for a mail.
#[derive(Clone, Debug)]
#[allow(missing_docs, reason = "their names say it")]
pub struct Letter {
    pub parts: Vec<Part>,
    /// The shell command that repeats it.
    pub command: String,
}

/// Records which changes were made to texts.
#[derive(Default)]
struct TextChanges {
    shortened: Cell<bool>,
    replaced: Cell<bool>,
}

impl Letter {
    /// The text: lines of at most [`TEXT_COLUMNS`] ASCII characters, without tabs and trailing
    /// blanks.
    pub fn text(&self) -> String {
        let changes = TextChanges::default();
        let parts = self.parts.iter().flat_map(|part| match part {
            Part::Comparison(comparison) => comparison.letter(),
            part => vec![part.clone()],
        });
        let mut blocks: Vec<String> =
            parts.filter_map(|part| changes.apply(&part).text()).collect();
        match shell::fold(&self.command, TEXT_COLUMNS) {
            Some(command) => blocks.push(format!("Command:\n\n{command}\n")),
            None => blocks.push("The command that repeats this cannot be shown.\n".to_string()),
        }
        blocks.extend(changes.note().and_then(|note| Part::Paragraph(note).text()));
        let lines = blocks.join("\n");
        let lines = lines.lines().map(str::trim_end).map(|line| {
            // Wider tables are lists.
            debug_assert!(line.len() <= TEXT_COLUMNS, "{line}");
            format!("{line}\n")
        });
        lines.collect()
    }
}

impl TextChanges {
    /// `part` in ASCII, with long words shortened.
    fn apply(&self, part: &Part) -> Part {
        let text = |text: &String| self.words(text);
        match part {
            Part::Heading(heading) => Part::Heading(text(heading)),
            Part::Facts(facts) => {
                let facts = facts.iter().map(|(label, fact)| (label.clone(), text(fact)));
                Part::Facts(facts.collect())
            }
            Part::List(items) => Part::List(items.iter().map(text).collect()),
            Part::Lead(lead) => Part::Lead(text(lead)),
            Part::Paragraph(paragraph) => Part::Paragraph(text(paragraph)),
            Part::Warning(warning) => Part::Warning(text(warning)),
            Part::Table(table) => {
                let mut table = table.clone();
                table.title = text(&table.title);
                for cell in table.rows.iter_mut().flatten() {
                    *cell = self.ascii(cell);
                }
                for head in &mut table.columns {
                    head.name = self.ascii(&head.name);
                }
                Part::Table(table)
            }
            Part::Preformatted(text) => Part::Preformatted(self.ascii(text)),
            other => other.clone(),
        }
    }

    fn words(&self, text: &str) -> String {
        let text = self.ascii(text);
        let word = |word: &str| {
            if word.len() > MAX_WORD {
                self.shortened.set(true);
                // The end of a path is its most specific part.
                let quote = if word.starts_with('\'') { "'" } else { "" };
                let end = &word[word.len() - (MAX_WORD - ELLIPSIS.len() - quote.len())..];
                format!("{quote}{ELLIPSIS}{end}")
            } else {
                word.to_string()
            }
        };
        text.split_whitespace().map(word).collect::<Vec<_>>().join(" ")
    }

    fn ascii(&self, text: &str) -> String {
        let sign = |c: char| {
            if c == '\n' || shell::is_printed(c) {
                c
            } else {
                self.replaced.set(true);
                '?'
            }
        };
        text.chars().map(sign).collect()
    }

    /// A note on characters that were replaced or names that were shortened, if any.
    fn note(&self) -> Option<String> {
        let shortened = self.shortened.get().then(|| {
            format!("A name that begins with {ELLIPSIS} is shortened; the command has all of it.")
        });
        let replaced = self.replaced.get().then(|| {
            "A ? can stand for a character that is not ASCII; the command generates it with \
             printf."
                .to_string()
        });
        let changes: Vec<String> = shortened.into_iter().chain(replaced).collect();
        (!changes.is_empty()).then(|| changes.join(" "))
    }
}

/// Whether each line of `text` can stand in a letter as it is.
pub fn is_plain(text: &str) -> bool {
    text.split('\n').all(|line| {
        line.len() <= TEXT_COLUMNS && line.chars().all(shell::is_printed) && !line.ends_with(' ')
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::table::{Head, Table};

    #[test]
    fn shortens_with_a_note() {
        let path = format!("/{}/end", "x".repeat(200));
        let table = Table {
            title: String::new(),
            columns: vec![Head::text("größe")],
            rows: vec![vec!["1".to_string()]],
        };
        let letter = Letter {
            parts: vec![Part::Paragraph(format!("It read {path} once.")), Part::Table(table)],
            command: format!("filemap compare {path}"),
        };
        let text = letter.text();
        assert!(is_plain(text.trim_end()), "{text}");
        assert!(text.contains("It read ...xxx") && text.contains("xxx/end once."), "{text}");
        let quoted = Letter { parts: vec![Part::Paragraph(format!("From '{path}'."))], ..letter };
        assert!(quoted.text().contains("From '...xxx"), "{}", quoted.text());
        assert!(text.contains("gr??e\n-----\n1\n"), "{text}");
        let line = text.replace('\n', " ");
        assert!(line.contains("begins with ... is shortened") && line.contains("A ? can"));
        let plain = Letter { parts: Vec::new(), command: "filemap compare".to_string() };
        assert_eq!(plain.text(), "Command:\n\nfilemap compare\n");
    }
}

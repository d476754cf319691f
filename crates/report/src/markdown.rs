//! Reports as Markdown.

use crate::report::{Part, Report};
use crate::table::{Table, single_line};

impl Report {
    pub(crate) fn markdown(&self) -> String {
        let mut blocks: Vec<String> = self.to_read().filter_map(Part::markdown).collect();
        let facts = self.footer.facts.iter().map(|(label, text)| format!("- {label}: {text}\n"));
        let footer: String = facts.collect();
        blocks.push(format!("{footer}- Command: `{}`\n", self.footer.command));
        blocks.join("\n")
    }
}

impl Part {
    /// As Markdown; `None` for pictures.
    fn markdown(&self) -> Option<String> {
        Some(match self {
            Part::Heading(text) => format!("## {text}\n"),
            Part::Facts(facts) => {
                facts.iter().map(|(label, text)| format!("- {label}: {text}\n")).collect()
            }
            Part::List(items) => items.iter().map(|item| format!("- {item}\n")).collect(),
            Part::Lead(text) | Part::Paragraph(text) => format!("{text}\n"),
            Part::Warning(text) => format!("Warning: {text}\n"),
            Part::Table(table) => table.markdown(),
            Part::Comparison(comparison) => comparison.table().markdown(),
            Part::Preformatted(text) => format!("```\n{text}\n```\n"),
            Part::Cards(_)
            | Part::Bars(_)
            | Part::Dots(_)
            | Part::Plot(_)
            | Part::Drawn(_)
            | Part::Details(_) => return None,
        })
    }
}

impl Table {
    fn markdown(&self) -> String {
        let title = match self.title.as_str() {
            "" => String::new(),
            title => format!("**{title}**\n\n"),
        };
        let names = row(self.columns.iter().map(|head| head.one_line()));
        let rules = self.columns.iter().map(|head| if head.right { "---:" } else { "---" });
        let rules = row(rules.map(str::to_string));
        let rows = self
            .rows
            .iter()
            .map(|cells| row(cells.iter().map(|cell| single_line(cell).replace('|', "\\|"))));
        title + &names + &rules + &rows.collect::<String>()
    }
}

fn row(cells: impl Iterator<Item = String>) -> String {
    format!("| {} |\n", cells.collect::<Vec<_>>().join(" | "))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::table::Head;

    #[test]
    fn escapes_vertical_bars() {
        let table = Table {
            title: "Pages".to_string(),
            columns: vec![Head::text("name"), Head::number("long\nN")],
            rows: vec![vec!["b|\"c,".to_string(), "12345".to_string()]],
        };
        let expected = "**Pages**\n\n| name | long N |\n| --- | ---: |\n| b\\|\"c, | 12345 |\n";
        assert_eq!(table.markdown(), expected);
    }
}

//! Parts of documents that are made of something else. They stand between two comments:
//!
//! ```text
//! <!-- KIND: WORDS -->
//! <!-- end of KIND -->
//! ```
//!
//! KIND says what they are made of, and WORDS say which of it.

use anyhow::{Context, Result, ensure};

/// `document` with each part of this kind as `make` gives it for its words.
///
/// # Errors
/// When a part has no end, or cannot be made.
pub fn replaced(
    document: &str,
    kind: &str,
    make: impl Fn(&str) -> Result<String>,
) -> Result<String> {
    let (begin, end) = (format!("<!-- {kind}: "), format!("<!-- end of {kind} -->"));
    let mut text = String::new();
    let mut lines = document.split_inclusive('\n');
    while let Some(line) = lines.next() {
        text += line;
        let words = line.trim_end().strip_prefix(&begin).and_then(|l| l.strip_suffix(" -->"));
        let Some(words) = words else { continue };
        ensure!(lines.any(|line| line.trim_end() == end), "'{end}' is missing after '{words}'");
        let made = make(words).with_context(|| format!("'{words}' cannot be shown"))?;
        text += &format!("\n{}\n\n{end}\n", made.trim_end());
    }
    Ok(text)
}

/// A table of Markdown. Columns whose cells begin like numbers are aligned to the right.
pub fn table(columns: &[String], rows: &[Vec<String>]) -> String {
    let is_number = |cell: &String| {
        cell.is_empty() || cell.starts_with(|c: char| c.is_ascii_digit() || "+-<".contains(c))
    };
    let rules = (0..columns.len()).map(|column| {
        let is_right = !rows.is_empty() && rows.iter().all(|row| is_number(&row[column]));
        if is_right { "--:" } else { "---" }.to_string()
    });
    let line = |cells: &[String]| {
        let cells: Vec<_> = cells.iter().map(|cell| cell.replace('|', "\\|")).collect();
        format!("| {} |\n", cells.join(" | "))
    };
    let rules: Vec<String> = rules.collect();
    let head = format!("{}|{}|\n", line(columns), rules.join("|"));
    rows.iter().fold(head, |text, row| text + &line(row))
}

#[cfg(test)]
mod tests {
    use super::*;

    const DOCUMENT: &str = "a\n<!-- sum: 1 2 -->\nold\n<!-- end of sum -->\nb\n";

    #[test]
    fn parts_are_put_in_their_places() {
        let make = |words: &str| Ok(format!("of {words}\n\n"));
        let text = replaced(DOCUMENT, "sum", make).unwrap();
        assert_eq!(text, "a\n<!-- sum: 1 2 -->\n\nof 1 2\n\n<!-- end of sum -->\nb\n");
        assert_eq!(replaced(&text, "sum", make).unwrap(), text);
        assert_eq!(replaced(DOCUMENT, "product", make).unwrap(), DOCUMENT);
        let open = DOCUMENT.replace("<!-- end of sum -->\n", "");
        let error = replaced(&open, "sum", make).unwrap_err().to_string();
        assert!(error.contains("'<!-- end of sum -->' is missing"), "{error}");
    }

    #[test]
    fn tables_align_numbers_to_the_right() {
        let cells = |row: [&str; 3]| row.map(String::from).to_vec();
        let rows = [cells(["x", "1,000", "a|b"]), cells(["y", "-3 %", "2"])];
        let table = table(&cells(["k", "n", "t"]), &rows);
        let expected = "| k | n | t |\n|---|--:|---|\n| x | 1,000 | a\\|b |\n| y | -3 % | 2 |\n";
        assert_eq!(table, expected);
    }
}

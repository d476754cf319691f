//! Folds a shell command into lines short enough for a mail that can still be pasted.

use std::fmt::Write;

/// Ends a line that is continued.
const CONTINUATION: &str = " \\";

/// Indent of the lines after the first.
const INDENT: &str = "    ";

/// Folds `command` into lines of at most `columns` ASCII characters, from which a shell reads the
/// same words. `None` if no shell can parse `command`.
pub(super) fn fold(command: &str, columns: usize) -> Option<String> {
    let words = shlex::split(command)?;
    let mut lines = Lines { text: String::new(), column: 0, columns, is_line_empty: true };
    for group in groups(&words) {
        let group: Vec<Vec<String>> =
            group.iter().map(|word| pieces(word, columns - INDENT.len() - 2)).collect();
        lines.add(&group);
    }
    Some(lines.text)
}

/// Groups each flag with its value; other words are alone.
fn groups(words: &[String]) -> Vec<&[String]> {
    let mut groups = Vec::new();
    let mut rest = words;
    while !rest.is_empty() {
        let has_value = rest[0].starts_with("--") && !rest[0].contains('=');
        let value = rest.get(1).filter(|value| has_value && !value.starts_with("--"));
        let (group, others) = rest.split_at(1 + usize::from(value.is_some()));
        groups.push(group);
        rest = others;
    }
    groups
}

/// Lines under construction.
struct Lines {
    text: String,
    column: usize,
    columns: usize,
    /// The last line has no word yet.
    is_line_empty: bool,
}

impl Lines {
    /// Adds words, each in pieces that a shell joins, on one line if possible.
    fn add(&mut self, words: &[Vec<String>]) {
        let all: usize = words.iter().flatten().map(|piece| piece.len()).sum();
        self.make_room(all + words.len() - 1);
        for word in words {
            self.make_room(last_line(&word[0]));
            if !self.is_line_empty {
                self.text.push(' ');
                self.column += 1;
            }
            for (number, piece) in word.iter().enumerate() {
                if number > 0 && self.column + last_line(piece) + CONTINUATION.len() > self.columns
                {
                    // A blank before it would end the word, and so would an indent after it.
                    self.text += "\\\n";
                    self.column = 0;
                }
                self.text += piece;
                self.column =
                    if piece.contains('\n') { last_line(piece) } else { self.column + piece.len() };
            }
            self.is_line_empty = false;
        }
    }

    /// Starts a line if the last one has no room for `width` characters.
    fn make_room(&mut self, width: usize) {
        if !self.is_line_empty && self.column + 1 + width + CONTINUATION.len() > self.columns {
            let _ = write!(self.text, "{CONTINUATION}\n{INDENT}");
            self.column = INDENT.len();
            self.is_line_empty = true;
        }
    }
}

/// Quotes `word`, which has no NUL, for a shell.
fn shell_word(word: &str) -> String {
    let is_plain = |c: char| c.is_alphanumeric() || "-_./:,+=@%".contains(c);
    if !word.is_empty() && word.chars().all(is_plain) {
        return word.to_string();
    }
    shlex::try_quote(word).map_or_else(|_| word.to_string(), Into::into)
}

fn last_line(piece: &str) -> usize {
    piece.rsplit('\n').next().unwrap_or_default().len()
}

/// Quotes `word` in pieces of at most `columns` ASCII characters. A shell joins pieces that are
/// adjacent or separated by an escaped line break.
fn pieces(word: &str, columns: usize) -> Vec<String> {
    let whole = shell_word(word);
    if whole.len() <= columns && whole.chars().all(is_printed) {
        return vec![whole];
    }
    let mut pieces = Vec::new();
    let mut rest = word;
    while !rest.is_empty() {
        if let Some(others) = rest.strip_prefix('\n') {
            // A command in $() would lose it at the end of the word.
            pieces.push("'\n'".to_string());
            rest = others;
            continue;
        }
        let end = longest_prefix(rest, columns);
        pieces.push(quoted(&rest[..end]));
        rest = &rest[end..];
    }
    pieces
}

/// Length of the longest prefix of `text` without a line break that fits `columns` when quoted. It
/// ends after a separator if there is one in the second half.
fn longest_prefix(text: &str, columns: usize) -> usize {
    let ends = text.char_indices().map(|(at, c)| (at + c.len_utf8(), c));
    let ends = ends.take_while(|&(end, c)| c != '\n' && quoted(&text[..end]).len() <= columns);
    let ends: Vec<(usize, char)> = ends.collect();
    let &(last, _) = ends.last().expect("one character has room");
    if last == text.len() {
        return last;
    }
    let second_half = || ends.iter().skip(ends.len() / 2).rev();
    let after = |signs: &str| second_half().find(|(_, c)| signs.contains(*c));
    after(", ").or_else(|| after("/")).or_else(|| after("+=")).map_or(last, |&(end, _)| end)
}

/// How a character is quoted.
#[derive(Clone, Copy, PartialEq, Eq)]
enum CharKind {
    /// Itself, in quotes.
    Printed,
    Quote,
    /// Nothing that a mail may have.
    Other,
}

fn kind(c: char) -> CharKind {
    match c {
        '\'' => CharKind::Quote,
        c if is_printed(c) => CharKind::Printed,
        _ => CharKind::Other,
    }
}

/// Whether a mail may have it.
pub(super) fn is_printed(c: char) -> bool {
    c == ' ' || c.is_ascii_graphic()
}

/// `text`, which has no line break, for a shell, in ASCII.
fn quoted(text: &str) -> String {
    let whole = shell_word(text);
    if whole == text && text.is_ascii() {
        return whole;
    }
    let characters: Vec<char> = text.chars().collect();
    let mut quoted = String::new();
    for run in characters.chunk_by(|&one, &next| kind(one) == kind(next)) {
        let own: String = run.iter().collect();
        match kind(run[0]) {
            CharKind::Printed => quoted += &format!("'{own}'"),
            CharKind::Quote => quoted += &r"\'".repeat(run.len()),
            CharKind::Other => {
                let octal: String = own.bytes().map(|byte| format!("\\{byte:03o}")).collect();
                quoted += &format!("\"$(printf '{octal}')\"");
            }
        }
    }
    quoted
}

#[cfg(test)]
mod tests {
    use std::process::Command;

    use super::*;

    /// The words that a shell makes of `text`.
    fn words(text: &str) -> Vec<String> {
        let script = format!("words() {{ printf '%s\\0' \"$@\"; }}\nwords {text}");
        let output = Command::new("sh").args(["-c", &script]).output().unwrap();
        assert!(output.stderr.is_empty(), "{}", String::from_utf8_lossy(&output.stderr));
        let words = String::from_utf8(output.stdout).unwrap();
        words.split_terminator('\0').map(String::from).collect()
    }

    fn folds(arguments: &[String], columns: usize) {
        let command = arguments.iter().map(|word| shell_word(word)).collect::<Vec<_>>().join(" ");
        let folded = fold(&command, columns).unwrap();
        assert_eq!(words(&folded), arguments, "{folded}");
        for line in folded.lines() {
            assert!(line.len() <= columns && line.chars().all(is_printed), "{folded}");
            assert!(!line.ends_with(' '), "{folded}");
        }
    }

    #[test]
    fn a_short_command_stays_as_it_is() {
        let command = "filemap compare --workload random --file-size 1g";
        assert_eq!(fold(command, 75).as_deref(), Some(command));
        assert_eq!(fold("filemap 'unclosed", 75), None);
    }

    #[test]
    fn a_flag_and_its_value_stay_together() {
        let command = "filemap compare --workload random --file-size 1g --variants baseline,p1";
        let expected = "filemap compare --workload random \\\n    --file-size 1g \\\n    \
                        --variants baseline,p1";
        assert_eq!(fold(command, 36).as_deref(), Some(expected));
    }

    #[test]
    fn a_shell_reads_the_same_words() {
        let long = format!("/a/{}/b", "directory/".repeat(20));
        let sweep = format!("read_ahead_kb={}", "128,".repeat(40));
        let arguments = [
            "filemap",
            "compare",
            "it's",
            "",
            "two  words",
            " ",
            "a\nb",
            "\n",
            "end\n",
            "\ttab",
            "größe/datei",
            "$HOME `x` \"y\" \\",
            "--image",
            &long,
            "--variants",
            &sweep,
            "''''''",
        ];
        let arguments: Vec<String> = arguments.map(String::from).to_vec();
        for columns in [40, 50, 75] {
            folds(&arguments, columns);
        }
    }

    #[test]
    fn folds_arbitrary_words() {
        let seed: u64 = std::process::id().into();
        println!("seed {seed}");
        let mut state = seed | 1;
        let mut draw = |below: u64| {
            state ^= state << 13;
            state ^= state >> 7;
            state ^= state << 17;
            state % below
        };
        let signs: Vec<char> = "ab/,+= '\"\\$`\n\té€~#*-".chars().collect();
        for _ in 0..200 {
            let mut words = vec!["filemap".to_string()];
            for _ in 0..draw(8) {
                let length = [3, 20, 200][draw(3) as usize];
                let word = (0..draw(length)).map(|_| signs[draw(signs.len() as u64) as usize]);
                words.push(word.collect());
            }
            folds(&words, [40, 75][draw(2) as usize]);
        }
    }
}

//! Names of files and words of programs, as a report for readers shows them.

/// `text` on one line and without what a terminal would obey: names of files may have any bytes,
/// and may be another user's.
pub fn shown(text: &str) -> String {
    let mut line = String::with_capacity(text.len());
    for character in text.chars() {
        if is_obeyed(character) {
            line.extend(character.escape_default())
        } else {
            line.push(character)
        }
    }
    line
}

/// Control characters, breaks of lines and changes of direction.
fn is_obeyed(character: char) -> bool {
    character.is_control()
        || matches!(character, '\u{200e}' | '\u{200f}' | '\u{2028}'..='\u{202e}')
        || matches!(character, '\u{2066}'..='\u{2069}')
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn usual_names_stay_as_they_are() {
        for name in ["/data/a b", "/data/größe 'x' \"y\" \\z", "/データ"] {
            assert_eq!(shown(name), name);
        }
        assert_eq!(shown("a\tb\nc\u{1b}]0;x\u{7}"), "a\\tb\\nc\\u{1b}]0;x\\u{7}");
        assert_eq!(shown("\u{9b}1m\u{202e}x"), "\\u{9b}1m\\u{202e}x");
    }
}

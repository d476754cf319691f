//! Texts in lines that are no wider than a picture.

use crate::axis::CHARACTER;

/// `text` in lines no wider than `width`; a word that is wider is cut.
pub(super) fn lines(text: &str, size: f64, width: f64) -> Vec<String> {
    let most = (width / (size * CHARACTER)) as usize;
    let mut lines: Vec<String> = Vec::new();
    for word in text.split_whitespace() {
        let mut rest: Vec<char> = word.chars().collect();
        while !rest.is_empty() {
            let used = lines.last().map_or(most, |line| line.chars().count());
            if used > 0 && used + 1 + rest.len() > most {
                lines.push(String::new());
            }
            let line = lines.last_mut().expect("one was just there");
            if !line.is_empty() {
                line.push(' ');
            }
            let taken = rest.len().min(most);
            line.extend(rest.drain(..taken));
        }
    }
    lines
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn long_texts_take_several_lines() {
        let text = format!("elf of /{} and more", "x".repeat(100));
        let lines = lines(&text, 10.0, 310.0);
        assert_eq!(lines[0], "elf of");
        assert!(lines.iter().all(|line| line.chars().count() <= 50), "{lines:?}");
        assert_eq!(lines.join("").replace(' ', "").len(), text.replace(' ', "").len());
    }
}

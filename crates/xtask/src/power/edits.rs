//! Text that is put into a source file, around expressions that may lie in each other.

/// What is changed of one file.
#[derive(Debug, Default)]
pub struct Edits {
    all: Vec<Edit>,
}

#[derive(Debug)]
struct Edit {
    /// Where it stands: the byte, and what of several at one byte comes first.
    at: (usize, Place),
    /// The byte up to which the old text goes.
    until: usize,
    text: String,
}

/// In what order texts stand that are put to the same byte.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
enum Place {
    /// The end of a range: what was opened last is closed first.
    End(usize),
    Instead,
    /// The start of a range: what is opened first stands first.
    Start(usize),
}

impl Edits {
    /// Puts `before` and `after` around the bytes `start..end`. Of ranges that begin or end
    /// together, the outer one is given first.
    pub fn around(&mut self, (start, end): (usize, usize), before: String, after: String) {
        let number = self.all.len();
        self.all.push(Edit { at: (start, Place::Start(number)), until: start, text: before });
        let place = Place::End(usize::MAX - number);
        self.all.push(Edit { at: (end, place), until: end, text: after });
    }

    /// Puts `text` instead of the bytes `start..end`.
    pub fn instead(&mut self, (start, end): (usize, usize), text: impl Into<String>) {
        self.all.push(Edit { at: (start, Place::Instead), until: end, text: text.into() });
    }

    /// `source` with all of it.
    pub fn apply(mut self, source: &str) -> String {
        self.all.sort_by_key(|edit| edit.at);
        let (mut text, mut next) = (String::new(), 0);
        for Edit { at: (at, _), until, text: new } in &self.all {
            text += &source[next..*at];
            text += new;
            next = *until;
        }
        text + &source[next..]
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn ranges_lie_in_each_other() {
        let mut edits = Edits::default();
        edits.around((0, 5), "(".to_string(), ")".to_string());
        edits.around((0, 5), "[".to_string(), "]".to_string());
        edits.instead((2, 3), "-");
        edits.around((0, 1), "<".to_string(), ">".to_string());
        edits.around((4, 5), "{".to_string(), "}".to_string());
        assert_eq!(edits.apply("a + b;"), "([<a> - {b}]);");
    }
}

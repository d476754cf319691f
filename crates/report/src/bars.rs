//! A table with one column drawn as bars.

/// A table of bars.
#[derive(Clone, Debug, PartialEq)]
#[allow(missing_docs, reason = "their names say it")]
pub struct BarTable {
    pub title: String,
    /// How to read it; may be empty.
    pub note: String,
    /// Headings of the first column and of the columns after the bars.
    pub heads: Vec<String>,
    /// Their values have one unit; the largest bar has the full width.
    pub bars: Vec<Bar>,
}

/// A row of a table of bars.
#[derive(Clone, Debug, PartialEq)]
#[allow(missing_docs, reason = "their names say it")]
pub struct Bar {
    pub name: String,
    /// Length.
    pub value: Option<f64>,
    /// CSS class of its colour.
    pub class: &'static str,
    /// The texts of the columns after the bar.
    pub texts: Vec<String>,
}

impl BarTable {
    /// A table of `bars`, with headings of the first column and of the columns after the bars.
    pub fn new(title: impl Into<String>, heads: &[&str], bars: Vec<Bar>) -> Self {
        let heads = heads.iter().map(|head| (*head).to_string()).collect();
        BarTable { title: title.into(), note: String::new(), heads, bars }
    }

    /// Adds a note on how to read it.
    pub fn with_note(self, note: impl Into<String>) -> Self {
        BarTable { note: note.into(), ..self }
    }
}

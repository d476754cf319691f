//! A table of which one column is drawn as bars.

/// A table of bars.
#[derive(Clone, Debug, PartialEq)]
pub struct Bars {
    pub title: String,
    /// How to read it; may be empty.
    pub note: String,
    /// The headings of the first column and of those behind the bars.
    pub heads: Vec<String>,
    /// Their values have one unit: the longest takes the whole width.
    pub bars: Vec<Bar>,
}

/// A row of a table of bars.
#[derive(Clone, Debug, PartialEq)]
pub struct Bar {
    pub name: String,
    /// How long it is.
    pub value: Option<f64>,
    /// The class of its colour.
    pub class: &'static str,
    /// The value and what is said of it, in columns.
    pub texts: Vec<String>,
}

impl Bars {
    pub fn new(title: impl Into<String>, heads: &[&str], bars: Vec<Bar>) -> Self {
        let heads = heads.iter().map(|head| (*head).to_string()).collect();
        Bars { title: title.into(), note: String::new(), heads, bars }
    }

    pub fn with_note(self, note: impl Into<String>) -> Self {
        Bars { note: note.into(), ..self }
    }
}

//! A table of which one column is drawn as bars.

/// A table of bars.
#[derive(Clone, Debug, PartialEq)]
#[allow(missing_docs, reason = "their names say it")]
pub struct Bars {
    pub title: String,
    /// How to read it; may be empty.
    pub note: String,
    /// The headings of the first column and of those after the bars.
    pub heads: Vec<String>,
    /// Their values have one unit: the longest takes the whole width.
    pub bars: Vec<Bar>,
}

/// A row of a table of bars.
#[derive(Clone, Debug, PartialEq)]
#[allow(missing_docs, reason = "their names say it")]
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
    /// A table of `bars` with `heads` over the first column and over those after the bars.
    pub fn new(title: impl Into<String>, heads: &[&str], bars: Vec<Bar>) -> Self {
        let heads = heads.iter().map(|head| (*head).to_string()).collect();
        Bars { title: title.into(), note: String::new(), heads, bars }
    }

    /// The same, with how it is to be read.
    pub fn with_note(self, note: impl Into<String>) -> Self {
        Bars { note: note.into(), ..self }
    }
}

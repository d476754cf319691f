//! Where a series comes from.

use serde::{Deserialize, Serialize};

use filemap_report::Part;

/// What a series does, who posted it where, and what was measured on what.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, schemars::JsonSchema)]
pub struct Source {
    /// Title, version and date of the series.
    pub title: String,
    /// What the series changes, in one sentence without its full stop.
    pub does: String,
    /// Mailing list, date and version.
    pub posted: String,
    /// Message-ID of that version, where it is known.
    pub message_id: Option<String>,
    /// Message-ID of an earlier version, where that is known.
    pub earlier_message_id: Option<String>,
    /// What was measured, on what.
    pub setup: String,
}

impl Source {
    /// The beginning of the report on the series.
    pub fn parts(&self) -> Vec<Part> {
        vec![
            Part::Heading(self.title.clone()),
            Part::Lead(format!("What it does: {}.", self.does)),
            Part::Paragraph(format!("Posted: {}.", self.origin())),
            Part::Paragraph(format!("Measured on: {}.", self.setup)),
        ]
    }

    /// List, date and version, and how to find the message.
    fn origin(&self) -> String {
        match (&self.message_id, &self.earlier_message_id) {
            (Some(id), _) => format!("{}, Message-ID {id} ({})", self.posted, link(id)),
            (None, Some(id)) => {
                format!("{}; Message-ID of an earlier version: {id} ({})", self.posted, link(id))
            }
            (None, None) => format!("{}; its Message-ID is not recorded", self.posted),
        }
    }
}

/// Where the public archive of the kernel's lists has a message.
fn link(message_id: &str) -> String {
    format!("https://lore.kernel.org/r/{message_id}")
}

#[cfg(test)]
mod tests {
    use super::super::data::Series;

    #[test]
    fn every_series_says_what_it_does_and_where_it_was_posted() {
        let [miss, bound, exec] = ["mmap-miss", "vma-bound", "exec-order"]
            .map(|name| &Series::find(name).unwrap().source);
        for source in [miss, bound, exec] {
            assert!(!source.does.is_empty() && !source.does.ends_with('.'), "{}", source.does);
            assert!(source.posted.starts_with("linux-mm, 2026"), "{}", source.posted);
        }
        assert!(miss.origin().ends_with("[PATCH v3 0/2]; its Message-ID is not recorded"));
        assert!(bound.origin().contains("https://lore.kernel.org/r/20260422005608.342028-1-"));
        assert_eq!(exec.message_id, None);
    }
}

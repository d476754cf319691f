//! The flags that say where a report goes.

use clap::Args;
use filemap_report::Format;

use super::{Inputs, Output};
use crate::error::Error;

/// Where the report goes.
#[derive(Debug, Args)]
#[command(next_help_heading = "Output")]
pub struct OutputFlags {
    /// Format of the report: table, markdown, csv or json. CSV has rows only. Scope, command and
    /// environment are in the other formats.
    #[arg(long, value_name = "FORMAT", default_value = "table")]
    pub format: Format,
    /// Also write the report as JSON to this file. - means stdout, in place of the report.
    #[arg(long, value_name = "FILE|-", allow_hyphen_values = true)]
    pub json: Option<String>,
}

/// Where the report of a command goes that there is a page of.
#[derive(Debug, Args)]
pub struct PageFlags {
    #[command(flatten)]
    plain: OutputFlags,
    /// Also write the report as a page to look at: one HTML file with pictures, which needs no
    /// network. - means stdout, in place of the report. filemap report makes the same page later
    /// from what --json wrote.
    #[arg(long, value_name = "FILE|-", help_heading = "Output", allow_hyphen_values = true)]
    html: Option<String>,
}

impl PageFlags {
    /// Opens what they name, and what `others` do.
    ///
    /// # Errors
    /// As for [`Output::open`].
    pub fn open(
        &self,
        inputs: &Inputs,
        others: &[(&'static str, Option<&str>)],
    ) -> Result<Output, Error> {
        let page = ("--html", self.html.as_deref());
        Output::open(&self.plain, inputs, &[others, &[page]].concat())
    }

    /// Where the page goes, for a command that has none of what was asked for.
    pub fn html(&self) -> Option<&str> {
        self.html.as_deref()
    }
}

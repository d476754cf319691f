//! Flags that select the format and destination of a report.

use std::str::FromStr;

use clap::Args;
use filemap_report::Format;

use super::{Inputs, Output};
use crate::error::Error;

/// Output format of a comparison.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Form {
    /// A report.
    Report(Format),
    /// A table for a mail to a kernel mailing list.
    Letter,
}

impl Form {
    /// The name of [`Form::Letter`].
    const LETTER: &str = "kernel";
}

impl FromStr for Form {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        match text {
            Form::LETTER => Ok(Form::Letter),
            text => match text.parse() {
                Ok(format) => Ok(Form::Report(format)),
                Err(names) => Err(format!("{names}, {}", Form::LETTER)),
            },
        }
    }
}

/// Format and destination of a report.
#[derive(Debug, Args)]
#[command(next_help_heading = "Output")]
pub struct OutputFlags {
    /// Report format: table, markdown, csv or json. CSV has the table only; the other formats also
    /// have scope, command and environment.
    #[arg(long, value_name = "FORMAT", default_value = "table")]
    pub format: Format,
    #[command(flatten)]
    files: ReportFiles,
}

impl OutputFlags {
    /// Opens the outputs and `others`.
    ///
    /// # Errors
    /// As for [`Output::open`].
    pub fn open(
        &self,
        inputs: &Inputs,
        others: &[(&'static str, Option<&str>)],
    ) -> Result<Output, Error> {
        Output::open(self.format, &self.files, inputs, others)
    }
}

/// Format and destination of a comparison.
#[derive(Debug, Args)]
#[command(next_help_heading = "Output")]
pub struct ComparisonFlags {
    /// Report format: table, markdown, csv, json or kernel. CSV has the table only; the other
    /// formats also have scope, command and environment. kernel is for mail to a kernel mailing
    /// list: ASCII, 75 columns, medians and spread before and after, the kernels, the machine and
    /// the command, wrapped for pasting. Several jobs become rows of one table.
    #[arg(long, value_name = "FORMAT", default_value = "table")]
    format: Form,
    #[command(flatten)]
    files: ReportFiles,
}

impl ComparisonFlags {
    /// Opens the outputs.
    ///
    /// # Errors
    /// As for [`Output::open`].
    pub fn open(&self, inputs: &Inputs) -> Result<Output, Error> {
        let format = match self.format {
            Form::Report(format) => format,
            Form::Letter => Format::Table,
        };
        Output::open(format, &self.files, inputs, &[])
    }

    /// Whether the table for a mail is printed.
    pub fn is_letter(&self) -> bool {
        self.format == Form::Letter
    }

    /// Path of the HTML page.
    pub fn html(&self) -> Option<&str> {
        self.files.html.as_deref()
    }
}

/// Files that the report is written to in addition.
#[derive(Debug, Args)]
#[command(next_help_heading = "Output")]
pub struct ReportFiles {
    /// Also write the report as JSON to this file; - is stdout, in place of the report.
    #[arg(long, value_name = "FILE|-", allow_hyphen_values = true)]
    pub json: Option<String>,
    /// Also write the report as a self-contained HTML page with charts; - is stdout, in place of
    /// the report. filemap report renders the same page from a --json file.
    #[arg(long, value_name = "FILE|-", allow_hyphen_values = true)]
    pub html: Option<String>,
}

impl ReportFiles {
    /// Each file with its flag.
    pub fn named(&self) -> impl Iterator<Item = (&'static str, &str)> {
        let files = [("--json", self.json.as_deref()), ("--html", self.html.as_deref())];
        files.into_iter().filter_map(|(flag, path)| Some((flag, path?)))
    }
}

//! The flags that say where a report goes.

use std::str::FromStr;

use clap::Args;
use filemap_report::Format;

use super::{Inputs, Output};
use crate::error::Error;

/// What a comparison prints.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Form {
    /// Its report.
    Report(Format),
    /// Its table for a mail to a kernel list.
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

/// Where the report of a command goes.
#[derive(Debug, Args)]
#[command(next_help_heading = "Output")]
pub struct OutputFlags {
    /// Format of the report: table, markdown, csv or json. CSV has the table only. Scope, command
    /// and environment are in the other formats.
    #[arg(long, value_name = "FORMAT", default_value = "table")]
    pub format: Format,
    #[command(flatten)]
    files: ReportFiles,
}

impl OutputFlags {
    /// Opens the outputs that they name, and `others`.
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

/// Where the report of a comparison goes.
#[derive(Debug, Args)]
#[command(next_help_heading = "Output")]
pub struct ComparisonFlags {
    /// Format of the report: table, markdown, csv, json or kernel. CSV has the table only. Scope,
    /// command and environment are in the other formats. kernel is for a mail to a kernel list:
    /// ASCII in 75 columns, with medians and spread before and after, the kernels, the machine, and
    /// the command in lines that can be pasted. Several jobs are rows of one table there.
    #[arg(long, value_name = "FORMAT", default_value = "table")]
    format: Form,
    #[command(flatten)]
    files: ReportFiles,
}

impl ComparisonFlags {
    /// Opens the outputs that they name.
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

    /// Where the page goes.
    pub fn html(&self) -> Option<&str> {
        self.files.html.as_deref()
    }
}

/// Files that a report is written to as well.
#[derive(Debug, Args)]
#[command(next_help_heading = "Output")]
pub struct ReportFiles {
    /// Also write the report as JSON to this file. - means stdout, in place of the report.
    #[arg(long, value_name = "FILE|-", allow_hyphen_values = true)]
    pub json: Option<String>,
    /// Also write the report as a page: one HTML file with pictures, which needs no network. -
    /// means stdout, in place of the report. filemap report makes the same page later from the file
    /// of --json.
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

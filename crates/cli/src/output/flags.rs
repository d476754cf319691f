//! The flags that say where a report goes.

use std::str::FromStr;

use clap::Args;
use filemap_report::Format;

use super::{Inputs, Output};
use crate::error::Error;

/// What a command prints.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Form {
    /// Its report.
    Report(Format),
    /// The table of a comparison for a mail to a kernel list.
    Letter,
}

impl Form {
    /// The name of [`Form::Letter`].
    const LETTER: &str = "kernel";

    /// Refuses what only a command that compares has.
    ///
    /// # Errors
    /// As for [`Form::report`].
    pub fn check_is_report(self) -> Result<(), Error> {
        self.report().map(|_| ())
    }

    /// The format of the report of a command that compares nothing.
    ///
    /// # Errors
    /// When it is the other.
    pub fn report(self) -> Result<Format, Error> {
        match self {
            Form::Report(format) => Ok(format),
            Form::Letter => Err(Error::Usage(format!(
                "--format {} is a table of before and after, which only filemap compare has; give \
                 another format",
                Form::LETTER
            ))),
        }
    }
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

/// Where the report goes.
#[derive(Debug, Args)]
#[command(next_help_heading = "Output")]
pub struct OutputFlags {
    /// Format of the report: table, markdown, csv or json, and for compare also kernel. CSV has the
    /// table only. Scope, command and environment are in the other formats. kernel is for a mail to
    /// a kernel list: ASCII in 75 columns, with medians and spread before and after, the kernels,
    /// the machine, and the command in lines that can be pasted. Several jobs are rows of one table
    /// there.
    #[arg(long, value_name = "FORMAT", default_value = "table")]
    pub format: Form,
    /// Also write the report as JSON to this file. - means stdout, in place of the report.
    #[arg(long, value_name = "FILE|-", allow_hyphen_values = true)]
    pub json: Option<String>,
}

/// Where the report of a command goes that there is a page of.
#[derive(Debug, Args)]
pub struct PageFlags {
    #[command(flatten)]
    plain: OutputFlags,
    /// Also write the report as a page: one HTML file with pictures, which needs no
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

    /// Opens the same, for a command that compares: it can print a letter.
    ///
    /// # Errors
    /// As for [`Output::open`].
    pub fn open_compared(&self, inputs: &Inputs) -> Result<Output, Error> {
        let page = ("--html", self.html.as_deref());
        Output::open_compared(&self.plain, inputs, &[page])
    }

    /// Whether a letter is to be printed.
    pub fn is_letter(&self) -> bool {
        self.plain.format == Form::Letter
    }

    /// Where the page goes, for a command that has none of what was asked for.
    pub fn html(&self) -> Option<&str> {
        self.html.as_deref()
    }
}

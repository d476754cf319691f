//! The flags that say where a report goes.

use clap::Args;
use filemap_report::Format;

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

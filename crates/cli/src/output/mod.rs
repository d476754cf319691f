//! Output files.
//!
//! All outputs are opened before anything runs. Outputs and inputs are compared by device and
//! inode, and a command that uses a file twice is rejected. New contents are written to a temporary
//! file in the directory of the output, synced, and then moved into place, so an output has either
//! all of its old contents or all of the new ones. Pipes, devices and inherited files (`/dev/fd/N`)
//! are written to directly.

mod file;
mod flags;
mod inputs;

use filemap_report::{Format, Letter, Report};
use filemap_study::console;

use crate::error::Error;

pub use file::{OutputFile, abandon, failed_on_stdout, is_stdout};
pub use flags::{ComparisonFlags, OutputFlags, ReportFiles};
pub use inputs::{Inputs, check};

/// Makes writes beyond the file size limit (`ulimit -f`) fail. By default, SIGXFSZ kills the
/// process.
pub fn fail_at_size_limit() {
    // SAFETY: ignoring a signal installs no handler.
    unsafe { libc::signal(libc::SIGXFSZ, libc::SIG_IGN) };
}

/// Opens `path`, the value of `flag`, for a command with a single output.
///
/// # Errors
/// If it is one of `inputs`, or cannot be written to.
pub fn open_one(flag: &'static str, path: &str, inputs: &Inputs) -> Result<OutputFile, Error> {
    check(&[(flag, path)], inputs)?;
    OutputFile::open(path)
}

/// [`open_one`] for an output that is written over a long time: until it is complete it is named
/// `path.part`, which is left behind if this process is killed.
///
/// # Errors
/// As for [`open_one`]; also if `path.part` exists.
pub fn open_part(flag: &'static str, path: &str, inputs: &Inputs) -> Result<OutputFile, Error> {
    check(&[(flag, path)], inputs)?;
    OutputFile::open_part(path)
}

/// The outputs of a command, opened before any job runs so that an unwritable output does not waste
/// a run.
pub struct Output {
    format: Format,
    /// Output files in addition to the printed report, by flag.
    targets: Vec<(&'static str, OutputFile)>,
    /// Destination of the printed report, unless a file goes to stdout.
    stdout: Option<OutputFile>,
}

impl Output {
    /// Opens `files` and `others`, the further outputs of the command, each a flag and its value.
    /// Files keep their contents until the new ones are complete.
    ///
    /// # Errors
    /// If an output is one of `inputs` or another output, or cannot be written to.
    pub fn open(
        format: Format,
        files: &ReportFiles,
        inputs: &Inputs,
        others: &[(&'static str, Option<&str>)],
    ) -> Result<Self, Error> {
        let others = others.iter().filter_map(|&(flag, path)| Some((flag, path?)));
        let named: Vec<(&'static str, &str)> = files.named().chain(others).collect();
        check(&named, inputs)?;
        let mut targets = Vec::new();
        for (flag, path) in named {
            targets.push((flag, OutputFile::open(path)?));
        }
        let taken = targets.iter().any(|(_, target)| target.is_stdout());
        let stdout = if taken { None } else { Some(OutputFile::stdout()?) };
        Ok(Output { format, targets, stdout })
    }

    /// Opens `files` only, as stdout belongs to the program that is run.
    ///
    /// # Errors
    /// As for [`Output::open`].
    pub fn open_files(files: &ReportFiles, inputs: &Inputs) -> Result<Self, Error> {
        let named: Vec<(&'static str, &str)> = files.named().collect();
        check(&named, inputs)?;
        let open = |(flag, path)| Ok((flag, OutputFile::open(path)?));
        let targets = named.into_iter().map(open).collect::<Result<_, Error>>()?;
        Ok(Output { format: Format::Table, targets, stdout: None })
    }

    /// Whether there are no outputs.
    pub fn is_none(&self) -> bool {
        self.targets.is_empty() && self.stdout.is_none()
    }

    /// Takes the output of `flag`, which the command writes itself.
    pub fn take(&mut self, flag: &str) -> Option<OutputFile> {
        let at = self.targets.iter().position(|(name, _)| *name == flag)?;
        Some(self.targets.remove(at).1)
    }

    /// Whether the record is written as JSON or as an HTML page.
    pub fn writes_json_or_page(&self) -> bool {
        let is_printed = self.stdout.is_some() && self.format == Format::Json;
        is_printed || self.targets.iter().any(|(flag, _)| ["--json", "--html"].contains(flag))
    }

    /// Writes `report`.
    ///
    /// # Errors
    /// If it cannot be written, or if it reports a kernel warning.
    pub fn write(self, report: &Report) -> Result<(), Error> {
        self.write_with_page(report, report)
    }

    /// Writes `report`, with the HTML page rendered from `page`, which may have less detail.
    ///
    /// # Errors
    /// If it cannot be written, or if it reports a kernel warning.
    pub fn write_with_page(self, report: &Report, page: &Report) -> Result<(), Error> {
        let printed = report.render(self.format);
        self.write_printed(report, page, &printed)
    }

    /// Writes `report`, and prints `letter`.
    ///
    /// # Errors
    /// If it cannot be written.
    pub fn write_letter(self, report: &Report, letter: &Letter) -> Result<(), Error> {
        self.write_printed(report, report, &letter.text())
    }

    /// Writes the JSON record of `report` and the HTML page of `page`, and prints `printed`.
    fn write_printed(mut self, report: &Report, page: &Report, printed: &str) -> Result<(), Error> {
        let page = self.take("--html").map(|target| (target, page.html()));
        if let Some(target) = self.take("--json") {
            target.write(report.render(Format::Json).as_bytes())?;
        }
        if let Some((target, page)) = page {
            target.write(page.as_bytes())?;
        }
        if let Some(target) = self.stdout {
            target.write(printed.as_bytes())?;
        }
        console::check(&report.footer.environment)
    }
}

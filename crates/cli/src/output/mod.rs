//! Where reports go.
//!
//! Every output is opened before anything is run. Outputs and inputs are compared by device and
//! inode, and a command of which two are the same file is refused. New contents go into a file
//! without a name in the directory of the output, are synced, and are then put in its place. So an
//! output has all of its old contents or all of the new ones. Pipes, devices and what the caller
//! has open (`/dev/fd/N`) are written to as they are.

mod flags;
mod inputs;
mod lead;
mod replacement;
mod target;

use filemap_report::{Format, Letter, Report};
use filemap_study::console;

use crate::error::Error;

pub use flags::{ComparisonFlags, OutputFlags, ReportFiles};
pub use inputs::{Inputs, check_files, check_only, is_stdout};
pub use replacement::abandon;
pub use target::{Target, failed_on_stdout};

/// Makes a write beyond the limit of a file's size (`ulimit -f`) an error. By itself the kernel
/// ends a program that tries.
pub fn fail_at_size_limit() {
    // SAFETY: ignoring a signal runs no code of ours.
    unsafe { libc::signal(libc::SIGXFSZ, libc::SIG_IGN) };
}

/// Opens `path`, which `flag` names, for a command that writes nothing else.
///
/// # Errors
/// When it is one of `inputs` or stdout by another name, or cannot be written to.
pub fn open_one(flag: &'static str, path: &str, inputs: &Inputs) -> Result<Target, Error> {
    check_only(flag, path, inputs)?;
    Target::open(path)
}

/// The same for an output that is written over a long time: what there is of it lies beside `path`
/// in `path.part` until it is whole, and stays there where this process is killed.
///
/// # Errors
/// As for [`open_one`]; when there is a part already.
pub fn open_part(flag: &'static str, path: &str, inputs: &Inputs) -> Result<Target, Error> {
    check_only(flag, path, inputs)?;
    Target::open_part(path)
}

/// The outputs of a command, opened before any job runs: one that cannot be written is refused
/// before work is lost.
pub struct Output {
    format: Format,
    /// Files beside the printed report, by the flags that name them.
    targets: Vec<(&'static str, Target)>,
    /// Where the report itself goes, unless a file takes stdout.
    stdout: Option<Target>,
}

impl Output {
    /// Opens `files` and `others`, the further outputs of the command: each a flag and its value.
    /// A file keeps its contents until all of the new ones are written.
    ///
    /// # Errors
    /// When an output is one of `inputs` or another output, or cannot be written to.
    pub fn open(
        format: Format,
        files: &ReportFiles,
        inputs: &Inputs,
        others: &[(&'static str, Option<&str>)],
    ) -> Result<Self, Error> {
        let others = others.iter().filter_map(|&(flag, path)| Some((flag, path?)));
        let named: Vec<(&'static str, &str)> = files.named().chain(others).collect();
        inputs::check(&named, inputs)?;
        let mut targets = Vec::new();
        for (flag, path) in named {
            targets.push((flag, Target::open(path)?));
        }
        let taken = targets.iter().any(|(_, target)| target.is_stdout());
        let stdout = if taken { None } else { Some(Target::stdout()?) };
        Ok(Output { format, targets, stdout })
    }

    /// Opens `files` only: stdout is that of a program.
    ///
    /// # Errors
    /// As for [`Output::open`].
    pub fn open_files(files: &ReportFiles, inputs: &Inputs) -> Result<Self, Error> {
        let named: Vec<(&'static str, &str)> = files.named().collect();
        check_files(&named, inputs)?;
        let open = |(flag, path)| Ok((flag, Target::open(path)?));
        let targets = named.into_iter().map(open).collect::<Result<_, Error>>()?;
        Ok(Output { format: Format::Table, targets, stdout: None })
    }

    /// Whether nothing is written.
    pub fn is_none(&self) -> bool {
        self.targets.is_empty() && self.stdout.is_none()
    }

    /// What `flag` names, for the command to write.
    pub fn take(&mut self, flag: &str) -> Option<Target> {
        let at = self.targets.iter().position(|(name, _)| *name == flag)?;
        Some(self.targets.remove(at).1)
    }

    /// Whether the record goes anywhere: as JSON, or as a page.
    pub fn writes_json_or_page(&self) -> bool {
        let is_printed = self.stdout.is_some() && self.format == Format::Json;
        is_printed || self.targets.iter().any(|(flag, _)| ["--json", "--html"].contains(flag))
    }

    /// Writes `report`.
    ///
    /// # Errors
    /// When it cannot be written, or says that a kernel warned of itself.
    pub fn write(self, report: &Report) -> Result<(), Error> {
        self.write_with_page(report, report)
    }

    /// Writes `report`, with the page of `page`, which may have less detail.
    ///
    /// # Errors
    /// When it cannot be written, or says that a kernel warned of itself.
    pub fn write_with_page(self, report: &Report, page: &Report) -> Result<(), Error> {
        let printed = report.render(self.format);
        self.write_printed(report, page, &printed)
    }

    /// Writes `report`, and prints `letter`.
    ///
    /// # Errors
    /// When it cannot be written.
    pub fn write_letter(self, report: &Report, letter: &Letter) -> Result<(), Error> {
        self.write_printed(report, report, &letter.text())
    }

    /// Writes the record of `report` and the page of `page`, and prints `printed`.
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

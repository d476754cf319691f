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
use filemap_study::{console, html};

use crate::error::Error;

pub use flags::{Form, OutputFlags, PageFlags};
pub use inputs::{Inputs, check_only, is_stdout};
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

/// The places that a report goes to, open before the jobs are run: what cannot be written is
/// known at once, and nothing is written over what the command reads.
pub struct Output {
    form: Form,
    /// What is written beside it, by the flag that names it.
    targets: Vec<(&'static str, Target)>,
    /// Where the report itself goes, unless something else goes to stdout.
    stdout: Option<Target>,
}

impl Output {
    /// Opens what `flags` name, and what `others` do: the other outputs of the command, each a
    /// flag and its value. A file keeps what is in it until the whole of the new is written.
    ///
    /// # Errors
    /// When an output is one of `inputs` or another output, or cannot be written to, and where the
    /// command has none of what is to be printed.
    pub fn open(
        flags: &OutputFlags,
        inputs: &Inputs,
        others: &[(&'static str, Option<&str>)],
    ) -> Result<Self, Error> {
        flags.format.check_is_report()?;
        Output::open_compared(flags, inputs, others)
    }

    /// Opens the same, for a command that has a letter too.
    fn open_compared(
        flags: &OutputFlags,
        inputs: &Inputs,
        others: &[(&'static str, Option<&str>)],
    ) -> Result<Self, Error> {
        let mut named: Vec<(&'static str, &str)> = Vec::new();
        named.extend(flags.json.as_deref().map(|path| ("--json", path)));
        named.extend(others.iter().filter_map(|&(flag, path)| Some((flag, path?))));
        inputs::check(&named, inputs)?;
        let mut targets = Vec::new();
        for (flag, path) in named {
            targets.push((flag, Target::open(path)?));
        }
        let taken = targets.iter().any(|(_, target)| target.is_stdout());
        let stdout = if taken { None } else { Some(Target::stdout()?) };
        Ok(Output { form: flags.format, targets, stdout })
    }

    /// What `flag` names, for the command to write.
    pub fn take(&mut self, flag: &str) -> Option<Target> {
        let at = self.targets.iter().position(|(name, _)| *name == flag)?;
        Some(self.targets.remove(at).1)
    }

    /// Whether the record goes anywhere: as JSON, or as a page.
    pub fn writes_json_or_page(&self) -> bool {
        let is_printed = self.stdout.is_some() && self.form == Form::Report(Format::Json);
        is_printed || self.targets.iter().any(|(flag, _)| ["--json", "--html"].contains(flag))
    }

    /// Writes `report`.
    ///
    /// # Errors
    /// When it cannot be written, or says that a kernel warned of itself.
    pub fn write(self, report: &Report) -> Result<(), Error> {
        let format = self.form.report()?;
        self.write_both(report, &report.render(format))
    }

    /// Writes `report`, of which this is the letter, which is printed.
    ///
    /// # Errors
    /// When it cannot be written.
    pub fn write_letter(self, report: &Report, letter: &Letter) -> Result<(), Error> {
        self.write_both(report, &letter.text())
    }

    /// Writes `report` where its record and its page go, and prints `printed`.
    fn write_both(mut self, report: &Report, printed: &str) -> Result<(), Error> {
        let page = match self.take("--html") {
            Some(target) => Some((target, html::page(&report.record_json)?)),
            None => None,
        };
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

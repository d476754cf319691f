//! `cargo xtask tour`: runs every `filemap` command in README.md and the guides, in a directory
//! with the files that they name. A command passes when it succeeds, or exits with 4 and says in
//! one line what this machine lacks.

use std::fmt;
use std::fs::{self, File};
use std::io::Write;
use std::os::unix::process::ExitStatusExt;
use std::path::{Path, PathBuf};
use std::process::{Command, ExitStatus, Stdio};
use std::time::{Duration, Instant};

use anyhow::{Context, Result, ensure};

use crate::install;
use crate::markdown;
use crate::repository::{Repository, root};
use crate::shell;

/// A command that takes longer has failed. On an idle machine none takes a tenth of it.
const TIMEOUT: Duration = Duration::from_secs(300);

/// Exit code for "cannot run here".
const CANNOT_RUN: i32 = 4;

/// The documents, in order.
const DOCUMENTS: [&str; 4] =
    ["README.md", "docs/guide/patch.md", "docs/guide/program.md", "docs/guide/job.md"];

/// Name and size of the data file that the guide's program reads.
const DATA_FILE: (&str, usize) = ("data.db", 64 << 20);

/// How a command of the tour ended.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Verdict {
    /// It succeeded.
    Works,
    /// It cannot run here, with its message.
    CannotRun(String),
    /// It failed, with the reason.
    Failed(String),
}

impl fmt::Display for Verdict {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Verdict::Works => f.write_str("works"),
            Verdict::CannotRun(line) => write!(f, "cannot run here: {line}"),
            Verdict::Failed(reason) => write!(f, "FAILED: {reason}"),
        }
    }
}

/// Runs the commands and prints a line for each. Returns whether all of them passed.
///
/// # Errors
/// When the tour cannot be prepared, or a document is missing or shows no command.
pub fn run() -> Result<bool> {
    let repository = Repository::read()?;
    let programs = build()?;
    shell::end_on_signals();
    let (mut passed, mut number, began) = (true, 0, Instant::now());
    for document in DOCUMENTS {
        let text = repository.text(document).with_context(|| format!("{document} is missing"))?;
        let commands = commands(text);
        ensure!(!commands.is_empty(), "{document} shows no filemap command in a block of sh");
        let place = Directories::prepare(&root().join("target/tour"), text)?;
        for (line, command) in &commands {
            let start = Instant::now();
            let verdict = place.run(command, &programs, TIMEOUT)?;
            passed &= !matches!(verdict, Verdict::Failed(_));
            let seconds = start.elapsed().as_secs_f64();
            println!("{document}:{line}: {seconds:.1} s: {command}: {verdict}");
            if matches!(verdict, Verdict::Failed(_)) {
                place.print_output();
            }
        }
        number += commands.len();
    }
    println!("{number} commands in {:.0} s", began.elapsed().as_secs_f64());
    Ok(passed)
}

/// The `filemap` commands in a document, with their line numbers.
fn commands(document: &str) -> Vec<(usize, String)> {
    markdown::join_commands(markdown::code_lines(document, "sh"))
        .into_iter()
        .filter_map(|(line, text)| Some((line, markdown::filemap_command(&text)?)))
        .collect()
}

/// Builds `filemap` and returns the directory of the binary.
fn build() -> Result<PathBuf> {
    let binary = install::build("release")?;
    Ok(binary.parent().context("the binary lies in a directory")?.to_path_buf())
}

/// The directories in which commands run, and the files with their output.
struct Directories {
    work: PathBuf,
    home: PathBuf,
    state: PathBuf,
    stdout: PathBuf,
    stderr: PathBuf,
}

impl Directories {
    /// Creates `directory` with the files that the commands name. `state` is kept: it has the
    /// journal of what a killed command left on the machine.
    fn prepare(directory: &Path, document: &str) -> Result<Directories> {
        let place = Directories {
            work: directory.join("work"),
            home: directory.join("home"),
            state: directory.join("state"),
            stdout: directory.join("stdout"),
            stderr: directory.join("stderr"),
        };
        for path in [&place.work, &place.home] {
            let context = || format!("{} cannot be made", path.display());
            if path.exists() {
                fs::remove_dir_all(path).with_context(context)?;
            }
            fs::create_dir_all(path).with_context(context)?;
        }
        place.write_files(document)?;
        Ok(place)
    }

    fn write_files(&self, document: &str) -> Result<()> {
        let pages: String = (0..2000).map(|i| format!("{}\n", i * 7919 % 200_000)).collect();
        for (name, text) in
            markdown::shown_files(document).into_iter().chain([("pages.txt", pages)])
        {
            let path = self.work.join(name);
            fs::write(&path, text).with_context(|| format!("{} not written", path.display()))?;
        }
        let (name, bytes) = DATA_FILE;
        let path = self.work.join(name);
        let data: Vec<u8> = (0..bytes).map(|i| (i / 4096) as u8).collect();
        let write = || {
            let mut file = File::create(&path)?;
            file.write_all(&data)?;
            file.sync_all()
        };
        write().with_context(|| format!("{} not written", path.display()))
    }

    /// Runs `command` in a shell with `programs` first in PATH.
    fn run(&self, command: &str, programs: &Path, timeout: Duration) -> Result<Verdict> {
        let mut path = programs.as_os_str().to_os_string();
        path.push(":");
        path.push(std::env::var_os("PATH").unwrap_or_default());
        let create = |path: &Path| {
            File::create(path).with_context(|| format!("{} not written", path.display()))
        };
        let mut shell = Command::new("sh");
        shell
            .args(["-c", command])
            .current_dir(&self.work)
            .env("PATH", path)
            // Keeps the user's calibrated profile out of it, and theirs unchanged.
            .env("HOME", &self.home)
            .env("FILEMAP_STATE", &self.state)
            .stdin(Stdio::null())
            .stdout(create(&self.stdout)?)
            .stderr(create(&self.stderr)?);
        for variable in ["XDG_CONFIG_HOME", "XDG_DATA_HOME", "XDG_STATE_HOME"] {
            shell.env_remove(variable);
        }
        let status = shell::wait(&mut shell, timeout)?;
        let stderr = fs::read(&self.stderr).context("the standard error cannot be read")?;
        Ok(judge(status, &String::from_utf8_lossy(&stderr)))
    }

    /// Prints the last lines of the last command's output, for the log of CI.
    fn print_output(&self) {
        [&self.stdout, &self.stderr].into_iter().for_each(|path| shell::print_tail(path));
    }
}

/// The verdict on a command with this exit status (`None` if it timed out) and standard error.
fn judge(status: Option<ExitStatus>, stderr: &str) -> Verdict {
    let lines: Vec<&str> = stderr.lines().collect();
    let first = lines.first().copied().unwrap_or("it said nothing");
    let Some(status) = status else {
        return Verdict::Failed(format!("not done after {} s", TIMEOUT.as_secs()));
    };
    if stderr.contains("panicked at") {
        return Verdict::Failed(format!("it panicked: {first}"));
    }
    if lines.len() > 1 {
        return Verdict::Failed(format!("{} lines on stderr, first: {first}", lines.len()));
    }
    match status.code() {
        Some(0) => Verdict::Works,
        Some(CANNOT_RUN) if lines.len() == 1 => Verdict::CannotRun(first.to_string()),
        Some(code) => Verdict::Failed(format!("exit code {code}: {first}")),
        None => Verdict::Failed(format!("killed by signal {}", status.signal().unwrap_or(0))),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn exited(code: i32) -> Option<ExitStatus> {
        Some(ExitStatus::from_raw(code << 8))
    }

    fn fails(status: Option<ExitStatus>, stderr: &str) -> bool {
        matches!(judge(status, stderr), Verdict::Failed(_))
    }

    #[test]
    fn judges_exit_status_and_standard_error() {
        assert_eq!(judge(exited(0), ""), Verdict::Works);
        assert_eq!(judge(exited(0), "filemap: a note\n"), Verdict::Works);
        let missing = "filemap: fio is not installed";
        assert_eq!(judge(exited(4), missing), Verdict::CannotRun(missing.to_string()));
        assert!(fails(exited(4), ""), "an exit code without a reason");
        assert!(fails(exited(4), "one\ntwo\n"));
        assert!(fails(exited(0), "one\ntwo\n"));
        assert!(fails(exited(0), "thread 'main' panicked at x.rs"));
        for code in [1, 2, 101, 127, 130] {
            assert!(fails(exited(code), "filemap: so"), "{code}");
        }
        assert!(fails(Some(ExitStatus::from_raw(9)), ""), "a signal");
        assert!(fails(None, ""), "too late");
    }

    #[test]
    fn runs_commands_with_their_files_and_a_timeout() {
        let directory = std::env::temp_dir().join(format!("tour-{}", std::process::id()));
        let document = "```toml\n# job.toml\nfile_size = \"1m\"\n```\n```toml\n# of a job\n```\n";
        let place = Directories::prepare(&directory, document).unwrap();
        let run = |command| place.run(command, Path::new("/nowhere"), Duration::from_secs(1));
        let works = run("cmp -s job.toml job.toml && test -s data.db && head -1 pages.txt");
        assert_eq!(works.unwrap(), Verdict::Works);
        let lacks = run("echo missing >&2; exit 4");
        assert_eq!(lacks.unwrap(), Verdict::CannotRun("missing".to_string()));
        assert!(matches!(run("nosuchcommand").unwrap(), Verdict::Failed(_)));
        assert!(matches!(run("sleep 60").unwrap(), Verdict::Failed(_)));
        fs::remove_dir_all(&directory).unwrap();
    }
}

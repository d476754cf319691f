//! Runs every `filemap` command that README.md and the guides show, as a reader would: in a
//! directory that holds the files that the commands name, on whatever this machine has.
//!
//! A command passes when it succeeds, or when it says in one line what this machine lacks.

use std::fmt;
use std::fs::{self, File};
use std::io::Write;
use std::os::unix::process::ExitStatusExt;
use std::path::{Path, PathBuf};
use std::process::{Command, ExitStatus, Stdio};
use std::time::{Duration, Instant};

use anyhow::{Context, Result, ensure};

use crate::blocks;
use crate::install;
use crate::repository::{Repository, root};
use crate::shell;

/// A command that takes longer has failed. None should take a tenth of this on an idle machine.
const TIME_LIMIT: Duration = Duration::from_secs(300);

/// The exit code for "cannot run here".
const LACKING: i32 = 4;

/// What is toured, in order.
const DOCUMENTS: [&str; 4] =
    ["README.md", "docs/guide/patch.md", "docs/guide/program.md", "docs/guide/job.md"];

/// The data file that the program of the guide reads, and its bytes.
const DATA: (&str, usize) = ("data.db", 64 << 20);

/// How a command of the tour ended.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Verdict {
    /// It did its work.
    Works,
    /// It said in this line what the machine lacks.
    Lacking(String),
    /// It ended in another way, of which this tells.
    Failed(String),
}

impl fmt::Display for Verdict {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Verdict::Works => f.write_str("works"),
            Verdict::Lacking(line) => write!(f, "cannot run here: {line}"),
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
    let programs = built()?;
    shell::end_on_signals();
    let (mut passed, mut number, began) = (true, 0, Instant::now());
    for document in DOCUMENTS {
        let text = repository.text(document).with_context(|| format!("{document} is missing"))?;
        let commands = commands(text);
        ensure!(!commands.is_empty(), "{document} shows no filemap command in a block of sh");
        let place = Directories::prepare(&root().join("target/tour"), text)?;
        for (line, command) in &commands {
            let start = Instant::now();
            let verdict = place.run(command, &programs, TIME_LIMIT)?;
            passed &= !matches!(verdict, Verdict::Failed(_));
            let seconds = start.elapsed().as_secs_f64();
            println!("{document}:{line}: {seconds:.1} s: {command}: {verdict}");
            if matches!(verdict, Verdict::Failed(_)) {
                place.show_output();
            }
        }
        number += commands.len();
    }
    println!("{number} commands in {:.0} s", began.elapsed().as_secs_f64());
    Ok(passed)
}

/// The `filemap` commands of a document, with the numbers of their lines.
fn commands(document: &str) -> Vec<(usize, String)> {
    blocks::commands(blocks::lines(document, "sh"))
        .into_iter()
        .filter_map(|(line, text)| Some((line, blocks::filemap_command(&text)?)))
        .collect()
}

/// Builds `filemap` and returns the directory that it is in.
fn built() -> Result<PathBuf> {
    let built = install::built("release")?;
    Ok(built.parent().context("the binary lies in a directory")?.to_path_buf())
}

/// The directory in which the commands run.
struct Directories {
    work: PathBuf,
    home: PathBuf,
    state: PathBuf,
    printed: PathBuf,
    said: PathBuf,
}

impl Directories {
    /// Makes `directory` anew, with the files that the commands name. What a command that was
    /// killed left on the machine is written down in `state`, which therefore stays.
    fn prepare(directory: &Path, document: &str) -> Result<Directories> {
        let place = Directories {
            work: directory.join("work"),
            home: directory.join("home"),
            state: directory.join("state"),
            printed: directory.join("stdout"),
            said: directory.join("stderr"),
        };
        for made in [&place.work, &place.home] {
            let shown = || format!("{} cannot be made", made.display());
            if made.exists() {
                fs::remove_dir_all(made).with_context(shown)?;
            }
            fs::create_dir_all(made).with_context(shown)?;
        }
        place.write_files(document)?;
        Ok(place)
    }

    fn write_files(&self, document: &str) -> Result<()> {
        let pages: String = (0..2000).map(|i| format!("{}\n", i * 7919 % 200_000)).collect();
        for (name, text) in blocks::files(document).into_iter().chain([("pages.txt", pages)]) {
            let path = self.work.join(name);
            fs::write(&path, text).with_context(|| format!("{} not written", path.display()))?;
        }
        let (name, bytes) = DATA;
        let path = self.work.join(name);
        let data: Vec<u8> = (0..bytes).map(|i| (i / 4096) as u8).collect();
        let write = || {
            let mut file = File::create(&path)?;
            file.write_all(&data)?;
            file.sync_all()
        };
        write().with_context(|| format!("{} not written", path.display()))
    }

    /// Runs `command` in a shell that finds `filemap` in `programs`.
    fn run(&self, command: &str, programs: &Path, limit: Duration) -> Result<Verdict> {
        let others = std::env::var_os("PATH").unwrap_or_default();
        let mut path = programs.as_os_str().to_os_string();
        path.push(":");
        path.push(others);
        let output = |path: &Path| {
            File::create(path).with_context(|| format!("{} not written", path.display()))
        };
        let mut shell = Command::new("sh");
        shell
            .args(["-c", command])
            .current_dir(&self.work)
            .env("PATH", path)
            // A profile that a command keeps for its user must not stay with this one.
            .env("HOME", &self.home)
            .env("FILEMAP_STATE", &self.state)
            .stdin(Stdio::null())
            .stdout(output(&self.printed)?)
            .stderr(output(&self.said)?);
        for of_the_user in ["XDG_CONFIG_HOME", "XDG_DATA_HOME", "XDG_STATE_HOME"] {
            shell.env_remove(of_the_user);
        }
        let ended = shell::wait(&mut shell, limit)?;
        let said = fs::read(&self.said).context("what the command said cannot be read")?;
        Ok(judge(ended, &String::from_utf8_lossy(&said)))
    }

    /// Prints the end of what the last command wrote, for somebody who reads the log of CI.
    fn show_output(&self) {
        [&self.printed, &self.said].into_iter().for_each(|path| shell::show_end(path));
    }
}

/// The verdict on a command that ended so, `None` for not in time, and wrote `said` to stderr.
fn judge(ended: Option<ExitStatus>, said: &str) -> Verdict {
    let lines: Vec<&str> = said.lines().collect();
    let first = lines.first().copied().unwrap_or("it said nothing");
    let Some(status) = ended else {
        return Verdict::Failed(format!("not done after {} s", TIME_LIMIT.as_secs()));
    };
    if said.contains("panicked at") {
        return Verdict::Failed(format!("it panicked: {first}"));
    }
    if lines.len() > 1 {
        return Verdict::Failed(format!("{} lines on stderr, first: {first}", lines.len()));
    }
    match status.code() {
        Some(0) => Verdict::Works,
        Some(LACKING) if lines.len() == 1 => Verdict::Lacking(first.to_string()),
        Some(code) => Verdict::Failed(format!("exit code {code}: {first}")),
        None => Verdict::Failed(format!("killed by signal {}", status.signal().unwrap_or(0))),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn ended(code: i32) -> Option<ExitStatus> {
        Some(ExitStatus::from_raw(code << 8))
    }

    fn fails(ended: Option<ExitStatus>, said: &str) -> bool {
        matches!(judge(ended, said), Verdict::Failed(_))
    }

    #[test]
    fn a_command_works_or_says_what_is_missing() {
        assert_eq!(judge(ended(0), ""), Verdict::Works);
        assert_eq!(judge(ended(0), "filemap: a note\n"), Verdict::Works);
        let missing = "filemap: fio is not installed";
        assert_eq!(judge(ended(4), missing), Verdict::Lacking(missing.to_string()));
        assert!(fails(ended(4), ""), "an exit code without a reason");
        assert!(fails(ended(4), "one\ntwo\n"));
        assert!(fails(ended(0), "one\ntwo\n"));
        assert!(fails(ended(0), "thread 'main' panicked at x.rs"));
        for code in [1, 2, 101, 127, 130] {
            assert!(fails(ended(code), "filemap: so"), "{code}");
        }
        assert!(fails(Some(ExitStatus::from_raw(9)), ""), "a signal");
        assert!(fails(None, ""), "too late");
    }

    #[test]
    fn commands_run_beside_their_files_and_end_in_time() {
        let directory = std::env::temp_dir().join(format!("tour-{}", std::process::id()));
        let document = "```toml\n# job.toml\nfile_size = \"1m\"\n```\n```toml\n# of a job\n```\n";
        let place = Directories::prepare(&directory, document).unwrap();
        let run = |command| place.run(command, Path::new("/nowhere"), Duration::from_secs(1));
        let works = run("cmp -s job.toml job.toml && test -s data.db && head -1 pages.txt");
        assert_eq!(works.unwrap(), Verdict::Works);
        let lacks = run("echo missing >&2; exit 4");
        assert_eq!(lacks.unwrap(), Verdict::Lacking("missing".to_string()));
        assert!(matches!(run("nosuchcommand").unwrap(), Verdict::Failed(_)));
        assert!(matches!(run("sleep 60").unwrap(), Verdict::Failed(_)));
        fs::remove_dir_all(&directory).unwrap();
    }
}

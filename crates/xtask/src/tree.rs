//! A copy of this source tree in which a document is tried out.

use std::fs::{self, File};
use std::path::{Path, PathBuf, absolute};
use std::process::{Command, Stdio};
use std::time::{Duration, Instant};

use anyhow::{Context, Result, ensure};

use crate::repository::{Repository, root};
use crate::shell;

/// A command that takes longer has failed. A build takes a tenth of it on an idle machine.
const TIMEOUT: Duration = Duration::from_secs(3600);

/// A copy of the tree; removed on drop, and when a signal ends this program.
pub struct Tree {
    directory: PathBuf,
}

impl Tree {
    /// Copies the files of `repository` below `directory`, which is replaced.
    ///
    /// # Errors
    /// When a file cannot be written.
    pub fn copy(repository: &Repository, directory: &Path) -> Result<Tree> {
        let mut cleanup = shell::cleanup();
        // A run that was killed has left its copy.
        let _ = fs::remove_dir_all(directory);
        cleanup.directory = Some(directory.to_path_buf());
        let tree = Tree { directory: directory.to_path_buf() };
        let copied = repository.files.iter().try_for_each(|file| {
            let path = tree.root().join(&file.path);
            let write = || {
                fs::create_dir_all(path.parent().expect("a file lies in a directory"))?;
                fs::write(&path, &file.text)
            };
            write().with_context(|| format!("{} not written", path.display()))
        });
        // Dropping the tree on an error takes this lock.
        drop(cleanup);
        copied.map(|()| tree)
    }

    /// The root of the copied tree.
    pub fn root(&self) -> PathBuf {
        self.directory.join("tree")
    }

    /// Applies a diff in the format of `git diff`.
    ///
    /// # Errors
    /// When it does not apply.
    pub fn apply(&self, diff: &str) -> Result<()> {
        fs::write(self.directory.join("diff"), diff).context("the diff is not written")?;
        self.run("git apply ../diff").context("it does not apply")?;
        Ok(())
    }

    /// Runs `command` in the tree and returns its standard output.
    ///
    /// # Errors
    /// When it fails or takes longer than an hour.
    pub fn run(&self, command: &str) -> Result<String> {
        let create = |name: &str| {
            let path = self.directory.join(name);
            File::create(&path).with_context(|| format!("{} not written", path.display()))
        };
        let target = std::env::var_os("CARGO_TARGET_DIR");
        let mut shell = Command::new("sh");
        shell
            .args(["-c", command])
            .current_dir(self.root())
            // Dependencies are built once for both trees; the final artifacts are kept apart.
            // Cargo before 1.91 ignores the first variable and builds them twice.
            .env("CARGO_BUILD_BUILD_DIR", absolute(target.unwrap_or(root().join("target").into()))?)
            .env("CARGO_TARGET_DIR", self.directory.join("target"))
            .env("CARGO_TERM_COLOR", "never")
            // Otherwise git takes the tree for a part of the repository around it.
            .env("GIT_CEILING_DIRECTORIES", fs::canonicalize(&self.directory)?)
            // Documents show the built-in machine profile, not the calibrated one of a user.
            .env("XDG_STATE_HOME", "/dev/null/no-state")
            .stdin(Stdio::null())
            .stdout(create("stdout")?)
            .stderr(create("stderr")?);
        let status = shell::wait(&mut shell, TIMEOUT)?;
        let status = status.with_context(|| format!("not done after {} s", TIMEOUT.as_secs()))?;
        ensure!(status.success(), "it failed ({status})");
        self.stdout()
    }

    /// The standard output of the last command.
    ///
    /// # Errors
    /// When it is no text or cannot be read.
    pub fn stdout(&self) -> Result<String> {
        fs::read_to_string(self.directory.join("stdout")).context("its output cannot be read")
    }
}

impl Drop for Tree {
    fn drop(&mut self) {
        let mut cleanup = shell::cleanup();
        let _ = fs::remove_dir_all(&self.directory);
        cleanup.directory = None;
    }
}

/// Takes numbered steps in a copy of the tree until one fails, and prints a line for each: where it
/// is written and its name, which `steps` lists. Returns whether all succeeded.
///
/// # Errors
/// When the tree cannot be copied.
pub fn follow(
    repository: &Repository,
    steps: impl ExactSizeIterator<Item = (String, String)>,
    take: impl Fn(&Tree, usize) -> Result<()>,
) -> Result<bool> {
    shell::end_on_signals();
    let tree = Tree::copy(repository, &root().join("target/tutorial"))?;
    let (count, began) = (steps.len(), Instant::now());
    for (number, (place, name)) in steps.enumerate() {
        let start = Instant::now();
        let result = take(&tree, number);
        let seconds = start.elapsed().as_secs_f64();
        let verdict = result.as_ref().err().map_or("ok".to_string(), |e| format!("{e:#}"));
        println!("{place}: {seconds:.1} s: {name}: {verdict}");
        if result.is_err() {
            for output in ["stdout", "stderr"] {
                shell::print_tail(&tree.directory.join(output));
            }
            println!("{} of {count} steps were not taken", count - number - 1);
            return Ok(false);
        }
    }
    println!("{count} steps in {:.0} s", began.elapsed().as_secs_f64());
    Ok(true)
}

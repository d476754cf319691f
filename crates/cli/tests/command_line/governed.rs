//! A directory with a copy of the command, and programs to govern.

use std::fs;
use std::os::unix::fs::symlink;
use std::path::PathBuf;
use std::process::{Command, Stdio};

use crate::session::processes;
use crate::{Scratch, without_profile};

/// Size of the file that is read: above the minimum for governing.
const DATA_BYTES: usize = 32 << 20;

/// The command, with its own state directory.
pub struct Place {
    pub scratch: Scratch,
}

impl Place {
    pub fn new(test: &str) -> Place {
        let scratch = Scratch::new(test);
        let (built, link) = (env!("CARGO_BIN_EXE_filemap"), scratch.path("filemap"));
        // Users may not link to files of root, and links do not cross mounts.
        let linked = fs::hard_link(built, &link).or_else(|_| symlink(built, &link));
        linked.expect("the target directory can be written");
        fs::create_dir(scratch.path("run")).expect("the target directory can be written");
        Place { scratch }
    }

    /// The command with the words of `args`, and `script` for a shell to govern.
    pub fn script(&self, args: &str, script: &str) -> Command {
        let mut command = self.filemap(&format!("{args} -- sh -c"));
        command.arg(script);
        command
    }

    /// `filemap govern` with the words of `args`.
    pub fn filemap(&self, args: &str) -> Command {
        self.command("govern", args)
    }

    /// The command `name` with the words of `args`.
    pub fn command(&self, name: &str, args: &str) -> Command {
        let mut command = without_profile(&self.scratch.path("filemap"));
        command.arg(name).args(args.split_whitespace()).stdin(Stdio::null());
        command.env("XDG_RUNTIME_DIR", self.scratch.path("run"));
        command.env("FILEMAP_STATE", self.scratch.path("state"));
        command
    }

    /// Current contents of the state directory.
    pub fn statistics(&self) -> Vec<PathBuf> {
        let entries = fs::read_dir(self.scratch.path("run/filemap-govern"));
        entries.into_iter().flatten().map(|entry| entry.expect("it is ours").path()).collect()
    }

    /// The program of the source `name` beside this one.
    pub fn compiled(&self, name: &str) -> String {
        let program = self.scratch.path(name);
        let directory = concat!(env!("CARGO_MANIFEST_DIR"), "/tests/command_line");
        let source = format!("{directory}/{name}.c");
        let mut compiler = Command::new("cc");
        let compiled = compiler.args(["-O1", "-pthread", "-o", &program, &source]).status();
        assert!(compiled.expect("there is a C compiler").success());
        program
    }

    /// The program that reads at random, and its file.
    pub fn lookups(&self) -> [String; 2] {
        let program = self.compiled("lookups");
        let bytes: Vec<u8> = (0..DATA_BYTES).map(|at| (at / 4096 % 251) as u8).collect();
        let data = self.scratch.file("data", bytes);
        // Only clean pages can be dropped from the page cache.
        fs::File::open(&data).and_then(|file| file.sync_all()).expect("the disk has room");
        [program, data]
    }
}

/// Processes of this test run that sleep for `seconds` seconds.
pub fn sleeping(seconds: u32) -> Vec<u32> {
    let words = format!("sleep\0{seconds}\0");
    let sleeps = |pid: &u32| {
        fs::read(format!("/proc/{pid}/cmdline")).is_ok_and(|own| own == words.as_bytes())
    };
    processes(true).into_iter().filter(sleeps).collect()
}

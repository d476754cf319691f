//! Ensures that an output is neither an input nor another output.

use std::ffi::{OsStr, OsString};
use std::fs;
use std::io;
use std::os::fd::{AsFd, RawFd};
use std::os::unix::ffi::OsStrExt;
use std::os::unix::fs::MetadataExt;
use std::path::Path;

use super::path::{Identity, ResolvedPath};
use crate::error::Error;
use crate::job_flags::JobFlagValues;
use crate::job_input::JobInput;
use filemap_study::machine_profile;

/// The inputs of a command.
#[derive(Debug, Default)]
pub struct Inputs {
    /// Description and path of each file.
    files: Vec<(String, String)>,
    /// Directories that contain `lib/modules`.
    modules: Vec<String>,
    /// Open files of a program: description, file descriptor and identity.
    open: Vec<(&'static str, RawFd, Option<Identity>)>,
}

impl Inputs {
    /// The inputs of the job `input`, with the kernel images of `flags` and their modules.
    pub fn from_flags(flags: &JobFlagValues, input: &JobInput) -> Self {
        let mut files = Vec::new();
        let mut add = |label: String, path: &str| files.push((label, path.to_string()));
        let spec = &input.spec;
        input.path.iter().for_each(|path| add("the job file".to_string(), path));
        for file in &spec.file {
            let label = if spec.is_single_mapping() {
                "--file".to_string()
            } else {
                format!("the file '{}' of the job file", file.name)
            };
            file.path.iter().for_each(|path| add(label.clone(), path));
        }
        let of_phases = spec.thread.iter().flat_map(|thread| &thread.phase);
        for path in of_phases.filter_map(|phase| phase.accesses_file.as_ref()) {
            let is_flag = input.flags.accesses_file.is_some();
            let label = if is_flag { "--accesses-file" } else { "the accesses_file of a phase" };
            add(label.to_string(), path);
        }
        flags.image.iter().chain(&spec.image).for_each(|path| add("--image".to_string(), path));
        let modules = flags.modules.iter().chain(&spec.modules).cloned().collect();
        let mut inputs = Inputs { files, modules, open: Vec::new() };
        spec.machine.iter().for_each(|name| inputs.add_profile("--machine", name));
        inputs
    }

    /// Adds all inputs of `others`.
    pub fn extend(&mut self, others: Inputs) {
        self.files.extend(others.files);
        self.modules.extend(others.modules);
        self.open.extend(others.open);
    }

    /// Adds the file at `path`, described by `label`.
    pub fn add(&mut self, label: &str, path: &str) {
        self.files.push((label.to_string(), path.to_string()));
    }

    /// Adds the program at `path` and what it may read with these `arguments`: files named by
    /// arguments, as `data` or `if=data`, and the stdin and stderr that it inherits.
    pub fn add_program(&mut self, path: &Path, arguments: &[OsString]) {
        self.add_regular("the program", path.as_os_str());
        for argument in arguments {
            self.add_regular("an argument of the program, the file", argument);
            let value = argument.as_bytes().splitn(2, |&byte| byte == b'=').nth(1);
            value.iter().for_each(|value| {
                self.add_regular("an argument of the program, the file", OsStr::from_bytes(value));
            });
        }
        let (stdin, stderr) = (io::stdin(), io::stderr());
        self.open.extend([
            ("the program's stdin", libc::STDIN_FILENO, Identity::from_fd(stdin.as_fd())),
            ("the program's stderr", libc::STDERR_FILENO, Identity::from_fd(stderr.as_fd())),
        ]);
    }

    /// Adds `path` if it is a regular file.
    pub fn add_regular(&mut self, label: &str, path: &OsStr) {
        let is_regular = fs::metadata(path).is_ok_and(|data| data.is_file());
        let path = path.to_str().filter(|_| is_regular);
        self.files.extend(path.map(|path| (label.to_string(), path.to_string())));
    }

    /// Adds the machine profile `name`, unless it is built in.
    pub fn add_profile(&mut self, label: &str, name: &str) {
        if !machine_profile::is_built_in(name) {
            self.files.push((label.to_string(), name.to_string()));
        }
    }
}

/// Rejects `outputs`, each a flag and its value, that are an input or another output. The report
/// goes to stdout. Nothing is opened, created or changed.
pub fn check(outputs: &[(&'static str, &str)], inputs: &Inputs) -> Result<(), Error> {
    check_places(&places(outputs)?, inputs)
}

/// [`check`] for a command whose report does not go to stdout.
pub fn check_files(outputs: &[(&'static str, &str)], inputs: &Inputs) -> Result<(), Error> {
    check_places(&places(outputs)?[1..], inputs)
}

/// [`check_files`] for a single output.
pub fn check_only(flag: &'static str, path: &str, inputs: &Inputs) -> Result<(), Error> {
    check_files(&[(flag, path)], inputs)
}

/// Stdout and the destinations of `outputs`, which must all differ.
fn places<'a>(outputs: &[(&'static str, &'a str)]) -> Result<Vec<Destination<'a>>, Error> {
    let mut places = vec![Destination::stdout()];
    for &(flag, path) in outputs {
        let place = Destination::new(flag, path);
        match places.iter().find(|other| place.is(other)) {
            Some(other) if place.is_stdout => return Err(both_on_stdout(&place, other)),
            Some(other) => return Err(refusal(&place, &other.name())),
            None => {}
        }
        places.push(place);
    }
    Ok(places)
}

fn check_places(places: &[Destination], inputs: &Inputs) -> Result<(), Error> {
    let own = machine_profile::path().ok();
    let own = own.map(|path| ("the machine profile of this user".to_string(), path));
    for place in places {
        let own = own.iter().filter(|_| place.flag != machine_profile::FLAG);
        for (label, path) in inputs.files.iter().chain(own) {
            let input = Identity::from_path(Path::new(path));
            if place.identity.is_some() && place.identity == input {
                return Err(refusal(place, &format!("{label} '{path}'")));
            }
        }
        for (label, number, identity) in &inputs.open {
            if place.replaces(*number) && place.identity.is_some() && place.identity == *identity {
                return Err(refusal(place, label));
            }
        }
        for directory in &inputs.modules {
            if place.lies_below(&Path::new(directory).join("lib/modules")) {
                return Err(refusal(place, &format!("a file of --modules '{directory}'")));
            }
        }
    }
    Ok(())
}

fn refusal(place: &Destination, other: &str) -> Error {
    let remedy = match place.flag {
        STDOUT => "send stdout elsewhere".to_string(),
        flag => format!("give {flag} another file"),
    };
    Error::Usage(format!("{} is the same file as {other}; {remedy}", place.name()))
}

fn both_on_stdout(one: &Destination, other: &Destination) -> Error {
    let names = [other, one].map(|place| format!("{} {}", place.flag, place.path)).join(" and ");
    Error::Usage(format!("{names} cannot both go to stdout; give one a file"))
}

const STDOUT: &str = "stdout";

/// The destination of an output.
struct Destination<'a> {
    flag: &'static str,
    path: &'a str,
    is_stdout: bool,
    identity: Option<Identity>,
}

impl<'a> Destination<'a> {
    fn new(flag: &'static str, path: &'a str) -> Self {
        let is_stdout = is_stdout(path);
        let identity = if is_stdout {
            Destination::stdout().identity
        } else {
            Identity::from_path(Path::new(path))
        };
        Destination { flag, path, is_stdout, identity }
    }

    /// Default destination of the report.
    fn stdout() -> Self {
        let identity = Identity::from_fd(io::stdout().as_fd());
        Destination { flag: STDOUT, path: "-", is_stdout: false, identity }
    }

    /// Whether both are the same. An output to stdout replaces the report and so does not conflict
    /// with it.
    fn is(&self, other: &Destination) -> bool {
        match (self.is_stdout, other.flag) {
            (true, STDOUT) => false,
            (true, _) if other.is_stdout => true,
            _ => self.identity.is_some() && self.identity == other.identity,
        }
    }

    /// Whether writing here replaces the contents of the file open as `number`, instead of
    /// appending through that descriptor or stdout.
    fn replaces(&self, number: RawFd) -> bool {
        let lead = ResolvedPath::resolve(Path::new(self.path));
        let is_open_file = matches!(lead, Ok(ResolvedPath::Descriptor(own)) if own == number);
        self.flag != STDOUT && !self.is_stdout && !is_open_file
    }

    fn name(&self) -> String {
        match self.flag {
            STDOUT => STDOUT.to_string(),
            flag => format!("{flag} '{}'", self.path),
        }
    }

    /// Whether it is an existing file below `directory`, or linked from there.
    fn lies_below(&self, directory: &Path) -> bool {
        let (Ok(directory), Some(Identity::Inode(dev, ino))) =
            (fs::canonicalize(directory), &self.identity)
        else {
            return false;
        };
        let path = fs::canonicalize(self.path);
        path.is_ok_and(|path| path.starts_with(&directory)) || contains(&directory, (*dev, *ino))
    }
}

/// Whether a file with this device and inode is below `directory`.
fn contains(directory: &Path, file: (u64, u64)) -> bool {
    let Ok(entries) = fs::read_dir(directory) else { return false };
    entries.flatten().any(|entry| match entry.metadata() {
        Ok(data) if data.is_dir() => contains(&entry.path(), file),
        Ok(data) => (data.dev(), data.ino()) == file,
        Err(_) => false,
    })
}

/// Whether `path` refers to stdout, under any name.
pub fn is_stdout(path: &str) -> bool {
    path == "-" || matches!(ResolvedPath::resolve(Path::new(path)), Ok(ResolvedPath::Descriptor(1)))
}

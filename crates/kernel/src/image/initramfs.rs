//! The initramfs of a guest: a cpio archive in the `newc` format that holds this program as init,
//! its libraries, the modules, and a JSON file with settings.

use std::collections::BTreeSet;
use std::fs::File;
use std::io::{self, BufWriter, Write};
use std::path::{Path, PathBuf};
use std::process::Command;

use serde_json::{Value, json};

use super::modules::Module;
use super::{DiskFilesystem, Error, elf};
use crate::child;

const DIRECTORY: u32 = 0o040_755;
const PROGRAM: u32 = 0o100_755;
const DATA: u32 = 0o100_644;
const CHARACTER_DEVICE: u32 = 0o020_600;

/// Device nodes that must exist before devtmpfs is mounted: the standard streams of init, and the
/// port over which a failure of that mount is reported.
const NODES: [(&str, (u32, u32)); 3] =
    [("dev/console", (5, 1)), ("dev/null", (1, 3)), ("dev/ttyS1", (4, 65))];

/// Fills `file` with the archive and returns it.
pub(super) fn write(
    file: File,
    program: &InitProgram,
    modules: &[Module],
    settings: &GuestSettings,
) -> io::Result<File> {
    let mut archive = Archive::new(BufWriter::new(file));
    for directory in ["proc", "sys", "data", "tmp"] {
        archive.directory(directory)?;
    }
    for (name, device) in NODES {
        archive.parents(name)?;
        archive.entry(name, CHARACTER_DEVICE, device, &[])?;
    }
    archive.file("init", PROGRAM, &program.bytes)?;
    for (path, bytes) in &program.libraries {
        let path = path.to_str().ok_or(io::ErrorKind::InvalidFilename)?;
        archive.file(path.trim_start_matches('/'), PROGRAM, bytes)?;
    }
    for module in modules {
        archive.file(&format!("modules/{}.ko", module.name), DATA, &module.bytes)?;
    }
    archive.file(SETTINGS_PATH.trim_start_matches('/'), DATA, settings.to_json().as_bytes())?;
    archive.finish()?.into_inner().map_err(io::IntoInnerError::into_error)
}

/// A `newc` archive being written.
struct Archive<W> {
    out: W,
    directories: BTreeSet<String>,
    inode: u32,
}

impl<W: Write> Archive<W> {
    fn new(out: W) -> Self {
        Self { out, directories: BTreeSet::new(), inode: 0 }
    }

    /// Adds a file and its parent directories.
    fn file(&mut self, name: &str, mode: u32, bytes: &[u8]) -> io::Result<()> {
        self.parents(name)?;
        self.entry(name, mode, (0, 0), bytes)
    }

    fn parents(&mut self, name: &str) -> io::Result<()> {
        match Path::new(name).parent().and_then(Path::to_str) {
            None | Some("") => Ok(()),
            Some(parent) => self.parents(parent).and_then(|()| self.directory(parent)),
        }
    }

    fn directory(&mut self, name: &str) -> io::Result<()> {
        if self.directories.insert(name.to_owned()) {
            self.entry(name, DIRECTORY, (0, 0), &[])?;
        }
        Ok(())
    }

    /// Writes a header of 13 hexadecimal fields, the name and the bytes, each padded to 4 bytes.
    fn entry(
        &mut self,
        name: &str,
        mode: u32,
        (major, minor): (u32, u32),
        bytes: &[u8],
    ) -> io::Result<()> {
        let size = u32::try_from(bytes.len()).map_err(|_| io::ErrorKind::FileTooLarge)?;
        let name_size = name.len() + 1;
        self.inode += 1;
        write!(
            self.out,
            "070701{inode:08x}{mode:08x}{uid:08x}{gid:08x}{links:08x}{mtime:08x}{size:08x}\
             {dev:08x}{dev:08x}{major:08x}{minor:08x}{name_size:08x}{check:08x}{name}\0",
            inode = self.inode,
            uid = 0,
            gid = 0,
            links = 1,
            mtime = 0,
            dev = 0,
            check = 0,
        )?;
        self.pad(110 + name_size)?;
        self.out.write_all(bytes)?;
        self.pad(bytes.len())
    }

    fn pad(&mut self, written: usize) -> io::Result<()> {
        self.out.write_all(&[0; 3][..written.wrapping_neg() % 4])
    }

    fn finish(mut self) -> io::Result<W> {
        self.entry("TRAILER!!!", 0, (0, 0), &[])?;
        self.out.flush()?;
        Ok(self.out)
    }
}

/// An executable and the files that it needs to start.
pub(super) struct InitProgram {
    /// The executable itself.
    pub(super) bytes: Vec<u8>,
    /// Loader and libraries with their absolute paths; none for a statically linked program.
    pub(super) libraries: Vec<(PathBuf, Vec<u8>)>,
}

impl InitProgram {
    /// Reads the program at `path`.
    pub(super) fn load(path: &Path) -> Result<Self, Error> {
        let bytes = read(path)?;
        let libraries = match elf::interpreter(&bytes) {
            None => Vec::new(),
            Some(loader) => needed(loader, path)?
                .into_iter()
                .map(|library| read(&library).map(|bytes| (library, bytes)))
                .collect::<Result<_, _>>()?,
        };
        Ok(Self { bytes, libraries })
    }
}

/// The loader and every library that it would load for `program`.
fn needed(loader: &str, program: &Path) -> Result<Vec<PathBuf>, Error> {
    let output = child::output(Command::new(loader).arg("--list").arg(program))
        .map_err(|source| Error::io(format!("start {loader}"), source))?;
    let text = String::from_utf8_lossy(&output.stdout);
    let mut paths: Vec<_> = text.lines().filter_map(listed_path).map(PathBuf::from).collect();
    if !paths.iter().any(|path| path == Path::new(loader)) {
        paths.push(loader.into());
    }
    Ok(paths)
}

/// The path in a line such as `libc.so.6 => /lib/libc.so.6 (0x00007f)`; the vDSO has none.
fn listed_path(line: &str) -> Option<&str> {
    let (before, _address) = line.trim().rsplit_once(" (")?;
    let path = before.split_once(" => ").map_or(before, |(_name, path)| path);
    path.starts_with('/').then_some(path)
}

fn read(path: &Path) -> Result<Vec<u8>, Error> {
    std::fs::read(path).map_err(|source| Error::io(format!("read {}", path.display()), source))
}

/// Path of the settings file, which exists only in our guests.
pub(super) const SETTINGS_PATH: &str = "/filemap-guest.json";

/// Settings of the guest.
#[derive(Clone, Debug, PartialEq)]
pub(super) struct GuestSettings {
    /// Offset of the answers on the disk between host and guest. `None`: there is no disk, and the
    /// guest only shows that the machine runs.
    pub(super) answers_at: Option<u64>,
    /// Names of the modules to load, in order.
    pub(super) modules: Vec<String>,
    /// Readahead of the scratch disk.
    pub(super) read_ahead_kb: Option<u64>,
    /// Filesystem of the scratch disk.
    pub(super) filesystem: DiskFilesystem,
}

impl GuestSettings {
    pub(super) fn to_json(&self) -> String {
        json!({
            "answers_at": self.answers_at,
            "modules": self.modules,
            "read_ahead_kb": self.read_ahead_kb,
            "filesystem": self.filesystem.name(),
        })
        .to_string()
    }

    pub(super) fn from_json(text: &str) -> Option<Self> {
        let value: Value = serde_json::from_str(text).ok()?;
        let modules = value["modules"].as_array()?.iter();
        Some(Self {
            answers_at: value["answers_at"].as_u64(),
            modules: modules.map(|name| name.as_str().map(str::to_owned)).collect::<Option<_>>()?,
            read_ahead_kb: value["read_ahead_kb"].as_u64(),
            filesystem: DiskFilesystem::from_name(value["filesystem"].as_str()?)?,
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn aligns_entries_and_adds_parents_once() {
        let mut archive = Archive::new(Vec::new());
        archive.file("a/b/file", DATA, b"12345").unwrap();
        archive.file("a/c", PROGRAM, b"").unwrap();
        let bytes = archive.finish().unwrap();
        assert_eq!(bytes.len() % 4, 0);
        let text = String::from_utf8_lossy(&bytes);
        let names: Vec<_> = text
            .match_indices("070701")
            .map(|(at, _)| {
                assert_eq!(at % 4, 0);
                text[at + 110..].split('\0').next().unwrap()
            })
            .collect();
        assert_eq!(names, ["a", "a/b", "a/b/file", "a/c", "TRAILER!!!"]);
    }

    #[test]
    fn writes_device_node() {
        let mut archive = Archive::new(Vec::new());
        archive.entry("dev/ttyS1", CHARACTER_DEVICE, (4, 65), &[]).unwrap();
        let text = String::from_utf8(archive.out).unwrap();
        assert_eq!(&text[14..22], "00002180");
        assert_eq!(&text[78..102], "00000004000000410000000a");
    }

    #[test]
    fn parses_loader_output() {
        let listed = [
            ("\tlinux-vdso.so.1 (0x00007ffc)", None),
            ("\tlibc.so.6 => /lib/x/libc.so.6 (0x00007f0)", Some("/lib/x/libc.so.6")),
            ("\t/lib64/ld-linux-x86-64.so.2 (0x00007f)", Some("/lib64/ld-linux-x86-64.so.2")),
            ("\tstatically linked", None),
        ];
        for (line, path) in listed {
            assert_eq!(listed_path(line), path, "{line}");
        }
    }

    #[test]
    fn loads_this_program() {
        let program = InitProgram::load(Path::new("/proc/self/exe")).unwrap();
        let is_static = elf::interpreter(&program.bytes).is_none();
        assert_eq!(program.libraries.is_empty(), is_static);
    }

    #[test]
    fn settings_round_trip() {
        let settings = GuestSettings {
            answers_at: Some(8192),
            modules: vec!["virtio_blk".into()],
            read_ahead_kb: Some(8192),
            filesystem: DiskFilesystem::Xfs { block_bytes: 4096 },
        };
        assert_eq!(GuestSettings::from_json(&settings.to_json()), Some(settings.clone()));
        let probe = GuestSettings { answers_at: None, read_ahead_kb: None, ..settings };
        assert_eq!(GuestSettings::from_json(&probe.to_json()), Some(probe));
        assert_eq!(GuestSettings::from_json("{}"), None);
    }
}

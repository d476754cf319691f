//! Writes the initramfs: a cpio archive in the `newc` format, which the kernel unpacks as root.

use std::collections::BTreeSet;
use std::fs::File;
use std::io::{self, BufWriter, Write};
use std::path::Path;

use super::modules::Module;
use super::program::InitProgram;
use super::settings::{self, GuestSettings};

const DIRECTORY: u32 = 0o040_755;
const PROGRAM: u32 = 0o100_755;
const DATA: u32 = 0o100_644;
const CHARACTER_DEVICE: u32 = 0o020_600;

/// Device nodes that must exist before devtmpfs is mounted: the standard streams of init, and
/// the port over which it reports that the mount failed.
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
    archive.file(
        settings::SETTINGS_PATH.trim_start_matches('/'),
        DATA,
        settings.to_json().as_bytes(),
    )?;
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

    /// Adds a file and the directories above it.
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

    /// One header of 13 hexadecimal fields, the name and the bytes, each padded to 4 bytes.
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

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn entries_are_aligned_and_parents_come_once_and_first() {
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
    fn header_of_a_device_node() {
        let mut archive = Archive::new(Vec::new());
        archive.entry("dev/ttyS1", CHARACTER_DEVICE, (4, 65), &[]).unwrap();
        let text = String::from_utf8(archive.out).unwrap();
        assert_eq!(&text[14..22], "00002180");
        assert_eq!(&text[78..102], "00000004000000410000000a");
    }
}

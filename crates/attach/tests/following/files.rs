//! Opens files that other processes have mapped.

use std::fs::{self, File};
use std::os::fd::AsRawFd;
use std::os::unix::fs::{MetadataExt, symlink};
use std::path::Path;

use filemap_attach::{Error, MappedFile, MappedRange, file, process};

use crate::bench::Bench;
use crate::program::Program;
use crate::skip::skip;

/// Starts a program that maps the file and closes its descriptor. Returns the mapping, too.
fn mapping(path: &Path) -> (Program, MappedRange) {
    let mut program = Program::start("touch", &[path.to_str().unwrap(), "1", "1"]);
    let [address] = program.says()[..] else { panic!("no address") };
    let maps = process::maps(program.pid()).expect("it runs");
    let range = maps.into_iter().find(|range| range.address == address).expect("it is mapped");
    (program, range)
}

fn end(mut program: Program) {
    program.go();
    program.says();
    program.end();
}

pub fn opens_mapped_files(bench: &Bench) {
    let path = bench.file("opened\nhere", 4);
    let (program, range) = mapping(&path);
    assert_eq!(range.file.as_ref().map(|file| &file.path), Some(&path));
    let inode = path.metadata().expect("a file").ino();
    let opened = file::open(program.pid(), &range).expect("a file");
    assert_eq!(opened.metadata().expect("a file").ino(), inode);
    // SAFETY: the call takes integers only.
    let flags = unsafe { libc::fcntl(opened.as_raw_fd(), libc::F_GETFL) };
    assert_eq!(flags & libc::O_ACCMODE, libc::O_RDONLY);
    fs::remove_file(&path).expect("it is there");
    let gone = file::open(program.pid(), &range);
    if rustix::process::geteuid().is_root() {
        assert_eq!(gone.expect("it is mapped").metadata().expect("a file").ino(), inode);
    } else {
        skip("only root opens a file that is deleted and closed");
        assert!(matches!(gone, Err(Error::NotOpened { .. })));
    }
    end(program);
}

pub fn opens_nothing_but_mapped_files(bench: &Bench) {
    let path = bench.file("meant", 4);
    let (program, range) = mapping(&path);
    let other = bench.file("other", 4);
    // No other file is opened instead, whatever is at the path.
    fs::rename(&path, bench.path().join("elsewhere")).expect("it is there");
    let is_meant = || {
        file::open(program.pid(), &range)
            .map(|file| file.metadata().expect("a file").ino())
            .is_ok_and(|inode| Some(inode) == range.file.as_ref().map(|file| file.id.inode))
    };
    let is_root = rustix::process::geteuid().is_root();
    symlink(&other, &path).expect("a link");
    assert_eq!(is_meant(), is_root);
    fs::remove_file(&path).expect("it is there");
    symlink(bench.path().join("elsewhere"), &path).expect("a link");
    assert_eq!(is_meant(), is_root);
    fs::remove_file(&path).expect("it is there");
    rustix::fs::mknodat(rustix::fs::CWD, &path, rustix::fs::FileType::Fifo, 0o600.into(), 0)
        .expect("a FIFO");
    assert_eq!(is_meant(), is_root);
    // Opens a file for an altered description of the mapping.
    let changed_range = |change: &dyn Fn(&mut MappedFile)| {
        let mut changed = range.clone();
        change(changed.file.as_mut().expect("a file"));
        file::open(program.pid(), &changed).map(|file| file.metadata().expect("a file").ino())
    };
    assert!(changed_range(&|file| file.path = path.clone()).is_ok() == is_root);
    assert!(changed_range(&|file| file.path = other.clone()).is_ok() == is_root);
    let in_memory = "/dev/shm".metadata_device();
    if let Some((major, minor)) = in_memory {
        let refused = changed_range(&|file| (file.id.major, file.id.minor) = (major, minor));
        let reason = refused.expect_err("it is in memory").to_string();
        assert!(reason.contains("tmpfs is no filesystem of local storage"), "{reason}");
    }
    assert!(changed_range(&|file| file.id.inode += 1).is_err());
    assert!(changed_range(&|file| file.id.minor += 1000).is_err());
    end(program);
}

trait Device {
    fn metadata_device(&self) -> Option<(u32, u32)>;
}

impl Device for str {
    fn metadata_device(&self) -> Option<(u32, u32)> {
        let device = File::open(self).ok()?.metadata().ok()?.dev();
        Some((rustix::fs::major(device), rustix::fs::minor(device)))
    }
}

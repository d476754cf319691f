//! Programs whose files change under their mappings, or are no regular files.

use std::fs::{self, File, OpenOptions};
use std::path::{Path, PathBuf};
use std::ptr;
use std::sync::atomic::{AtomicU32, AtomicUsize, Ordering};

use libc::{MAP_PRIVATE, MAP_SHARED, PROT_READ, c_int, c_void};

use super::memory::{MIB, look};
use crate::support::bench::{Bench, write};
use crate::support::mapping::{Mapping, PAGE_BYTES};

static BUS_ERRORS: AtomicU32 = AtomicU32::new(0);
static LAST_PAGE: AtomicUsize = AtomicUsize::new(0);

/// Puts an empty page where the file ends too early.
extern "C" fn on_sigbus(_: c_int, info: *mut libc::siginfo_t, _: *mut c_void) {
    BUS_ERRORS.fetch_add(1, Ordering::SeqCst);
    let flags = MAP_PRIVATE | libc::MAP_ANONYMOUS | libc::MAP_FIXED;
    // SAFETY: the kernel passes the address of a page of a mapping of this program.
    unsafe {
        let page = (*info).si_addr().addr() & !(PAGE_BYTES - 1);
        LAST_PAGE.store(page, Ordering::SeqCst);
        libc::mmap(ptr::without_provenance_mut(page), PAGE_BYTES, PROT_READ, flags, -1, 0);
    }
}

/// Has [`on_sigbus`] called on SIGBUS.
fn survive_sigbus() {
    // SAFETY: all of it may be zero.
    let mut action: libc::sigaction = unsafe { std::mem::MaybeUninit::zeroed().assume_init() };
    action.sa_sigaction = on_sigbus as *const () as usize;
    action.sa_flags = libc::SA_SIGINFO;
    // SAFETY: the action is valid.
    assert_eq!(unsafe { libc::sigaction(libc::SIGBUS, &action, ptr::null_mut()) }, 0);
}

pub fn program(arguments: &[String]) {
    let [how, path] = arguments else { panic!("a way and a path are needed") };
    let file = OpenOptions::new().read(true).write(true).open(path).expect("it can be opened");
    let survives = how != "shrinks and ends";
    if survives {
        survive_sigbus();
    }
    let mapping = Mapping::of(&file);
    look(mapping.start(), mapping.bytes(), 1);
    let bytes = mapping.bytes() as u64;
    match how.as_str() {
        "shrinks" | "shrinks and ends" => {
            file.set_len(bytes / 2 + 100).expect("it can shrink");
            println!("{:x}", mapping.digest());
            file.set_len(bytes).expect("it can grow");
            println!("{:x}", mapping.digest());
        }
        "grows" => {
            let start = mapping.start();
            let longer = Mapping::with(&file, 0, 2 * mapping.bytes(), MAP_SHARED);
            let longer = longer.expect("more than the file can be mapped");
            look(start, mapping.bytes(), 2);
            file.set_len(2 * bytes).expect("it can grow");
            println!("{:x}", longer.digest());
        }
        "is deleted" => {
            fs::remove_file(path).expect("it is ours");
            println!("{:x}", mapping.digest());
            let again = Mapping::of(&file);
            look(again.start(), again.bytes(), 3);
            println!("{}", file.metadata().expect("it is open").len());
        }
        "is replaced" => {
            let other = PathBuf::from(format!("{path}.new"));
            fs::write(&other, vec![9; 32 << 20]).expect("there is room");
            fs::rename(&other, path).expect("it is ours");
            println!("{:x}", mapping.digest());
            let again = Mapping::of(&File::open(path).expect("it can be opened"));
            look(again.start(), again.bytes(), 3);
        }
        _ => panic!("{how} is no way"),
    }
    println!("{} bus errors", BUS_ERRORS.load(Ordering::SeqCst));
}

pub fn files(bench: &Bench) {
    let path = bench.directory.join("changing");
    let name = path.to_str().expect("a plain name").to_string();
    for how in ["shrinks", "shrinks and ends", "grows", "is deleted", "is replaced"] {
        let before = || write(&path, 32 << 20);
        let command = || bench.own("changing", &[how, &name]);
        bench.both_after(1 << 20, &[&path], before, command).alike();
    }
    let _ = fs::remove_file(&path);
}

/// What is no regular file can be mapped or not, as it is.
pub fn odd_program(arguments: &[String]) {
    for path in arguments {
        let file = OpenOptions::new().read(true).write(!Path::new(path).is_dir()).open(path);
        let file = file.expect("it can be opened");
        for flags in [MAP_SHARED, MAP_PRIVATE] {
            match Mapping::with(&file, 0, 32 * MIB, flags) {
                Err(error) => println!("{path}: {error}"),
                Ok(mapping) => look(mapping.start(), mapping.bytes(), 1),
            }
        }
    }
}

pub fn odd_files(bench: &Bench) {
    let fifo = bench.directory.join("fifo");
    let name = std::ffi::CString::new(fifo.to_str().expect("a plain name")).expect("no zero");
    // SAFETY: the name ends with a zero.
    assert_eq!(unsafe { libc::mkfifo(name.as_ptr(), 0o600) }, 0);
    let fifo = fifo.to_str().expect("a plain name");
    let paths = [fifo, "/dev/zero", "/dev/null", "/proc/self/status", "/tmp"];
    bench.both(64 << 10, &[], || bench.own("odd", &paths)).alike().well();
}

//! Kprobes that stand in for the readahead tracepoints in a guest whose kernel has none.
//!
//! Since 6.18 Linux has tracepoints for readahead calls, with the state at their entry. In an older
//! kernel a kprobe at the entry of the same function reads the same values from its arguments. A
//! probe has the name and fields of the tracepoint, so traces have the same format. Only guests get
//! them: probes are global, and would stay on this machine.

use std::fs::{self, File};
use std::io::Write;
use std::os::unix::fs::MetadataExt;
use std::path::Path;

use super::event::Fields;
use super::tracefs::each_line;
use crate::Error;

/// Fields of the state at the entry of readahead.
macro_rules! state {
    () => {
        "size=+8(+16(%di)):u32 async_size=+12(+16(%di)):u32 ra_pages=+16(+16(%di)):u32 \
         mmap_miss=+20(+16(%di)):u32 prev_pos=+24(+16(%di)):s64"
    };
}

/// Group of the tracepoints, which is unused in a kernel that needs the probes.
const GROUP: &str = "readahead";

/// The probed readahead functions, with the fields of their events. Fields are fetched from the
/// arguments in the x86-64 calling convention. The first argument is a `readahead_control` with the
/// mapping at offset 8, the `file_ra_state` at 16 and the accessed page at 24. The layout of
/// `file_ra_state` is the same from 6.1 to 6.12: start of the window, size, part after the mark,
/// maximum window, `mmap_miss`, and the end of the last read in bytes.
const PROBES: [(&str, &str); 4] = [
    ("page_cache_sync_ra", concat!("req_count=%si:u64 ", state!())),
    ("page_cache_async_ra", concat!("req_count=%dx:u64 ", state!())),
    (
        "page_cache_ra_order",
        "order=%dx:u32 size=+8(%si):u32 async_size=+12(%si):u32 ra_pages=+16(%si):u32",
    ),
    ("page_cache_ra_unbounded", "nr_to_read=%si:u64 lookahead_size=%dx:u64"),
];

/// Possible offsets of `i_ino`, which depend on the configuration (POSIX ACLs, security modules).
const NUMBER_AT: [u64; 4] = [64, 56, 48, 40];

/// Called when a file is opened, with its mapping as the second argument.
const OPENED: &str = "file_ra_state_init";

/// A file that always exists: this program.
const OWN_FILE: &str = "/proc/self/exe";

/// Places the probes in a kernel without the tracepoints. A function that was inlined gets no
/// probe. `tracefs` is the mount point.
///
/// # Errors
/// The kernel refuses a write.
pub(super) fn install(tracefs: &Path) -> Result<(), Error> {
    if tracefs.join("events").join(GROUP).exists() || !tracefs.join("kprobe_events").exists() {
        return Ok(());
    }
    let Some(number_at) = number_at(tracefs)? else { return Ok(()) };
    for (function, fields) in PROBES {
        let probe = format!("{GROUP}/{function} {function} {} {fields}", file(number_at));
        define_probe(tracefs, &format!("p:{probe} index=+24(%di):u64"));
    }
    Ok(())
}

/// The probe field with the inode number of the first argument.
fn file(number_at: u64) -> String {
    format!("i_ino=+{number_at}(+0(+8(%di))):u64")
}

/// The offset of `i_ino`: the one at which a probe finds the inode number of this program.
fn number_at(tracefs: &Path) -> Result<Option<u64>, Error> {
    const PROBE: &str = "filemap_number";
    let tried = NUMBER_AT.map(|at| format!("at{at}=+{at}(+0(%si)):u64")).join(" ");
    if !define_probe(tracefs, &format!("p:{GROUP}/{PROBE} {OPENED} {tried}")) {
        return Ok(None);
    }
    let enable = tracefs.join("events").join(GROUP).join(PROBE).join("enable");
    write(&enable, "1")?;
    let own = File::open(OWN_FILE).and_then(|own| own.metadata());
    write(&enable, "0")?;
    let number = own.map_err(|error| Error::os("open", Path::new(OWN_FILE), error))?.ino();
    let mut found = None;
    each_line(&tracefs.join("trace"), |line| {
        if let Some((_, fields)) = line.split_once(&format!(" {PROBE}: ")) {
            let has = |at: &u64| Fields(fields).number(&format!("at{at}")) == Some(number);
            found = found.or(NUMBER_AT.into_iter().find(has));
        }
        Ok(())
    })?;
    write(&tracefs.join("trace"), "")?;
    define_probe(tracefs, &format!("-:{GROUP}/{PROBE}"));
    Ok(found)
}

/// Whether the kernel accepts this probe definition.
fn define_probe(tracefs: &Path, probe: &str) -> bool {
    let file = File::options().append(true).open(tracefs.join("kprobe_events"));
    file.and_then(|mut file| file.write_all(probe.as_bytes())).is_ok()
}

fn write(path: &Path, text: &str) -> Result<(), Error> {
    fs::write(path, text).map_err(|error| Error::os("write", path, error))
}

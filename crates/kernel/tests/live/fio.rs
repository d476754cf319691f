//! fio, where it is installed.

use filemap_kernel::fio::{Fio, Job};

use crate::Bench;
use crate::skip::skip;

const PAGES: u64 = 4096;

pub(crate) fn jobs(bench: &Bench) {
    let fio = match Fio::create(&bench.directory, PAGES * 4096) {
        Ok(fio) => fio,
        Err(error) if error.cannot_run_here() => return skip(error),
        Err(error) => panic!("{error}"),
    };
    assert!(fio.version().starts_with("fio-"));
    let range_bytes = (PAGES / 2 * 4096, PAGES / 4 * 4096);
    let job = |ioengine, rw, advises| Job { ioengine, rw, advises, range_bytes };
    let read = fio.run(&job("psync", "read", true)).unwrap();
    assert!(read.mib_s > 0.0);
    assert_eq!(read.cached[..2], [0, PAGES / 4]);
    let random = fio.run(&job("mmap", "randread", true)).unwrap();
    assert_eq!(random.major_faults, PAGES / 4, "each access of an advised mapping reads its page");
    let unadvised = fio.run(&job("mmap", "randread", false)).unwrap();
    assert!(unadvised.major_faults < PAGES / 16, "{unadvised:?}");
    assert!(fio.run(&job("no-such-engine", "read", true)).is_err());
}

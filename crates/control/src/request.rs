//! What the kernel is asked for to learn of faults, as numbers of its interface. The library
//! asks for it in a program, and `filemap doctor` tries it. Both make the call themselves.

/// The perf event that reports faults of a program by a signal: `struct perf_event_attr`
/// of `linux/perf_event.h`.
pub mod event {
    /// Words of the attributes, up to `sig_data`, which Linux 5.13 added.
    pub const WORDS: usize = 16;

    /// What the event's signals carry, so that those of the program's own events are not mistaken
    /// for them.
    pub const SIG_DATA: u64 = 0x6669_6c65_6d61_7001;

    /// Flags of perf_event_open(2): the descriptor is closed by exec.
    pub const FLAG_CLOEXEC: u64 = 1 << 3;

    /// The request that enables an event, and those that threads have inherited.
    pub const IOC_ENABLE: u64 = 0x2400;

    /// The request that disables them.
    pub const IOC_DISABLE: u64 = 0x2401;

    const TYPE_SOFTWARE: u64 = 1;
    /// Each fault is reported.
    const SAMPLE_PERIOD: u64 = 1;
    const SAMPLE_ADDR: u64 = 1 << 3;
    const DISABLED: u64 = 1 << 0;
    const INHERIT: u64 = 1 << 1;
    const EXCLUDE_KERNEL: u64 = 1 << 5;
    const EXCLUDE_HYPERVISOR: u64 = 1 << 6;
    const INHERIT_THREAD: u64 = 1 << 35;
    const REMOVE_ON_EXEC: u64 = 1 << 36;
    const SIGTRAP: u64 = 1 << 37;

    /// Which faults are reported, by their number in the interface.
    #[derive(Clone, Copy, Debug, PartialEq, Eq)]
    #[repr(u64)]
    pub enum Faults {
        /// All: `PERF_COUNT_SW_PAGE_FAULTS`.
        All = 2,
        /// Those that read from a disk: `PERF_COUNT_SW_PAGE_FAULTS_MAJ`.
        Major = 6,
    }

    /// The attributes: `faults` of the program itself, each as a SIGTRAP in the thread that made
    /// it. The event is off until it is enabled. Threads inherit it, and exec removes it.
    #[must_use]
    pub const fn attributes(faults: Faults) -> [u64; WORDS] {
        let mut words = [0; WORDS];
        words[0] = TYPE_SOFTWARE | ((WORDS * size_of::<u64>()) as u64) << 32;
        words[1] = faults as u64;
        words[2] = SAMPLE_PERIOD;
        words[3] = SAMPLE_ADDR;
        words[5] = DISABLED
            | INHERIT
            | EXCLUDE_KERNEL
            | EXCLUDE_HYPERVISOR
            | INHERIT_THREAD
            | REMOVE_ON_EXEC
            | SIGTRAP;
        words[15] = SIG_DATA;
        words
    }
}

/// The request by which a process asks for what is mapped of its memory: `PAGEMAP_SCAN` of
/// `linux/fs.h`, which Linux 6.7 added.
pub mod scan {
    /// The number of the request, `_IOWR('f', 16, struct pm_scan_arg)`. The file is
    /// `/proc/PID/pagemap`.
    pub const PAGEMAP_SCAN: u64 = 0xc060_6610;

    /// A page that is in memory and mapped.
    pub const PRESENT: u64 = 1 << 3;

    /// What the request is given and writes back: `struct pm_scan_arg`.
    #[derive(Clone, Copy, Debug, Default)]
    #[repr(C)]
    pub struct Scan {
        size: u64,
        flags: u64,
        start: u64,
        end: u64,
        /// Where the kernel has come to.
        pub walk_end: u64,
        regions: u64,
        region_count: u64,
        most_pages: u64,
        inverted: u64,
        wanted: u64,
        wanted_any: u64,
        returned: u64,
    }

    /// One run of pages that the kernel found: `struct page_region`.
    #[derive(Clone, Copy, Debug, Default)]
    #[repr(C)]
    pub struct Region {
        /// The address of its first page.
        pub start: u64,
        /// The address behind its last page.
        pub end: u64,
        categories: u64,
    }

    impl Scan {
        /// Asks for the pages from `start` to `end` that are mapped, of which at most `count` runs
        /// are written to the address `regions`.
        #[must_use]
        pub fn mapped(start: u64, end: u64, regions: u64, count: u64) -> Scan {
            Scan {
                size: size_of::<Scan>() as u64,
                start,
                end,
                regions,
                region_count: count,
                wanted: PRESENT,
                returned: if count == 0 { 0 } else { PRESENT },
                ..Scan::default()
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// `linux/perf_event.h` gives the size of the attributes with `sig_data` as
    /// PERF_ATTR_SIZE_VER7, and the number of the request holds the size of its structure.
    #[test]
    fn sizes_are_those_of_the_kernels_headers() {
        assert_eq!(event::attributes(event::Faults::Major)[0] >> 32, 128);
        assert_eq!(scan::PAGEMAP_SCAN >> 16 & 0x3fff, size_of::<scan::Scan>() as u64);
        assert_eq!(size_of::<scan::Region>(), 24);
    }
}

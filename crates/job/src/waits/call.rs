//! Calls that change mappings.

/// A call that takes `mmap_lock` for writing.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[repr(u8)]
pub enum Call {
    /// `mmap(2)`
    Mmap,
    /// `munmap(2)`
    Munmap,
    /// `mprotect(2)`
    Mprotect,
    /// `madvise(2)` that changes flags of VMAs
    Madvise,
    /// `fork(2)`
    Fork,
}

impl Call {
    /// All calls, in the order of reports.
    pub const ALL: [Call; 5] =
        [Call::Mmap, Call::Munmap, Call::Mprotect, Call::Madvise, Call::Fork];

    /// Name in records and reports.
    pub const fn name(self) -> &'static str {
        match self {
            Call::Mmap => "mmap",
            Call::Munmap => "munmap",
            Call::Mprotect => "mprotect",
            Call::Madvise => "madvise",
            Call::Fork => "fork",
        }
    }
}

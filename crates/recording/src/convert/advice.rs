//! Linux constants of advice, protection and mapping flags, the same on x86-64 and arm64.

/// The name in job files of `MADV_` constant `number`; `None` if job files have none.
pub fn madvise(number: u32) -> Option<&'static str> {
    Some(match number {
        0 => "normal",
        1 => "random",
        2 => "sequential",
        3 => "willneed",
        4 => "dontneed",
        14 => "hugepage",
        15 => "nohugepage",
        20 => "cold",
        21 => "pageout",
        22 => POPULATE,
        _ => return None,
    })
}

/// The name of `MADV_POPULATE_READ`.
pub const POPULATE: &str = "populate-read";

/// The name of `POSIX_FADV_WILLNEED`.
pub const WILLNEED: &str = "willneed";

/// The name in job files of `POSIX_FADV_` constant `number`; `None` if job files have none.
pub fn fadvise(number: u32) -> Option<&'static str> {
    Some(match number {
        0 => "normal",
        1 => "random",
        2 => "sequential",
        3 => WILLNEED,
        4 => "dontneed",
        5 => "noreuse",
        _ => return None,
    })
}

/// Whether this fadvise(2) advice applies to a range; the others apply to the open file.
pub fn has_range(name: &str) -> bool {
    matches!(name, WILLNEED | "dontneed")
}

/// `PROT_WRITE`.
pub const WRITABLE: u32 = 2;

/// `PROT_EXEC`.
pub const EXECUTABLE: u32 = 4;

/// Whether `flags` include `MAP_PRIVATE`.
pub fn is_private(flags: u32) -> bool {
    flags & 0xf == 2
}

/// Whether `flags` include `MAP_POPULATE`, or `MAP_LOCKED`, which populates too.
pub fn is_populated(flags: u32) -> bool {
    flags & (0x8000 | 0x2000) != 0
}

//! Advice by its numbers, as Linux has them on x86-64 and arm64.

/// The name that job files have for what `madvise(2)` calls `number`.
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

/// The name of the advice that faults pages in.
pub const POPULATE: &str = "populate-read";

/// The name of the advice that reads a part of a file ahead.
pub const WILLNEED: &str = "willneed";

/// The name that job files have for what `posix_fadvise(2)` calls `number`.
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

/// Whether `fadvise` of this name is about a range of the file.
pub fn has_range(name: &str) -> bool {
    matches!(name, WILLNEED | "dontneed")
}

/// `PROT_WRITE`.
pub const WRITABLE: u32 = 2;

/// `PROT_EXEC`.
pub const EXECUTABLE: u32 = 4;

/// Whether `flags` say `MAP_PRIVATE`.
pub fn is_private(flags: u32) -> bool {
    flags & 0xf == 2
}

/// Whether `flags` say `MAP_POPULATE`, or `MAP_LOCKED`, which populates too.
pub fn is_populated(flags: u32) -> bool {
    flags & (0x8000 | 0x2000) != 0
}

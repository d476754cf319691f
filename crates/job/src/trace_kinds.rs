//! Kinds of decision log lines and their tracepoints, which not all kernels have.

use filemap_core::decision::Decision;

/// A kind of line that a tracepoint shows.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ShownKind {
    /// [`Decision::Faulted`].
    Faulted,
    /// [`Decision::Lookup`].
    LookedUp,
    /// [`Decision::MapPages`].
    MapPages,
    /// [`Decision::Entered`] on a cache miss.
    Sync,
    /// [`Decision::Entered`] on a marked folio.
    Async,
    /// [`Decision::Readahead`].
    Window,
    /// [`Decision::BasePages`].
    BasePages,
    /// [`Decision::Added`].
    Added,
}

impl ShownKind {
    /// All kinds.
    pub const ALL: [ShownKind; 8] = [
        ShownKind::Faulted,
        ShownKind::LookedUp,
        ShownKind::MapPages,
        ShownKind::Sync,
        ShownKind::Async,
        ShownKind::Window,
        ShownKind::BasePages,
        ShownKind::Added,
    ];

    /// Its tracepoint, as `group/name`.
    pub fn tracepoint(self) -> &'static str {
        match self {
            ShownKind::Faulted => "exceptions/page_fault_user",
            ShownKind::LookedUp => "filemap/mm_filemap_fault",
            ShownKind::MapPages => "filemap/mm_filemap_map_pages",
            ShownKind::Sync => "readahead/page_cache_sync_ra",
            ShownKind::Async => "readahead/page_cache_async_ra",
            ShownKind::Window => "readahead/page_cache_ra_order",
            ShownKind::BasePages => "readahead/page_cache_ra_unbounded",
            ShownKind::Added => "filemap/mm_filemap_add_to_page_cache",
        }
    }

    /// The kind of `line`; `None` if no tracepoint shows it.
    pub fn from_decision(line: &Decision) -> Option<ShownKind> {
        Some(match line {
            Decision::Faulted { .. } => ShownKind::Faulted,
            Decision::Lookup { .. } => ShownKind::LookedUp,
            Decision::MapPages { .. } => ShownKind::MapPages,
            Decision::Entered { cause, .. } if cause.is_async() => ShownKind::Async,
            Decision::Entered { .. } => ShownKind::Sync,
            Decision::Readahead { .. } => ShownKind::Window,
            Decision::BasePages { .. } => ShownKind::BasePages,
            Decision::Added { .. } => ShownKind::Added,
            _ => return None,
        })
    }

    /// Describes what it shows of a run.
    pub fn label(self) -> &'static str {
        match self {
            ShownKind::Faulted => "which accesses fault",
            ShownKind::LookedUp => "look-ups of faults",
            ShownKind::MapPages => "windows of fault-around",
            ShownKind::Sync => "calls of readahead after a miss",
            ShownKind::Async => "calls of readahead on a mark",
            ShownKind::Window => "sizes, orders and marks of windows",
            ShownKind::BasePages => "parts of windows in base pages",
            ShownKind::Added => "folios added to the page cache",
        }
    }
}

/// The set of kinds that a kernel shows.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct ShownKinds(u8);

impl ShownKinds {
    /// The kinds shown by a kernel with all tracepoints, such as Linux 6.18.
    pub const ALL: ShownKinds = ShownKinds(u8::MAX);

    /// The kinds for which `is_seen` is true.
    pub fn from_fn(is_seen: impl Fn(ShownKind) -> bool) -> ShownKinds {
        let kinds = ShownKind::ALL.into_iter().filter(|kind| is_seen(*kind));
        ShownKinds(kinds.fold(0, |bits, kind| bits | 1 << kind as u8))
    }

    /// The inverse of [`ShownKinds::bits`].
    pub fn from_bits(bits: u8) -> ShownKinds {
        ShownKinds(bits)
    }

    /// A bit mask: bit `i` stands for [`ShownKind::ALL`]`[i]`.
    pub fn bits(self) -> u8 {
        self.0
    }

    /// Whether lines of `kind` are shown.
    pub fn has(self, kind: ShownKind) -> bool {
        self.0 >> kind as u8 & 1 == 1
    }

    /// The kinds that are not shown.
    pub fn missing(self) -> impl Iterator<Item = ShownKind> {
        ShownKind::ALL.into_iter().filter(move |kind| !self.has(*kind))
    }

    /// Whether readahead calls are shown. Otherwise they are visible only by the folios that they
    /// add.
    pub fn has_readahead(self) -> bool {
        let kinds = [ShownKind::Sync, ShownKind::Async, ShownKind::Window, ShownKind::BasePages];
        kinds.into_iter().any(|kind| self.has(kind))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn each_kind_is_independent() {
        for kind in ShownKind::ALL {
            let seen = ShownKinds::from_fn(|other| other == kind);
            assert!(seen.has(kind));
            assert_eq!(seen.missing().count(), ShownKind::ALL.len() - 1);
            assert_eq!(ShownKinds::from_bits(seen.bits()), seen);
        }
        assert_eq!(ShownKinds::ALL.missing().count(), 0);
        assert_eq!(ShownKinds::from_fn(|_| true), ShownKinds::ALL);
        assert!(!ShownKinds::from_fn(|kind| kind == ShownKind::Added).has_readahead());
    }
}

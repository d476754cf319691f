//! Published patch series as switches.

use std::fmt;
use std::str::FromStr;

/// One switch: a change by a published series to one rule, decided in one place.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
#[repr(u8)]
pub enum Switch {
    /// A fault-around credits at most one hit, for the faulting address. Decided in
    /// [`crate::fault::around`].
    MissFaultAddress,
    /// The retry after a miss credits nothing. Decided in [`crate::fault::around`].
    MissNoRetry,
    /// Readahead begun by a fault stays inside its VMA. Decided in [`crate::readahead::bound`].
    VmaBound,
    /// Faults in executable mappings neither consult nor move the miss counter. Decided in
    /// [`crate::readahead::miss`].
    ExecBypass,
    /// [`Switch::ExecBypass`] as posted in version 5: their hits are credited. Decided in
    /// [`crate::readahead::miss`].
    ExecBypassV5,
    /// Mappings advised HUGEPAGE read the largest folios of the file, up to 2 MiB. Decided in
    /// [`crate::readahead::sync`].
    ThpOrder,
    /// [`Switch::ThpOrder`] as posted in version 5: only where a PMD-sized folio does not fit the
    /// cache. Decided in [`crate::readahead::sync`].
    ThpOrderV5,
    /// The executable window is clipped like all windows, not by a size of its own. Decided in
    /// [`crate::readahead::sync`] and [`crate::readahead::bound::last`].
    ///
    /// Both variants add the same folios. If the VMA cuts the window, the readahead state keeps the
    /// cut size without this switch and the full size with it: a mark of another stream that is hit
    /// next, by `read(2)` or through another VMA, is then told apart from the stream's own at a
    /// different page (`tests/exec_unify.rs`).
    ExecUnify,
    /// A fault that dropped its lock for I/O tries again under the lock of its VMA. Decided in
    /// [`crate::fault::lock::retry_lock`].
    VmaRetry,
    /// A fault whose page is up to date keeps its lock while another task holds the folio lock. In
    /// the model no folio is locked once its data has arrived, so this decides nothing.
    NoRetryUptodate,
    /// A fault keeps its lock for I/O, and is not tried again. Decided in
    /// [`crate::fault::lock::drops_lock`].
    VmaHold,
    /// Whether a miss reads a window depends on how useful windows have been, instead of the
    /// miss counter. Decided in [`crate::readahead::rent`], called by
    /// [`crate::readahead::sync`].
    RentOrBuy,
}

impl Switch {
    /// Every switch, in the order in which reports name them.
    pub const ALL: [Switch; 12] = [
        Switch::MissFaultAddress,
        Switch::MissNoRetry,
        Switch::VmaBound,
        Switch::ExecBypass,
        Switch::ExecBypassV5,
        Switch::ThpOrder,
        Switch::ThpOrderV5,
        Switch::ExecUnify,
        Switch::VmaRetry,
        Switch::NoRetryUptodate,
        Switch::VmaHold,
        Switch::RentOrBuy,
    ];

    /// Whether any rule depends on it.
    pub const fn decides(self) -> bool {
        !matches!(self, Switch::NoRetryUptodate)
    }

    /// The name on the command line and in records.
    pub const fn name(self) -> &'static str {
        match self {
            Switch::MissFaultAddress => "miss-fault-address",
            Switch::MissNoRetry => "miss-no-retry",
            Switch::VmaBound => "vma-bound",
            Switch::ExecBypass => "exec-bypass",
            Switch::ExecBypassV5 => "exec-bypass-v5",
            Switch::ThpOrder => "thp-order",
            Switch::ThpOrderV5 => "thp-order-v5",
            Switch::ExecUnify => "exec-unify",
            Switch::VmaRetry => "vma-retry",
            Switch::NoRetryUptodate => "no-retry-uptodate",
            Switch::VmaHold => "vma-hold",
            Switch::RentOrBuy => "rent-or-buy",
        }
    }
}

/// A set of switches.
#[derive(Clone, Copy, Default, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Series(u16);

/// Group names and their switches.
const GROUPS: [(&str, &[Switch]); 6] = [
    ("mmap-miss", &[Switch::MissFaultAddress, Switch::MissNoRetry]),
    ("p1", &[Switch::MissFaultAddress]),
    ("p2", &[Switch::MissNoRetry]),
    ("exec-order", &[Switch::ExecBypass, Switch::ThpOrder]),
    ("exec-order-v5", &[Switch::ExecBypassV5, Switch::ThpOrderV5]),
    ("vma-retry-v2", &[Switch::VmaRetry, Switch::NoRetryUptodate]),
];

impl Series {
    /// No switch: the mainline rules.
    pub const BASELINE: Series = Series(0);

    /// This set with `switch` added.
    pub const fn with(self, switch: Switch) -> Self {
        Series(self.0 | 1 << switch as u8)
    }

    /// Whether `switch` is in the set.
    pub const fn has(self, switch: Switch) -> bool {
        self.0 & (1 << switch as u8) != 0
    }

    /// The union of both sets.
    pub const fn union(self, other: Series) -> Self {
        Series(self.0 | other.0)
    }

    /// The switches of the set, in the order of [`Switch::ALL`].
    pub fn switches(self) -> impl Iterator<Item = Switch> {
        Switch::ALL.into_iter().filter(move |&switch| self.has(switch))
    }

    /// Every name that [`Series::from_str`] accepts between `+`.
    pub fn names() -> impl Iterator<Item = &'static str> {
        let switches = Switch::ALL.into_iter().map(Switch::name);
        ["baseline"].into_iter().chain(switches).chain(GROUPS.into_iter().map(|group| group.0))
    }
}

/// The name is neither a series nor a group.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct UnknownSeries(pub String);

impl fmt::Display for UnknownSeries {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let known = Series::names().collect::<Vec<_>>().join(", ");
        write!(f, "unknown series '{}'; known: {known}", self.0)
    }
}

impl std::error::Error for UnknownSeries {}

impl FromStr for Series {
    type Err = UnknownSeries;

    /// Parses names joined by `+`, optionally surrounded by blanks; `baseline` is the empty set.
    fn from_str(text: &str) -> Result<Self, UnknownSeries> {
        text.split('+').map(str::trim).try_fold(Series::BASELINE, |all, name| {
            if name == "baseline" {
                return Ok(all);
            }
            if let Some(switch) = Switch::ALL.into_iter().find(|switch| switch.name() == name) {
                return Ok(all.with(switch));
            }
            let group = GROUPS.into_iter().find(|group| group.0 == name);
            let (_, switches) = group.ok_or_else(|| UnknownSeries(name.to_string()))?;
            Ok(switches.iter().fold(all, |all, &switch| all.with(switch)))
        })
    }
}

impl fmt::Display for Series {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        if *self == Series::BASELINE {
            return f.write_str("baseline");
        }
        for (position, switch) in self.switches().enumerate() {
            let joint = if position == 0 { "" } else { "+" };
            write!(f, "{joint}{}", switch.name())?;
        }
        Ok(())
    }
}

impl fmt::Debug for Series {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "Series({self})")
    }
}

//! The kernels whose rules are modelled.

/// A modelled kernel.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Kernel {
    /// Linux 6.1, longterm.
    V6_1,
    /// Linux 6.6, longterm.
    V6_6,
    /// Linux 6.12, longterm.
    V6_12,
    /// Linux 6.18, longterm.
    V6_18,
    /// The rules on which the series of April and May 2026 were posted, without any of them.
    Mm2026_05,
    /// Linux 6.19.
    V6_19,
    /// Linux 7.0.
    V7_0,
    /// Linux 7.1.
    V7_1,
    /// Linux 7.2: mmap-miss and exec-order are merged.
    V7_2,
    /// Linux 7.3.
    V7_3,
    /// A state of the mm tree after Linux 7.3: `mm/filemap.c` at commit 0b2777a511b7.
    Mm0b2777a511b7,
}

impl Kernel {
    /// Every modelled kernel, oldest first.
    pub const ALL: [Kernel; 11] = [
        Kernel::V6_1,
        Kernel::V6_6,
        Kernel::V6_12,
        Kernel::V6_18,
        Kernel::Mm2026_05,
        Kernel::V6_19,
        Kernel::V7_0,
        Kernel::V7_1,
        Kernel::V7_2,
        Kernel::V7_3,
        Kernel::Mm0b2777a511b7,
    ];

    /// The name on the command line and in records.
    pub const fn name(self) -> &'static str {
        match self {
            Kernel::V6_1 => "6.1",
            Kernel::V6_6 => "6.6",
            Kernel::V6_12 => "6.12",
            Kernel::V6_18 => "6.18",
            Kernel::Mm2026_05 => "mm-2026-05",
            Kernel::V6_19 => "6.19",
            Kernel::V7_0 => "7.0",
            Kernel::V7_1 => "7.1",
            Kernel::V7_2 => "7.2",
            Kernel::V7_3 => "7.3",
            Kernel::Mm0b2777a511b7 => "mm-0b2777a511b7",
        }
    }

    /// Version and patch level; `None` for a tree between two releases.
    const fn version(self) -> Option<(u32, u32)> {
        match self {
            Kernel::V6_1 => Some((6, 1)),
            Kernel::V6_6 => Some((6, 6)),
            Kernel::V6_12 => Some((6, 12)),
            Kernel::V6_18 => Some((6, 18)),
            Kernel::V6_19 => Some((6, 19)),
            Kernel::V7_0 => Some((7, 0)),
            Kernel::V7_1 => Some((7, 1)),
            Kernel::V7_2 => Some((7, 2)),
            Kernel::V7_3 => Some((7, 3)),
            Kernel::Mm2026_05 | Kernel::Mm0b2777a511b7 => None,
        }
    }

    /// Whether these rules were compared with a running kernel, decision by decision
    /// (docs/KERNELS.md). Trees between two releases were not.
    pub const fn is_compared(self) -> bool {
        self.version().is_some()
    }

    /// The modelled kernel nearest to a release such as `6.18.3-amd64`: the newest one not newer
    /// than the release, or the oldest. `None` if the release does not begin with two numbers.
    pub fn nearest(release: &str) -> Option<Nearest> {
        let (before, after) = Kernel::around(release)?;
        let kernel = before.or(after)?;
        let next = after.filter(|&after| after != kernel);
        Some(Nearest { kernel, next, is_exact: before.is_some() && before == after })
    }

    /// The modelled kernels around a release: the newest one not newer, and the oldest one not
    /// older. Both are the same if the release itself is modelled. `None` if the release does not
    /// begin with two numbers.
    pub fn around(release: &str) -> Option<(Option<Kernel>, Option<Kernel>)> {
        let mut numbers = release.split(|c: char| !c.is_ascii_digit()).map(str::parse::<u32>);
        let version = Some((numbers.next()?.ok()?, numbers.next()?.ok()?));
        let mut known = Kernel::ALL.into_iter().filter(|kernel| kernel.version().is_some());
        let after = known.clone().find(|kernel| kernel.version() >= version);
        Some((known.rfind(|kernel| kernel.version() <= version), after))
    }
}

/// The modelled kernel used for a release.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Nearest {
    /// The kernel.
    pub kernel: Kernel,
    /// The next newer modelled kernel, if the release is between two.
    pub next: Option<Kernel>,
    /// Whether the release is of that version. Otherwise its rules may differ; this was not
    /// checked.
    pub is_exact: bool,
}

impl Nearest {
    /// The kernel, or both if the release is between two: `6.1 or 6.6`.
    pub fn names(&self) -> String {
        let next = self.next.map(|next| format!(" or {}", next.name()));
        format!("{}{}", self.kernel.name(), next.unwrap_or_default())
    }
}

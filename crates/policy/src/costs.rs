//! Read costs, and whether single pages cost more than the kernel's own windows around faults.

/// Read costs, measured or taken from a machine profile.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Costs {
    /// Nanoseconds per fault that reads a single page.
    pub fault_ns: u64,
    /// Nanoseconds per page of a long sequential read.
    pub page_ns: u64,
}

/// The window the kernel reads around a missing page if nothing is advised.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct KernelWindow {
    /// Pages. 0 if unknown, or if the kernel reads single pages in any case.
    pub pages: u64,
    /// Nanoseconds per page in addition to the fault.
    pub page_ns: u64,
}

impl KernelWindow {
    /// Unknown window.
    pub const NONE: KernelWindow = KernelWindow { pages: 0, page_ns: 0 };
}

/// How an access to a page was observed.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum TouchKind {
    /// A major fault: the page was missing and was read or waited for.
    Major,
    /// A minor fault: the page was cached but not mapped.
    Minor,
    /// The page is mapped by now, possibly by fault-around.
    Mapped,
}

/// Minimum loss, in faults, before a file is left to the kernel.
const MIN_LOSS_FAULTS: u64 = 16;

/// Compares the cost of single-page faults so far with the cost of the same faults without advice,
/// when the kernel reads a window around each missing page.
#[derive(Clone, Debug, Default)]
pub struct WindowComparison {
    /// Incremented when the comparison restarts. Windows of earlier comparisons no longer count, as
    /// they may have been evicted.
    number: u32,
    own_ns: u64,
    kernel_ns: u64,
    faults: u64,
    /// Faults that are still to come by the touch histories; `None` if nothing is known. Negative
    /// after more have come.
    expected: Option<i64>,
    /// Pages of the kernel's windows that the program has not used yet.
    ahead: u64,
    is_lost: bool,
}

/// The cost of the window a fault would have read; zero if an earlier window has the page.
#[derive(Clone, Copy, Debug, Default)]
pub struct WindowCost {
    pub ns: u64,
    pub pages: u64,
}

impl WindowComparison {
    /// A comparison of a program that is expected to fault this often.
    pub fn expecting(faults: u64) -> WindowComparison {
        let expected = Some(i64::try_from(faults).unwrap_or(i64::MAX));
        WindowComparison { expected, ..WindowComparison::default() }
    }

    pub const fn number(&self) -> u32 {
        self.number
    }

    /// Whether the kernel's own windows are clearly cheaper. This is final.
    pub const fn is_lost(&self) -> bool {
        self.is_lost
    }

    /// Records a fault that took `fault_ns` in a file with `mapped_pages` mapped pages, which take
    /// `all_ns` to read.
    pub fn record_fault(
        &mut self,
        window: WindowCost,
        fault_ns: u64,
        mapped_pages: u64,
        all_ns: u64,
    ) {
        self.own_ns = self.own_ns.saturating_add(fault_ns);
        self.kernel_ns = self.kernel_ns.saturating_add(window.ns);
        self.faults = self.faults.saturating_add(1);
        self.expected = self.expected.map(|left| left.saturating_sub(1));
        self.ahead = self.ahead.saturating_add(window.pages).saturating_sub(1);
        let later_ns = self.later_uses(mapped_pages).saturating_mul(fault_ns);
        let lost_ns = self.own_ns.saturating_add(later_ns);
        let clear_ns = fault_ns.saturating_mul(MIN_LOSS_FAULTS);
        if lost_ns > self.kernel_ns.saturating_add(clear_ns) {
            self.is_lost = true;
        } else if self.kernel_ns > lost_ns.saturating_add(all_ns) {
            *self = WindowComparison {
                number: self.number.wrapping_add(1),
                expected: self.expected,
                ..WindowComparison::default()
            };
        }
    }

    /// Number of window pages the program will still use if it continues to visit pages at the same
    /// rate; but no more than the faults that are expected. Once more have come than were, as many
    /// more are expected.
    fn later_uses(&self, mapped_pages: u64) -> u64 {
        let used =
            u128::from(self.ahead) * u128::from(self.faults) / u128::from(mapped_pages.max(1));
        let expected = self.expected.map_or(u64::MAX, i64::unsigned_abs);
        u64::try_from(used).unwrap_or(u64::MAX).min(self.ahead).min(expected)
    }
}

//! Whether single pages cost more than the kernel's own windows around faults would.

/// What has to be lost before a file is left to the kernel, in faults.
const CLEAR_FAULTS: u64 = 16;

/// What faults on single pages have cost, and what they would have cost where nothing is advised:
/// the kernel reads a window around each page that is missing.
#[derive(Clone, Debug, Default)]
pub struct Comparison {
    /// Its number, which a comparison that begins anew raises. Windows of earlier ones count no
    /// more: they may be gone from memory.
    number: u32,
    own_ns: u64,
    kernel_ns: u64,
    faults: u64,
    /// Pages of windows that the program has not come to.
    ahead: u64,
    is_lost: bool,
}

/// What a fault would have read of a window, and what that costs; nothing where an earlier window
/// has the page.
#[derive(Clone, Copy, Debug, Default)]
pub struct WindowCost {
    pub ns: u64,
    pub pages: u64,
}

impl Comparison {
    pub const fn number(&self) -> u32 {
        self.number
    }

    /// Whether the kernel's own windows cost clearly less. It is not asked again.
    pub const fn is_lost(&self) -> bool {
        self.is_lost
    }

    /// Counts a fault that took `fault_ns`, in a file of which `mapped_pages` are mapped, which it
    /// takes `all_ns` to read.
    pub fn count(&mut self, window: WindowCost, fault_ns: u64, mapped_pages: u64, all_ns: u64) {
        self.own_ns = self.own_ns.saturating_add(fault_ns);
        self.kernel_ns = self.kernel_ns.saturating_add(window.ns);
        self.faults = self.faults.saturating_add(1);
        self.ahead = self.ahead.saturating_add(window.pages).saturating_sub(1);
        let later_ns = self.used_later(mapped_pages).saturating_mul(fault_ns);
        let lost_ns = self.own_ns.saturating_add(later_ns);
        let clear_ns = fault_ns.saturating_mul(CLEAR_FAULTS);
        if lost_ns > self.kernel_ns.saturating_add(clear_ns) {
            self.is_lost = true;
        } else if self.kernel_ns > lost_ns.saturating_add(all_ns) {
            *self = Comparison { number: self.number.wrapping_add(1), ..Comparison::default() };
        }
    }

    /// How many of the pages of windows the program will come to, where it comes to so many of all
    /// of them as it has until now.
    fn used_later(&self, mapped_pages: u64) -> u64 {
        let used =
            u128::from(self.ahead) * u128::from(self.faults) / u128::from(mapped_pages.max(1));
        u64::try_from(used).unwrap_or(u64::MAX).min(self.ahead)
    }
}

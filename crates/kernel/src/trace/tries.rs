//! How often faults that looked into the page cache began.

/// Tries of faults that fault-around did not serve: each looks its page up in the page cache, and
/// passes the kernel's tracepoint `mm_filemap_fault`.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Tries {
    /// Faults of which this is known.
    pub faults: u64,
    /// Their tries.
    pub tries: u64,
}

impl Tries {
    /// A fault looks its page up, which may be that of the try before: then it begins `again`.
    pub fn add(&mut self, again: bool) {
        self.tries += 1;
        self.faults += u64::from(!again);
    }

    /// Tries that are not the first of their fault.
    pub fn again(&self) -> u64 {
        self.tries - self.faults
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_fault_may_begin_several_times() {
        let mut tries = Tries::default();
        [false, false, true, false, true, true].into_iter().for_each(|again| tries.add(again));
        assert_eq!((tries.faults, tries.tries, tries.again()), (3, 6, 3));
    }
}

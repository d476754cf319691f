//! How often faults that looked into the page cache began.

use filemap_core::units::PageIndex;

/// Tries of faults that fault-around did not serve: each looks its page up in the page cache, and
/// passes the kernel's tracepoint `mm_filemap_fault`.
///
/// One thread reads each file from its first page to its last, so tries for a page that follow each
/// other are those of one fault.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Tries {
    /// The page of each file that was looked up last.
    last: Vec<Option<PageIndex>>,
    /// Faults of which this is known.
    pub faults: u64,
    /// Their tries.
    pub tries: u64,
}

impl Tries {
    /// A fault looks `page` of `file` up.
    pub fn looks_up(&mut self, file: usize, page: PageIndex) {
        if self.last.len() <= file {
            self.last.resize(file + 1, None);
        }
        let before = self.last[file].replace(page);
        self.add(before == Some(page));
    }

    /// A fault looks its page up, which may be that of the try before: then it begins `again`.
    pub fn add(&mut self, again: bool) {
        self.tries += 1;
        self.faults += u64::from(!again);
    }

    /// Tries of one fault on average; `None` without a fault.
    pub fn per_fault(&self) -> Option<f64> {
        (self.faults > 0).then(|| self.tries as f64 / self.faults as f64)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_fault_may_begin_several_times_while_others_do() {
        let mut tries = Tries::default();
        assert_eq!(tries.per_fault(), None);
        for (file, page) in [(0, 0), (1, 0), (0, 0), (0, 16), (1, 0), (1, 0)] {
            tries.looks_up(file, PageIndex(page));
        }
        assert_eq!((tries.faults, tries.tries, tries.per_fault()), (3, 6, Some(2.0)));
    }
}

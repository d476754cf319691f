//! Which pages were touched before: a page that is mapped anew is not touched for the first time.

use std::collections::HashMap;

/// Bits of a page: it was touched, and written to.
const BITS: u64 = 2;
const TOUCHED: u64 = 1;
const WRITTEN: u64 = 2;

/// The pages of each mapping that were touched.
#[derive(Debug, Default)]
pub struct Firsts(HashMap<u32, Vec<u64>>);

impl Firsts {
    /// Notes a touch. Returns whether it is the first of the page, or the first that writes to it.
    pub fn is_first(&mut self, mapping: u32, page: u64, is_write: bool) -> bool {
        let words = self.0.entry(mapping).or_default();
        let each = u64::from(u64::BITS) / BITS;
        // A page beyond the end of all address spaces is none.
        let Ok(at) = usize::try_from(page / each) else { return false };
        if words.len() <= at {
            words.resize(at + 1, 0);
        }
        let bits = if is_write { TOUCHED | WRITTEN } else { TOUCHED } << (page % each * BITS);
        let before = words[at];
        words[at] |= bits;
        words[at] != before
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_page_is_touched_first_once_and_written_to_first_once() {
        let mut firsts = Firsts::default();
        assert!(firsts.is_first(0, 100, false) && !firsts.is_first(0, 100, false));
        assert!(firsts.is_first(0, 100, true) && !firsts.is_first(0, 100, true));
        assert!(!firsts.is_first(0, 100, false));
        assert!(firsts.is_first(1, 100, true) && !firsts.is_first(1, 100, false));
        assert!(firsts.is_first(0, 99, false) && firsts.is_first(0, 101, false));
    }
}

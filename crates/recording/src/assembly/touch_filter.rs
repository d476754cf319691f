//! Selects the touches that are recorded.

use std::collections::HashMap;

/// Selects the touches that are recorded.
pub enum TouchFilter {
    /// The first read and the first write of each page of a mapping.
    Firsts(FirstTouches),
    /// All but immediate repetitions. By thread: its last mapping and page, and whether it wrote.
    Changes(HashMap<u32, (u32, u64, bool)>),
}

impl TouchFilter {
    pub fn accepts(&mut self, thread: u32, touch: (u32, u64, bool)) -> bool {
        let (mapping, page, is_write) = touch;
        match self {
            TouchFilter::Firsts(firsts) => firsts.is_first(mapping, page, is_write),
            TouchFilter::Changes(last) => last.insert(thread, touch) != Some(touch),
        }
    }
}

/// Bits per page: touched, and written to.
const BITS: u64 = 2;
const TOUCHED: u64 = 1;
const WRITTEN: u64 = 2;

/// A bitmap of the touched pages of each mapping.
#[derive(Debug, Default)]
pub struct FirstTouches(HashMap<u32, Vec<u64>>);

impl FirstTouches {
    /// Records a touch. Returns whether it is the first of the page, or the first write to it.
    pub fn is_first(&mut self, mapping: u32, page: u64, is_write: bool) -> bool {
        let words = self.0.entry(mapping).or_default();
        let each = u64::from(u64::BITS) / BITS;
        // Such a page lies beyond every address space.
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
        let mut firsts = FirstTouches::default();
        assert!(firsts.is_first(0, 100, false) && !firsts.is_first(0, 100, false));
        assert!(firsts.is_first(0, 100, true) && !firsts.is_first(0, 100, true));
        assert!(!firsts.is_first(0, 100, false));
        assert!(firsts.is_first(1, 100, true) && !firsts.is_first(1, 100, false));
        assert!(firsts.is_first(0, 99, false) && firsts.is_first(0, 101, false));
    }
}

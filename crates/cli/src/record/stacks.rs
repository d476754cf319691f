//! Who called to make mappings. Programs make most of them in a few places.

use std::collections::HashMap;

use filemap_recording::MAX_CALLERS;

/// Rows of callers, each once, from the inside to the outside.
#[derive(Default)]
pub struct Stacks {
    all: Vec<Vec<u64>>,
    numbers: HashMap<Vec<u64>, u32>,
}

impl Stacks {
    /// The number of those in the text of an entry: 0 of nobody.
    pub fn number(&mut self, text: &[u8]) -> u32 {
        let each = text.chunks_exact(size_of::<u64>()).take(MAX_CALLERS);
        let each =
            each.map(|bytes| u64::from_ne_bytes(bytes.try_into().expect("it is eight bytes")));
        let callers: Vec<u64> = each.collect();
        if callers.is_empty() {
            return 0;
        }
        let next = self.all.len() as u32 + 1;
        let number = *self.numbers.entry(callers.clone()).or_insert(next);
        if number == next {
            self.all.push(callers);
        }
        number
    }

    /// Those with a number.
    pub fn callers(&self, number: u32) -> Vec<u64> {
        let at = (number as usize).checked_sub(1);
        at.and_then(|at| self.all.get(at)).cloned().unwrap_or_default()
    }
}

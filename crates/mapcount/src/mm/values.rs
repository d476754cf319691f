//! Large arrays that begin where a huge page can.

use std::ops::{Deref, Range};

/// Values of which the first lies at the beginning of a huge page, if they fill one. Else it would
/// depend on chance which part of an array huge pages can hold.
pub struct Values<T> {
    /// A vector, as a boxed slice without room after it could be moved.
    all: Vec<T>,
    /// Those in front of the huge page, which nobody uses.
    skipped: usize,
}

const HUGE_PAGE_BYTES: usize = 2 << 20;

impl<T: Default> Values<T> {
    /// So many default values, of whose addresses `advise` is told before they are first used.
    /// None if there is too little memory.
    pub fn new(len: usize, advise: &mut dyn FnMut(Range<usize>)) -> Option<Values<T>> {
        let bytes = len.checked_mul(size_of::<T>())?;
        let room = if bytes < HUGE_PAGE_BYTES { 0 } else { HUGE_PAGE_BYTES / size_of::<T>() };
        let mut all = Vec::new();
        all.try_reserve_exact(len.checked_add(room)?).ok()?;
        let start = all.as_ptr() as usize;
        let skipped = match room {
            0 => 0,
            _ => (start.next_multiple_of(HUGE_PAGE_BYTES) - start) / size_of::<T>(),
        };
        let first = start + skipped * size_of::<T>();
        advise(first..first + bytes);
        all.resize_with(skipped + len, T::default);
        Some(Values { all, skipped })
    }
}

impl<T> Deref for Values<T> {
    type Target = [T];

    #[inline]
    fn deref(&self) -> &[T] {
        &self.all[self.skipped..]
    }
}

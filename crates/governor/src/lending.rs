//! Calls in which the kernel itself comes to the pages of governed mappings. Its faults happen
//! within the kernel, where no signal can report them.

use std::ops::Range;

use filemap_control::layout::MAPPINGS;

use crate::disposition::with_signals_blocked;
use crate::start::{self, Run};
use crate::table::{Slot, TABLE};
use crate::{advice, ahead};

/// Bytes up to which a buffer that the kernel is going to read is asked for as a whole.
const SMALL_BUFFER_BYTES: usize = 512 << 10;

/// Lets the kernel read ahead by itself in the governed parts of `range` while `call` runs.
pub fn lend<R>(range: Range<usize>, call: impl FnOnce() -> R) -> R {
    let mut lent = Lent::new();
    lent.add(&range);
    call()
}

/// Runs `call`, in which the kernel reads the program's memory at `ranges`. What a program hands
/// over piece by piece is read ahead.
pub fn all_read_by_kernel<R>(
    ranges: impl Iterator<Item = Range<usize>>,
    call: impl FnOnce() -> R,
) -> R {
    let mut governed =
        ranges.filter(|range| TABLE.overlapping(range.clone()).next().is_some()).peekable();
    if governed.peek().is_none() {
        return call();
    }
    let mut lent = Lent::new();
    for range in governed {
        if range.len() > SMALL_BUFFER_BYTES {
            lent.add(&range);
        } else if let Some(run) = start::running() {
            let until = ahead::until(&range);
            each_governed(run, &(range.start..until), |_, _, part| {
                advice::read(&part);
            });
        }
    }
    call()
}

/// The slots whose mappings a call was lent, a bit for each. They are taken back when this goes,
/// also where the thread is cancelled within the call.
struct Lent([u64; MAPPINGS.div_ceil(64)]);

impl Lent {
    fn new() -> Lent {
        Lent([0; MAPPINGS.div_ceil(64)])
    }

    /// Lends the governed parts of `range`.
    fn add(&mut self, range: &Range<usize>) {
        if TABLE.overlapping(range.clone()).next().is_none() {
            return;
        }
        let Some(run) = start::running() else { return };
        with_signals_blocked(|| {
            let _held = TABLE.hold();
            each_governed(run, range, |number, slot, part| {
                if self.note(number) {
                    slot.lend();
                }
                advice::as_by_itself(&part);
            });
        });
    }

    /// Notes a slot. Returns whether it was not noted before.
    fn note(&mut self, number: usize) -> bool {
        let Some(word) = self.0.get_mut(number / 64) else { return false };
        let before = *word;
        *word |= 1 << (number % 64);
        *word != before
    }

    fn has(&self, number: usize) -> bool {
        self.0.get(number / 64).is_some_and(|word| word >> (number % 64) & 1 == 1)
    }
}

impl Drop for Lent {
    /// Takes back what was lent, unless another thread's call has it still.
    fn drop(&mut self) {
        if self.0.iter().all(|word| *word == 0) || start::running().is_none() {
            return;
        }
        with_signals_blocked(|| {
            let _held = TABLE.hold();
            for (_, slot) in TABLE.used().filter(|(number, _)| self.has(*number)) {
                // The whole of it: another call may have had another part.
                if slot.take_back() && !slot.is_free() {
                    advice::single_pages(&slot.range());
                }
            }
        });
    }
}

/// The parts of `range` that are governed, with their slots.
fn each_governed(run: &Run, range: &Range<usize>, mut act: impl FnMut(usize, &Slot, Range<usize>)) {
    for (number, slot) in TABLE.overlapping(range.clone()) {
        let has = slot.range();
        // Advice is for whole pages. The one in which the range begins belongs to it.
        let start = range.start.max(has.start) / run.page_size * run.page_size;
        let part = start..range.end.min(has.end);
        if !part.is_empty() {
            act(number, slot, part);
        }
    }
}

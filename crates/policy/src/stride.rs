//! Strides: equal distances between the faults of a thread outside of streams.

/// Distance and direction from one element to the next.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Stride {
    pages: u64,
    is_back: bool,
}

impl Stride {
    /// Consecutive pages towards the end of the file.
    pub const FORWARD: Stride = Stride { pages: 1, is_back: false };

    /// The step from one page to another; `None` if they are equal.
    pub const fn between(from: u64, to: u64) -> Option<Stride> {
        match to.abs_diff(from) {
            0 => None,
            pages => Some(Stride { pages, is_back: to < from }),
        }
    }

    /// Whether elements are adjacent pages.
    pub const fn is_dense(self) -> bool {
        self.pages == 1
    }

    /// Whether elements descend.
    pub const fn is_back(self) -> bool {
        self.is_back
    }

    /// The element number of `page` in a stream that begins at `start`; `None` if it is not an
    /// element.
    pub fn number(self, start: u64, page: u64) -> Option<u64> {
        let distance =
            if self.is_back { start.checked_sub(page)? } else { page.checked_sub(start)? };
        match distance.checked_rem(self.pages)? {
            0 => distance.checked_div(self.pages),
            _ => None,
        }
    }

    /// The page of element `number`; `None` if out of range.
    pub fn page(self, start: u64, number: u64) -> Option<u64> {
        let distance = number.checked_mul(self.pages)?;
        if self.is_back { start.checked_sub(distance) } else { start.checked_add(distance) }
    }

    /// Number of elements of a stream that begins at `start` within the pages `first..=last`, which
    /// include `start`.
    pub fn elements(self, start: u64, first: u64, last: u64) -> u64 {
        let distance =
            if self.is_back { start.saturating_sub(first) } else { last.saturating_sub(start) };
        distance.checked_div(self.pages).unwrap_or(0).saturating_add(1)
    }
}

/// Number of equal distances that make a stride.
const STRIDE_EQUAL_STEPS: usize = 4;

/// Maximum interleaving: a stride may be every fault up to every fourth fault, as when several
/// threads' accesses alternate.
const MAX_STRIDE_TURNS: usize = 4;

/// Number of faults remembered per thread, enough for the longest stride.
const FAULTS_KEPT: usize = STRIDE_EQUAL_STEPS * MAX_STRIDE_TURNS;

/// Number of thread slots. Threads that share a slot are treated as one.
const THREADS: u64 = 16;

/// The last faults of each thread.
#[derive(Clone, Debug, Default)]
pub struct RecentFaults {
    threads: [ThreadFaults; THREADS as usize],
}

impl RecentFaults {
    /// The faults of `thread`.
    pub const fn thread(&mut self, thread: u64) -> &mut ThreadFaults {
        &mut self.threads[(thread % THREADS) as usize]
    }
}

/// The last faults of one thread.
#[derive(Clone, Debug, Default)]
pub struct ThreadFaults {
    pages: [u64; FAULTS_KEPT],
    /// Number of faults recorded.
    noted: usize,
    /// Page of the last fault, including faults that belong to a stream.
    last: Option<u64>,
}

impl ThreadFaults {
    /// Records any fault. Returns whether the previous one was on an adjacent page.
    pub fn record_fault(&mut self, page: u64) -> bool {
        self.last.replace(page).is_some_and(|last| last.abs_diff(page) == 1)
    }

    /// Records a fault that belonged to no stream.
    pub fn record_unmatched(&mut self, page: u64) {
        let place = self.noted % FAULTS_KEPT;
        if let Some(kept) = self.pages.get_mut(place) {
            *kept = page;
        }
        self.noted = self.noted.wrapping_add(1);
    }

    /// The step of the stride that a fault at `page`, not recorded yet, continues. Distances of one
    /// page belong to streams instead.
    pub fn stride(&self, page: u64) -> Option<Stride> {
        (1..=MAX_STRIDE_TURNS).find_map(|turns| self.stride_by_turns(page, turns))
    }

    /// [`ThreadFaults::stride`] for strides whose faults are `turns` faults apart.
    fn stride_by_turns(&self, page: u64, turns: usize) -> Option<Stride> {
        let step = Stride::between(self.nth_last(turns)?, page)?;
        if step.is_dense() {
            return None;
        }
        let mut later = self.nth_last(turns)?;
        for number in 2..=STRIDE_EQUAL_STEPS {
            let earlier = self.nth_last(number.checked_mul(turns)?)?;
            if Stride::between(earlier, later) != Some(step) {
                return None;
            }
            later = earlier;
        }
        Some(step)
    }

    /// The page of the `ago`-th last fault, counted from 1.
    fn nth_last(&self, ago: usize) -> Option<u64> {
        let number = self.noted.checked_sub(ago)?;
        if ago > FAULTS_KEPT {
            return None;
        }
        self.pages.get(number % FAULTS_KEPT).copied()
    }
}

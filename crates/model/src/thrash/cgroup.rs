//! A memory cgroup with `memory.high` and `memory.max`.

use filemap_core::lru::high;
use filemap_core::units::PageCount;

/// Pages that are charged together, and that a CPU keeps at most.
pub const BATCH: u64 = high::CHARGE_BATCH.0;

/// What is charged to a cgroup, in pages.
#[derive(Clone, Debug)]
pub struct Cgroup {
    high: Option<u64>,
    max: Option<u64>,
    usage: u64,
    /// Pages that each CPU has charged before they are needed.
    stocks: Vec<u64>,
    stocked: u64,
}

/// The answer to a charge.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Charged {
    /// Done. So many pages are owed, as that went above `high`.
    Done {
        /// The whole batch.
        owed: u64,
    },
    /// It does not fit below `max`.
    Full,
}

impl Cgroup {
    /// Nothing charged.
    pub fn new(high: Option<u64>, max: Option<u64>, cpus: usize) -> Cgroup {
        Cgroup { high, max, usage: 0, stocks: vec![0; cpus], stocked: 0 }
    }

    /// Takes up to `pages` pages, a multiple of `each`, from the stock of `cpu`.
    pub fn take_stock(&mut self, cpu: usize, pages: u64, each: u64) -> u64 {
        let stock = &mut self.stocks[cpu];
        let taken = pages.min(*stock) / each * each;
        *stock -= taken;
        self.stocked -= taken;
        taken
    }

    /// Charges `pages` pages: a batch, of which the CPU keeps the rest, or as many as are needed
    /// where the batch does not fit.
    ///
    /// Mirrors `try_charge_memcg`, 6.12 and 6.18. Test: `tests/cgroup_limits.rs`.
    pub fn charge(&mut self, cpu: usize, pages: u64) -> Charged {
        let batch = [BATCH.max(pages), pages].into_iter().find(|batch| self.fits(*batch));
        let Some(batch) = batch else { return Charged::Full };
        self.usage += batch;
        self.put_stock(cpu, batch - pages);
        let owed = if self.is_over_high() { batch } else { 0 };
        Charged::Done { owed }
    }

    /// Charges what is not asked for a limit.
    pub fn force(&mut self, pages: u64) {
        self.usage += pages;
    }

    /// So many pages are free again.
    ///
    /// # Panics
    /// When they were not charged.
    pub fn uncharge(&mut self, pages: u64) {
        self.usage = self.usage.checked_sub(pages).expect("what is uncharged was charged");
    }

    /// No CPU keeps anything.
    pub fn drain(&mut self) {
        self.stocks.fill(0);
        self.usage -= self.stocked;
        self.stocked = 0;
    }

    /// Pages that still fit below `max`.
    pub fn margin(&self) -> u64 {
        self.max.map_or(u64::MAX, |max| max.saturating_sub(self.usage))
    }

    /// Whether more is charged than `high`.
    pub fn is_over_high(&self) -> bool {
        self.high.is_some_and(|high| self.usage > high)
    }

    /// How long a task sleeps that owes `pages` pages.
    pub fn delay_ns(&self, pages: u64) -> u64 {
        let pages = PageCount(pages);
        self.high.map_or(0, |high| high::delay_ns(PageCount(self.usage), PageCount(high), pages))
    }

    /// Pages charged.
    pub fn usage(&self) -> u64 {
        self.usage
    }

    /// Those of them that CPUs keep.
    pub fn stocked(&self) -> u64 {
        self.stocked
    }

    fn fits(&self, pages: u64) -> bool {
        pages <= self.margin()
    }

    fn put_stock(&mut self, cpu: usize, pages: u64) {
        let stock = &mut self.stocks[cpu];
        *stock += pages;
        self.stocked += pages;
        if *stock > BATCH {
            self.stocked -= *stock;
            self.usage -= *stock;
            *stock = 0;
        }
    }
}

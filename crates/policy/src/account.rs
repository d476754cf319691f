//! Decides when reading ahead pays off: weighs the cost of single-page faults so far (as in the
//! ski-rental problem) and the savings of earlier reads against the price of a read.

use crate::costs::Costs;
use crate::region::{BuySize, UnboughtTotals};

/// Maximum credit of a size, in multiples of its price.
const MAX_CREDIT_PRICES: u64 = 64;

/// Initial credit of sizes below a region, in the price of this many pages.
const FIRST_CREDIT_PAGES: u64 = 128;

/// A size that is refused for lack of credit gains one part in this many of its price, so that it
/// is retried now and then.
const RETRY_FRACTION: u64 = 256;

/// With credit for this many reads, a size is bought before its own faults have paid for it.
const RICH_PRICES: u64 = 40;

/// Estimated faults saved per use: fault-around hides all but one of the faults on 16 pages.
const FAULTS_SAVED_PER_USE: u64 = 2;

/// Maximum threshold, in percent of the price, at which a size is bought for the cost of its own
/// faults. The threshold is twice the ratio of the price of all visited regions to the cost of the
/// faults on them: where few regions are worth their price, each is bought later.
const MAX_PERCENT: u64 = 1000;

/// Minimum number of unread pages in visited regions for sizes below a region to be bought
/// everywhere.
const MANY_PAGES: u64 = 8 * BuySize::Region.pages();

/// Number of faults whose threads are remembered.
const RECENT_FAULTS: usize = 16;

/// Costs and savings, in nanoseconds.
///
/// Every read ahead is paid for: either from rent, the accumulated cost of single-page faults, or
/// from credit, the estimated savings of earlier reads of the same size. Each nanosecond is spent
/// at most once. The total cost is thus at most about twice the cheaper of single faults and whole
/// regions.
#[derive(Clone, Debug)]
pub struct ReadBudget {
    costs: Costs,
    /// Cost of single-page faults not yet spent.
    rent: u64,
    /// Unspent credit by [`BuySize`].
    credits: [u64; BuySize::ALL.len()],
    /// Ring buffer of the threads of the last faults.
    threads: [u64; RECENT_FAULTS],
    faults: usize,
}

impl ReadBudget {
    pub const fn new(costs: Costs) -> ReadBudget {
        let first = FIRST_CREDIT_PAGES * costs.page_ns;
        let credits = [first, first, 0];
        ReadBudget { costs, rent: 0, credits, threads: [0; RECENT_FAULTS], faults: 0 }
    }

    pub const fn set_costs(&mut self, costs: Costs) {
        self.costs = costs;
    }

    /// Cost of `pages` additional pages of a sequential read, in nanoseconds.
    pub const fn price_ns(&self, pages: u64) -> u64 {
        pages.saturating_mul(self.costs.page_ns)
    }

    /// Cost of one fault for the program, in nanoseconds: the cost of a read divided by the number
    /// of threads among the recent faults, which wait concurrently.
    pub fn fault_ns(&self) -> u64 {
        let last = &self.threads[..self.faults.min(RECENT_FAULTS)];
        let is_first = |at: &usize| !last[..*at].contains(&last[*at]);
        let threads = (0..last.len()).filter(is_first).count();
        self.costs.fault_ns / threads.max(1) as u64
    }

    /// Records a fault of `thread` that read or waited for a single page.
    pub fn count_fault(&mut self, thread: u64) {
        self.threads[self.faults % RECENT_FAULTS] = thread;
        self.faults = self.faults.saturating_add(1);
        self.rent = self.rent.saturating_add(self.fault_ns());
    }

    /// Credits the faults saved by a use of pages that were read as part of `size`.
    pub fn count_use(&mut self, size: BuySize) {
        let saved = if size == BuySize::Region { 1 } else { FAULTS_SAVED_PER_USE };
        let earned = self.fault_ns().saturating_mul(saved);
        let most = self.price_ns(size.pages()).saturating_mul(MAX_CREDIT_PRICES);
        let credit = &mut self.credits[size as usize];
        *credit = credit.saturating_add(earned).min(most);
    }

    /// Decides whether to read the remaining `rest` pages of a unit of `size`, on which `faults`
    /// faults have read single pages, and pays for it. `open` are the totals of visited regions
    /// that were not read. With `is_next`, a region adjacent to one that was read, the credit of
    /// regions may be used.
    pub fn buys(
        &mut self,
        size: BuySize,
        faults: u64,
        rest: u64,
        open: UnboughtTotals,
        is_next: bool,
    ) -> bool {
        let price = self.price_ns(rest);
        let own = faults.saturating_mul(self.fault_ns());
        let enough = price.saturating_mul(self.percent(open)) / 100;
        let is_paid = size == BuySize::Region && own >= enough;
        if self.rent >= price && (is_paid || self.is_due(size, open)) {
            self.rent -= price;
            return true;
        }
        if size == BuySize::Region {
            let own = own.min(self.rent);
            let is_lent = is_next && self.spend(size, price.saturating_sub(own));
            self.rent -= if is_lent { own.min(price) } else { 0 };
            return is_lent;
        }
        if own >= enough {
            let is_bought = self.spend(size, price);
            if !is_bought {
                self.credits[size as usize] += price / RETRY_FRACTION;
            }
            return is_bought;
        }
        let is_rich = self.credits[size as usize] >= enough.saturating_mul(RICH_PRICES);
        is_rich && self.spend(size, price.saturating_sub(own))
    }

    /// Decides whether to read `rest` pages of regions that the program has not reached, and pays
    /// for them from the credit of regions.
    pub fn buys_ahead(&mut self, rest: u64) -> bool {
        self.spend(BuySize::Region, self.price_ns(rest))
    }

    /// The percentage of the price that a unit's own faults must have cost before it is bought.
    fn percent(&self, open: UnboughtTotals) -> u64 {
        let spent = open.faults.saturating_mul(self.fault_ns()).max(1);
        (self.price_ns(open.pages).saturating_mul(200) / spent).clamp(100, MAX_PERCENT)
    }

    /// Whether the faults on all visited regions have cost nearly the price of the remaining pages,
    /// so that every unit of this size is bought at its next fault.
    fn is_due(&self, size: BuySize, open: UnboughtTotals) -> bool {
        let percent = match size {
            BuySize::Block => 75,
            BuySize::Group => 85,
            BuySize::Region => 95,
        };
        let spent = open.faults.saturating_mul(self.fault_ns());
        let says_something = size == BuySize::Region || open.pages >= MANY_PAGES;
        says_something && spent >= self.price_ns(open.pages) / 100 * percent
    }

    fn spend(&mut self, size: BuySize, price: u64) -> bool {
        let credit = &mut self.credits[size as usize];
        let has_enough = price <= *credit;
        *credit -= if has_enough { price } else { 0 };
        has_enough
    }
}

//! When pages are bought: what single faults have cost, and what buying has saved.

use crate::costs::Costs;
use crate::region::{Open, Size};

/// The most that is kept of what a size has earned, in prices of one of that size.
const MOST_CREDIT: u64 = 64;

/// What sizes below a region may spend before they have earned anything, in pages.
const FIRST_CREDIT_PAGES: u64 = 128;

/// Each time such a size is refused it gets this part of the price, so that it is tried now and
/// then.
const RETRY_PART: u64 = 256;

/// From so many prices of credit on such a size is bought before its own faults have paid for it.
const RICH: u64 = 40;

/// Faults that one use of such a size has saved, as far as can be told: fault-around hides all but
/// one of those on 16 pages.
const SAVED: u64 = 2;

/// Something is bought for its own faults when these have cost so many times its price as twice the
/// price of all regions that were come to is above what the faults on them have cost; up to this,
/// in percent. Where few regions would be worth their price, each is bought later.
const MOST_PERCENT: u64 = 1000;

/// Pages of visited regions below which nothing smaller than a region is bought for all of them.
const MANY_PAGES: u64 = 8 * Size::Region.pages();

/// Faults whose threads are kept.
const RECENT: usize = 16;

/// What was spent and what was earned, in nanoseconds.
///
/// Whatever is bought is paid for: from the rent, which faults on single pages have cost and each
/// nanosecond of which is spent once, or from what the uses of earlier buys of that size saved.
#[derive(Clone, Debug)]
pub struct Account {
    costs: Costs,
    /// What faults on single pages have cost, less what was bought for it.
    rent: u64,
    /// What each size has earned and not spent.
    credits: [u64; Size::ALL.len()],
    /// Threads of the last faults.
    threads: [u64; RECENT],
    faults: usize,
}

impl Account {
    pub const fn new(costs: Costs) -> Account {
        let first = FIRST_CREDIT_PAGES * costs.page_ns;
        let credits = [first, first, 0];
        Account { costs, rent: 0, credits, threads: [0; RECENT], faults: 0 }
    }

    pub const fn set_costs(&mut self, costs: Costs) {
        self.costs = costs;
    }

    /// What so many pages cost that are read together.
    pub const fn price_ns(&self, pages: u64) -> u64 {
        pages.saturating_mul(self.costs.page_ns)
    }

    /// What one fault costs the program: the threads that took the last ones wait together.
    pub fn fault_ns(&self) -> u64 {
        let last = &self.threads[..self.faults.min(RECENT)];
        let is_first = |at: &usize| !last[..*at].contains(&last[*at]);
        let threads = (0..last.len()).filter(is_first).count();
        self.costs.fault_ns / threads.max(1) as u64
    }

    /// Counts a fault of `thread` that read a single page, or waited for one.
    pub fn count_fault(&mut self, thread: u64) {
        self.threads[self.faults % RECENT] = thread;
        self.faults = self.faults.saturating_add(1);
        self.rent = self.rent.saturating_add(self.fault_ns());
    }

    /// Pages that were bought as a part of so much were used.
    pub fn count_use(&mut self, size: Size) {
        let saved = if size == Size::Region { 1 } else { SAVED };
        let earned = self.fault_ns().saturating_mul(saved);
        let most = self.price_ns(size.pages()).saturating_mul(MOST_CREDIT);
        let credit = &mut self.credits[size as usize];
        *credit = credit.saturating_add(earned).min(most);
    }

    /// Whether to buy the `rest` of so much, in pages, of which `faults` faults have read single
    /// pages, where `open` says what the regions are that were come to and not bought. What is the
    /// next one to a region that was bought may be paid from what regions have earned.
    pub fn buys(&mut self, size: Size, faults: u64, rest: u64, open: Open, is_next: bool) -> bool {
        let price = self.price_ns(rest);
        let own = faults.saturating_mul(self.fault_ns());
        let enough = price.saturating_mul(self.percent(open)) / 100;
        let is_paid = size == Size::Region && own >= enough;
        if self.rent >= price && (is_paid || self.is_due(size, open)) {
            self.rent -= price;
            return true;
        }
        if size == Size::Region {
            let own = own.min(self.rent);
            let is_lent = is_next && self.spend(size, price.saturating_sub(own));
            self.rent -= if is_lent { own.min(price) } else { 0 };
            return is_lent;
        }
        if own >= enough {
            let is_bought = self.spend(size, price);
            if !is_bought {
                self.credits[size as usize] += price / RETRY_PART;
            }
            return is_bought;
        }
        let is_rich = self.credits[size as usize] >= enough.saturating_mul(RICH);
        is_rich && self.spend(size, price.saturating_sub(own))
    }

    /// Whether to buy so many pages of regions that the program has not come to.
    pub fn buys_ahead(&mut self, rest: u64) -> bool {
        self.spend(Size::Region, self.price_ns(rest))
    }

    /// At how much of its price something is bought, by what is known of all regions.
    fn percent(&self, open: Open) -> u64 {
        let spent = open.faults.saturating_mul(self.fault_ns()).max(1);
        (self.price_ns(open.pages).saturating_mul(200) / spent).clamp(100, MOST_PERCENT)
    }

    /// Whether the faults on all regions that were come to have cost so much of what it costs to
    /// read their rest that everything is bought in this size.
    fn is_due(&self, size: Size, open: Open) -> bool {
        let percent = match size {
            Size::Block => 75,
            Size::Group => 85,
            Size::Region => 95,
        };
        let spent = open.faults.saturating_mul(self.fault_ns());
        let says_something = size == Size::Region || open.pages >= MANY_PAGES;
        says_something && spent >= self.price_ns(open.pages) / 100 * percent
    }

    fn spend(&mut self, size: Size, price: u64) -> bool {
        let credit = &mut self.credits[size as usize];
        let has_enough = price <= *credit;
        *credit -= if has_enough { price } else { 0 };
        has_enough
    }
}

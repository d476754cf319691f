//! When pages are bought: what single faults have cost, and what buying has saved.

use crate::costs::Costs;
use crate::region::{Open, Size};

/// Tuning.
#[derive(Clone, Copy, Debug)]
pub struct Rule {
    /// Percent of a region's price at which all open regions together are bought.
    pub whole: u64,
    /// Open price in regions below which that does not hold.
    pub whole_least: u64,
    /// Part of the credit that may be lent at once.
    pub lent_part: u64,
    pub most_credit: u64,
    pub small_credit: u64,
    pub probe: u64,
    pub percent: u64,
}

impl Rule {
    pub const DEFAULT: Rule = Rule {
        whole: 60,
        whole_least: 8,
        lent_part: 2,
        most_credit: 64,
        small_credit: 32,
        probe: 16,
        percent: 100,
    };
}

/// What was earned by what was bought in each size. All in nanoseconds.
#[derive(Clone, Debug)]
pub struct Account {
    pub costs: Costs,
    pub rule: Rule,
    pub credits: [u64; 3],
    /// What single faults have cost, less what was bought for it.
    pub rent: u64,
}

impl Account {
    pub fn new(costs: Costs) -> Account {
        let rule = Rule::DEFAULT;
        let small = |size: Size| rule.small_credit * size.pages() * costs.page_ns;
        let credits = [small(Size::Block), small(Size::Group), 0];
        Account { costs, rule, credits, rent: 0 }
    }

    /// A page was read by itself.
    pub fn count_fault(&mut self) {
        self.rent = self.rent.saturating_add(self.costs.fault_ns);
    }

    /// What was bought as a part of so much was used: that has saved a fault at least.
    pub fn count_use(&mut self, size: Size) {
        let most = self.rule.most_credit * size.pages() * self.costs.page_ns;
        let credit = &mut self.credits[size as usize];
        *credit = credit.saturating_add(self.costs.fault_ns).min(most);
    }

    /// Whether to buy `rest` pages of so much where `faults` faults have read pages by themselves.
    pub fn buys(&mut self, size: Size, faults: u64, rest: u64, open: Open) -> bool {
        let Costs { fault_ns, page_ns } = self.costs;
        let rule = self.rule;
        let price = rest.saturating_mul(page_ns);
        let own = faults.saturating_mul(fault_ns);
        if size != Size::Region {
            return self.buys_small(size, own, price);
        }
        if own >= price.saturating_mul(rule.percent) / 100 {
            self.rent = self.rent.saturating_sub(price);
            return true;
        }
        // The rest is lent by what was earned with other regions.
        let lent = price - own;
        let credit = &mut self.credits[size as usize];
        if lent <= *credit / rule.lent_part {
            *credit -= lent;
            self.rent = self.rent.saturating_sub(own);
            return true;
        }
        let open_price = open.pages.saturating_mul(page_ns);
        let is_many = open.pages >= rule.whole_least * Size::Region.pages();
        let open_rent = open.faults.saturating_mul(fault_ns);
        if is_many && open_rent >= open_price.saturating_mul(rule.whole) / 100 && self.rent >= price {
            self.rent -= price;
            return true;
        }
        false
    }

    fn buys_small(&mut self, size: Size, own: u64, price: u64) -> bool {
        let most = self.rule.most_credit * size.pages() * self.costs.page_ns;
        let credit = &mut self.credits[size as usize];
        let lent = price.saturating_sub(own);
        if lent > 0 {
            if lent <= *credit / 8 && *credit > most / 2 {
                *credit -= lent;
                return true;
            }
            return false;
        }
        if *credit >= price {
            *credit -= price;
            return true;
        }
        *credit += price / self.rule.probe;
        false
    }
}

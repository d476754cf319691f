//! What is known of a file.

use crate::account::Account;
use crate::beyond::Beyond;
use crate::costs::{Costs, Touch};
use crate::lengths::Lengths;
use crate::pages::{Bounds, Pages};
use crate::reads::Reads;
use crate::recent::Recent;
use crate::region::{Region, Size};
use crate::regions::Regions;
use crate::step::Step;
use crate::stream::{Circumstances, Elements, Stream};
use crate::table::Table;

/// What the policy knows of one file, through all mappings of it.
#[derive(Clone, Debug)]
pub struct State {
    largest_window: u64,
    is_memory_short: bool,
    /// Faults so far that read a page that was not asked for.
    faults: u64,
    /// Streams that have begun so far.
    begun: u64,
    /// The page of the last fault.
    last: Option<u64>,
    table: Table,
    recent: Recent,
    lengths: Lengths,
    beyond: Beyond,
    regions: Regions,
    account: Account,
}

impl State {
    /// A file of which nothing is known yet. A stream asks for at most `largest_window_pages` at
    /// once; 0 switches the policy off.
    #[must_use]
    pub fn new(largest_window_pages: u64, costs: Costs) -> State {
        State {
            largest_window: largest_window_pages,
            is_memory_short: false,
            faults: 0,
            begun: 0,
            last: None,
            table: Table::NEW,
            recent: Recent::NEW,
            lengths: Lengths::NEW,
            beyond: Beyond::default(),
            regions: Regions::default(),
            account: Account::new(costs),
        }
    }

    /// Streams that have begun so far, single faults included.
    #[must_use]
    pub const fn begun(&self) -> u64 {
        self.begun
    }

    /// What reads cost from now on.
    pub const fn set_costs(&mut self, costs: Costs) {
        self.account.costs = costs;
    }

    /// Tuning.
    pub fn set_rule(&mut self, change: impl FnOnce(&mut crate::account::Rule)) {
        change(&mut self.account.rule);
        self.account = Account { rule: self.account.rule, ..Account::new(self.account.costs) };
    }

    /// Whether memory is short. Then nothing is bought, and streams ask for what they have earned.
    pub const fn set_memory_short(&mut self, is_short: bool) {
        self.is_memory_short = is_short;
    }

    /// The program has come to `page`, a page of the file. Returns the pages that are worth reading
    /// now, within `bounds`. A page outside of these says nothing.
    pub fn fault(&mut self, page: u64, touch: Touch, bounds: Bounds) -> Reads {
        let inside = bounds.inside();
        if !inside.contains(page) || self.largest_window == 0 {
            return Reads::NONE;
        }
        let is_known = self.regions.with(page, |region| region.knows(page));
        match (is_known, touch) {
            (true, _) => self.come(page, touch, inside),
            (false, Touch::Minor) => {
                self.add(Pages { first: page, end: page + 1 });
                Reads::NONE
            }
            (false, Touch::Major | Touch::Seen) => self.miss(page, inside),
        }
    }

    /// A page that was asked for, or read before.
    fn come(&mut self, page: u64, touch: Touch, inside: Pages) -> Reads {
        let is_wait = touch == Touch::Major;
        if is_wait {
            self.wait(page);
        } else if let Some(size) = self.regions.with(page, |region| region.use_bought(page)) {
            self.account.count_use(size);
        }
        let mut around = Circumstances {
            inside,
            largest: self.largest_window,
            lengths: &mut self.lengths,
            beyond: &mut self.beyond,
            fault: self.faults,
            begun: self.begun,
            is_direct: false,
        };
        let Some((stream, number)) = self.table.that_has_asked(page) else { return Reads::NONE };
        let elements = stream.come(number, is_wait, &mut around);
        let mut reads = Reads::NONE;
        add(stream, elements, &mut reads);
        self.note(&reads);
        reads
    }

    /// It had to wait for `page`. Where it does so too often, what was asked for is gone: then the
    /// region is one of which nothing is known.
    fn wait(&mut self, page: u64) {
        let Costs { fault_ns, page_ns } = self.account.costs;
        self.regions.with(page, |region| {
            region.waits = region.waits.saturating_add(1);
            let price = Size::Region.pages().saturating_mul(page_ns);
            if u64::from(region.waits).saturating_mul(fault_ns) >= price {
                *region = Region::NEW;
                region.add(Pages { first: page, end: page + 1 });
            }
        });
    }

    /// A fault that read a page that was not asked for.
    fn miss(&mut self, page: u64, inside: Pages) -> Reads {
        self.faults = self.faults.saturating_add(1);
        self.account.count_fault();
        self.regions.with(page, |region| {
            region.add(Pages { first: page, end: page + 1 });
            region.count_fault(page);
        });
        let mut reads = self.follow(page, inside);
        self.note(&reads);
        if !self.is_memory_short {
            self.buy(page, inside, &mut reads);
        }
        reads
    }

    /// What the stream of `page` asks for.
    fn follow(&mut self, page: u64, inside: Pages) -> Reads {
        let is_direct = self.last.is_some_and(|last| last.abs_diff(page) == 1);
        self.last = Some(page);
        let mut around = Circumstances {
            inside,
            largest: self.largest_window,
            lengths: &mut self.lengths,
            beyond: &mut self.beyond,
            fault: self.faults,
            begun: self.begun,
            is_direct,
        };
        let mut reads = Reads::NONE;
        if let Some((stream, meeting)) = self.table.meet(page) {
            let elements = stream.go_on(meeting, &mut around);
            add(stream, elements, &mut reads);
            return reads;
        }
        let step = self.recent.stride(page).unwrap_or(Step::FORWARD);
        self.recent.note(page);
        self.begun = self.begun.saturating_add(1);
        around.begun = self.begun;
        for stream in self.table.streams() {
            stream.teach(self.begun, around.lengths, around.beyond);
        }
        let mut stream = Stream::new(page, step);
        let elements = stream.ask(&mut around);
        add(&stream, elements, &mut reads);
        self.table.insert(stream);
        reads
    }

    /// Buys what is around `page`, if it is time to.
    fn buy(&mut self, page: u64, inside: Pages, reads: &mut Reads) {
        for size in Size::ALL {
            let all = size.around(page);
            let pages = Pages { first: all.first.max(inside.first), end: all.end.min(inside.end) };
            let (faults, rest) = self
                .regions
                .with(page, |region| (region.faults(size, page), region.unknown(pages)));
            let open = self.regions.open();
            if rest > 0 && self.account.buys(size, faults, rest, open) {
                self.regions.with(page, |region| {
                    region.buy(size, page);
                    region.add(pages);
                });
                reads.add(pages, false);
                return;
            }
        }
    }

    fn note(&mut self, reads: &Reads) {
        reads.ranges().for_each(|pages| self.regions.add(pages));
    }

    fn add(&mut self, pages: Pages) {
        self.regions.add(pages);
    }
}

fn add(stream: &Stream, elements: Elements, reads: &mut Reads) {
    stream.pages(elements).for_each(|pages| reads.add(pages, stream.is_back()));
}

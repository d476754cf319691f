//! What is known of a file.

use crate::account::Account;
use crate::beyond::Beyond;
use crate::comparison::{Comparison, WindowCost};
use crate::costs::{Costs, Touch, Window};
use crate::lengths::Lengths;
use crate::pages::{Bounds, Pages};
use crate::reads::Reads;
use crate::recent::Recent;
use crate::region::{Region, Size};
use crate::regions::Regions;
use crate::step::Step;
use crate::stream::{Circumstances, Elements, Stream};
use crate::table::Table;

/// Up to so many pages a window of the kernel's is short.
const SHORT_WINDOW: u64 = Size::Group.pages();

/// The most regions that are bought before the program comes to them.
const MOST_AHEAD: u64 = 8;

/// What the policy knows of one file, through all mappings of it.
#[derive(Clone, Debug)]
pub struct State {
    largest_window: u64,
    thread: u64,
    is_memory_short: bool,
    window: Window,
    comparison: Comparison,
    /// Faults so far that read a page that was not asked for.
    faults: u64,
    /// Streams that have begun so far.
    begun: u64,
    table: Table,
    recent: Recent,
    lengths: Lengths,
    beyond: Beyond,
    regions: Regions,
    account: Account,
}

impl State {
    /// A file of which nothing is known yet. A stream asks for at most `largest_window_pages` at
    /// once, and no more is bought at once either; 0 switches the policy off.
    #[must_use]
    pub fn new(largest_window_pages: u64, costs: Costs) -> State {
        State {
            largest_window: largest_window_pages,
            thread: 0,
            is_memory_short: false,
            window: Window::NONE,
            comparison: Comparison::default(),
            faults: 0,
            begun: 0,
            table: Table::NEW,
            recent: Recent::default(),
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
        self.account.set_costs(costs);
    }

    /// The thread of the faults that come next. Where nobody says, there is one.
    pub const fn set_thread(&mut self, thread: u64) {
        self.thread = thread;
    }

    /// Whether memory is short. Then nothing is bought, and streams ask for what they have earned.
    pub const fn set_memory_short(&mut self, is_short: bool) {
        self.is_memory_short = is_short;
    }

    /// What the kernel reads around a fault by itself in the mapping of the faults that come next.
    pub const fn set_window(&mut self, window: Window) {
        self.window = window;
    }

    /// Whether the kernel's own windows cost less than single pages. From then on mappings whose
    /// window is told have to be as the program made them, so that the kernel reads windows there.
    #[must_use]
    pub const fn is_left_to_kernel(&self) -> bool {
        self.comparison.is_lost()
    }

    /// The program has come to `page`, a page of the file. Returns the pages that are worth reading
    /// now, within `bounds`. A page outside of these says nothing.
    pub fn fault(&mut self, page: u64, touch: Touch, bounds: Bounds) -> Reads {
        let inside = bounds.inside();
        let is_left = self.has_short_window() && self.comparison.is_lost();
        if !inside.contains(page) || self.largest_window == 0 || is_left {
            return Reads::NONE;
        }
        let is_known = self.regions.with(page, |region| region.knows(page));
        // A page that a stream has asked for too late is one that the window would have had.
        let is_late = |state: &mut State| is_known && state.table.that_has_asked(page).is_some();
        if self.has_short_window() && touch == Touch::Major && (!is_known || is_late(self)) {
            let cost = self.kernels_cost(page, inside);
            let all_ns = inside.count().saturating_mul(self.window.page_ns);
            self.comparison.count(cost, self.account.fault_ns(), inside.count(), all_ns);
        }
        match (is_known, touch) {
            (true, _) => self.come(page, touch, inside),
            (false, Touch::Minor) => {
                self.add(Pages { first: page, end: page + 1 });
                Reads::NONE
            }
            (false, Touch::Major | Touch::Seen) => self.miss(page, inside),
        }
    }

    /// What it would cost to come to `page` where the kernel reads windows of its own.
    fn kernels_cost(&mut self, page: u64, inside: Pages) -> WindowCost {
        let number = self.comparison.number();
        let mut is_around = |page| self.regions.with(page, |region| region.is_around(page, number));
        if is_around(page) {
            return WindowCost::default();
        }
        // After the end of a window the next one is under way already.
        let is_behind = page.checked_sub(1).is_some_and(is_around);
        let (first, fault_ns) = if is_behind {
            (page, 0)
        } else {
            (page.saturating_sub(self.window.pages / 2), self.account.fault_ns())
        };
        let end = first.saturating_add(self.window.pages).min(inside.end);
        let fresh: u64 = pieces(Pages { first: first.max(inside.first), end })
            .map(|part| self.regions.with(part.first, |region| region.add_around(part, number)))
            .sum();
        let ns = fresh.saturating_mul(self.window.page_ns).saturating_add(fault_ns);
        WindowCost { ns, pages: fresh }
    }

    /// A page that was asked for, or read before.
    fn come(&mut self, page: u64, touch: Touch, inside: Pages) -> Reads {
        let is_wait = touch == Touch::Major;
        if is_wait {
            self.wait(page);
        }
        if let Some(size) = self.regions.with(page, |region| region.use_bought(page)) {
            self.account.count_use(size);
        }
        let mut reads = Reads::NONE;
        let (table, mut around) = self.streams(inside, false);
        if let Some((stream, number)) = table.that_has_asked(page) {
            let elements = stream.come(number, is_wait, &mut around);
            add(stream, elements, &mut reads);
            self.note(&reads);
        }
        let ahead = self.regions.with(page, |region| std::mem::take(&mut region.ahead));
        if ahead > 0 && !self.is_memory_short {
            self.buy_ahead(Size::Region.around(page).end, ahead * 2, inside, &mut reads);
        }
        reads
    }

    /// It had to wait for `page`. Where it does so too often, what was asked for is gone: then the
    /// region is one of which nothing is known.
    fn wait(&mut self, page: u64) {
        self.account.count_fault(self.thread);
        let fault_ns = self.account.fault_ns();
        let price = self.account.price_ns(Size::Region.pages());
        self.regions.with(page, |region| {
            region.count_fault(page);
            region.waits = region.waits.saturating_add(1);
            if u64::from(region.waits).saturating_mul(fault_ns) >= price {
                *region = Region::NEW;
                region.add(Pages { first: page, end: page + 1 });
            }
        });
    }

    /// A fault that read a page that was not asked for.
    fn miss(&mut self, page: u64, inside: Pages) -> Reads {
        self.faults = self.faults.saturating_add(1);
        self.account.count_fault(self.thread);
        self.regions.with(page, |region| {
            region.add(Pages { first: page, end: page + 1 });
            region.count_fault(page);
        });
        let mut reads = self.follow(page, inside);
        self.note(&reads);
        if !self.is_memory_short && !self.has_short_window() {
            self.buy(page, inside, &mut reads);
        }
        reads
    }

    /// Where the kernel's own windows are short, these are what can be read in place of single
    /// pages, and nothing is bought.
    const fn has_short_window(&self) -> bool {
        self.window.pages > 0 && self.window.pages <= SHORT_WINDOW
    }

    /// What the stream of `page` asks for.
    fn follow(&mut self, page: u64, inside: Pages) -> Reads {
        let is_direct = self.recent.of(self.thread).comes_to(page);
        let mut reads = Reads::NONE;
        let (table, mut around) = self.streams(inside, is_direct);
        if let Some((stream, meeting)) = table.meet(page) {
            let elements = stream.go_on(meeting, &mut around);
            add(stream, elements, &mut reads);
            return reads;
        }
        let recent = self.recent.of(self.thread);
        let step = recent.stride(page).unwrap_or(Step::FORWARD);
        recent.note(page);
        self.begun = self.begun.saturating_add(1);
        let (table, mut around) = self.streams(inside, is_direct);
        for stream in table.streams() {
            stream.teach(around.begun, around.lengths, around.beyond);
        }
        let mut stream = Stream::new(page, step);
        let elements = stream.ask(&mut around);
        add(&stream, elements, &mut reads);
        table.insert(stream);
        reads
    }

    /// The streams, and what they have to know to answer a fault.
    fn streams(&mut self, inside: Pages, is_direct: bool) -> (&mut Table, Circumstances<'_>) {
        let around = Circumstances {
            inside,
            largest: self.largest_window,
            lengths: &mut self.lengths,
            beyond: &mut self.beyond,
            is_memory_short: self.is_memory_short,
            fault: self.faults,
            begun: self.begun,
            is_direct,
        };
        (&mut self.table, around)
    }

    /// Buys what is around `page`, if it is time to.
    fn buy(&mut self, page: u64, inside: Pages, reads: &mut Reads) {
        let is_streaming = reads.pages() > 0;
        let largest = self.largest_window;
        for size in Size::ALL.into_iter().filter(|size| size.pages() <= largest) {
            if is_streaming && size != Size::Region {
                continue;
            }
            let all = size.around(page);
            let pages = Pages { first: all.first.max(inside.first), end: all.end.min(inside.end) };
            let (faults, rest) = self
                .regions
                .with(page, |region| (region.faults(size, page), region.unknown(pages)));
            let open = self.regions.open();
            let is_next = size == Size::Region && self.is_beside_bought(all);
            if rest > 0 && self.account.buys(size, faults, rest, open, is_next) {
                self.regions.with(page, |region| {
                    region.buy(size, page);
                    region.add(pages);
                });
                reads.add(pages, false);
                reads.is_for_later |= size == Size::Region;
                if size == Size::Region {
                    self.buy_behind(all, inside, reads);
                }
                return;
            }
        }
    }

    /// Whether a region beside this one was bought.
    fn is_beside_bought(&mut self, region: Pages) -> bool {
        let beside = [region.first.checked_sub(1), Some(region.end)];
        let mut pages = beside.into_iter().flatten();
        pages.any(|page| self.regions.with(page, |region| region.is_bought))
    }

    /// A region was bought, or one that was bought ahead is used: where regions were bought one
    /// after the other the next ones are bought too.
    fn buy_behind(&mut self, region: Pages, inside: Pages, reads: &mut Reads) {
        let Some(before) = region.first.checked_sub(1) else { return };
        let (was_bought, ahead) =
            self.regions.with(before, |before| (before.is_bought, before.ahead));
        if was_bought {
            self.buy_ahead(region.end, (ahead * 2).max(1), inside, reads);
        }
    }

    fn buy_ahead(&mut self, from: u64, ahead: u64, inside: Pages, reads: &mut Reads) {
        let ahead = ahead.min(self.largest_window / Size::Region.pages()).min(MOST_AHEAD);
        let end = from.saturating_add(ahead * Size::Region.pages()).min(inside.end);
        let pages = Pages { first: from, end };
        let rest: u64 = pieces(pages)
            .map(|part| self.regions.with(part.first, |region| region.unknown(part)))
            .sum();
        if rest == 0 || !self.account.buys_ahead(rest) {
            return;
        }
        for part in pieces(pages) {
            self.regions.with(part.first, |region| {
                region.buy(Size::Region, part.first);
                region.add(part);
                region.ahead = if part.end == end { ahead } else { 0 };
            });
        }
        reads.add(pages, false);
        reads.is_for_later = true;
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

/// Each region's part of `pages`.
fn pieces(pages: Pages) -> impl Iterator<Item = Pages> {
    let mut first = pages.first;
    std::iter::from_fn(move || {
        let end = Size::Region.around(first).end.min(pages.end);
        let part = Pages { first, end };
        first = end;
        (part.count() > 0).then_some(part)
    })
}

//! What is known of a mapping.

use crate::costs::{Costs, Touch};
use crate::lengths::Lengths;
use crate::pages::Bounds;
use crate::reads::Reads;
use crate::recent::Recent;
use crate::step::Step;
use crate::stream::{Circumstances, Stream};
use crate::table::Table;

/// What the policy knows of one mapping. Its size is fixed (see the test `the_state_is_small`).
#[derive(Clone, Debug)]
pub struct State {
    largest_window: u64,
    costs: Costs,
    is_memory_short: bool,
    /// Faults so far.
    faults: u64,
    /// Streams that have begun so far.
    begun: u64,
    /// The page of the last fault.
    last: Option<u64>,
    table: Table,
    recent: Recent,
    lengths: Lengths,
}

impl State {
    /// A mapping of which nothing is known yet. One fault asks for at most `largest_window` pages;
    /// 0 switches the policy off.
    #[must_use]
    pub const fn new(largest_window: u64, costs: Costs) -> State {
        State {
            largest_window,
            costs,
            is_memory_short: false,
            faults: 0,
            begun: 0,
            last: None,
            table: Table::NEW,
            recent: Recent::NEW,
            lengths: Lengths::NEW,
        }
    }

    /// Streams that have begun so far, single faults included.
    #[must_use]
    pub const fn begun(&self) -> u64 {
        self.begun
    }

    /// What reads cost from now on.
    pub const fn set_costs(&mut self, costs: Costs) {
        self.costs = costs;
    }

    /// Whether memory is short: then nothing is bought.
    pub const fn set_memory_short(&mut self, is_short: bool) {
        self.is_memory_short = is_short;
    }

    /// A major fault on `page`, a page of the file: it was missing and the kernel read it. Returns
    /// what else is worth reading, within `bounds`. A page outside of these says nothing.
    #[must_use]
    pub fn fault(&mut self, page: u64, touch: Touch, bounds: Bounds) -> Reads {
        let inside = bounds.inside();
        if !inside.contains(page) || touch == Touch::Minor {
            return Reads::NONE;
        }
        self.faults = self.faults.saturating_add(1);
        let is_direct = self.last.is_some_and(|last| last.abs_diff(page) == 1);
        self.last = Some(page);
        let mut around = Circumstances {
            inside,
            largest: self.largest_window,
            lengths: &mut self.lengths,
            fault: self.faults,
            begun: self.begun,
            is_direct,
        };
        if let Some((stream, meeting)) = self.table.meet(page) {
            return stream.go_on(meeting, &mut around);
        }
        let step = self.recent.stride(page).unwrap_or(Step::FORWARD);
        self.recent.note(page);
        self.begun = self.begun.saturating_add(1);
        around.begun = self.begun;
        self.table.streams().for_each(|stream| stream.teach(self.begun, around.lengths));
        let mut stream = Stream::new(page, step);
        let reads = stream.ask(&mut around);
        self.table.insert(stream);
        reads
    }
}

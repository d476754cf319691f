//! Requests that wait for places in the queue of a device.

use filemap_core::units::FileId;

use super::{Device, Row};

/// Places in the queue that are free one after the other.
struct Places {
    /// How many.
    number: u64,
    /// When the first of them is.
    first_ns: u64,
    /// How much later each one after it is.
    each_ns: u64,
}

/// The request whose place in the queue the next one takes, as the requests before it and after
/// it are complete in their order.
struct Predecessor {
    /// Its row.
    row: usize,
    /// Requests of that row, and of those after it.
    behind: u64,
}

impl Device {
    /// Begins to read the rows from `number` on of those asked for, whose requests may wait for
    /// places in the queue: together those that are served one after the other.
    #[cold]
    pub(super) fn serve_queued(&mut self, number: usize, file: FileId, now_ns: u64) {
        let mut predecessor = Predecessor { row: 0, behind: self.under_way };
        for number in number..self.asked.len() {
            let mut asked = self.asked[number];
            let mut is_first = true;
            while asked.requests > 0 {
                let Places { number, first_ns, each_ns } = self.places(&mut predecessor);
                let from_ns = now_ns.max(first_ns);
                let first = self.row(asked.first(1), file, from_ns);
                // Each place has to be there a latency before the device has served those before.
                let first_byte_ns = first.done_ns.saturating_sub(first.each_ns);
                let latency_ns = self.profile.latency_ns;
                let spare_ns = first_byte_ns.saturating_sub(first_ns.saturating_add(latency_ns));
                let behind = match each_ns.saturating_sub(first.each_ns) {
                    0 => u64::MAX,
                    later_ns => spare_ns / later_ns,
                };
                let together = asked.requests.min(number).min(behind.saturating_add(1));
                let row = Row { queued: true, ..self.row(asked.first(together), file, from_ns) };
                asked = asked.behind(together);
                let goes_on = row.done_ns == self.busy_until_ns.saturating_add(row.each_ns);
                if let Some(last) = self.rows.back_mut().filter(|_| goes_on && !is_first) {
                    last.pages += row.pages;
                    last.requests += row.requests;
                    (last.all_done_ns, last.last_ns) = (row.all_done_ns, row.last_ns);
                    self.busy_until_ns = row.all_done_ns;
                    self.under_way += row.requests;
                } else {
                    self.serve(row);
                }
                predecessor.behind += together;
                is_first = false;
            }
        }
    }

    /// The places in the queue that the next requests take, after those of `predecessor`.
    fn places(&self, predecessor: &mut Predecessor) -> Places {
        let depth = u64::from(self.profile.queue_depth);
        if self.under_way < depth {
            return Places { number: depth - self.under_way, first_ns: 0, each_ns: 0 };
        }
        let row = loop {
            let row = &self.rows[predecessor.row];
            if predecessor.behind - row.requests < depth {
                break row;
            }
            predecessor.behind -= row.requests;
            predecessor.row += 1;
        };
        let next = predecessor.behind - depth;
        let (first_ns, each_ns) = (row.done_ns_of(next), row.each_ns);
        let left = row.requests - next;
        let number = if row.last_ns == each_ns { left } else { (left - 1).max(1) };
        Places { number, first_ns, each_ns }
    }
}

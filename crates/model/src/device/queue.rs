//! Requests that wait for places in the queue of a device.

use filemap_core::units::FileId;

use super::{Asked, Device, Row};

/// Places in the queue that are free one behind the other.
struct Places {
    /// How many.
    number: u64,
    /// When the first of them is.
    first_ns: u64,
    /// How much later each one behind it is.
    each_ns: u64,
}

impl Device {
    /// Begins to read a row whose requests may wait for places in the queue: together those that
    /// are served one behind the other.
    #[cold]
    pub(super) fn serve_queued(&mut self, mut asked: Asked, file: FileId, now_ns: u64) {
        let mut is_first = true;
        while asked.requests > 0 {
            let Places { number, first_ns, each_ns } = self.places();
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
            is_first = false;
        }
    }

    /// The places in the queue that the next requests take.
    fn places(&self) -> Places {
        let mut behind = u64::from(self.profile.queue_depth);
        for row in self.rows.iter().rev() {
            if row.requests >= behind {
                let next = row.requests - behind;
                let (first_ns, each_ns) = (row.done_ns_of(next), row.each_ns);
                let number = if row.last_ns == each_ns { behind } else { (behind - 1).max(1) };
                return Places { number, first_ns, each_ns };
            }
            behind -= row.requests;
        }
        Places { number: behind, first_ns: 0, each_ns: 0 }
    }
}

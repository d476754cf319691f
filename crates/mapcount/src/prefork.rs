//! A prefork server: a master fills a heap, and forks workers that share it copy-on-write.
//!
//! Which pages are copied depends on which mm is known to own a folio, not on time.

use std::sync::Arc;

use crate::anon_cow::AnonCow;
use crate::error::Error;
use crate::folio::Order;
use crate::mapcount::Mapcount;
use crate::mm::{AddressSpace, Cpu, Memory, WriteKind};
use crate::mm_id::MmIds;

/// Order of the server's writes and exits. Each process that writes does so once to each page of
/// the heap.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Scenario {
    /// All workers write, one after the other, while the master stays.
    Serving,
    /// All workers exit without a write, and the master writes.
    Reloaded,
    /// The master exits. The workers write and exit one by one, in the order of their forks.
    Drained,
    /// The last worker becomes the new master: all others exit, and it writes.
    Reforked,
}

impl Scenario {
    /// All of them.
    pub const ALL: [Scenario; 4] =
        [Scenario::Serving, Scenario::Reloaded, Scenario::Drained, Scenario::Reforked];

    /// Its name.
    pub fn name(self) -> &'static str {
        match self {
            Scenario::Serving => "serving",
            Scenario::Reloaded => "reloaded",
            Scenario::Drained => "drained",
            Scenario::Reforked => "reforked",
        }
    }
}

/// Counts the pages that write faults copy, with `workers` workers and a heap of `pages` pages in
/// folios of `order`. The other faults reuse their page.
///
/// # Errors
/// When there is not enough memory, or there are not enough ids.
pub fn count_copies<C: Mapcount>(
    scenario: Scenario,
    workers: usize,
    pages: usize,
    order: Order,
) -> Result<usize, Error> {
    let memory = Memory::<C>::new(AnonCow::<C>::memory_pages(pages, workers))?;
    let mut server = Server { memory: Arc::new(memory), cpu: Cpu::default(), pages };
    let ids = Arc::new(MmIds::new(u32::try_from(workers).unwrap_or(u32::MAX).saturating_add(1))?);
    let mut master = AddressSpace::new(&server.memory, &ids, pages)?;
    master.populate(&mut server.cpu, 0..pages, order)?;
    let workers = (0..workers).map(|_| master.fork(&mut server.cpu)).collect::<Result<Vec<_>, _>>();
    let copied = server.run(scenario, master, workers?);
    server.memory.drain(&mut server.cpu);
    copied
}

struct Server<C: Mapcount> {
    memory: Arc<Memory<C>>,
    cpu: Cpu,
    pages: usize,
}

impl<C: Mapcount> Server<C> {
    fn run(
        &mut self,
        scenario: Scenario,
        mut master: AddressSpace<C>,
        mut workers: Vec<AddressSpace<C>>,
    ) -> Result<usize, Error> {
        match scenario {
            Scenario::Serving => {
                workers.iter_mut().try_fold(0, |copied, worker| Ok(copied + self.write(worker)?))
            }
            Scenario::Reloaded => {
                drop(workers);
                self.write(&mut master)
            }
            Scenario::Drained => {
                drop(master);
                // Each worker is dropped after its writes.
                let mut workers = workers.into_iter();
                workers.try_fold(0, |copied, mut worker| Ok(copied + self.write(&mut worker)?))
            }
            Scenario::Reforked => {
                let last = workers.pop();
                drop((master, workers));
                last.map_or(Ok(0), |mut worker| self.write(&mut worker))
            }
        }
    }

    /// Writes to each page of `space`. Returns how many were copied.
    fn write(&mut self, space: &mut AddressSpace<C>) -> Result<usize, Error> {
        let mut copied = 0;
        for page in 0..self.pages {
            let kind = space.write(&mut self.cpu, page, page as u64)?;
            copied += usize::from(kind == WriteKind::Copied);
        }
        Ok(copied)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{MmOwner, PageMapcount, PreciseOwners};

    #[test]
    fn only_mms_without_a_slot_copy_their_own_pages() {
        let order = Order::new(4).unwrap();
        let copies = |count: fn(Scenario, usize, usize, Order) -> Result<usize, Error>, workers| {
            Scenario::ALL.map(|scenario| count(scenario, workers, 64, order).unwrap())
        };
        let [one, eight] = [1, 8].map(|workers| copies(count_copies::<MmOwner>, workers));
        assert_eq!((one, eight), ([64, 0, 0, 0], [8 * 64, 0, 8 * 64, 64]));
        let [one, eight] = [1, 8].map(|workers| copies(count_copies::<PreciseOwners>, workers));
        assert_eq!((one, eight), ([64, 0, 0, 0], [8 * 64, 0, 7 * 64, 0]));
        assert_eq!(copies(count_copies::<PageMapcount>, 8), [8 * 64, 64, 8 * 64, 64]);
    }
}

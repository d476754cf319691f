//! A prefork server: a master has warmed a heap, and its workers have it from a fork.
//!
//! Which pages are copied depends on who is known to be alone with a folio, and not on time.

use std::sync::Arc;

use crate::anon_cow::AnonCow;
use crate::error::Error;
use crate::mapcount::Mapcount;
use crate::mm::{AddressSpace, Cpu, Memory, Written};
use crate::mm_id::MmIds;
use crate::order::Order;

/// What a server goes through. Whoever writes does so to each page of the heap, once.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Case {
    /// All workers write, one after the other, and the master stays.
    Serving,
    /// All workers leave without a write, and the master writes.
    Reloaded,
    /// The master leaves. The workers write and leave, in the order of their forks.
    Drained,
    /// The last worker is the master of a new generation: the old one leaves, and it writes.
    Reforked,
}

impl Case {
    /// All of them.
    pub const ALL: [Case; 4] = [Case::Serving, Case::Reloaded, Case::Drained, Case::Reforked];

    /// Its name.
    pub fn name(self) -> &'static str {
        match self {
            Case::Serving => "serving",
            Case::Reloaded => "reloaded",
            Case::Drained => "drained",
            Case::Reforked => "reforked",
        }
    }
}

/// Pages that write faults copied, where a heap of `pages` pages in folios of `order` is that of a
/// master with so many `workers`. They reused the others.
///
/// # Errors
/// When the memory is too little, or there are not as many ids.
pub fn copied<C: Mapcount>(
    case: Case,
    workers: usize,
    pages: usize,
    order: Order,
) -> Result<usize, Error> {
    let memory = Memory::<C>::new(AnonCow::<C>::memory_pages(pages, workers))?;
    let mut server = Server { memory: Arc::new(memory), cpu: Cpu::default(), pages };
    let ids = Arc::new(MmIds::new(u32::try_from(workers).unwrap_or(u32::MAX).saturating_add(1))?);
    let mut master = AddressSpace::new(&server.memory, &ids, pages)?;
    master.populate(&mut server.cpu, 0..pages, order)?;
    let forked = (0..workers).map(|_| master.fork(&mut server.cpu)).collect::<Result<Vec<_>, _>>();
    let copied = server.tell(case, master, forked?);
    server.memory.drain(&mut server.cpu);
    copied
}

struct Server<C: Mapcount> {
    memory: Arc<Memory<C>>,
    cpu: Cpu,
    pages: usize,
}

impl<C: Mapcount> Server<C> {
    fn tell(
        &mut self,
        case: Case,
        mut master: AddressSpace<C>,
        mut workers: Vec<AddressSpace<C>>,
    ) -> Result<usize, Error> {
        match case {
            Case::Serving => {
                workers.iter_mut().try_fold(0, |copied, own| Ok(copied + self.write(own)?))
            }
            Case::Reloaded => {
                drop(workers);
                self.write(&mut master)
            }
            Case::Drained => {
                drop(master);
                // Each leaves at the end of its turn.
                let mut leaving = workers.into_iter();
                leaving.try_fold(0, |copied, mut own| Ok(copied + self.write(&mut own)?))
            }
            Case::Reforked => {
                let last = workers.pop();
                drop((master, workers));
                last.map_or(Ok(0), |mut own| self.write(&mut own))
            }
        }
    }

    /// Has `space` write to each page: how many were copied.
    fn write(&mut self, space: &mut AddressSpace<C>) -> Result<usize, Error> {
        let mut copied = 0;
        for page in 0..self.pages {
            let written = space.write(&mut self.cpu, page, page as u64)?;
            copied += usize::from(written == Written::Copied);
        }
        Ok(copied)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{MmOwner, PageMapcount, PreciseOwners};

    #[test]
    fn only_who_has_no_slot_copies_what_is_its_own() {
        let order = Order::new(4).unwrap();
        let told = |of: fn(Case, usize, usize, Order) -> Result<usize, Error>, workers| {
            Case::ALL.map(|case| of(case, workers, 64, order).unwrap())
        };
        let [one, eight] = [1, 8].map(|workers| told(copied::<MmOwner>, workers));
        assert_eq!((one, eight), ([64, 0, 0, 0], [8 * 64, 0, 8 * 64, 64]));
        let [one, eight] = [1, 8].map(|workers| told(copied::<PreciseOwners>, workers));
        assert_eq!((one, eight), ([64, 0, 0, 0], [8 * 64, 0, 7 * 64, 0]));
        assert_eq!(told(copied::<PageMapcount>, 8), [8 * 64, 64, 8 * 64, 64]);
    }
}

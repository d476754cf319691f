//! Has pages go again that were touched, so that each change of page is a fault.

use std::collections::hash_map::Entry;
use std::collections::{HashMap, VecDeque};
use std::time::{Duration, Instant};

use filemap_attach::{Error, PageOut};

use super::page_cache::settle_lists;

/// A page is taken from its process before that has touched so many others. It is tried until then,
/// as the kernel does not give up a page that is being read.
pub const MOST_OPEN: usize = 64;

/// Pages are taken when so many were touched, or after so long.
const AT_A_TIME: usize = 8;
const BETWEEN: Duration = Duration::from_millis(1);

/// The pages of a process that touches nothing more are tried for so long.
const LONGEST_READ: Duration = Duration::from_millis(50);

/// The pages that processes have touched last.
#[derive(Default)]
pub struct Changes {
    processes: HashMap<u32, Process>,
    /// How many were touched since pages were taken last.
    touched: usize,
    taken: Option<Instant>,
    /// Pages that stayed while more than [`MOST_OPEN`] others were touched.
    pub late: u64,
    /// The first refusal.
    pub refused: Option<Error>,
}

struct Process {
    pages: PageOut,
    /// In the order of their touches.
    open: VecDeque<Open>,
}

struct Open {
    address: u64,
    at: Instant,
    is_tried: bool,
}

impl Changes {
    /// A page of a recorded mapping was touched.
    pub fn touched(&mut self, pid: u32, address: u64) {
        let process = match self.processes.entry(pid) {
            Entry::Occupied(process) => process.into_mut(),
            Entry::Vacant(vacant) => {
                // It may have ended meanwhile.
                let Ok(pages) = PageOut::of(pid) else { return };
                vacant.insert(Process { pages, open: VecDeque::new() })
            }
        };
        process.open.push_back(Open { address, at: Instant::now(), is_tried: false });
        self.touched += 1;
    }

    /// Takes the pages that were touched last, when it is time.
    pub fn take(&mut self) {
        let is_time = self.taken.is_none_or(|taken| taken.elapsed() >= BETWEEN);
        if self.processes.is_empty() || self.touched < AT_A_TIME && !is_time {
            return;
        }
        settle_lists();
        for Process { pages, open } in self.processes.values_mut() {
            if let Err(error) = pages.take(open.iter().map(|of| of.address)) {
                self.refused.get_or_insert(error);
            }
            let more = open.len().saturating_sub(MOST_OPEN);
            self.late += open.drain(..more).filter(|of| !of.is_tried).count() as u64;
            while open.front().is_some_and(|of| of.at.elapsed() >= LONGEST_READ) {
                open.pop_front();
            }
            open.iter_mut().for_each(|of| of.is_tried = true);
        }
        self.processes.retain(|_, of| !of.open.is_empty());
        (self.touched, self.taken) = (0, Some(Instant::now()));
    }
}

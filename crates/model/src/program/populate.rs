//! MADV_POPULATE_READ, page by page.

use std::ops::Range;

use filemap_core::decision::Log;
use filemap_core::page_cache::PageCache;
use filemap_core::units::PageCount;

use super::running::Running;
use crate::Error;
use crate::process::Place;
use crate::under_way::FaultUnderWay;
use crate::waiting::Pause;

/// The pages of a mapping that are still to be populated.
#[derive(Debug)]
pub struct Populates {
    mapping: usize,
    pages: Range<u64>,
    /// The page at hand, and its fault.
    fault: Option<(Place, FaultUnderWay)>,
}

impl Populates {
    /// So many pages of a mapping, from page `first` of it.
    pub fn new(mapping: usize, first: PageCount, pages: PageCount) -> Populates {
        Populates { mapping, pages: first.0..(first + pages).0, fault: None }
    }

    /// Goes on until all pages are there, or the thread has to pause.
    ///
    /// # Errors
    /// When the memory is too small to hold what a page needs.
    pub fn populate_on<C: PageCache, L: Log>(
        &mut self,
        process: usize,
        running: &mut Running<'_, '_, C, L>,
    ) -> Result<Option<Pause>, Error> {
        loop {
            if let Some((at, fault)) = &mut self.fault {
                if let Some(pause) = running.serve_fault(process, self.mapping, fault)? {
                    return Ok(Some(pause));
                }
                let (_, open, mut task) = running.through(process, self.mapping);
                task.populated(at, open);
                self.fault = None;
                running.world.settle();
            }
            if running.world.turn_is_over() {
                return Ok(Some(Pause::Turn));
            }
            let Some(page) = self.pages.next() else {
                running.world.settle();
                return Ok(None);
            };
            let (row, open, mut task) = running.through(process, self.mapping);
            let at = row.locate(page);
            match task.begin_populating(&at, open) {
                Some(fault) => self.fault = Some((at, fault)),
                None => task.populated(&at, open),
            }
        }
    }
}

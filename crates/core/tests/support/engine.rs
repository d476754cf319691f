//! A small engine: one file, one mapping, I/O without a clock.

use filemap_core::address::entries::MappedFile;
use filemap_core::address::page_table::PageTables;
use filemap_core::address::vma::Vma;
use filemap_core::cache::{FileCache, FolioRun};
use filemap_core::decision::{Cause, Decision};
use filemap_core::fault::read::{ReadCall, ReadView};
use filemap_core::fault::{AccessKind, Fault, FaultResult, Step, View};
use filemap_core::readahead::layout::Layout;
use filemap_core::readahead::marked;
use filemap_core::readahead::on_demand;
use filemap_core::readahead::{Limits, ReadaheadState, Request, Window};
use filemap_core::units::{PageCount, PageIndex};

use super::one_file::OneFile;
use super::transcript::transcript;
use super::{machine, map};

/// When data arrives.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Io {
    /// Immediately.
    Immediate,
    /// All data in flight, when any of it is waited for.
    Waited,
}

/// The machine, with all its state.
#[derive(Debug)]
pub struct Engine {
    pub limits: Limits,
    pub vma: Vma,
    pub io: Io,
    pub ra: ReadaheadState,
    pub tables: PageTables,
    pub cache: OneFile,
    pub log: Vec<Decision>,
}

impl Engine {
    /// A mapping of the whole file, with the cache in the state `before`, under `limits`.
    pub fn new(limits: Limits, io: Io, before: &str) -> Engine {
        let file_pages = map::pages(before);
        let limits = Limits { file_pages, ..limits };
        Engine {
            limits,
            vma: machine::whole(&limits),
            io,
            ra: ReadaheadState::NEW,
            tables: PageTables::default(),
            cache: map::cache(before),
            log: Vec::new(),
        }
    }

    /// A read of one page of the mapping; faults only if it is not mapped.
    pub fn touch(&mut self, index: u64) -> Option<FaultResult> {
        if self.cache.touch(PageIndex(index)) {
            return None;
        }
        let outcome = self.fault(index, AccessKind::Read);
        self.cache.touch(PageIndex(index));
        Some(outcome)
    }

    /// A fault on the page `index`.
    pub fn fault(&mut self, index: u64, access: AccessKind) -> FaultResult {
        self.fault_with(index, access, |_, _| {})
    }

    /// A fault during which `meddle` is called after each step that was carried out.
    pub fn fault_with(
        &mut self,
        index: u64,
        access: AccessKind,
        meddle: impl FnMut(Step, &mut Engine),
    ) -> FaultResult {
        self.serve(Fault::new(PageIndex(index), access), meddle)
    }

    /// Serves a fault, with `meddle` as for [`Engine::fault_with`].
    pub fn serve(
        &mut self,
        mut fault: Fault,
        mut meddle: impl FnMut(Step, &mut Engine),
    ) -> FaultResult {
        for _ in 0..100 {
            let step = fault.step(&mut View {
                limits: &self.limits,
                vma: &self.vma,
                ra: &mut self.ra,
                tables: &mut self.tables,
                cache: &mut self.cache,
                log: &mut self.log,
            });
            match step {
                Step::Done(outcome) => return outcome,
                Step::Read => self.read_window(*fault.window()),
                step => self.carry_out(step),
            }
            meddle(step, self);
        }
        panic!("the fault does not end: {}", transcript(&self.log));
    }

    /// A `read(2)` of some bytes.
    pub fn read_bytes(&mut self, offset: u64, bytes: u64, file_bytes: u64) {
        let mut read = ReadCall::new(offset, bytes, file_bytes, &self.limits);
        for _ in 0..1000 {
            let step = read.step(&mut ReadView {
                limits: &self.limits,
                ra: &mut self.ra,
                cache: &mut self.cache,
                log: &mut self.log,
            });
            match step {
                Some(Step::Read) => self.read_window(*read.window()),
                Some(step) => self.carry_out(step),
                None => return,
            }
        }
        panic!("the read at {offset} does not end: {}", transcript(&self.log));
    }

    /// A `read(2)` of whole pages.
    pub fn read(&mut self, index: u64, pages: u64) {
        let page_size = self.limits.arch.page_size;
        let file_bytes = self.limits.file_pages.bytes(page_size);
        self.read_bytes(index * page_size, pages * page_size, file_bytes);
    }

    /// The decisions since the last call, as short words.
    pub fn course(&mut self) -> String {
        transcript(&std::mem::take(&mut self.log))
    }

    /// The window of a request for `req` pages that missed at `index`.
    pub fn request(&mut self, cause: Cause, index: u64, req: u64) -> Window {
        let Engine { limits, ra, cache, .. } = self;
        let (index, req) = (PageIndex(index), PageCount(req));
        let request = Request { cause, index, pages: req, last: limits.last_page() };
        on_demand::on_miss(request, limits, ra, cache)
    }

    /// The window of a request for `req` pages that hit the mark at `index`.
    pub fn request_at_mark(&mut self, cause: Cause, index: u64, req: u64) -> Option<Window> {
        let Engine { limits, ra, cache, .. } = self;
        let (index, req) = (PageIndex(index), PageCount(req));
        let folio = cache.folio(index).expect("a mark is on a folio");
        let request = Request { cause, index, pages: req, last: limits.last_page() };
        marked::next_window(request, folio, limits, ra, cache)
    }

    /// Lays out `window` and adds its folios.
    pub fn read_window(&mut self, window: Window) {
        let mut layout = Layout::new(&window, &self.limits, &mut self.ra, &mut self.log);
        while let Some(run) = layout.next(&self.cache, &mut self.log) {
            self.add(run);
        }
    }

    /// All data in flight arrives.
    pub fn arrive(&mut self) {
        self.cache.unlock(PageIndex(0), self.limits.file_pages);
    }

    fn carry_out(&mut self, step: Step) {
        match step {
            Step::ReadPage(start) => {
                assert!(self.cache.folio(start).is_none(), "{start} is cached");
                self.add(self.limits.smallest_folio(start));
            }
            Step::Wait(index) => {
                let locked = self.cache.folio(index).is_some_and(|folio| folio.locked);
                assert!(locked, "nothing is being read at {index}");
                self.arrive();
            }
            Step::Lock(_) | Step::Unlock | Step::Read | Step::Done(_) => {}
        }
    }

    fn add(&mut self, run: FolioRun) {
        assert!(run.end() <= self.limits.last_page() + PageCount(1), "{run:?} leaves the file");
        let marks_itself = |mark: PageIndex| run.start <= mark && mark < run.end();
        assert!(run.marked.is_none_or(marks_itself), "{run:?} marks another folio");
        self.cache.add(run);
        let FolioRun { start, order, folios, marked } = run;
        self.log.push(Decision::Added { start, order, folios, marked });
        if self.io == Io::Immediate {
            self.arrive();
        }
    }
}

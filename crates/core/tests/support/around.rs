//! One fault-around, with the entries before and after it.

use filemap_core::address::vma::Vma;
use filemap_core::fault::View;
use filemap_core::fault::around::map_around;
use filemap_core::readahead::Limits;
use filemap_core::units::{PageCount, PageIndex};

use super::engine::{Engine, Io};
use super::map;

/// One fault-around: a file, its entries before and after, and its effect on the counter.
pub struct Case {
    limits: Limits,
    vma: Option<Vma>,
    index: u64,
    tried: bool,
    cache: &'static str,
    before: Option<&'static str>,
    after: &'static str,
    /// Hits credited to a counter of 1000.
    credit: u16,
}

pub fn case(
    limits: Limits,
    index: u64,
    cache: &'static str,
    after: &'static str,
    credit: u16,
) -> Case {
    Case { limits, vma: None, index, tried: false, cache, before: None, after, credit }
}

impl Case {
    pub fn of(self, vma: Vma) -> Case {
        Case { vma: Some(vma), ..self }
    }

    pub fn mapped(self, before: &'static str) -> Case {
        Case { before: Some(before), ..self }
    }

    pub fn tried(self) -> Case {
        Case { tried: true, ..self }
    }

    #[track_caller]
    pub fn run(self) {
        self.check();
    }

    /// Runs it, and checks that it reports the faulting page as mapped exactly if that page is new.
    #[track_caller]
    pub fn check(self) -> Engine {
        let mut engine = Engine::new(self.limits, Io::Waited, self.cache);
        engine.vma = self.vma.unwrap_or(engine.vma);
        engine.ra.mmap_miss = 1000;
        map::set_mapped(&mut engine.cache, self.before.unwrap_or("."));
        let is_mapped = |engine: &Engine| {
            map::draw_mapped(&engine.cache, PageCount(self.index + 1)).ends_with('y')
        };
        let was_mapped = is_mapped(&engine);
        let reached = around(&mut engine, self.index, self.tried);
        let kernel = self.limits.rules.kernel.name();
        let case = format!("{kernel} fault on {} of {}", self.index, self.cache);
        map::assert_mapped(&case, &engine.cache, self.after);
        map::assert_cache(&case, &engine.cache, self.cache);
        assert_eq!(1000 - engine.ra.mmap_miss, self.credit, "{case}");
        assert_eq!(reached, is_mapped(&engine) && !was_mapped, "{case}");
        engine
    }
}

pub fn around(engine: &mut Engine, index: u64, tried: bool) -> bool {
    let Engine { limits, vma, ra, tables, cache, log, .. } = engine;
    let view = &mut View { limits, vma, ra, tables, cache, log };
    map_around(PageIndex(index), tried, view).reached
}

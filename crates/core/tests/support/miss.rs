//! One miss, with the cache before and after it.

use filemap_core::address::vma::Vma;
use filemap_core::readahead::sync;
use filemap_core::readahead::{Limits, Window};
use filemap_core::units::PageIndex;

use super::engine::{Engine, Io};
use super::map;

/// One miss on `engine`, laid out. Returns its window.
pub fn miss(engine: &mut Engine, index: u64) -> Option<Window> {
    let Engine { limits, vma, ra, cache, log, .. } = engine;
    let window = sync::on_miss(PageIndex(index), vma, limits, ra, cache, log);
    if let Some(window) = window {
        engine.read_window(window);
    }
    window
}

/// A miss at `index` of a file in the state `before`, and in the state `after` once it is laid out.
#[track_caller]
pub fn check(limits: Limits, vma: Option<Vma>, index: u64, before: &str, after: &str) -> Engine {
    let mut engine = Engine::new(limits, Io::Waited, before);
    engine.vma = vma.unwrap_or(engine.vma);
    miss(&mut engine, index);
    let case = format!("{} fault on {index} of {before}", limits.rules.kernel.name());
    map::assert_cache(&case, &engine.cache, after);
    engine
}

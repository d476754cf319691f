//! Marks of faults and `read(2)` with vma-bound: what hits the mark decides, not what set it.

use filemap_core::readahead::Limits;
use filemap_core::rules::Kernel;
use filemap_core::series::Switch;
use filemap_core::units::PageCount;

use crate::support::engine::{Engine, Io};
use crate::support::machine::{KERNELS, limits, part, with};
use crate::support::map;

fn engine(kernel: Kernel, switches: &[Switch]) -> Engine {
    let limits: Limits = with(switches, limits(kernel, PageCount(64)));
    Engine::new(limits, Io::Immediate, "64.")
}

#[test]
fn a_mark_set_by_a_fault_and_hit_by_a_read_is_not_bound() {
    for kernel in KERNELS {
        let mut engine = engine(kernel, &[Switch::VmaBound]);
        engine.vma = part(16, 40);
        engine.touch(24);
        map::assert_cache(kernel.name(), &engine.cache, "16. 12# M3# 32.");
        engine.course();
        engine.read(28, 1);
        assert!(engine.course().starts_with("async-read:32+16-16"), "{}", kernel.name());
        assert_eq!(cached(&engine), (16, 47), "{}", kernel.name());
    }
}

#[test]
fn a_mark_set_by_a_read_and_hit_by_a_fault_is_bound() {
    for (switches, last) in [(&[][..], 23), (&[Switch::VmaBound], 9)] {
        for kernel in KERNELS {
            let mut engine = engine(kernel, switches);
            engine.vma = part(2, 10);
            engine.read(0, 4);
            assert_eq!(cached(&engine), (0, 7), "{}", kernel.name());
            engine.course();
            engine.touch(4);
            assert!(engine.course().contains("async:8+16-16"), "{}", kernel.name());
            assert_eq!(cached(&engine), (0, last), "{} {switches:?}", kernel.name());
        }
    }
}

/// First and last cached page.
fn cached(engine: &Engine) -> (usize, usize) {
    let map = map::draw(&engine.cache, PageCount(64));
    let is_cached = |letter| letter != '.';
    (map.find(is_cached).unwrap(), map.rfind(is_cached).unwrap())
}

//! How 6.1 and 6.6 differ from later kernels, except for streams (`stream.rs`).

use filemap_core::address::entries::MappedFile;
use filemap_core::address::mapping::FileMapping;
use filemap_core::address::vma::{Advice, AdviceFlag};
use filemap_core::cache::FileCache;
use filemap_core::decision::Lock;
use filemap_core::fault::map::{maps_by_pmd, unmap};
use filemap_core::fault::read::{ReadCall, ReadView};
use filemap_core::fault::{AccessKind, Fault, FaultResult, Step, View, lock};
use filemap_core::lru::direct::DirectReclaim;
use filemap_core::lru::lists::LruLists;
use filemap_core::lru::statistics::ListSizes;
use filemap_core::rules::Kernel::{self, V6_1, V6_6, V6_12, V6_18};
use filemap_core::rules::Rules;
use filemap_core::series::{Series, Switch};
use filemap_core::units::{PageCount, PageIndex};

use crate::support::engine::{Engine, Io};
use crate::support::lists::{plain, reclaim, with_active};
use crate::support::machine::{advised, counter, limits, part, small_tables, xfs};
use crate::support::map;

fn rules(kernel: Kernel) -> Rules {
    Rules::new(kernel, Series::BASELINE)
}

/// The locks that a fault requests, and its outcome.
fn locks(kernel: Kernel, mut fault: Fault, before: &str) -> (Vec<Lock>, FaultResult, Engine) {
    let mut engine = Engine::new(limits(kernel, PageCount(64)), Io::Waited, before);
    engine.ra = counter(90);
    let mut locks = Vec::new();
    loop {
        let Engine { limits, vma, ra, tables, cache, log, .. } = &mut engine;
        match fault.step(&mut View { limits, vma, ra, tables, cache, log }) {
            Step::Lock(lock) => locks.push(lock),
            Step::Read => engine.read_window(*fault.window()),
            Step::Wait(_) => engine.arrive(),
            Step::Done(outcome) => return (locks, outcome, engine),
            Step::Unlock | Step::ReadPage(_) => {}
        }
    }
}

#[test]
fn without_locks_of_vmas_a_fault_takes_mmap_lock() {
    let (vma, mmap) = (Lock::Vma, Lock::Mmap);
    assert_eq!(
        [V6_1, V6_6, V6_12].map(|kernel| lock::access_lock(&rules(kernel))),
        [mmap, vma, vma]
    );
    let fault = || Fault::new(PageIndex(32), AccessKind::Read);
    let missed = FaultResult { major: true, tries: 2 };
    for (kernel, expected) in
        [(V6_1, &[mmap, mmap][..]), (V6_6, &[vma, mmap, mmap]), (V6_12, &[vma, mmap])]
    {
        let (locks, outcome, _) = locks(kernel, fault(), "64.");
        assert_eq!((&locks[..], outcome), (expected, missed), "{}", kernel.name());
    }
    // Fault-around finds the page. 6.6 needs `mmap_lock` if it does not, as for a write.
    let write = || Fault::new(PageIndex(32), AccessKind::WritePrivate);
    let served = FaultResult { major: false, tries: 1 };
    for (kernel, read, written) in
        [(V6_1, &[mmap][..], &[mmap][..]), (V6_6, &[vma], &[vma, mmap]), (V6_12, &[vma], &[vma])]
    {
        for (fault, expected) in [(fault(), read), (write(), written)] {
            let (locks, outcome, _) = locks(kernel, fault, "64#");
            assert_eq!((&locks[..], outcome), (expected, served), "{}", kernel.name());
        }
    }
}

/// The neighbours of an absent page are mapped and credited by each attempt: 15 of them.
#[test]
fn fault_around_under_both_locks_counts_twice() {
    for (kernel, left) in [(V6_1, 90 - 15), (V6_6, 90 - 30), (V6_12, 90 - 15)] {
        let fault = Fault::new(PageIndex(32), AccessKind::Read);
        let (_, _, engine) = locks(kernel, fault, "32. . 31#");
        // The miss itself, and the retry, which finds all 16.
        assert_eq!(engine.ra.mmap_miss, left + 1 - 16, "{}", kernel.name());
    }
}

#[test]
fn populating_restarts_before_6_12() {
    for (kernel, major) in [(V6_1, false), (V6_6, false), (V6_12, true)] {
        let (locks, outcome, _) = locks(kernel, Fault::populating(PageIndex(5)), "64.");
        assert_eq!(locks, [Lock::Mmap; 2]);
        assert_eq!(outcome, FaultResult { major, tries: 2 }, "{}", kernel.name());
    }
}

#[test]
fn before_6_12_the_workingset_flag_takes_no_credit() {
    for (kernel, left) in [(V6_1, 74), (V6_6, 74), (V6_12, 82)] {
        let (_, _, engine) =
            locks(kernel, Fault::new(PageIndex(37), AccessKind::Read), "32. 8w 8# 16.");
        assert_eq!(engine.ra.mmap_miss, left, "{}", kernel.name());
    }
}

#[test]
fn nohugepage_keeps_pmd_entries_off_since_6_12() {
    for (kernel, maps) in [(V6_1, true), (V6_6, true), (V6_12, false), (V6_18, false)] {
        let limits = small_tables(xfs(kernel, PageCount(64)));
        let engine = Engine::new(limits, Io::Waited, "16. [14-] 32.");
        let folio = engine.cache.folio(PageIndex(16)).unwrap();
        let vma = advised(Advice::NORMAL.and(AdviceFlag::NoHuge), part(0, 64));
        let found = maps_by_pmd(folio, &vma, &engine.limits, &engine.tables);
        assert_eq!(found, maps, "{}", kernel.name());
    }
}

#[test]
fn random_accesses_count_on_6_1() {
    let random = advised(Advice::RANDOM, part(0, 32));
    let sequential = advised(Advice::SEQUENTIAL, part(0, 32));
    for (vma, counts) in
        [(part(0, 32), [true, true]), (random, [false, true]), (sequential, [false; 2])]
    {
        for (kernel, counts) in [V6_6, V6_1].into_iter().zip(counts) {
            let mut mapping = FileMapping::new(vma, None);
            mapping.random_counts = rules(kernel).random_accesses_count;
            assert_eq!(mapping.has_recency(), Some(counts));
            assert_eq!(mapping.vma_has_recency(&vma), counts);
            mapping.advise(PageIndex(0), PageIndex(4), AdviceFlag::Huge);
            assert_eq!(mapping.has_recency(), Some(counts), "cut into two");
        }
    }
}

#[test]
fn each_accessed_entry_unmapped_is_a_use_before_6_12() {
    for (kernel, active) in [(V6_1, 4), (V6_6, 4), (V6_12, 0)] {
        let limits = xfs(kernel, PageCount(8));
        let mut engine = Engine::new(limits, Io::Waited, "[--][--]");
        map::set_mapped(&mut engine.cache, "8y");
        for page in [0, 1, 4] {
            engine.cache.touch(PageIndex(page));
        }
        let mapping = FileMapping::new(part(0, 8), None);
        unmap(&mapping, PageIndex(0), PageIndex(8), &engine.limits, &mut engine.cache);
        assert_eq!(engine.cache.active(), PageCount(active), "{}", kernel.name());
    }
}

/// A read of 32 cached pages that hits a mark in page 17, and its position at that time.
#[test]
fn a_read_looks_up_15_folios_together_before_6_12() {
    for (kernel, at) in [(V6_1, 15), (V6_6, 15), (V6_12, 0)] {
        let mut engine = Engine::new(limits(kernel, PageCount(64)), Io::Waited, "17# M 14# 32.");
        let mut read = ReadCall::new(0, 32 * 4096, 64 * 4096, &engine.limits);
        let Engine { limits, ra, cache, log, .. } = &mut engine;
        let step = read.step(&mut ReadView { limits, ra, cache, log });
        assert_eq!(step, Some(Step::Read));
        assert_eq!(read.position(), PageIndex(at), "{}", kernel.name());
    }
}

#[test]
fn a_read_notes_each_folio_on_6_1() {
    // After five cached pages, the rest of one read continues what it has read itself.
    for (kernel, after) in [(V6_1, "20. 20# M 23."), (V6_6, "20. 20# 24.")] {
        let mut engine = Engine::new(limits(kernel, PageCount(64)), Io::Waited, "20. 5# 39.");
        engine.read(20, 20);
        map::assert_cache(kernel.name(), &engine.cache, after);
        assert_eq!(engine.ra.previous_end, Some(40 * 4096));
    }
}

#[test]
fn reclaim_uses_exact_list_sizes_before_6_12() {
    for (kernel, known) in [(V6_1, true), (V6_6, true), (V6_12, false)] {
        let mut cache = with_active(14_000, 9_000);
        let direct = DirectReclaim::new(PageCount(1), 4096).with_rules(&rules(kernel));
        reclaim(direct, &mut cache, &plain(), &mut ());
        let ages = cache.active() < PageCount(9_000);
        assert_eq!(ages, known, "{}", kernel.name());
        assert_eq!(cache.flushed_sizes() != ListSizes::default(), known);
    }
}

#[test]
fn switches_without_effect_are_refused() {
    let lacking = |switch: Switch| -> Vec<&str> {
        let kernels = Kernel::ALL.into_iter();
        kernels.filter(|&kernel| rules(kernel).lacks(switch).is_some()).map(Kernel::name).collect()
    };
    for switch in [Switch::VmaRetry, Switch::NoRetryUptodate] {
        assert_eq!(lacking(switch), ["6.1", "6.6"]);
    }
    for switch in [Switch::VmaBound, Switch::VmaHold, Switch::ExecUnify] {
        assert_eq!(lacking(switch), [""; 0]);
    }
    let merged = [
        Switch::MissFaultAddress,
        Switch::MissNoRetry,
        Switch::ExecBypass,
        Switch::ExecBypassV5,
        Switch::ThpOrder,
        Switch::ThpOrderV5,
    ];
    for switch in merged {
        assert_eq!(lacking(switch), ["7.2", "7.3", "mm-0b2777a511b7"]);
    }
}

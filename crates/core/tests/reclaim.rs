//! Which folios are evicted, rotated or activated.

use filemap_core::address::entries::Layer;
use filemap_core::address::entries::MappedFile;
use filemap_core::address::mapping::{FileMapping, Split, SplitProt};
use filemap_core::address::vma::Advice;
use filemap_core::cache::{FileCache, FolioRun};
use filemap_core::decision::Decision;
use filemap_core::lru::lists::{LruLists, Scan, ShrinkStats};
use filemap_core::lru::reclaim::{
    AccessEffect, AccessEffects, BATCH, FolioVerdict, MachineReclaim, PageVerdicts, ReclaimStep,
    Referenced, access_effect, access_effects, inactive_is_low, judge_folio, judge_pages, reclaim,
};
use filemap_core::units::{FileId, Order, PageCount, PageIndex};

use crate::support::lists::{add, look_once, plain, touch, whole, with_active};
use crate::support::machine::{advised, executable, part};
use crate::support::map;
use crate::support::one_file::{OneFile, mapped};
use crate::support::transcript::transcript;

#[test]
fn uses_of_base_pages_equal_single_uses() {
    for bits in 0..8 {
        let (pages, referenced, active) = (bits & 1, bits >> 1 & 1, bits >> 2 & 1);
        let expected = match access_effect(referenced == 1, active == 1) {
            AccessEffect::Reference => AccessEffects { reference: pages, activate: 0 },
            AccessEffect::Activate => AccessEffects { reference: 0, activate: pages },
        };
        assert_eq!(access_effects(pages, referenced, active), expected, "{bits:#b}");
    }
}

#[test]
fn base_pages_are_judged_by_entry_and_referenced_flag() {
    // One bit each: not young; young; young and referenced; young and executable; referenced
    // only; executable only; all three.
    let pages = 0b_0111_1111;
    let young = 0b_0100_1110;
    let referenced = 0b_0101_0100;
    let executable = 0b_0110_1000;
    let expected = PageVerdicts { evict: 0b_0011_0001, keep: 0b_0000_0010, activate: 0b_0100_1100 };
    assert_eq!(judge_pages(pages, young, referenced, executable), expected);
    // Bits of pages that are not judged do not matter.
    let all = u64::MAX;
    assert_eq!(judge_pages(0, all, all, all), PageVerdicts { evict: 0, keep: 0, activate: 0 });
    assert_eq!(judge_pages(1, all, 0, 0), PageVerdicts { evict: 0, keep: 1, activate: 0 });
    assert_eq!(judge_pages(1, all, all, 0), PageVerdicts { evict: 0, keep: 0, activate: 1 });
    assert_eq!(judge_pages(all, 0, all, all), PageVerdicts { evict: all, keep: 0, activate: 0 });
}

#[test]
fn large_folios_are_judged_by_the_number_of_their_young_entries() {
    let cases = [
        (0, false, false, FolioVerdict::Evict),
        (0, true, false, FolioVerdict::Evict),
        (0, false, true, FolioVerdict::Evict),
        (0, true, true, FolioVerdict::Evict),
        (1, false, false, FolioVerdict::Keep),
        (1, true, false, FolioVerdict::Activate),
        (1, false, true, FolioVerdict::Activate),
        (2, false, false, FolioVerdict::Activate),
        (512, false, false, FolioVerdict::Activate),
    ];
    for (young, referenced, executable, verdict) in cases {
        let found = judge_folio(young, referenced, executable);
        assert_eq!(found, verdict, "{young} {referenced} {executable}");
    }
}

#[test]
fn accessed_entries_count_once_a_vma() {
    // VMAs of 4 pages, every second one executable: (accessed pages, VMAs, executable).
    let split = Some(Split { pages: PageCount(4), prot: SplitProt::Exec });
    let mappings = mapped(FileMapping::new(part(0, 128), split));
    type Words<'a> = &'a [(u64, u64)];
    let cases: [(Words<'_>, u32, bool); 7] = [
        (&[], 0, false),
        (&[(0, 0b0001)], 1, false),
        (&[(0, 0b1111)], 1, false),
        (&[(0, 0b1_0000)], 1, true),
        (&[(0, 0b1_1000)], 2, true),
        (&[(0, 0b1111_0000_1111)], 2, false),
        (&[(0, 1 << 63), (1, 1)], 2, true),
    ];
    for (words, vmas, executable) in cases {
        let mut referenced = Referenced::new(mappings.file(FileId::FIRST));
        for &(word, mask) in words {
            referenced.add(Layer::FIRST, word, mask);
        }
        assert_eq!((referenced.vmas, referenced.executable), (vmas, executable), "{words:?}");
    }
    let unsplit = mapped(FileMapping::new(part(0, 128), None));
    let mut whole = Referenced::new(unsplit.file(FileId::FIRST));
    whole.add(Layer::FIRST, 0, u64::MAX);
    whole.add(Layer::FIRST, 1, u64::MAX);
    assert_eq!((whole.vmas, whole.executable), (1, false));
}

#[test]
fn the_second_use_of_an_inactive_folio_activates_it() {
    assert_eq!(access_effect(false, false), AccessEffect::Reference);
    assert_eq!(access_effect(true, false), AccessEffect::Activate);
    assert_eq!(access_effect(false, true), AccessEffect::Reference);
    assert_eq!(access_effect(true, true), AccessEffect::Reference);
}

#[test]
fn the_share_of_the_inactive_list() {
    let gib = 1 << 18;
    let cases = [
        // Below one GiB in all: half.
        (100, 100, 4096, false),
        (99, 100, 4096, true),
        (100, 99, 4096, false),
        (0, 0, 4096, false),
        (0, 1, 4096, true),
        (gib / 2 - 1, gib / 2, 4096, true),
        // One GiB: a quarter, as the root of 10 is 3.
        (gib / 4, gib / 4 * 3, 4096, false),
        (gib / 4 - 1, gib / 4 * 3 + 1, 4096, true),
        (gib / 2 - 1, gib / 2 + 1, 4096, false),
        // 8 GiB: a ninth, as the root of 80 is 8.
        (233_017, 8 * gib - 233_017, 4096, false),
        (233_016, 8 * gib - 233_016, 4096, true),
        // 10 GiB: an eleventh.
        (238_313, 10 * gib - 238_313, 4096, false),
        (238_312, 10 * gib - 238_312, 4096, true),
        // 100 GiB: a 32nd, as the root of 1000 is 31.
        (819_200, 100 * gib - 819_200, 4096, false),
        (819_199, 100 * gib - 819_199, 4096, true),
        // In bytes, not in pages: 2^18 pages of 64 KiB are 16 GiB, and the root of 160 is 12.
        (20_165, gib - 20_165, 65536, false),
        (20_164, gib - 20_164, 65536, true),
    ];
    for (inactive, active, page_size, low) in cases {
        let found = inactive_is_low(PageCount(inactive), PageCount(active), page_size);
        assert_eq!(found, low, "{inactive} of {} pages", inactive + active);
    }
}

#[test]
fn reclaim_takes_whole_batches_from_the_tail() {
    // The pages were added in order: the first is the tail.
    let cases = [
        (1, "128#", 32, "32. 96#", "evict:0+32"),
        (32, "128#", 32, "32. 96#", "evict:0+32"),
        (33, "128#", 64, "64. 64#", "evict:0+64"),
        (0, "128#", 0, "128#", ""),
        (128, "128#", 128, "128.", "evict:0+128"),
        // No more than there are.
        (1000, "128#", 128, "128.", "evict:0+128"),
        (1, "20#", 20, "20.", "evict:0+20"),
        (1, "20.", 0, "20.", ""),
        // Whole folios: a batch can end inside one.
        (1, "[14-][6-] 8. [30-] 16#", 56, "64. 16#", "evict:0+24 evict:32+32"),
        // Adjacent runs are joined, runs with gaps are not.
        (1, "16# 4. 16# 12#", 32, "36. 12#", "evict:0+16 evict:20+16"),
        // Pages being read stay.
        (1, "8# 4~ 60#", 32, "8. 4~ 24. 36#", "evict:0+8 evict:12+24"),
        (1, "40~", 0, "40~", ""),
    ];
    for (goal, before, evicted, after, words) in cases {
        let mut cache = map::cache(before);
        let mut log: Vec<Decision> = Vec::new();
        let found = reclaim(&mut cache, PageCount(goal), 4096, &plain(), &mut log);
        let case = format!("{goal} of {before}");
        assert_eq!(found, PageCount(evicted), "{case}");
        map::assert_cache(&case, &cache, after);
        assert_eq!(transcript(&log), words, "{case}");
    }
    assert_eq!(BATCH, PageCount(32));
}

#[test]
fn accessed_pages_rotate_once() {
    let mut cache = map::cache("64#");
    touch(&mut cache, 0);
    touch(&mut cache, 5);
    let found = reclaim(&mut cache, PageCount(1), 4096, &plain(), &mut ());
    assert_eq!(found, PageCount(32));
    map::assert_cache("past both", &cache, "# 4. # 28. 30#");
    // Now they are after 34 to 63; once scanned, an entry is old until it is accessed again.
    reclaim(&mut cache, PageCount(30), 4096, &plain(), &mut ());
    map::assert_cache("not accessed again", &cache, "64.");
}

#[test]
fn a_page_accessed_again_becomes_active() {
    let mut cache = map::cache("8#");
    touch(&mut cache, 3);
    assert_eq!(look_once(&mut cache, &plain()), (7, 1));
    assert_eq!((cache.inactive(), cache.active()), (PageCount(1), PageCount(0)));
    touch(&mut cache, 3);
    assert_eq!(look_once(&mut cache, &plain()), (0, 1));
    assert_eq!((cache.inactive(), cache.active()), (PageCount(0), PageCount(1)));
    map::assert_cache("active", &cache, "3. # 4.");
}

#[test]
fn a_page_that_a_read_referenced_becomes_active_with_its_entry() {
    let mut cache = map::cache("8#");
    cache.mark_accessed(PageIndex(2));
    cache.mark_accessed(PageIndex(3));
    touch(&mut cache, 3);
    // A reference without a young entry keeps nothing.
    assert_eq!(look_once(&mut cache, &plain()), (7, 1));
    assert_eq!(cache.active(), PageCount(1));
    map::assert_cache("active", &cache, "3. # 4.");
}

#[test]
fn accessed_code_is_activated_immediately() {
    let mut cache = map::cache("8#");
    touch(&mut cache, 3);
    assert_eq!(look_once(&mut cache, &whole(executable(part(0, 8)))), (7, 1));
    assert_eq!(cache.active(), PageCount(1));
    // In a split mapping only in the executable pieces: 4 to 7 here.
    let split = Some(Split { pages: PageCount(4), prot: SplitProt::Exec });
    let mappings = mapped(FileMapping::new(part(0, 8), split));
    let mut cache = map::cache("8#");
    touch(&mut cache, 3);
    touch(&mut cache, 4);
    assert_eq!(look_once(&mut cache, &mappings), (6, 2));
    assert_eq!((cache.inactive(), cache.active()), (PageCount(1), PageCount(1)));
}

#[test]
fn large_folios_accessed_through_more_than_one_vma_become_active() {
    // Seen on 6.18: however many entries of one VMA were accessed, the folio is rotated once more.
    let split = Split { pages: PageCount(12), prot: SplitProt::Write };
    for (pieces, touched, evicted, active) in [
        (None, 0..0, 8, 0),
        (None, 9..10, 0, 0),
        (None, 9..15, 0, 0),
        (Some(split), 9..12, 0, 0),
        (Some(split), 11..13, 0, 8),
    ] {
        let mut cache = map::cache("8. [6-]");
        for page in touched.clone() {
            touch(&mut cache, page);
        }
        let mappings = mapped(FileMapping::new(part(0, 16), pieces));
        assert_eq!(look_once(&mut cache, &mappings), (evicted, 8 - evicted), "{touched:?}");
        assert_eq!(cache.active(), PageCount(active), "{touched:?}");
    }
}

#[test]
fn accessed_entries_count_only_if_advice_permits() {
    let cases =
        [(Advice::NORMAL, 1), (Advice::HUGEPAGE, 1), (Advice::RANDOM, 0), (Advice::SEQUENTIAL, 0)];
    for (advice, kept) in cases {
        let mut cache = map::cache("8#");
        touch(&mut cache, 3);
        let mapping = whole(advised(advice, part(0, 8)));
        assert_eq!(look_once(&mut cache, &mapping), (8 - kept, kept), "{}", advice.name());
    }
}

#[test]
fn eviction_unmaps() {
    let mut cache = map::cache("4# [--] 4#");
    map::set_mapped(&mut cache, "..yy yyyy ....");
    touch(&mut cache, 2);
    look_once(&mut cache, &plain());
    map::assert_cache("evicted", &cache, "..#. 8.");
    map::assert_mapped("unmapped", &cache, "..y. 8.");
    assert!(!cache.touch(PageIndex(3)));
    assert!(cache.touch(PageIndex(2)));
    // A page that returns is not mapped.
    cache.add(FolioRun { start: PageIndex(4), order: Order(2), folios: 1, marked: None });
    map::assert_mapped("returned", &cache, "..y. 8.");
}

#[test]
fn folios_under_read_are_scanned_and_kept() {
    let mut cache = map::cache("4~ 4#");
    assert_eq!(look_once(&mut cache, &plain()), (4, 4));
    map::assert_cache("kept", &cache, "4~ 4.");
    // It was rotated: pages added later are in front of it, and are evicted first.
    add(&mut cache, 6, 0);
    cache.unlock(PageIndex(0), PageCount(4));
    let shrunk = cache.shrink(Scan::until(PageCount(4)), &plain(), &mut ());
    assert_eq!(shrunk.evicted, PageCount(4));
    map::assert_cache("in turn", &cache, "6. # .");
}

#[test]
fn unreachable_goal_terminates() {
    // All are accessed: the first pass keeps them, the second evicts them.
    let mut cache = map::cache("64#");
    (0..64).for_each(|page| touch(&mut cache, page));
    let found = reclaim(&mut cache, PageCount(32), 4096, &plain(), &mut ());
    assert_eq!(found, PageCount(32));
    map::assert_cache("half", &cache, "32. 32#");
    // A pass that half meets the goal leaves the other half to the next: 40 and 24 pages.
    let mut cache = map::cache("104#");
    (0..64).for_each(|page| touch(&mut cache, page));
    let found = reclaim(&mut cache, PageCount(64), 4096, &plain(), &mut ());
    assert_eq!(found, PageCount(64));
    map::assert_cache("the rest", &cache, "24. 40# 40.");
    // None can be evicted at all.
    let mut cache = map::cache("64~");
    assert_eq!(reclaim(&mut cache, PageCount(32), 4096, &plain(), &mut ()), PageCount(0));
}

/// Reclaims `goal` pages, scanning `look` pages per step. Returns what each batch evicted, and what
/// was evicted in total.
fn in_batches(cache: &mut OneFile, goal: u64, look: u64) -> (Vec<u64>, PageCount) {
    let mut reclaim = MachineReclaim::new(PageCount(goal), cache.flushed_sizes(), 4096);
    let mut batches = Vec::new();
    loop {
        match reclaim.step(PageCount(look), cache, &plain(), &mut ()) {
            ReclaimStep::Batch(shrunk) => batches.push(shrunk.evicted.0),
            ReclaimStep::Done(evicted) => return (batches, evicted),
        }
    }
}

#[test]
fn batches_equal_one_pass() {
    // 10 pages are rotated, and all others except the last 4 are evicted.
    let drawn = || {
        let mut cache = map::cache("110#");
        (20..30).for_each(|page| touch(&mut cache, page));
        cache
    };
    for (look, batches) in [
        (u64::MAX, vec![96]),
        (94, vec![84, 12]),
        (32, vec![22, 32, 32, 10]),
        // At least one page is scanned.
        (0, [vec![1; 20], vec![0; 10], vec![1; 76]].concat()),
    ] {
        let mut cache = drawn();
        // Goals are whole batches of 32.
        let found = in_batches(&mut cache, 94, look);
        assert_eq!(found, (batches, PageCount(96)), "{look} pages a step");
        map::assert_cache("what is left", &cache, "20. 10# 76. 4#");
    }
}

#[test]
fn unevictable_pages_are_scanned_in_batches() {
    let mut cache = map::cache("64~");
    // Two passes of two batches each.
    assert_eq!(in_batches(&mut cache, 32, 40), (vec![0; 4], PageCount(0)));
    // Both lists, in rounds of a batch or more.
    let (mut whole, mut parts) = (with_active(140, 100), with_active(140, 100));
    whole.flush_statistics();
    parts.flush_statistics();
    (100..132).for_each(|page| touch(&mut whole, page));
    (100..132).for_each(|page| touch(&mut parts, page));
    let in_all = in_batches(&mut whole, 32, u64::MAX).1;
    assert_eq!(in_batches(&mut parts, 32, 8).1, in_all);
    assert_eq!(map::draw(&parts, PageCount(140)), map::draw(&whole, PageCount(140)));
}

#[test]
fn lists_are_accessible_between_steps() {
    let mut cache = map::cache("64#");
    let mut reclaim = MachineReclaim::new(PageCount(64), cache.flushed_sizes(), 4096);
    let mut step = |cache: &mut OneFile| {
        let step = reclaim.step(PageCount(16), cache, &plain(), &mut ());
        (step, reclaim.evicted().0)
    };
    let batch = |evicted, kept| {
        let (evicted, kept) = (PageCount(evicted), PageCount(kept));
        ReclaimStep::Batch(ShrinkStats {
            evicted,
            kept,
            activated: PageCount(0),
            ..ShrinkStats::default()
        })
    };
    assert_eq!(step(&mut cache), (batch(16, 0), 16));
    // The program uses the next ones. They are rotated, and not scanned again in this pass.
    (16..32).for_each(|page| touch(&mut cache, page));
    assert_eq!(step(&mut cache), (batch(0, 16), 16));
    add(&mut cache, 0, 0);
    assert_eq!(step(&mut cache), (batch(16, 0), 32));
    // A step that has evicted enough stops.
    map::assert_cache("so far", &cache, "# 15. 16# 16. 16#");
}

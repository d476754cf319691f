//! Protection of ranges of a mapping, which splits and merges VMAs as advice does.

use crate::support::machine::part;
use filemap_core::address::mapping::{FileMapping, VmaChange};
use filemap_core::address::protection::Protection;
use filemap_core::address::vma::{AdviceFlag, ReadHint};
use filemap_core::units::PageIndex;

const PAGES: u64 = 6;

/// Advice and protection of each page.
type Pages = [(bool, Protection); PAGES as usize];

/// First pages of the VMAs of `mapping`, and whether each is executable.
fn vmas(mapping: &FileMapping) -> Vec<(u64, bool)> {
    let vmas = mapping.vmas(PageIndex(0), PageIndex(PAGES));
    vmas.map(|(vma, ..)| (vma.pgoff.0, vma.executable)).collect()
}

/// The same if each VMA is a maximal run of equal pages.
fn runs(pages: &Pages) -> Vec<(u64, bool)> {
    let begins = |&page: &usize| page == 0 || pages[page] != pages[page - 1];
    let protection = |page: usize| (page as u64, pages[page].1 == Protection::Exec);
    (0..PAGES as usize).filter(begins).map(protection).collect()
}

/// First pages of the runs of `before` that are not also runs of `after`, with equal pages.
fn gone(before: &Pages, after: &Pages) -> Vec<u64> {
    let whole = |pages: &Pages| {
        let firsts: Vec<u64> = runs(pages).iter().map(|run| run.0).collect();
        let ends = firsts.iter().copied().skip(1).chain([PAGES]);
        let alike = |first: &u64| pages[*first as usize];
        let runs = firsts.iter().zip(ends).map(|(first, end)| (*first, end, alike(first)));
        runs.collect::<Vec<_>>()
    };
    let after = whole(after);
    whole(before).into_iter().filter(|run| !after.contains(run)).map(|run| run.0).collect()
}

fn changed(before: (bool, Protection), change: VmaChange) -> (bool, Protection) {
    match change {
        VmaChange::Advice(flag) => (flag == AdviceFlag::Read(ReadHint::Random), before.1),
        VmaChange::Protection(protection) => (before.0, protection),
    }
}

/// Every sequence of three changes of any ranges of 6 pages, one in seven of the last changes.
#[test]
fn protection_splits_and_merges_vmas() {
    let hints = [ReadHint::Normal, ReadHint::Random].map(AdviceFlag::Read).map(VmaChange::Advice);
    let changes = Protection::ALL.map(VmaChange::Protection).into_iter().chain(hints);
    let ranges = (0..PAGES).flat_map(|from| (from + 1..=PAGES).map(move |end| (from, end)));
    let steps: Vec<_> =
        ranges.flat_map(|range| changes.clone().map(move |change| (range, change))).collect();
    let all = || steps.iter().enumerate();
    let mut done = 0;
    for (first, second, third) in all().flat_map(|(a, _)| {
        all().flat_map(move |(b, _)| {
            all().filter(move |(c, _)| (a + b + c) % 7 == 0).map(move |(c, _)| (a, b, c))
        })
    }) {
        let mut mapping = FileMapping::new(part(0, PAGES), None);
        let mut pages: Pages = [(false, Protection::AsMapped); PAGES as usize];
        for at in [first, second, third] {
            let ((from, end), change) = steps[at];
            let altered = mapping.altered(PageIndex(from), PageIndex(end), change);
            let altered: Vec<u64> = altered.iter().map(|vma| vma.pgoff.0).collect();
            mapping.change(PageIndex(from), PageIndex(end), change);
            let before = pages;
            for page in &mut pages[from as usize..end as usize] {
                *page = changed(*page, change);
            }
            assert_eq!(altered, gone(&before, &pages), "{from}..{end} {change:?} of {before:?}");
        }
        let steps_of_seed = [first, second, third].map(|at| steps[at]);
        assert_eq!(vmas(&mapping), runs(&pages), "{steps_of_seed:?}");
        done += 1;
    }
    assert!(done > 100_000, "{done}");
}

#[test]
fn unmapped_part_leaves_a_gap() {
    let mut mapping = FileMapping::new(part(0, PAGES), None);
    let gone = VmaChange::Protection(Protection::Unmapped);
    let around = |mapping: &FileMapping, from: u64, end: u64| {
        let (before, behind) = mapping.mapped_neighbors(PageIndex(from), PageIndex(end));
        (before.map(|page| page.0), behind.map(|page| page.0))
    };
    mapping.change(PageIndex(2), PageIndex(3), gone);
    assert_eq!(around(&mapping, 2, 3), (Some(2), Some(3)));
    mapping.change(PageIndex(3), PageIndex(4), gone);
    assert_eq!(around(&mapping, 3, 4), (Some(2), Some(4)));
    mapping.change(PageIndex(4), PageIndex(PAGES), gone);
    assert_eq!(around(&mapping, 4, PAGES), (Some(2), None));
    assert_eq!(vmas(&mapping), [(0, false), (2, false)]);
}

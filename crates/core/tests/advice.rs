//! Advice is a set of flags; advice for a range splits and merges the VMAs of a mapping.

use crate::support::machine::part;
use filemap_core::address::mapping::{FileMapping, Split, SplitProt};
use filemap_core::address::vma::{Advice, AdviceFlag, HugeHint, ReadHint};
use filemap_core::units::{PageCount, PageIndex};

const NORMAL: AdviceFlag = AdviceFlag::Read(ReadHint::Normal);
const RANDOM: AdviceFlag = AdviceFlag::Read(ReadHint::Random);
const SEQUENTIAL: AdviceFlag = AdviceFlag::Read(ReadHint::Sequential);

/// First pages of the VMAs of a mapping of the pages 0 to 31, and their advice.
fn vmas(mapping: &FileMapping) -> Vec<(u64, &'static str)> {
    let vmas = mapping.vmas(PageIndex(0), PageIndex(32));
    vmas.map(|(vma, ..)| (vma.pgoff.0, vma.advice.name())).collect()
}

fn advise(mapping: &mut FileMapping, from: u64, end: u64, flag: AdviceFlag) {
    mapping.advise(PageIndex(from), PageIndex(end), flag);
}

#[test]
fn advice_flags_exclude_each_other() {
    let both = Advice::RANDOM.and(AdviceFlag::Huge);
    assert_eq!((both.is_random(), both.is_huge(), both.name()), (true, true, "random,hugepage"));
    assert_eq!(both.and(SEQUENTIAL).name(), "sequential,hugepage");
    assert_eq!(both.and(NORMAL), Advice::HUGEPAGE, "MADV_NORMAL leaves the huge-page flag");
    let none = both.and(AdviceFlag::NoHuge);
    assert_eq!((none.huge, none.is_huge()), (HugeHint::NoHuge, false));
    assert_eq!(none.and(AdviceFlag::Huge), both);
    let recency = [both, both.and(SEQUENTIAL), both.and(NORMAL), none.and(NORMAL)];
    assert_eq!(recency.map(Advice::has_recency), [false, false, true, true]);
}

#[test]
fn advice_splits_and_merges_vmas() {
    let mut mapping = FileMapping::new(part(0, 32), None);
    advise(&mut mapping, 8, 16, RANDOM);
    assert_eq!(vmas(&mapping), [(0, "normal"), (8, "random"), (16, "normal")]);
    assert_eq!(mapping.has_recency(), None);
    assert_eq!(mapping.recency_mask(0), 0xFFFF_00FF);
    advise(&mut mapping, 4, 20, RANDOM);
    assert_eq!(vmas(&mapping), [(0, "normal"), (4, "random"), (20, "normal")]);
    advise(&mut mapping, 10, 12, AdviceFlag::Huge);
    let cut = [(4, "random"), (10, "random,hugepage"), (12, "random"), (20, "normal")];
    assert_eq!(vmas(&mapping)[1..], cut);
    advise(&mut mapping, 0, 32, NORMAL);
    assert_eq!(vmas(&mapping), [(0, "normal"), (10, "hugepage"), (12, "normal")]);
    let fresh = FileMapping::new(part(0, 32), None);
    for (from, end) in [(0, 9), (9, 20), (20, 32)] {
        let mut whole = fresh.clone();
        advise(&mut whole, from, end, SEQUENTIAL);
        advise(&mut whole, from, end, NORMAL);
        assert_eq!(whole, fresh, "{from}..{end}");
    }
}

#[test]
fn vmas_of_different_protection_are_never_joined() {
    let split = Some(Split { pages: PageCount(16), prot: SplitProt::Exec });
    let mut mapping = FileMapping::new(part(0, 32), split);
    advise(&mut mapping, 12, 20, RANDOM);
    let cut = [(0, "normal"), (12, "random"), (16, "random"), (20, "normal")];
    assert_eq!(vmas(&mapping), cut);
    assert_eq!(mapping.executable_mask(0), 0xFFFF_0000);
    advise(&mut mapping, 0, 32, NORMAL);
    assert_eq!(vmas(&mapping), [(0, "normal"), (16, "normal")]);
}

/// Private copies belong to an `anon_vma`. VMAs that got theirs while their advice differed are
/// never merged.
#[test]
fn vmas_with_private_copies_are_not_merged() {
    let cases: [(&[u64], &[u64]); 5] = [
        (&[], &[0]),
        (&[3], &[0]),
        (&[10], &[0]),
        (&[3, 10], &[0, 8]),
        (&[3, 10, 20], &[0, 8, 16]),
    ];
    for (copied, expected) in cases {
        let mut mapping = FileMapping::new(part(0, 32), None);
        advise(&mut mapping, 8, 16, RANDOM);
        copied.iter().for_each(|&page| mapping.record_copy(PageIndex(page)));
        advise(&mut mapping, 0, 32, NORMAL);
        let firsts: Vec<u64> = vmas(&mapping).iter().map(|(first, _)| *first).collect();
        assert_eq!(firsts, expected, "{copied:?}");
    }
    // A VMA with a copy keeps one `anon_vma` for all its parts when it is split.
    let mut mapping = FileMapping::new(part(0, 32), None);
    mapping.record_copy(PageIndex(0));
    advise(&mut mapping, 8, 16, RANDOM);
    mapping.record_copy(PageIndex(10));
    advise(&mut mapping, 0, 32, NORMAL);
    assert_eq!(vmas(&mapping), [(0, "normal")]);
}

#[test]
fn noreuse_belongs_to_open_file() {
    let mut mapping = FileMapping::new(part(0, 32), None);
    mapping.no_reuse = true;
    assert_eq!(mapping.has_recency(), Some(false));
    assert!(!mapping.vma_has_recency(&mapping.vma(PageIndex(3))));
}

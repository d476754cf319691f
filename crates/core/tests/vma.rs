//! Mappings, the VMAs into which a split divides them, and which of these are executable.

use filemap_core::address::mapping::{FileMapping, Split, SplitProt};
use filemap_core::address::vma::{Advice, Vma};
use filemap_core::units::{PageCount, PageIndex, Vpn};

use crate::support::machine::{executable, part};

fn split(whole: Vma, pages: u64, prot: SplitProt) -> FileMapping {
    FileMapping::new(whole, Some(Split { pages: PageCount(pages), prot }))
}

#[test]
fn pages_and_addresses() {
    let vma = Vma { start: Vpn(1000), ..part(20, 30) };
    assert_eq!(vma.end(), PageIndex(30));
    assert_eq!(vma.vpn(PageIndex(20)), Vpn(1000));
    assert_eq!(vma.vpn(PageIndex(29)), Vpn(1009));
    assert_eq!(vma.index(Vpn(1000)), PageIndex(20));
    assert_eq!(vma.index(Vpn(1009)), PageIndex(29));
}

#[test]
fn split_makes_consecutive_vmas() {
    let whole = Vma { start: Vpn(1000), advice: Advice::RANDOM, ..part(20, 50) };
    let mapping = split(whole, 8, SplitProt::Write);
    // Page: first page, first address, length.
    let cases = [
        (20, 20, 1000, 8),
        (27, 20, 1000, 8),
        (28, 28, 1008, 8),
        (35, 28, 1008, 8),
        (36, 36, 1016, 8),
        // The last piece is shorter.
        (44, 44, 1024, 6),
        (49, 44, 1024, 6),
    ];
    for (page, from, start, pages) in cases {
        let vma = mapping.vma(PageIndex(page));
        let expected =
            Vma { start: Vpn(start), pgoff: PageIndex(from), pages: PageCount(pages), ..whole };
        assert_eq!(vma, expected, "page {page}");
    }
    assert_eq!(FileMapping::new(whole, None).vma(PageIndex(30)), whole);
}

#[test]
fn every_second_piece_is_executable() {
    let mapping = split(part(20, 50), 8, SplitProt::Exec);
    let pieces = [(20, false), (28, true), (35, true), (36, false), (44, true), (49, true)];
    for (page, code) in pieces {
        assert_eq!(mapping.vma(PageIndex(page)).executable, code, "page {page}");
    }
    for page in [20, 28, 44] {
        assert!(!split(part(20, 50), 8, SplitProt::Write).vma(PageIndex(page)).executable);
        let code = split(executable(part(20, 50)), 8, SplitProt::Write);
        assert!(code.vma(PageIndex(page)).executable);
    }
}

#[test]
fn executable_pages_as_masks() {
    let bits = |from: u32, end: u32| (from..end).fold(0u64, |mask, bit| mask | 1 << bit);
    let whole = FileMapping::new(executable(part(10, 100)), None);
    assert_eq!(whole.executable_mask(0), bits(10, 64));
    assert_eq!(whole.executable_mask(1), bits(0, 36));
    assert_eq!(whole.executable_mask(2), 0);
    let none = FileMapping::new(part(10, 100), None);
    assert_eq!(none.executable_mask(0), 0);
    assert_eq!(split(part(10, 100), 20, SplitProt::Write).executable_mask(0), 0);
    // Pieces at 10, 30 (code), 50, 70 (code), 90.
    let mixed = split(part(10, 100), 20, SplitProt::Exec);
    assert_eq!(mixed.executable_mask(0), bits(30, 50));
    assert_eq!(mixed.executable_mask(1), bits(6, 26));
    assert_eq!(mixed.executable_mask(2), 0);
    // Small pieces: every odd page.
    let odd = split(part(0, 128), 1, SplitProt::Exec);
    assert_eq!(odd.executable_mask(1), 0xAAAA_AAAA_AAAA_AAAA);
    // A piece that crosses the border of a word.
    let across = split(part(0, 200), 50, SplitProt::Exec);
    assert_eq!(across.executable_mask(0), bits(50, 64));
    assert_eq!(across.executable_mask(1), bits(0, 36));
}

#[test]
fn advice() {
    assert_eq!(Advice::ALL.map(Advice::name), ["normal", "random", "sequential", "hugepage"]);
    assert_eq!(Advice::ALL.map(Advice::has_recency), [true, false, false, true]);
    for advice in Advice::ALL {
        let whole = Vma { advice, ..part(0, 10) };
        assert_eq!(FileMapping::new(whole, None).has_recency(), Some(advice.has_recency()));
    }
}

//! Who maps a page: layers, and what reclaim asks of them.

use filemap_core::address::entries::Layer;
use filemap_core::address::mapping::FileMapping;
use filemap_core::address::reverse_map::{FileMappings, ReverseMap};
use filemap_core::address::vma::{Advice, Vma};
use filemap_core::units::{FileId, PageIndex};

use crate::support::machine::{advised, executable, part};

fn whole(vma: Vma) -> FileMapping {
    FileMapping::new(vma, None)
}

fn layers(mappings: &mut FileMappings, parts: &[(u64, u64)]) -> Vec<u32> {
    parts.iter().map(|&(from, end)| mappings.insert(whole(part(from, end))).0).collect()
}

#[test]
fn mappings_that_share_pages_are_in_different_layers() {
    let mut mappings = FileMappings::default();
    let parts = [(10, 20), (20, 30), (0, 10), (15, 25), (5, 8), (0, 40), (30, 40), (19, 20)];
    assert_eq!(layers(&mut mappings, &parts), [0, 0, 0, 1, 1, 2, 0, 3]);
    let first = |layer, page| {
        mappings.vma(Layer(layer), PageIndex(page)).map(|vma| (vma.pgoff.0, vma.end().0))
    };
    assert_eq!(
        [first(0, 0), first(0, 9), first(0, 10)],
        [Some((0, 10)), Some((0, 10)), Some((10, 20))]
    );
    assert_eq!([first(1, 5), first(1, 8), first(1, 24)], [Some((5, 8)), None, Some((15, 25))]);
    assert_eq!([first(1, 25), first(3, 18), first(4, 0)], [None, None, None]);
}

#[test]
fn unmapped_layer_range_is_reused() {
    let mut mappings = FileMappings::default();
    let parts = [(0, 10), (10, 20), (5, 15)];
    assert_eq!(layers(&mut mappings, &parts), [0, 0, 1]);
    mappings.insert(whole(advised(Advice::RANDOM, part(40, 50))));
    assert_eq!(mappings.recency_mask(Layer::FIRST, 1), 0, "they differ");
    mappings.remove(Layer(0), PageIndex(40));
    assert_eq!(mappings.recency_mask(Layer::FIRST, 1), u64::MAX, "they are alike again");
    mappings.remove(Layer(0), PageIndex(0));
    assert_eq!(mappings.vma(Layer(0), PageIndex(3)), None);
    assert_eq!(layers(&mut mappings, &[(0, 11), (0, 10)]), [2, 0]);
}

#[test]
fn many_mappings_share_few_layers() {
    let parts = [(0, 8), (4, 12), (8, 16), (12, 20), (2, 6)];
    let all: Vec<FileMapping> = parts.iter().map(|&(from, end)| whole(part(from, end))).collect();
    let mut mappings = FileMappings::default();
    let found = mappings.insert_all(&all);
    assert_eq!(found.iter().max(), Some(&Layer(2)));
    for (&(from, end), &layer) in parts.iter().zip(&found) {
        for page in from..end {
            let vma = mappings.vma(layer, PageIndex(page)).expect("it is mapped");
            assert_eq!((vma.pgoff.0, vma.end().0), (from, end), "page {page}");
        }
    }
}

#[test]
fn accessed_bits_count_by_mapping() {
    let mut mappings = FileMappings::default();
    assert!(mappings.has_recency(), "of nothing");
    mappings.insert(whole(part(0, 16)));
    assert_eq!(mappings.recency_mask(Layer::FIRST, 0), u64::MAX, "one answer for all");
    mappings.insert(whole(advised(Advice::RANDOM, part(16, 100))));
    assert!(mappings.has_recency());
    assert_eq!(mappings.recency_mask(Layer::FIRST, 0), 0xFFFF);
    assert_eq!(mappings.recency_mask(Layer::FIRST, 1), 0);
    let mut random = FileMappings::default();
    random.insert(whole(advised(Advice::SEQUENTIAL, part(0, 64))));
    assert!(!random.has_recency());
    assert_eq!(random.recency_mask(Layer::FIRST, 0), 0);
}

#[test]
fn code_pages_are_executable_mappings() {
    let mut files = ReverseMap::new(2);
    let second = files.file_mut(FileId::new(1));
    second.insert(whole(executable(part(4, 8))));
    second.insert(whole(part(0, 64)));
    second.insert(whole(executable(part(60, 70))));
    let masks =
        |file: u32, layer, word| files.file(FileId::new(file)).executable_mask(Layer(layer), word);
    assert_eq!([masks(1, 0, 0), masks(1, 0, 1), masks(1, 1, 0)], [0xF0 | 0xF << 60, 0x3F, 0]);
    assert_eq!(masks(0, 0, 0), 0);
}

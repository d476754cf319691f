//! Masks and ranges of 64 pages, folios and runs.

use filemap_core::address::entries::{MappedFile, WordPages};
use filemap_core::cache::{FileCache, FolioRun, by_word, word_mask, words};
use filemap_core::decision::{Cause, Decision, EvictionRun, Lock};
use filemap_core::lru::lists::LruLists;
use filemap_core::units::{FileId, Order, PageCount, PageIndex};

use crate::support::map;
use crate::support::one_file::OneFile;
use crate::support::transcript::transcript;

#[test]
fn masks_of_a_range() {
    let mask = |word, from, end| word_mask(word, PageIndex(from), PageIndex(end));
    assert_eq!([mask(0, 0, 64), mask(0, 0, 1), mask(0, 63, 64)], [u64::MAX, 1, 1 << 63]);
    assert_eq!([mask(0, 4, 8), mask(0, 4, 4), mask(0, 8, 4)], [0xF0, 0, 0]);
    assert_eq!([mask(0, 60, 70), mask(1, 60, 70)], [0xF << 60, 0x3F]);
    assert_eq!([mask(1, 0, 200), mask(1, 64, 65), mask(1, 0, 64)], [u64::MAX, 1, 0]);
    assert_eq!([mask(1, 128, 200), mask(2, 0, 129)], [0, 1]);
}

#[test]
fn a_range_by_word() {
    let by_word = |from, end| by_word(PageIndex(from), PageIndex(end)).collect::<Vec<_>>();
    assert_eq!(by_word(5, 5), []);
    assert_eq!(by_word(0, 64), [(0, u64::MAX)]);
    assert_eq!(by_word(62, 130), [(0, 3 << 62), (1, u64::MAX), (2, 3)]);
    assert_eq!(by_word(66, 68), [(1, 0b1100)]);
}

#[test]
fn words_of_a_range() {
    let words = |from, end| words(PageIndex(from), PageIndex(end));
    assert_eq!([words(0, 64), words(0, 65)], [0..1, 0..2]);
    assert_eq!([words(63, 64), words(63, 65), words(64, 65)], [0..1, 0..2, 1..2]);
    assert_eq!([words(10, 200), words(5, 5), words(70, 5)], [0..4, 0..0, 0..0]);
}

#[test]
fn searches_over_a_map() {
    let cache = map::cache("..##[--].#");
    let absent = |from, end| cache.next_absent(PageIndex(from), PageIndex(end)).0;
    let present = |from, end| cache.next_present(PageIndex(from), PageIndex(end)).0;
    assert_eq!([absent(0, 10), absent(2, 10), absent(5, 10), absent(2, 8)], [0, 2 + 6, 8, 8]);
    assert_eq!([absent(9, 10), absent(9, 20), absent(3, 3)], [10, 10, 3]);
    assert_eq!([present(0, 10), present(5, 10), present(8, 10)], [2, 5, 9]);
    assert_eq!([present(0, 2), present(8, 9), present(10, 90)], [2, 9, 90]);
    let before = |last, floor| cache.previous_absent(PageIndex(last), PageIndex(floor));
    assert_eq!(before(7, 0), Some(PageIndex(1)));
    assert_eq!(before(7, 1), Some(PageIndex(1)));
    assert_eq!(before(7, 2), None);
    assert_eq!(before(8, 0), Some(PageIndex(8)));
}

#[test]
fn folios_of_a_map() {
    let cache = map::cache("#~M m [--] (--) {} <>");
    let folio = |index| cache.folio(PageIndex(index));
    let drawn: Vec<_> = (0..16)
        .map(|index| folio(index).map(|f| (f.head.0, f.order.0, f.locked, f.marked)))
        .map(Option::unwrap)
        .collect();
    let large = |head, order, locked, marked| vec![(head, order, locked, marked); 1usize << order];
    let expected = [
        vec![(0, 0, false, false), (1, 0, true, false), (2, 0, false, true), (3, 0, true, true)],
        large(4, 2, false, false),
        large(8, 2, true, false),
        large(12, 1, false, true),
        large(14, 1, true, true),
    ];
    assert_eq!(drawn, expected.concat());
    assert_eq!(folio(16), None);
    assert_eq!(folio(6).unwrap().end(), PageIndex(8));
}

#[test]
fn the_pages_of_a_word() {
    let cache = &mut map::cache("64. 4. ##~MMw## [--] .. []");
    map::set_mapped(cache, "64. c9. ccyy");
    let bits = |letters: &str| {
        let set = (0..64).zip(letters.chars()).filter(|(_, letter)| *letter == 'x');
        set.fold(0, |bits, (bit, _)| bits | 1 << bit)
    };
    let pages = cache.pages(1, u64::MAX);
    let expected = WordPages {
        present: bits("....xxxxxxxxxxxx..xx"),
        large: bits("............xxxx..xx"),
        locked: bits("......x"),
        marked: bits(".......xx"),
        workingset: bits(".........x"),
        mapped: bits("............xx"),
        copied: bits("x.........xx"),
    };
    assert_eq!(pages, expected);
    assert_eq!(pages.unmapped(), bits("....xxxxxx....xx..xx"));
    assert_eq!(cache.pages(0, u64::MAX), WordPages::default());
    let entries = [64, 65, 74, 76].map(|page| cache.entry(PageIndex(page)));
    assert_eq!(entries, [(false, true), (false, false), (false, true), (true, false)]);
}

#[test]
fn marks_and_locks_are_taken_from_folios() {
    let mut cache = map::cache("mm~~ <--> (--)");
    cache.clear_mark(PageIndex(1));
    cache.clear_mark(PageIndex(6));
    cache.clear_mark(PageIndex(7));
    map::assert_cache("marks", &cache, "m~~~ (--) (--)");
    // Nothing, for an absent page.
    cache.clear_mark(PageIndex(40));
    cache.unlock(PageIndex(0), PageCount(3));
    map::assert_cache("locks", &cache, "M##~ (--) (--)");
}

#[test]
fn runs_of_folios() {
    let run = FolioRun { start: PageIndex(8), order: Order(2), folios: 3, marked: None };
    assert_eq!((run.pages(), run.end()), (PageCount(12), PageIndex(20)));
    let mut cache = OneFile::default();
    cache.add(FolioRun { marked: Some(PageIndex(12)), ..run });
    map::assert_cache("added", &cache, "8. (--)<-->(--) ..");
    assert_eq!((cache.inactive(), cache.active()), (PageCount(12), PageCount(0)));
    cache.unlock(PageIndex(12), PageCount(4));
    map::assert_cache("one arrived", &cache, "8. (--){--}(--) ..");
}

#[test]
fn evictions_are_joined() {
    let mut log = Vec::new();
    let mut run = EvictionRun::default();
    let evictions = [(0, 4, 2), (0, 6, 1), (0, 9, 1), (0, 8, 1), (0, 9, 4), (1, 13, 1), (1, 14, 1)];
    for (file, start, pages) in evictions {
        run.push(FileId::new(file), PageIndex(start), PageCount(pages), &mut log);
    }
    run.flush(&mut log);
    run.flush(&mut log);
    assert_eq!(transcript(&log), "evict:4+3 evict:9+1 evict:8+5 evict:13+2");
}

#[test]
fn names_in_logs() {
    let async_causes = [Cause::AsyncFault, Cause::AsyncRead];
    let names = [
        (Cause::HugePage, "huge-page"),
        (Cause::SequentialFault, "sequential-fault"),
        (Cause::SequentialSingle, "sequential-single"),
        (Cause::Executable, "executable"),
        (Cause::ReadAround, "read-around"),
        (Cause::ReadStream, "read-stream"),
        (Cause::ReadSingle, "read-single"),
        (Cause::AsyncFault, "async-fault"),
        (Cause::AsyncRead, "async-read"),
    ];
    for (cause, name) in names {
        assert_eq!(cause.name(), name);
        assert_eq!(cause.is_async(), async_causes.contains(&cause), "{name}");
    }
    assert_eq!([Lock::Vma.name(), Lock::Mmap.name()], ["vma", "mmap"]);
    let mut log: Vec<Decision> = Vec::new();
    filemap_core::decision::Log::record(&mut log, Decision::Locked { lock: Lock::Vma });
    assert_eq!(log, [Decision::Locked { lock: Lock::Vma }]);
}

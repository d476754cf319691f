//! Maps of the page cache, one letter a page.
//!
//! | base page | large folio | state |
//! | --- | --- | --- |
//! | `.` | | absent |
//! | `#` | `[--]` | up to date |
//! | `~` | `(--)` | being read: locked |
//! | `M` | `{--}` | up to date, carries the readahead mark |
//! | `m` | `<-->` | being read, carries the mark |
//! | `w` | `[ww]` | up to date, carries the workingset flag |
//!
//! Large folios are as long as drawn: `[]` is order 1, `[--]` order 2, `[6-]` order 3.
//! A map of the page table, beside it: `.` not mapped, `y` mapped, `c` replaced by a private copy.
//! In both a number repeats the letter after it, and blanks only divide: `60# 4.` is 64 pages.

use super::one_file::{OneFile, mapped};
use filemap_core::address::entries::{MappedFile, WordPages};
use filemap_core::address::mapping::FileMapping;
use filemap_core::address::reverse_map::ReverseMap;
use filemap_core::address::vma::{Advice, Vma};
use filemap_core::cache::{FileCache, FolioRun, WORD_PAGES};
use filemap_core::lru::lists::LruLists;
use filemap_core::units::{Order, PageCount, PageIndex};

/// The map with its numbers and blanks resolved.
pub fn expand(map: &str) -> String {
    let mut pages = String::new();
    let mut repeat = String::new();
    for letter in map.chars().filter(|letter| !letter.is_whitespace()) {
        if letter.is_ascii_digit() {
            repeat.push(letter);
            continue;
        }
        let times = repeat.parse().unwrap_or(1);
        pages.extend(std::iter::repeat_n(letter, times));
        repeat.clear();
    }
    assert!(repeat.is_empty(), "the number at the end of '{map}' repeats nothing");
    pages
}

/// Pages in a map.
pub fn pages(map: &str) -> PageCount {
    PageCount(expand(map).len() as u64)
}

/// A cache in the state `map`. Its pages were added in the order of their index.
pub fn cache(map: &str) -> OneFile {
    let letters = expand(map).into_bytes();
    let mut cache = OneFile::default();
    let folios = folios(&letters);
    // The flag is set on return from the active list, so these go there first.
    for folio in folios.iter().filter(|folio| folio.workingset) {
        add(folio, &mut cache);
        cache.mark_accessed(folio.head);
        cache.mark_accessed(folio.head);
    }
    let active = cache.active();
    cache.age(active, &mapping(&letters));
    for folio in folios.iter().filter(|folio| !folio.workingset) {
        add(folio, &mut cache);
    }
    cache
}

fn add(folio: &Drawn, cache: &mut OneFile) {
    let Drawn { head, order, .. } = *folio;
    cache.add(FolioRun { start: head, order, folios: 1, marked: folio.marked.then_some(head) });
    if !folio.locked {
        cache.unlock(head, PageCount(order.pages()));
    }
}

fn mapping(letters: &[u8]) -> ReverseMap {
    let whole = Vma {
        start: Default::default(),
        pgoff: PageIndex(0),
        pages: PageCount(letters.len() as u64),
        advice: Advice::NORMAL,
        executable: false,
    };
    mapped(FileMapping::new(whole, None))
}

/// A folio in a map.
struct Drawn {
    head: PageIndex,
    order: Order,
    locked: bool,
    marked: bool,
    workingset: bool,
}

fn folios(letters: &[u8]) -> Vec<Drawn> {
    let mut folios = Vec::new();
    let mut next = 0;
    while next < letters.len() {
        let closing = match letters[next] {
            b'[' => Some(b']'),
            b'(' => Some(b')'),
            b'{' => Some(b'}'),
            b'<' => Some(b'>'),
            _ => None,
        };
        let to_closing =
            |closing| letters[next..].iter().position(|&letter| letter == closing).unwrap() + 1;
        let length = closing.map_or(1, to_closing);
        assert!(length.is_power_of_two() && next % length == 0, "no folio: {length} at {next}");
        let drawn = &letters[next..next + length];
        assert!(b".#~Mmw[({<".contains(&drawn[0]), "no state: {}", drawn[0] as char);
        folios.push(Drawn {
            head: PageIndex(next as u64),
            order: Order(length.ilog2() as u8),
            locked: b"~m(<".contains(&drawn[0]),
            marked: b"Mm{<".contains(&drawn[0]),
            workingset: drawn.contains(&b'w'),
        });
        if drawn == b"." {
            folios.pop();
        }
        next += length;
    }
    folios
}

/// Draws the first `pages` pages of `cache`.
pub fn draw(cache: &OneFile, pages: PageCount) -> String {
    let mut map = String::new();
    let mut next = PageIndex(0);
    while next.0 < pages.0 {
        let Some(folio) = cache.folio(next) else {
            map.push('.');
            next += PageCount(1);
            continue;
        };
        let length = folio.order.pages() as usize;
        let workingset = page(cache, next).workingset != 0;
        if length == 1 {
            map.push(match (folio.locked, folio.marked) {
                _ if workingset => 'w',
                (false, false) => '#',
                (true, false) => '~',
                (false, true) => 'M',
                (true, true) => 'm',
            });
        } else {
            let (opening, closing) = match (folio.locked, folio.marked) {
                (false, false) => ('[', ']'),
                (true, false) => ('(', ')'),
                (false, true) => ('{', '}'),
                (true, true) => ('<', '>'),
            };
            map.push(opening);
            map.extend(std::iter::repeat_n(if workingset { 'w' } else { '-' }, length - 2));
            map.push(closing);
        }
        next = folio.end();
    }
    map
}

/// Draws the page-table entries of the first `pages` pages.
pub fn draw_mapped(cache: &OneFile, pages: PageCount) -> String {
    let letter = |index| match cache.entry(index) {
        (_, true) => 'c',
        (true, _) => 'y',
        _ => '.',
    };
    (0..pages.0).map(PageIndex).map(letter).collect()
}

/// Maps and copies the pages as in `map`; the mapped ones are not accessed.
pub fn set_mapped(cache: &mut OneFile, map: &str) {
    for (index, letter) in (0..).zip(expand(map).chars()) {
        match letter {
            'y' => cache.map(index / WORD_PAGES, 1 << (index % WORD_PAGES), 0),
            'c' => assert!(cache.copy(PageIndex(index))),
            _ => assert_eq!(letter, '.', "no entry: {letter}"),
        }
    }
}

fn page(cache: &OneFile, index: PageIndex) -> WordPages {
    cache.pages(index.0 / WORD_PAGES, 1 << (index.0 % WORD_PAGES))
}

/// Compares the state of the cache with `expected`.
#[track_caller]
pub fn assert_cache(case: &str, cache: &OneFile, expected: &str) {
    let expected = expand(expected);
    let drawn = draw(cache, PageCount(expected.len() as u64));
    assert!(drawn == expected, "{case}\n expected {expected}\n found    {drawn}");
}

/// Compares the page-table entries with `expected`.
#[track_caller]
pub fn assert_mapped(case: &str, cache: &OneFile, expected: &str) {
    let expected = expand(expected);
    let drawn = draw_mapped(cache, PageCount(expected.len() as u64));
    assert!(drawn == expected, "{case}\n expected {expected}\n found    {drawn}");
}

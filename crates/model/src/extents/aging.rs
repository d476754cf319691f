//! Ageing the active list.

use filemap_core::address::entries::Layer;
use filemap_core::address::reverse_map::ReverseMap;
use filemap_core::cache::{WORD_PAGES, up_to_bit};
use filemap_core::units::Order;

use super::Extents;
use super::file::locate;
use super::lists::{FolioExtent, low_bits};
use super::young::AccessedPages;

/// Pages at the tail of the active list that were moved to the inactive list, and that stayed.
struct AgedPages {
    moved: u64,
    stayed: u64,
}

impl<const W: usize> Extents<W> {
    /// Moves folios from the tail of the active list until `pages` pages have moved.
    pub(super) fn age_active(&mut self, pages: u64, mappings: &ReverseMap) {
        let mut moved = 0;
        let mut left = self.active.pages;
        while moved < pages && left > 0 {
            let tail = self.active.tail().expect("pages are left on the list");
            let aged = match tail.order {
                Order(0) => self.age_word(tail, left, pages - moved, mappings),
                _ => self.age_folio(tail, mappings),
            };
            moved += aged.moved;
            left -= aged.moved + aged.stayed;
        }
    }

    /// Ages the base pages at the tail that lie in one word, until `most` have moved.
    fn age_word(
        &mut self,
        tail: FolioExtent,
        left: u64,
        most: u64,
        mappings: &ReverseMap,
    ) -> AgedPages {
        let (number, offset) = (tail.start / WORD_PAGES, tail.start % WORD_PAGES);
        let length = tail.pages.min(WORD_PAGES - offset).min(left);
        let mut mask = low_bits(length as u32) << offset;
        let first = number * WORD_PAGES;
        let (file, index) = locate(first);
        let (mappings, word) = (mappings.file(file), index.0 / WORD_PAGES);
        let chunk = self.chunks.get_mut(number / W as u64).expect("pages are cached");
        let word_in_chunk = number as usize % W;
        let flags = chunk.flags(word_in_chunk);
        let accessed = (flags.accessed(mask), mask);
        let young = AccessedPages::in_word(accessed, number, word, &mut self.aliases, mappings);
        let moves = mask & !young.executable;
        if u64::from(moves.count_ones()) >= most {
            mask &= up_to_bit(moves, most);
        }
        let recency = mask & mappings.recency_mask(Layer::FIRST, word);
        if young.pages & mask != 0 {
            self.aliases.forget_accesses(number, word, mask, mappings);
        }
        let moves = mask & moves;
        chunk.change_flags(word_in_chunk, |flags| {
            flags.young &= !recency;
            flags.active &= !moves;
            flags.workingset |= moves;
        });
        let taken = WORD_PAGES - u64::from(mask.leading_zeros()) - offset;
        self.active.take(taken, taken);
        let stayed = self.active.push_mask(first, mask & !moves);
        self.clock += stayed;
        AgedPages { moved: self.inactive.push_mask(first, moves), stayed }
    }

    /// Ages the large folio at the tail.
    fn age_folio(&mut self, tail: FolioExtent, mappings: &ReverseMap) -> AgedPages {
        let (head, length) = (tail.start, tail.order.pages());
        self.active.take(length, length);
        let extent = FolioExtent { start: head, pages: length, order: tail.order };
        let (file, _) = locate(head);
        let (young, _) = self.take_young(head, length, mappings.file(file));
        if young.executable {
            self.active.push(extent);
            self.clock += length;
            return AgedPages { moved: 0, stayed: length };
        }
        self.set_range(head, head + length, |flags, mask| {
            flags.active &= !mask;
            flags.workingset |= mask;
        });
        self.inactive.push(extent);
        AgedPages { moved: length, stayed: 0 }
    }
}

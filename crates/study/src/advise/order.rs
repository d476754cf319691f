//! Where in a file the touches change from one order to another.

/// Parts of a file that are looked at by themselves.
const PARTS: usize = 64;

/// A touch so many pages behind the one before it, or fewer, is in order.
const NEAR: u64 = 16;

/// Touches on each side of a boundary, at least: fewer do not tell an order.
const FEW: u64 = 64;

/// What shares of touches in order differ by at least at a boundary, and lie on either side of.
const DIFFERENCE: f64 = 0.4;
const HALF: f64 = 0.5;

/// Touches of one part of a file.
#[derive(Clone, Copy, Debug, Default)]
struct Part {
    touches: u64,
    in_order: u64,
    last: Option<u64>,
}

/// The order in which the pages of a file are touched.
#[derive(Clone, Debug)]
pub struct Order {
    pages: u64,
    parts: [Part; PARTS],
}

/// A boundary between two orders.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Boundary {
    /// The first page of the file behind it.
    pub page: u64,
    /// Whether the touches before it are the ones in no order.
    pub is_random_before: bool,
}

impl Order {
    /// Of a file of so many pages.
    pub fn new(pages: u64) -> Order {
        Order { pages: pages.max(1), parts: [Part::default(); PARTS] }
    }

    /// A page of the file is touched.
    pub fn touch(&mut self, page: u64) {
        let at = u128::from(page) * PARTS as u128 / u128::from(self.pages);
        let part = &mut self.parts[(at as usize).min(PARTS - 1)];
        let ahead = part.last.and_then(|last| page.checked_sub(last));
        part.touches += 1;
        part.in_order += u64::from(ahead.is_some_and(|ahead| (1..=NEAR).contains(&ahead)));
        part.last = Some(page);
    }

    /// The boundary at which the share of touches in order differs most, if it does by much.
    pub fn boundary(&self) -> Option<Boundary> {
        let share = |parts: &[Part]| {
            let touches: u64 = parts.iter().map(|part| part.touches).sum();
            let in_order: u64 = parts.iter().map(|part| part.in_order).sum();
            (touches >= FEW).then(|| in_order as f64 / touches as f64)
        };
        let at = |number: usize| {
            let (before, behind) = self.parts.split_at(number);
            let (before, behind) = (share(before)?, share(behind)?);
            let is_one = (before - HALF) * (behind - HALF) < 0.0;
            let difference = (before - behind).abs();
            (is_one && difference >= DIFFERENCE).then_some((number, before < behind, difference))
        };
        let found = (1..PARTS).filter_map(at).max_by(|a, b| a.2.total_cmp(&b.2));
        found.map(|(number, is_random_before, _)| Boundary {
            page: (u128::from(self.pages) * number as u128).div_ceil(PARTS as u128) as u64,
            is_random_before,
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const PAGES: u64 = 6400;

    fn boundary(pages: impl Iterator<Item = u64>) -> Option<Boundary> {
        let mut order = Order::new(PAGES);
        pages.for_each(|page| order.touch(page));
        order.boundary()
    }

    /// Pages below `below` in no order: a linear congruential generator.
    fn random(below: u64) -> impl Iterator<Item = u64> {
        let next = |state: &u64| Some((state * 1_664_525 + 1_013_904_223) % (1 << 32));
        std::iter::successors(Some(7), next).map(move |state| state / 7 % below)
    }

    #[test]
    fn an_index_before_its_data_is_found() {
        // Each look-up touches a page of the index and then the next one of the data.
        let pages = random(1600).zip(1600..4800).flat_map(|(index, data)| [index, data]);
        let expected = Boundary { page: 1600, is_random_before: true };
        assert_eq!(boundary(pages), Some(expected));
        let behind = (0..3200).chain(random(3200).take(900).map(|page| page + 3200));
        let expected = Boundary { page: 3200, is_random_before: false };
        assert_eq!(boundary(behind), Some(expected));
    }

    #[test]
    fn one_order_has_no_boundary() {
        assert_eq!(boundary(0..PAGES), None);
        assert_eq!(boundary(random(PAGES).take(5000)), None);
        assert_eq!(boundary(random(1600).take(20).chain(1600..4800)), None, "too few to tell");
        assert_eq!(boundary(std::iter::empty()), None);
    }
}

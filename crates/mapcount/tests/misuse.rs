//! Requests out of range are errors; misuse panics with the broken invariant.

use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::Arc;

use crate::support::{folio, mm};
use filemap_mapcount::mm::{AddressSpace, Cpu, Memory};
use filemap_mapcount::sums::EXACT_MAPPINGS;
use filemap_mapcount::{
    Error, Folio, Mapcount, MmId, MmIds, MmOwner, NoPageMapcount, Order, PageMapcount,
    PreciseOwners,
};

/// The message of the panic in which `act` ends.
fn panic_message<T>(act: impl FnOnce() -> T) -> String {
    let panic = catch_unwind(AssertUnwindSafe(act)).err().expect("it panics");
    *panic.downcast::<String>().expect("a panic with a message")
}

fn for_each_scheme(check: impl Fn(&str, &dyn AnyFolio)) {
    check("PageMapcount", &folio::<PageMapcount>(2));
    check("MmOwner", &folio::<MmOwner>(2));
    check("NoPageMapcount", &folio::<NoPageMapcount>(2));
    check("PreciseOwners", &folio::<PreciseOwners>(2));
}

/// A folio with any scheme.
trait AnyFolio {
    fn map(&self, mm: MmId, pages: std::ops::Range<usize>);
    fn unmap(&self, mm: MmId, pages: std::ops::Range<usize>);
    fn mappings(&self) -> u32;
}

impl<C: Mapcount> AnyFolio for Folio<C> {
    fn map(&self, mm: MmId, pages: std::ops::Range<usize>) {
        Folio::map(self, mm, pages);
    }

    fn unmap(&self, mm: MmId, pages: std::ops::Range<usize>) {
        Folio::unmap(self, mm, pages);
    }

    fn mappings(&self) -> u32 {
        self.counts().mappings()
    }
}

#[test]
fn refuses_to_unmap_an_unmapped_folio() {
    for_each_scheme(|name, folio| {
        let message = panic_message(|| folio.unmap(mm(1), 0..1));
        assert!(
            message.contains("more pages of this folio are unmapped than mapped"),
            "{name}: {message}"
        );
        // The folio remains usable.
        folio.map(mm(1), 0..4);
        assert_eq!(folio.mappings(), 4, "{name}");
        folio.unmap(mm(1), 0..4);
        assert_eq!(folio.mappings(), 0, "{name}");
    });
}

#[test]
fn refuses_to_unmap_mappings_of_another_mm() {
    let message = "mm 2 unmaps more pages of this folio than it has mapped";
    for_each_scheme(|name, folio| {
        folio.map(mm(1), 0..4);
        if name != "PageMapcount" {
            assert_eq!(panic_message(|| folio.unmap(mm(2), 0..1)), message, "{name}");
            assert_eq!(folio.mappings(), 4, "{name}");
        }
        folio.map(mm(2), 0..1);
        if name != "PageMapcount" {
            assert_eq!(panic_message(|| folio.unmap(mm(2), 0..3)), message, "{name}");
            assert_eq!(folio.mappings(), 5, "{name}");
        }
    });
}

#[test]
fn refuses_to_unmap_an_unmapped_page() {
    let not_mapped = "a page is unmapped that is not mapped";
    for_each_scheme(|name, folio| {
        folio.map(mm(1), 0..2);
        if name == "PageMapcount" || name == "MmOwner" {
            assert_eq!(panic_message(|| folio.unmap(mm(1), 2..4)), not_mapped, "{name}");
        }
    });
}

#[test]
fn refuses_batches_beyond_the_folio() {
    for_each_scheme(|name, folio| {
        let message = "a batch lies within its folio; this one ends at page 5 of 4 pages";
        assert_eq!(panic_message(|| folio.map(mm(1), 2..5)), message, "{name}");
        assert_eq!(panic_message(|| folio.unmap(mm(1), 0..5)), message, "{name}");
        let empty = "a batch has at least one page; this one has none";
        assert_eq!(panic_message(|| folio.map(mm(1), 2..2)), empty, "{name}");
        assert_eq!(folio.mappings(), 0, "{name}");
    });
}

/// Counters check the length of a batch too, since they may be used without a [`Folio`].
#[test]
fn counters_refuse_too_long_batches() {
    let order = Order::new(2).expect("there is an order 2");
    let counts = <NoPageMapcount>::default();
    let message = panic_message(|| counts.map(order, mm(1), [(); 5].iter()));
    assert_eq!(message, "a batch lies within its folio; this one ends at page 5 of 4 pages");
}

/// Above the maximum the folio counts as shared; below it sums are exact again.
#[test]
fn sums_recover_from_too_many_mappings() {
    let folio = folio::<PreciseOwners>(13);
    let last = MmId::LAST;
    for _ in 0..256 {
        folio.map(last, 0..8192);
    }
    assert_eq!(folio.counts().owned_by(last), Some(EXACT_MAPPINGS));
    folio.map(last, 0..1);
    assert!(folio.counts().maybe_shared());
    assert_eq!(folio.counts().owned_by(last), None);
    for id in 1..1000 {
        folio.map(mm(id), 0..8192);
    }
    assert_eq!(folio.counts().mappings(), EXACT_MAPPINGS + 1 + 999 * 8192);
    for id in 1..1000 {
        assert!(folio.counts().maybe_shared());
        folio.unmap(mm(id), 0..8192);
    }
    assert_eq!(folio.counts().owned_by(last), None);
    folio.unmap(last, 0..1);
    assert_eq!(folio.counts().owned_by(last), Some(EXACT_MAPPINGS));
}

/// The remaining sums satisfy the inequality, but only with an id above the largest one.
#[test]
fn sums_notice_impossible_ids() {
    let folio = folio::<PreciseOwners>(2);
    folio.map(mm(1), 0..1);
    folio.map(MmId::LAST, 0..1);
    assert!(panic_message(|| folio.unmap(mm(2), 0..1)).contains("mm 2 unmaps more pages"));
    assert_eq!(folio.counts().mappings(), 2);
}

#[test]
fn owners_hold_2_to_the_31_mappings_less_one() {
    hold_2_to_the_31_mappings_less_one::<NoPageMapcount>();
    hold_2_to_the_31_mappings_less_one::<PreciseOwners>();
}

fn hold_2_to_the_31_mappings_less_one<C: Mapcount>() {
    let folio = folio::<C>(13);
    for _ in 0..C::MAX_MAPPINGS / 8192 {
        folio.map(mm(1), 0..8192);
    }
    let message = panic_message(|| folio.map(mm(1), 0..8192));
    assert_eq!(message, "a folio has at most 2147483647 mappings; these would be more");
    assert_eq!(folio.counts().mappings(), C::MAX_MAPPINGS / 8192 * 8192);
}

/// The lists of a CPU belong to one memory; in another one its folios have no references.
#[test]
fn refuses_to_drop_missing_references() {
    let memory = || Arc::new(Memory::<PageMapcount>::new(64).expect("there is memory"));
    let (memory, other) = (memory(), memory());
    let ids = Arc::new(MmIds::new(1).expect("there is an id"));
    let mut space = AddressSpace::new(&memory, &ids, 4).expect("there is an id");
    let mut cpu = Cpu::default();
    space.populate(&mut cpu, 0..4, Order::SINGLE).expect("it fits");
    let message = panic_message(|| other.drain(&mut cpu));
    assert_eq!(message, "1 references of a folio are dropped, of 0 that are held");
}

#[test]
fn refuses_orders_and_ids_out_of_range() {
    let order = Order::new(14).map(Order::get).map_err(|error| error.to_string());
    assert_eq!(order, Err("no folio has order 14; the largest order is 13".to_string()));
    assert_eq!(Folio::<MmOwner>::new(Order::SINGLE).err(), Some(Error::NotLarge));
    let beyond = "no mm has the id 2147483648; ids have 31 bits, 1 to 2147483647";
    assert_eq!(MmId::new(1 << 31).map_err(|error| error.to_string()), Err(beyond.to_string()));
    assert_eq!(MmId::new(0), Err(Error::Id(0)));
    assert_eq!(MmId::new((1 << 31) - 1), Ok(MmId::LAST));
}

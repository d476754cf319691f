//! What a caller may not do ends in an error or in a panic that names the broken invariant.

use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::Arc;

use crate::support::{folio, mm};
use filemap_mapcount::mm::{AddressSpace, Cpu, Memory};
use filemap_mapcount::sums::EXACT_MAPPINGS;
use filemap_mapcount::{
    Error, Folio, Mapcount, MmId, MmIds, MmOwner, NoPageMapcount, Order, PageMapcount,
    PreciseOwners,
};

/// The message of the panic that `act` ends in.
fn broken<T>(act: impl FnOnce() -> T) -> String {
    let panic = catch_unwind(AssertUnwindSafe(act)).err().expect("this is misuse");
    *panic.downcast::<String>().expect("a panic with a message")
}

fn each_configuration(check: impl Fn(&str, &dyn Calls)) {
    check("PageMapcount", &folio::<PageMapcount>(2));
    check("MmOwner", &folio::<MmOwner>(2));
    check("NoPageMapcount", &folio::<NoPageMapcount>(2));
    check("PreciseOwners", &folio::<PreciseOwners>(2));
}

/// A folio of any configuration.
trait Calls {
    fn map(&self, mm: MmId, pages: std::ops::Range<usize>);
    fn unmap(&self, mm: MmId, pages: std::ops::Range<usize>);
    fn unmap_entirely(&self, mm: MmId);
    fn mappings(&self) -> u32;
}

impl<C: Mapcount> Calls for Folio<C> {
    fn map(&self, mm: MmId, pages: std::ops::Range<usize>) {
        Folio::map(self, mm, pages);
    }

    fn unmap(&self, mm: MmId, pages: std::ops::Range<usize>) {
        Folio::unmap(self, mm, pages);
    }

    fn unmap_entirely(&self, mm: MmId) {
        Folio::unmap_entirely(self, mm);
    }

    fn mappings(&self) -> u32 {
        self.counts().mappings()
    }
}

#[test]
fn what_was_not_mapped_is_not_unmapped() {
    each_configuration(|name, folio| {
        let message = broken(|| folio.unmap(mm(1), 0..1));
        assert!(message.contains("fewer pages of this folio were mapped"), "{name}: {message}");
        // The folio can still be used.
        folio.map(mm(1), 0..4);
        assert_eq!(folio.mappings(), 4, "{name}");
        folio.unmap(mm(1), 0..4);
        assert_eq!(folio.mappings(), 0, "{name}");
    });
}

#[test]
fn what_another_mm_mapped_is_not_unmapped_where_owners_are_known() {
    let message = "an mm unmaps what it has mapped; mm 2 had not mapped as much";
    each_configuration(|name, folio| {
        folio.map(mm(1), 0..4);
        if name != "PageMapcount" {
            assert_eq!(broken(|| folio.unmap(mm(2), 0..1)), message, "{name}");
            assert_eq!(folio.mappings(), 4, "{name}");
        }
        folio.map(mm(2), 0..1);
        if name != "PageMapcount" {
            assert_eq!(broken(|| folio.unmap(mm(2), 0..3)), message, "{name}");
            assert_eq!(folio.mappings(), 5, "{name}");
        }
    });
}

#[test]
fn a_page_that_is_not_mapped_is_not_unmapped_where_pages_have_counts() {
    let not_mapped = "a page that is unmapped is mapped; this one was not";
    each_configuration(|name, folio| {
        folio.map(mm(1), 0..2);
        if name == "PageMapcount" || name == "MmOwner" {
            assert_eq!(broken(|| folio.unmap(mm(1), 2..4)), not_mapped, "{name}");
        }
    });
}

#[test]
fn an_entire_mapping_that_is_not_there_is_not_removed() {
    let message = "an entire mapping that is removed exists; this folio had none";
    each_configuration(|name, folio| {
        folio.map(mm(1), 0..4);
        assert_eq!(broken(|| folio.unmap_entirely(mm(1))), message, "{name}");
    });
    // Nor is it unmapped as a page.
    let folio = folio::<NoPageMapcount>(2);
    folio.map_entirely(mm(1));
    assert!(broken(|| folio.unmap(mm(1), 0..1)).contains("what is unmapped is mapped"));
}

#[test]
fn a_batch_lies_within_its_folio() {
    each_configuration(|name, folio| {
        let message = "a batch lies within its folio; this one ends at page 5 of 4 pages";
        assert_eq!(broken(|| folio.map(mm(1), 2..5)), message, "{name}");
        assert_eq!(broken(|| folio.unmap(mm(1), 0..5)), message, "{name}");
        let empty = "a batch has at least one page; this one has none";
        assert_eq!(broken(|| folio.map(mm(1), 2..2)), empty, "{name}");
        assert_eq!(folio.mappings(), 0, "{name}");
    });
}

/// Without a folio around them, counters check the length of a batch themselves.
#[test]
fn a_batch_is_no_longer_than_its_folio() {
    let order = Order::new(2).expect("there is an order 2");
    let counts = <NoPageMapcount>::default();
    let message = broken(|| counts.map(order, mm(1), [(); 5].iter()));
    assert_eq!(message, "a batch lies within its folio; this one ends at page 5 of 4 pages");
}

/// The folio counts as shared then, whoever maps it, and nothing is lost of what comes back.
#[test]
fn sums_are_exact_again_when_mappings_are_few_enough_again() {
    let folio = folio::<PreciseOwners>(13);
    let last = MmId::LAST;
    for _ in 0..256 {
        folio.map(last, 0..8192);
    }
    assert_eq!(folio.counts().owned_by(last), Some(EXACT_MAPPINGS));
    folio.map_entirely(last);
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
    folio.unmap_entirely(last);
    assert_eq!(folio.counts().owned_by(last), Some(EXACT_MAPPINGS));
}

/// The sums that are left would have a mean square that is large enough for their mean, but only
/// with an id above the largest. Much of this would let a sum overflow later.
#[test]
fn sums_of_ids_that_cannot_be_are_noticed() {
    let folio = folio::<PreciseOwners>(2);
    folio.map(mm(1), 0..1);
    folio.map(MmId::LAST, 0..1);
    assert!(broken(|| folio.unmap(mm(2), 0..1)).contains("mm 2 had not mapped as much"));
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
    let message = broken(|| folio.map(mm(1), 0..8192));
    assert_eq!(message, "a folio has at most 2147483647 mappings; these would be more");
    assert_eq!(folio.counts().mappings(), C::MAX_MAPPINGS / 8192 * 8192);
}

/// What a CPU has in hand belongs to one memory. In another one nobody holds these folios.
#[test]
fn references_that_nobody_holds_are_not_dropped() {
    let memory = || Arc::new(Memory::<PageMapcount>::new(64).expect("there is memory"));
    let (memory, other) = (memory(), memory());
    let ids = Arc::new(MmIds::new(1).expect("there is an id"));
    let mut space = AddressSpace::new(&memory, &ids, 4).expect("there is an id");
    let mut cpu = Cpu::default();
    space.populate(&mut cpu, 0..4, Order::SINGLE).expect("it fits");
    let message = broken(|| other.drain(&mut cpu));
    assert_eq!(message, "a reference that is dropped is held; a folio had 0 and lost 1");
}

#[test]
fn orders_and_ids_out_of_range_are_errors() {
    let order = Order::new(14).map(Order::get).map_err(|error| error.to_string());
    assert_eq!(order, Err("no folio has order 14; the largest order is 13".to_string()));
    assert_eq!(Folio::<MmOwner>::new(Order::SINGLE).err(), Some(Error::NotLarge));
    let beyond = "no mm has the id 2147483648; ids have 31 bits, 1 to 2147483647";
    assert_eq!(MmId::new(1 << 31).map_err(|error| error.to_string()), Err(beyond.to_string()));
    assert_eq!(MmId::new(0), Err(Error::Id(0)));
    assert_eq!(MmId::new((1 << 31) - 1), Ok(MmId::LAST));
}

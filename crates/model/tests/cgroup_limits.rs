//! What is charged to a memory cgroup, and what is owed above `high`.

use filemap_model::thrash::cgroup::{Cgroup, Charged};

#[test]
fn pages_are_charged_in_batches_that_the_cpu_keeps() {
    let mut cgroup = Cgroup::new(None, Some(1000), 2);
    assert_eq!(cgroup.charge(0, 1), Charged::Done { owed: 0 });
    assert_eq!((cgroup.usage(), cgroup.stocked()), (64, 63));
    assert_eq!(cgroup.take_stock(1, 5, 1), 0, "each CPU has its own");
    assert_eq!(cgroup.take_stock(0, 5, 4), 4, "whole folios");
    assert_eq!(cgroup.take_stock(0, 100, 1), 59);
    assert_eq!((cgroup.usage(), cgroup.stocked()), (64, 0));
    // A large folio is a batch of its own.
    assert_eq!(cgroup.charge(0, 512), Charged::Done { owed: 0 });
    assert_eq!((cgroup.usage(), cgroup.stocked()), (576, 0));
}

#[test]
fn near_max_as_many_are_charged_as_are_needed() {
    let mut cgroup = Cgroup::new(None, Some(70), 1);
    cgroup.force(20);
    assert_eq!(cgroup.charge(0, 3), Charged::Done { owed: 0 });
    assert_eq!((cgroup.usage(), cgroup.stocked(), cgroup.margin()), (23, 0, 47));
    assert_eq!(cgroup.charge(0, 48), Charged::Full);
    cgroup.uncharge(1);
    assert_eq!(cgroup.charge(0, 48), Charged::Done { owed: 0 });
    cgroup.force(5);
    assert_eq!(cgroup.margin(), 0, "what is not asked for a limit may pass it");
}

#[test]
fn draining_gives_back_what_cpus_keep() {
    let mut cgroup = Cgroup::new(None, Some(1000), 3);
    for cpu in 0..3 {
        cgroup.charge(cpu, 1);
    }
    assert_eq!((cgroup.usage(), cgroup.stocked()), (192, 189));
    cgroup.drain();
    assert_eq!((cgroup.usage(), cgroup.stocked()), (3, 0));
    // More than a batch is not kept.
    cgroup.charge(0, 60);
    cgroup.charge(0, 1);
    assert_eq!(cgroup.stocked(), 0);
    assert_eq!(cgroup.usage(), 64);
}

#[test]
fn a_batch_above_high_is_owed() {
    let mut cgroup = Cgroup::new(Some(100), Some(1000), 1);
    assert_eq!(cgroup.charge(0, 1), Charged::Done { owed: 0 });
    assert_eq!(cgroup.charge(0, 64), Charged::Done { owed: 64 });
    assert!(cgroup.is_over_high());
}

//! The locks of single VMAs: refused while a writer holds them, however short.

use filemap_model::mm::vma_lock::VmaLocks;

#[test]
fn a_marked_vma_refuses_and_others_do_not() {
    let mut locks = VmaLocks::new();
    assert!(locks.start_write(0), "no fault is inside");
    assert!(!locks.start_read(0));
    assert!(locks.start_read(1));
    locks.end_write_all();
    assert!(locks.start_read(0), "all marks end together");
}

#[test]
fn a_writer_waits_for_the_last_fault_inside() {
    let mut locks = VmaLocks::new();
    assert!(locks.start_read(0) && locks.start_read(0));
    assert!(!locks.start_write(0));
    assert!(!locks.start_read(0), "it is marked already");
    assert!(!locks.end_read(0));
    assert!(locks.end_read(0), "the writer can go on");
    locks.end_write_all();
    assert!(locks.start_read(0));
    assert!(!locks.end_read(0), "nobody waits");
}

#[test]
#[should_panic(expected = "a fault has the lock")]
fn nobody_leaves_who_is_not_inside() {
    VmaLocks::new().end_read(0);
}

//! `mmap_lock`: who holds it, who waits, and who is woken.

use filemap_model::mm::mmap_lock::{
    HANDOFF_TIMEOUT_NS, Holder, LockMode, LockWakeup, MAX_READERS_WAKEUP, MmapLock,
};

fn granted(task: usize) -> LockWakeup {
    LockWakeup { task, has_lock: true }
}

fn called(task: usize) -> LockWakeup {
    LockWakeup { task, has_lock: false }
}

/// A lock with the threads that its calls woke.
#[derive(Default)]
struct Scene {
    lock: MmapLock,
    woken: Vec<LockWakeup>,
}

impl Scene {
    fn read(&mut self, task: usize) -> bool {
        let has = self.lock.lock_read(task, 0, &mut self.woken);
        self.lock.assert_invariants();
        has
    }

    fn write(&mut self, task: usize) -> bool {
        let has = self.lock.lock_write(task, 0);
        self.lock.assert_invariants();
        has
    }

    fn release_read(&mut self) -> Vec<LockWakeup> {
        self.lock.release_read(0, &mut self.woken);
        self.take()
    }

    fn release_write(&mut self, task: usize) -> Vec<LockWakeup> {
        self.lock.release_write(task, 0, &mut self.woken);
        self.take()
    }

    fn take(&mut self) -> Vec<LockWakeup> {
        self.lock.assert_invariants();
        std::mem::take(&mut self.woken)
    }
}

#[test]
fn readers_share_and_a_writer_is_alone() {
    let mut scene = Scene::default();
    assert!(scene.read(1) && scene.read(2));
    assert!(!scene.write(3));
    assert_eq!(scene.release_read(), []);
    assert_eq!(scene.release_read(), [called(3)]);
    assert!(scene.lock.retry_write(3, 0));
    assert!(!scene.read(4));
    assert_eq!(scene.release_write(3), [granted(4)]);
    assert_eq!(scene.release_read(), []);
}

#[test]
fn a_reader_queues_behind_a_writer_that_waits() {
    let mut scene = Scene::default();
    assert!(scene.read(1) && scene.read(2));
    assert!(!scene.write(3));
    assert!(!scene.read(4));
    assert_eq!(
        scene.lock.waiters().collect::<Vec<_>>(),
        [(3, LockMode::Write), (4, LockMode::Read)]
    );
}

#[test]
fn a_release_to_readers_wakes_those_behind_writers_too_up_to_the_cap() {
    let mut scene = Scene::default();
    let (writer, most) = (1000, MAX_READERS_WAKEUP);
    assert!(scene.write(0));
    for task in 1..3 {
        assert!(!scene.read(task));
    }
    assert!(!scene.write(writer));
    for task in 3..most + 4 {
        assert!(!scene.read(task));
    }
    assert_eq!(scene.release_write(0), (1..=most).map(granted).collect::<Vec<_>>());
    for _ in 1..most {
        assert_eq!(scene.release_read(), []);
    }
    assert_eq!(scene.release_read(), [called(writer)]);
}

#[test]
fn downgrading_lets_readers_in_but_no_writer() {
    let mut scene = Scene::default();
    assert!(scene.write(0));
    assert!(!scene.read(1));
    scene.lock.downgrade(0, &mut scene.woken);
    assert_eq!(scene.take(), [granted(1)]);
    assert_eq!(scene.lock.readers(), 2);

    let mut scene = Scene::default();
    assert!(scene.write(0));
    assert!(!scene.write(1));
    scene.lock.downgrade(0, &mut scene.woken);
    assert_eq!(scene.take(), []);
    assert_eq!(scene.release_read(), [called(1)]);
}

#[test]
fn a_free_lock_can_be_taken_before_its_writer_comes() {
    let mut scene = Scene::default();
    assert!(scene.read(1));
    assert!(!scene.write(2));
    assert_eq!(scene.release_read(), [called(2)]);
    assert!(scene.read(3), "nobody has it, and nobody was handed it");
    assert!(!scene.lock.retry_write(2, HANDOFF_TIMEOUT_NS), "not yet for long enough");
    assert_eq!(scene.release_read(), [called(2)]);
    assert!(scene.write(4), "a writer as well");
    assert!(!scene.lock.retry_write(2, HANDOFF_TIMEOUT_NS + 1), "now it is the next");
    assert_eq!(scene.release_write(4), [called(2)]);
    assert!(!scene.read(5), "it is handed to the writer that waited");
    assert!(scene.lock.retry_write(2, HANDOFF_TIMEOUT_NS + 1));
    assert_eq!(scene.release_write(2), [granted(5)]);
}

#[test]
fn a_writer_that_spins_has_the_lock_before_those_that_sleep() {
    let mut scene = Scene::default();
    assert!(scene.write(0));
    assert!(!scene.read(1));
    assert!(scene.lock.spin(2) && scene.lock.spin(3));
    assert_eq!(scene.release_write(0), [], "who sleeps is not woken");
    assert_eq!(scene.lock.holder(), Holder::Writer(2));
    scene.lock.end_spin(3);
    assert_eq!(scene.release_write(2), [granted(1)]);
    assert_eq!(scene.lock.holder(), Holder::Readers(1));
    // It comes too late for a lock that is handed off.
    assert!(!scene.write(4));
    assert!(!scene.lock.retry_write(4, HANDOFF_TIMEOUT_NS + 1));
    assert!(scene.lock.spin(5));
    assert_eq!(scene.release_read(), [called(4)]);
    assert_eq!(scene.lock.holder(), Holder::Nobody);
}

#[test]
fn readers_that_lost_the_lock_for_long_to_those_who_spin_have_it_next() {
    let mut scene = Scene::default();
    assert!(scene.write(0));
    assert!(!scene.read(1));
    assert!(scene.lock.spin(2) && scene.lock.spin(3));
    scene.lock.release_write(0, HANDOFF_TIMEOUT_NS + 1, &mut scene.woken);
    assert_eq!(scene.lock.holder(), Holder::Writer(2));
    assert_eq!(scene.release_write(2), [granted(1)]);
    assert_eq!(scene.release_read(), []);
    assert_eq!(scene.lock.holder(), Holder::Writer(3));
}

#[test]
fn nobody_spins_where_readers_had_the_lock_for_long_until_a_writer_has_had_it() {
    let mut scene = Scene::default();
    assert!(scene.read(1) && scene.read(2));
    assert_eq!(scene.lock.holder().reader_spin_ns(), Some(11_000));
    assert_eq!(Holder::Readers(1000).reader_spin_ns(), Some(25_000), "no more than for 30 of them");
    assert!(scene.lock.spin(3));
    scene.lock.time_out_spin(3);
    assert!(!scene.lock.spin(3));
    assert_eq!(scene.release_read(), []);
    assert_eq!(scene.release_read(), []);
    assert!(scene.write(4));
    assert_eq!(scene.lock.holder().reader_spin_ns(), None);
    assert!(scene.lock.spin(3));
    assert_eq!(scene.release_write(4), []);
    assert_eq!(scene.lock.holder(), Holder::Writer(3));
}

#[test]
fn a_writer_that_was_called_is_not_called_again() {
    let mut scene = Scene::default();
    assert!(scene.read(1));
    assert!(!scene.write(2));
    assert_eq!(scene.release_read(), [called(2)]);
    assert!(scene.read(3));
    assert_eq!(scene.release_read(), [], "it is on its way");
    assert!(scene.lock.retry_write(2, 0));
}

#[test]
#[should_panic(expected = "a reader has the lock")]
fn nobody_gives_up_what_he_does_not_have() {
    Scene::default().release_read();
}

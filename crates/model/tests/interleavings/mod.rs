//! Every interleaving of a few faults, one writer and one evictor: the locks of a fault.
//!
//! A scene is played from the start for every order in which its actors can take their steps. If
//! orders lead to the same state, the continuation is the same, and is played once.

mod scene;

use std::collections::HashMap;

use filemap_core::series::{Series, Switch};

use scene::Part::{Evict, Fault as At, Protect};
use scene::{Part, Scene};

/// The results of all interleavings of a scene.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
struct Seen {
    interleavings: u64,
    /// Interleavings in which a retry missed and kept its lock, and in which a VMA lock was
    /// refused.
    with_miss_under_lock: u64,
    with_refusal: u64,
    /// Maximum number of attempts of a fault.
    tries: u32,
}

impl Seen {
    /// Results of a scene in which no actor has a step left.
    fn at_the_end(scene: &Scene, order: &[usize]) -> Seen {
        scene.check_end(order);
        Seen {
            interleavings: 1,
            with_miss_under_lock: u64::from(scene.misses_under_lock > 0),
            with_refusal: u64::from(scene.refused > 0),
            tries: scene.tries(),
        }
    }

    fn add(&mut self, other: Seen) {
        self.interleavings += other.interleavings;
        self.with_miss_under_lock += other.with_miss_under_lock;
        self.with_refusal += other.with_refusal;
        self.tries = self.tries.max(other.tries);
    }
}

/// All orders of the steps of `parts`.
struct Orders<'a> {
    parts: &'a [Part],
    series: Series,
    /// The results from each state that was reached; `None` plays every order to its end.
    known: Option<HashMap<String, Seen>>,
}

impl<'a> Orders<'a> {
    fn new(parts: &'a [Part], switches: &[Switch]) -> Orders<'a> {
        let series = switches.iter().fold(Series::BASELINE, |all, switch| all.with(*switch));
        Orders { parts, series, known: Some(HashMap::new()) }
    }

    /// The results of all orders that start with `order`: the actor of each step.
    fn play(&mut self, order: &mut Vec<usize>) -> Seen {
        let mut scene = Scene::new(self.parts, self.series);
        order.iter().for_each(|&number| scene.step(number));
        let state = self.known.is_some().then(|| scene.state());
        if let (Some(known), Some(state)) = (&self.known, &state)
            && let Some(seen) = known.get(state)
        {
            return *seen;
        }
        let ready: Vec<usize> = scene.ready().collect();
        let mut seen = Seen::default();
        if ready.is_empty() {
            seen = Seen::at_the_end(&scene, order);
        }
        for number in ready {
            order.push(number);
            seen.add(self.play(order));
            order.pop();
        }
        if let (Some(known), Some(state)) = (&mut self.known, state) {
            known.insert(state, seen);
        }
        seen
    }
}

/// Plays `parts` in every order.
fn explore(parts: &[Part], switches: &[Switch]) -> Seen {
    Orders::new(parts, switches).play(&mut Vec::new())
}

const VMA_RETRY: &[Switch] = &[Switch::VmaRetry];

#[test]
fn one_fault_and_a_writer() {
    for switches in [&[], VMA_RETRY] {
        let same = explore(&[At(0), Protect(0)], switches);
        assert!(same.interleavings > 10 && same.with_refusal > 0, "{same:?}");
        let other = explore(&[At(0), Protect(1)], switches);
        assert_eq!(other.with_refusal, 0, "a writer to another VMA refuses nothing");
        assert_eq!((same.tries, other.tries), (2, 2));
    }
}

#[test]
fn two_faults_and_a_writer_in_two_vmas() {
    for switches in [&[], VMA_RETRY] {
        for parts in [[At(0), At(1), Protect(0)], [At(0), At(1), Protect(1)]] {
            let seen = explore(&parts, switches);
            assert!(seen.interleavings > 1000 && seen.with_refusal > 0, "{seen:?}");
            assert_eq!(seen.with_miss_under_lock, 0, "nothing is evicted");
        }
    }
}

/// Counts are the same as if every order were played to its end.
#[test]
fn orders_that_meet_are_counted_as_if_they_did_not() {
    for parts in [[At(0), At(1), Protect(0)], [At(0), Evict, Protect(0)]] {
        let each = Orders { known: None, ..Orders::new(&parts, VMA_RETRY) }.play(&mut Vec::new());
        assert_eq!(explore(&parts, VMA_RETRY), each);
    }
}

#[test]
fn three_faults_at_once() {
    for switches in [&[], VMA_RETRY] {
        for parts in [[At(0), At(0), At(0)], [At(0), At(0), At(1)]] {
            let seen = explore(&parts, switches);
            assert!(seen.interleavings > 100_000, "{seen:?}");
            assert_eq!((seen.with_refusal, seen.with_miss_under_lock), (0, 0), "{seen:?}");
        }
        for parts in [[At(0), At(0), At(0), Protect(0)], [At(0), At(0), At(1), Protect(1)]] {
            let seen = explore(&parts, switches);
            assert!(seen.with_refusal > 0 && seen.with_miss_under_lock == 0, "{seen:?}");
            assert!(seen.with_refusal < seen.interleavings, "{seen:?}");
        }
        let evicted = explore(&[At(0), At(0), At(1), Evict], switches);
        assert!(evicted.with_miss_under_lock > 0 && evicted.with_refusal == 0, "{evicted:?}");
    }
}

#[test]
fn two_faults_inside_one_vma_and_a_writer_to_it() {
    for switches in [&[], VMA_RETRY] {
        let seen = explore(&[At(0), At(0), Protect(0)], switches);
        assert!(seen.interleavings > 1000 && seen.with_refusal > 0, "{seen:?}");
    }
}

/// A fault rereads a page that was evicted meanwhile, under the lock of its retry.
#[test]
fn a_fault_a_writer_and_one_who_evicts() {
    for switches in [&[], VMA_RETRY] {
        for written in [0, 1] {
            let seen = explore(&[At(0), Protect(written), Evict], switches);
            assert!(seen.with_miss_under_lock > 0, "{seen:?}");
            assert!(seen.with_miss_under_lock < seen.interleavings, "{seen:?}");
            assert_eq!(seen.tries, 2, "the retry of a miss is the last");
        }
    }
}

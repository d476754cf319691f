//! Ranges of addresses that do not overlap, each with a word of its owner's: a skip list in static
//! memory. One thread at a time changes it. Any thread looks things up meanwhile, also in a signal
//! handler: it tries again where something changed under it.
//!
//! This module stands alone, so that its tests can be a program of their own.

use std::hint;
use std::ops::Range;
use std::sync::atomic::{AtomicU32, AtomicUsize, Ordering, fence};

/// The most ranges: a process has no more mappings unless its machine is set so.
pub const MOST: usize = 1 << 16;

/// A node has one successor on each of its levels. A fourth of those of a level have the next one.
const LEVELS: usize = 9;

/// No node: the list begins and ends with it.
const END: u32 = 0;

/// A look-up that passes more nodes has gone astray in a change.
const ASTRAY: usize = 4 * MOST;

struct Node {
    start: AtomicUsize,
    /// Behind the last address.
    end: AtomicUsize,
    word: AtomicUsize,
    next: [AtomicU32; LEVELS],
}

/// A range that was found, and its word.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Found {
    pub range: Range<usize>,
    pub word: usize,
}

/// The ranges.
pub struct Ranges {
    /// Even while nothing changes.
    version: AtomicUsize,
    /// Ranges that there were at most so far.
    used: AtomicUsize,
    /// The first node that is free again, which names the next.
    free: AtomicU32,
    nodes: [Node; MOST + 1],
}

/// Where a range begins on each level: the nodes before it.
type Before = [u32; LEVELS];

/// Levels of a node, from its number.
fn levels(node: u32) -> usize {
    let mixed = node.wrapping_mul(0x9e37_79b1) ^ node.wrapping_mul(0x85eb_ca6b).rotate_left(13);
    let mixed = mixed ^ mixed >> 15;
    (1 + mixed.trailing_zeros() as usize / 2).min(LEVELS)
}

impl Ranges {
    pub const fn new() -> Ranges {
        // All of it is zero, so that no file has to hold it.
        Ranges {
            version: AtomicUsize::new(0),
            used: AtomicUsize::new(0),
            free: AtomicU32::new(END),
            nodes: [const {
                Node {
                    start: AtomicUsize::new(0),
                    end: AtomicUsize::new(0),
                    word: AtomicUsize::new(0),
                    next: [const { AtomicU32::new(END) }; LEVELS],
                }
            }; MOST + 1],
        }
    }

    fn node(&self, number: u32) -> &Node {
        let [first, ..] = &self.nodes;
        // All numbers are those of nodes.
        self.nodes.get(number as usize).unwrap_or(first)
    }

    fn next(&self, node: u32, level: usize) -> u32 {
        self.node(node).next.get(level).map_or(END, |next| next.load(Ordering::Relaxed))
    }

    fn set_next(&self, node: u32, level: usize, to: u32) {
        if let Some(next) = self.node(node).next.get(level) {
            next.store(to, Ordering::Relaxed);
        }
    }

    fn found(&self, node: u32) -> Found {
        let Node { start, end, word, .. } = self.node(node);
        let [start, end, word] = [start, end, word].map(|of| of.load(Ordering::Relaxed));
        Found { range: start..end, word }
    }

    /// On each level the last node whose range ends at `address` or before. `visit` is told of each
    /// node that is looked at.
    fn before(&self, address: usize, mut visit: impl FnMut()) -> Before {
        let mut before = [END; LEVELS];
        let (mut node, mut looks) = (END, 0);
        for (level, place) in before.iter_mut().enumerate().rev() {
            loop {
                let next = self.next(node, level);
                if next == END || looks > ASTRAY {
                    break;
                }
                visit();
                looks += 1;
                if self.node(next).end.load(Ordering::Relaxed) > address {
                    break;
                }
                node = next;
            }
            *place = node;
        }
        before
    }

    /// The first range that has something of `range`. `visit` is told of each one that is looked
    /// at.
    pub fn search(&self, range: &Range<usize>, mut visit: impl FnMut()) -> Option<Found> {
        if range.is_empty() || self.next(END, 0) == END {
            return None;
        }
        loop {
            let version = self.version.load(Ordering::Acquire);
            if version.is_multiple_of(2) {
                let [before, ..] = self.before(range.start, &mut visit);
                let node = self.next(before, 0);
                let found = self.found(node);
                fence(Ordering::Acquire);
                if self.version.load(Ordering::Relaxed) == version {
                    return (node != END && found.range.start < range.end).then_some(found);
                }
            }
            hint::spin_loop();
        }
    }

    /// The first range that has something of `range`.
    pub fn first(&self, range: &Range<usize>) -> Option<Found> {
        self.search(range, || ())
    }

    /// The parts of `range` that the ranges have, in order.
    pub fn parts(&self, range: &Range<usize>) -> impl Iterator<Item = Found> {
        let mut left = range.clone();
        std::iter::from_fn(move || {
            let Found { range, word } = self.first(&left)?;
            let part = range.start.max(left.start)..range.end.min(left.end);
            left.start = range.end;
            Some(Found { range: part, word })
        })
    }

    /// Whether there is none.
    pub fn is_empty(&self) -> bool {
        self.next(END, 0) == END
    }

    /// Changes something, so that whoever looks meanwhile tries again.
    fn change<R>(&self, change: impl FnOnce() -> R) -> R {
        let version = self.version.load(Ordering::Relaxed) | 1;
        self.version.store(version, Ordering::Relaxed);
        fence(Ordering::Release);
        let result = change();
        self.version.store(version.wrapping_add(1), Ordering::Release);
        result
    }

    /// A node that is free.
    fn take(&self) -> Option<u32> {
        let free = self.free.load(Ordering::Relaxed);
        if free != END {
            self.free.store(self.next(free, 0), Ordering::Relaxed);
            return Some(free);
        }
        let used = self.used.load(Ordering::Relaxed);
        (used < MOST).then(|| {
            self.used.store(used + 1, Ordering::Relaxed);
            used as u32 + 1
        })
    }

    fn set(&self, node: u32, range: &Range<usize>) {
        self.node(node).start.store(range.start, Ordering::Relaxed);
        self.node(node).end.store(range.end, Ordering::Relaxed);
    }

    /// Links a new node. Returns whether there was one.
    fn put(&self, found: &Found, visit: impl FnMut()) -> bool {
        let Some(node) = self.take() else { return false };
        let before = self.before(found.range.start, visit);
        self.set(node, &found.range);
        self.node(node).word.store(found.word, Ordering::Relaxed);
        for (level, before) in before.into_iter().enumerate().take(levels(node)) {
            self.set_next(node, level, self.next(before, level));
            self.set_next(before, level, node);
        }
        true
    }

    /// Adds `range`, of which no range has anything, with `word`. Returns whether there was room.
    /// `visit` is told of each range that is looked at.
    pub fn add(&self, range: Range<usize>, word: usize, visit: impl FnMut()) -> bool {
        range.is_empty() || self.change(|| self.put(&Found { range, word }, visit))
    }

    /// Takes `range` out, and cuts what reaches beyond it. Returns what is behind it of a range
    /// that it was in the middle of, if there was no room for that.
    /// `visit` is told of each range that is looked at.
    pub fn remove(&self, range: &Range<usize>, mut visit: impl FnMut()) -> Option<Found> {
        if range.is_empty() {
            return None;
        }
        self.change(|| {
            loop {
                let before = self.before(range.start, &mut visit);
                let [last, ..] = before;
                let node = self.next(last, 0);
                let Found { range: had, word } = self.found(node);
                if node == END || had.start >= range.end {
                    return None;
                }
                let is_before = had.start < range.start;
                let behind = range.end.max(had.start)..had.end;
                match (is_before, behind.is_empty()) {
                    (true, true) => self.set(node, &(had.start..range.start)),
                    (false, false) => {
                        self.set(node, &behind);
                        return None;
                    }
                    (true, false) => {
                        self.set(node, &(had.start..range.start));
                        let behind = Found { range: behind, word };
                        return (!self.put(&behind, &mut visit)).then_some(behind);
                    }
                    (false, true) => self.unlink(node, &before),
                }
            }
        })
    }

    fn unlink(&self, node: u32, before: &Before) {
        for (level, before) in before.iter().enumerate().take(levels(node)) {
            self.set_next(*before, level, self.next(node, level));
        }
        self.set_next(node, 0, self.free.load(Ordering::Relaxed));
        self.free.store(node, Ordering::Relaxed);
    }

    /// In the child of a fork: a thread that was changing something is not in it.
    pub fn release_after_fork(&self) {
        let version = self.version.load(Ordering::Relaxed);
        self.version.store(version.next_multiple_of(2), Ordering::Relaxed);
    }
}

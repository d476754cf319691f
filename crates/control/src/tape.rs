//! What a program does with its files, as the library tells it while the program runs: a ring of
//! entries in memory that both share.
//!
//! A process has one tape, a file of [`BYTES`]. Its threads write entries ([`Tape::write`]), also
//! in signal handlers: nothing waits, allocates or calls the kernel. The command reads them
//! ([`Reader`]), and makes room by that. An entry for which there is no room is lost and counted,
//! if its writer does not try again.
//!
//! The file is words of 64 bits in the machine's order: a header of [`HEADER_WORDS`], then
//! [`SLOTS`] slots of [`SLOT_WORDS`]. An entry takes one slot, and more behind it for its text. The
//! first word of a slot is written last. It says how many slots were written before it since the
//! tape began, so that a slot of the round before is not mistaken for one of this round.

use std::sync::atomic::{AtomicU64, Ordering};

/// What the first word is: a tape of this version, in this order of bytes.
pub const MAGIC_WORD: u64 = u64::from_be_bytes(*b"filetap1");

/// Words of the header.
pub const HEADER_WORDS: usize = 32;
/// Words of a slot, which are 64 bytes.
pub const SLOT_WORDS: usize = 8;
/// Slots of a tape.
pub const SLOTS: usize = 1 << 15;
/// Words of a tape.
pub const WORDS: usize = HEADER_WORDS + SLOTS * SLOT_WORDS;
/// Bytes of a tape.
pub const BYTES: usize = WORDS * size_of::<u64>();

/// Words of the header.
mod header {
    /// [`super::MAGIC_WORD`], written when the header is whole.
    pub const MAGIC: usize = 0;
    /// The process.
    pub const PID: usize = 1;
    /// When it was started, in clock ticks since boot.
    pub const START_TICKS: usize = 2;
    /// Entries that were lost.
    pub const LOST: usize = 3;
    /// 1 where nobody reads the tape any more.
    pub const CLOSED: usize = 4;
    /// Slots that were written, in a cache line of its own.
    pub const WRITTEN: usize = 8;
    /// Slots that were read, in another one.
    pub const READ: usize = 16;
}

/// Words of a slot that hold text.
const TEXT_WORDS: usize = SLOT_WORDS - 1;

/// Bytes of text in a slot.
const TEXT_BYTES: usize = TEXT_WORDS * size_of::<u64>();

/// The most bytes of text of an entry: the longest path.
pub const MOST_TEXT: usize = 4096;

/// Bits of a slot's first word below the number of slots before it.
const KIND_BITS: u32 = 8;

/// What an entry says.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[repr(u8)]
pub enum Kind {
    /// Not an entry, but text of the one before.
    Text = 0,
    /// A process begins: its parent's number, and the number of the [`Kind::Fork`] by which that
    /// made it, 0 where it began by exec. Its text is the path of the program.
    Begin = 1,
    /// A file was opened: a number for it, its device, its inode, its size in bytes. Its text is
    /// the path.
    Open = 2,
    /// A mapping was made: its address and length, where it begins in the file, and the number of
    /// the open file. `protection` and `flags` are in an entry [`Kind::Mode`] before it.
    Map = 3,
    /// What the next mapping of this thread is: PROT_READ and so on, MAP_SHARED and so on. Its text
    /// is who called, from the inside to the outside: addresses of 8 bytes, each inside of the
    /// instruction that called.
    Mode = 4,
    /// An address and a length were unmapped.
    Unmap = 5,
    /// An address and a length have moved to another address and length.
    Move = 6,
    /// An address and a length have another protection.
    Protect = 7,
    /// An address and a length were advised.
    Madvise = 8,
    /// A page at an address was touched, for the first time or after others, and 1 where it was
    /// written to.
    Touch = 9,
    /// A system call read memory at an address and length, or wrote to it where 1 follows.
    TouchByCall = 10,
    /// An open file was read: its number, the offset and the length.
    Read = 11,
    /// An open file was advised: its number, the offset, the length, the advice.
    Fadvise = 12,
    /// readahead(2) of an open file: its number, the offset and the length.
    Readahead = 13,
    /// The process is about to fork: the number of that, which counts from 1.
    Fork = 14,
    /// Nothing is told any more: the process ends, or a number of [`crate::layout::Reason`].
    End = 15,
    /// A program or library is loaded that callers lie in: what is added to the addresses in its
    /// headers, and how much of the address space it takes from there. Its text is the path.
    Module = 16,
    /// The file of an open file has another size: the number of the open file, and its size.
    Size = 17,
}

impl Kind {
    const ALL: [Kind; 18] = [
        Kind::Text,
        Kind::Begin,
        Kind::Open,
        Kind::Map,
        Kind::Mode,
        Kind::Unmap,
        Kind::Move,
        Kind::Protect,
        Kind::Madvise,
        Kind::Touch,
        Kind::TouchByCall,
        Kind::Read,
        Kind::Fadvise,
        Kind::Readahead,
        Kind::Fork,
        Kind::End,
        Kind::Module,
        Kind::Size,
    ];

    fn of(word: u64) -> Option<Kind> {
        Kind::ALL.into_iter().find(|kind| *kind as u64 == word & ((1 << KIND_BITS) - 1))
    }
}

/// An entry but for its text.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Entry {
    /// What it says.
    pub kind: Kind,
    /// The thread that wrote it.
    pub thread: u32,
    /// Nanoseconds of CLOCK_MONOTONIC.
    pub time_ns: u64,
    /// Nanoseconds of user time that the thread had by then.
    pub user_ns: u64,
    /// What [`Kind`] names, in that order.
    pub values: [u64; 4],
}

/// A tape in memory that is shared.
#[derive(Clone, Copy)]
pub struct Tape<'a> {
    words: &'a [AtomicU64; WORDS],
}

/// There was no room for an entry.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Full;

impl<'a> Tape<'a> {
    /// The tape in `words`, which are zero at first.
    pub const fn new(words: &'a [AtomicU64; WORDS]) -> Tape<'a> {
        Tape { words }
    }

    fn word(&self, index: usize) -> &'a AtomicU64 {
        &self.words[index % WORDS]
    }

    /// Says whose tape it is: a process and its start in clock ticks since boot.
    pub fn begin(&self, pid: u32, start_ticks: u64) {
        self.word(header::PID).store(pid.into(), Ordering::Relaxed);
        self.word(header::START_TICKS).store(start_ticks, Ordering::Relaxed);
        self.word(header::MAGIC).store(MAGIC_WORD, Ordering::Release);
    }

    /// Whose tape it is, when [`Tape::begin`] has said so.
    pub fn owner(&self) -> Option<(u32, u64)> {
        let has_begun = self.word(header::MAGIC).load(Ordering::Acquire) == MAGIC_WORD;
        let pid = u32::try_from(self.word(header::PID).load(Ordering::Relaxed)).ok()?;
        has_begun.then(|| (pid, self.word(header::START_TICKS).load(Ordering::Relaxed)))
    }

    /// Says that nobody reads the tape any more, so that nothing needs to be written.
    pub fn close(&self) {
        self.word(header::CLOSED).store(1, Ordering::Relaxed);
    }

    /// Whether that was said.
    pub fn is_closed(&self) -> bool {
        self.word(header::CLOSED).load(Ordering::Relaxed) != 0
    }

    /// Entries that were lost.
    pub fn lost(&self) -> u64 {
        self.word(header::LOST).load(Ordering::Relaxed)
    }

    /// Counts an entry that is lost.
    pub fn lose(&self) {
        self.word(header::LOST).fetch_add(1, Ordering::Relaxed);
    }

    /// Writes an entry and its text, of which [`MOST_TEXT`] bytes are kept.
    ///
    /// # Errors
    /// When there is no room for it. Nothing is counted then.
    pub fn write(&self, entry: &Entry, text: &[u8]) -> Result<(), Full> {
        let text = text.get(..text.len().min(MOST_TEXT)).unwrap_or_default();
        // The first slot behind the entry says how long the text is.
        let slots = 1 + if text.is_empty() { 0 } else { (8 + text.len()).div_ceil(TEXT_BYTES) };
        let first = self.reserve(slots as u64)?;
        for (index, position) in (first + 1..first + slots as u64).enumerate() {
            self.put(position, Kind::Text, text_of_slot(text, index));
        }
        let Entry { thread, time_ns, user_ns, values: [a, b, c, d], .. } = *entry;
        // The text is there when the entry is.
        self.put(
            first,
            entry.kind,
            [u64::from(thread) | (slots as u64 - 1) << 32, time_ns, user_ns, a, b, c, d],
        );
        Ok(())
    }

    /// Takes the next `count` slots. Returns how many were taken before.
    fn reserve(&self, count: u64) -> Result<u64, Full> {
        let written = self.word(header::WRITTEN);
        let mut first = written.load(Ordering::Relaxed);
        loop {
            let read = self.word(header::READ).load(Ordering::Acquire);
            if first + count > read + SLOTS as u64 {
                return Err(Full);
            }
            let (success, failure) = (Ordering::Relaxed, Ordering::Relaxed);
            match written.compare_exchange_weak(first, first + count, success, failure) {
                Ok(_) => return Ok(first),
                Err(now) => first = now,
            }
        }
    }

    fn slot(&self, position: u64) -> usize {
        HEADER_WORDS + (position % SLOTS as u64) as usize * SLOT_WORDS
    }

    fn put(&self, position: u64, kind: Kind, words: [u64; TEXT_WORDS]) {
        let slot = self.slot(position);
        for (index, word) in words.into_iter().enumerate() {
            self.word(slot + 1 + index).store(word, Ordering::Relaxed);
        }
        let stamp = (position + 1) << KIND_BITS | kind as u64;
        self.word(slot).store(stamp, Ordering::Release);
    }

    /// What is in a slot, if it was written in this round.
    fn get(&self, position: u64) -> Option<(Kind, [u64; TEXT_WORDS])> {
        let slot = self.slot(position);
        let stamp = self.word(slot).load(Ordering::Acquire);
        if stamp >> KIND_BITS != position + 1 {
            return None;
        }
        let words =
            std::array::from_fn(|index| self.word(slot + 1 + index).load(Ordering::Relaxed));
        Some((Kind::of(stamp)?, words))
    }
}

/// The words of the `index`th slot of a text. Its length is in the first word of all.
fn text_of_slot(text: &[u8], index: usize) -> [u64; TEXT_WORDS] {
    std::array::from_fn(|word| match (index * TEXT_WORDS + word).checked_sub(1) {
        None => text.len() as u64,
        Some(word) => {
            let bytes = text.get(word * 8..).unwrap_or_default();
            let mut whole = [0; 8];
            whole.iter_mut().zip(bytes).for_each(|(to, from)| *to = *from);
            u64::from_ne_bytes(whole)
        }
    })
}

/// The one reader of a tape.
pub struct Reader<'a> {
    tape: Tape<'a>,
    position: u64,
}

impl<'a> Reader<'a> {
    /// Reads from where others have stopped.
    pub fn new(tape: Tape<'a>) -> Reader<'a> {
        let position = tape.word(header::READ).load(Ordering::Relaxed);
        Reader { tape, position }
    }

    /// Passes over a slot whose writer is gone before it had written it. Returns whether there was
    /// one: afterwards [`Reader::next`] may find more.
    pub fn pass_over(&mut self) -> bool {
        let written = self.tape.word(header::WRITTEN).load(Ordering::Acquire);
        let is_left = self.position < written;
        if is_left {
            self.tape.lose();
            self.go_to(self.position + 1);
        }
        is_left
    }

    fn go_to(&mut self, position: u64) {
        self.position = position;
        self.tape.word(header::READ).store(position, Ordering::Release);
    }
}

/// Entries and their texts. `None` says that there is none yet.
impl Iterator for Reader<'_> {
    type Item = (Entry, Vec<u8>);

    fn next(&mut self) -> Option<(Entry, Vec<u8>)> {
        let (kind, [thread, time_ns, user_ns, values @ ..]) = self.tape.get(self.position)?;
        let more = (thread >> 32).min(SLOTS as u64 - 1);
        let mut words = Vec::new();
        for position in self.position + 1..=self.position + more {
            words.extend(self.tape.get(position)?.1);
        }
        self.go_to(self.position + 1 + more);
        let entry = Entry { kind, thread: thread as u32, time_ns, user_ns, values };
        Some((entry, text_of(&words)))
    }
}

fn text_of(words: &[u64]) -> Vec<u8> {
    let Some((length, words)) = words.split_first() else { return Vec::new() };
    let mut text: Vec<u8> = words.iter().flat_map(|word| word.to_ne_bytes()).collect();
    text.truncate(usize::try_from(*length).unwrap_or(usize::MAX));
    text
}

#[cfg(test)]
mod tests {
    use std::sync::atomic::AtomicBool;
    use std::thread;

    use super::*;

    fn words() -> Box<[AtomicU64; WORDS]> {
        let words: Vec<AtomicU64> = (0..WORDS).map(|_| AtomicU64::new(0)).collect();
        words.into_boxed_slice().try_into().expect("as many as there are")
    }

    fn entry(thread: u32, number: u64) -> Entry {
        let values = [number, number + 1, number * 3, u64::MAX - number];
        Entry { kind: Kind::Touch, thread, time_ns: number * 10, user_ns: number * 7, values }
    }

    fn text(number: u64) -> Vec<u8> {
        (0..number % 200).map(|index| (number + index) as u8).collect()
    }

    #[test]
    fn what_is_written_is_read_in_order() {
        let words = words();
        let tape = Tape::new(&words);
        let mut reader = Reader::new(tape);
        assert_eq!(tape.owner(), None);
        tape.begin(7, 9);
        assert_eq!(tape.owner(), Some((7, 9)));
        // Several rounds, with texts of all lengths over the end of the ring.
        for number in 0..3 * SLOTS as u64 {
            assert_eq!(tape.write(&entry(1, number), &text(number)), Ok(()));
            assert_eq!(reader.next(), Some((entry(1, number), text(number))));
            assert_eq!(reader.next(), None);
        }
        assert!(!reader.pass_over());
    }

    #[test]
    fn a_full_tape_takes_nothing_and_keeps_what_it_has() {
        let words = words();
        let tape = Tape::new(&words);
        for number in 0..SLOTS as u64 {
            assert_eq!(tape.write(&entry(1, number), b""), Ok(()));
        }
        assert_eq!(tape.write(&entry(1, 0), b""), Err(Full));
        let mut reader = Reader::new(tape);
        assert_eq!(reader.next(), Some((entry(1, 0), Vec::new())));
        // One slot is free, and a text needs two.
        assert_eq!(tape.write(&entry(1, 5), b"x"), Err(Full));
        assert_eq!(tape.write(&entry(1, SLOTS as u64), b""), Ok(()));
        for number in 1..=SLOTS as u64 {
            assert_eq!(reader.next(), Some((entry(1, number), Vec::new())));
        }
        assert_eq!(reader.next(), None);
    }

    #[test]
    fn long_texts_are_cut() {
        let words = words();
        let tape = Tape::new(&words);
        let long = vec![b'x'; 2 * MOST_TEXT];
        assert_eq!(tape.write(&entry(1, 0), &long), Ok(()));
        assert_eq!(Reader::new(tape).next().map(|(_, text)| text.len()), Some(MOST_TEXT));
    }

    #[test]
    fn a_slot_whose_writer_died_is_passed_over() {
        let words = words();
        let tape = Tape::new(&words);
        tape.reserve(2).expect("it is empty");
        tape.write(&entry(1, 4), b"abc").expect("there is room");
        let mut reader = Reader::new(tape);
        assert_eq!(reader.next(), None);
        assert!(reader.pass_over() && reader.next().is_none() && reader.pass_over());
        assert_eq!(reader.next(), Some((entry(1, 4), b"abc".to_vec())));
        assert!(!reader.pass_over());
        assert_eq!(tape.lost(), 2);
    }

    /// Four threads write as fast as they can while one reads: each thread's entries come in its
    /// order, whole, and none twice.
    #[test]
    fn threads_write_at_once() {
        const EACH: u64 = 100_000;
        let words = words();
        let tape = Tape::new(&words);
        let has_ended = AtomicBool::new(false);
        let mut next = [0; 4];
        thread::scope(|scope| {
            let writers: Vec<_> = (0..4_u32)
                .map(|thread| {
                    scope.spawn(move || {
                        for number in 0..EACH {
                            while tape.write(&entry(thread, number), &text(number % 60)).is_err() {
                                thread::yield_now();
                            }
                        }
                    })
                })
                .collect();
            let reader = scope.spawn(|| {
                let mut reader = Reader::new(tape);
                let mut next = [0; 4];
                loop {
                    let was_over = has_ended.load(Ordering::Acquire);
                    for (found, with) in reader.by_ref() {
                        let number = &mut next[found.thread as usize];
                        assert_eq!(
                            (found, with),
                            (entry(found.thread, *number), text(*number % 60))
                        );
                        *number += 1;
                    }
                    if was_over {
                        return next;
                    }
                }
            });
            writers.into_iter().for_each(|writer| writer.join().expect("it ends"));
            has_ended.store(true, Ordering::Release);
            next = reader.join().expect("it ends");
        });
        assert_eq!((next, tape.lost()), ([EACH; 4], 0));
    }
}

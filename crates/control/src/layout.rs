//! Where each number is in the file of statistics: words of 64 bits in the machine's order.
//!
//! A header of [`HEADER_WORDS`] is followed by [`MAPPINGS`] records of [`MAPPING_WORDS`]. A record
//! says what became of one mapping. Its `STATE` is written last when it begins. A record whose
//! mapping has ended makes room for a new mapping when all are taken; its numbers are then added to
//! those of `OTHERS` in the header.

/// What the first word is: a file of this kind, in this order of bytes, in this version.
pub const MAGIC_WORD: u64 = u64::from_be_bytes(*b"filemap1");

/// Words of the header.
pub const HEADER_WORDS: usize = 64;
/// Words of the record of a mapping.
pub const MAPPING_WORDS: usize = 64;
/// Records of mappings.
pub const MAPPINGS: usize = 256;
/// Words of the file.
pub const WORDS: usize = HEADER_WORDS + MAPPINGS * MAPPING_WORDS;

/// Words of the header.
pub mod header {
    /// [`super::MAGIC_WORD`].
    pub const MAGIC: usize = 0;
    /// The process.
    pub const PID: usize = 1;
    /// When it was started, in clock ticks since boot, as in /proc/PID/stat.
    pub const START_TICKS: usize = 2;
    /// Bytes of a page.
    pub const PAGE_BYTES: usize = 3;
    /// What observes faults: [`super::Observer`].
    pub const OBSERVER: usize = 4;
    /// Why nothing is governed (any more): [`super::Reason`].
    pub const REASON: usize = 5;
    /// Major faults that the observer reported, in whatever mapping.
    pub const REPORTED: usize = 6;
    /// Faults in governed mappings of which the policy was not asked, since another thread was
    /// asking it just then.
    pub const MISSED: usize = 7;
    /// Mappings left alone since the table was full.
    pub const TABLE_FULL: usize = 8;
    /// Mappings whose records have made room.
    pub const OTHERS: usize = 9;
    /// Their faults.
    pub const OTHERS_FAULTS: usize = 10;
    /// Pages that were asked for in them.
    pub const OTHERS_ADVISED_PAGES: usize = 11;
    /// Pages of them that were mapped when they ended.
    pub const OTHERS_TOUCHED_PAGES: usize = 12;
}

/// Words of the record of a mapping.
pub mod mapping {
    /// [`super::State`].
    pub const STATE: usize = 0;
    /// Its address.
    pub const START: usize = 1;
    /// Its length.
    pub const BYTES: usize = 2;
    /// Where it begins in its file, in bytes.
    pub const OFFSET_BYTES: usize = 3;
    /// Major faults in it that were reported.
    pub const FAULTS: usize = 4;
    /// Pages that the kernel was asked for, besides those that faulted.
    pub const ADVISED_PAGES: usize = 5;
    /// Calls that asked.
    pub const CALLS: usize = 6;
    /// Streams that began.
    pub const STREAMS: usize = 7;
    /// Pages of it that were mapped when it ended; [`super::UNKNOWN`] before, and where nobody
    /// could look.
    pub const TOUCHED_PAGES: usize = 8;
    /// Bytes of the path, at most [`PATH_BYTES`]. Of a longer one the end is kept.
    pub const PATH_LENGTH: usize = 9;
    /// The first word of the path.
    pub const PATH: usize = 16;
    /// The most bytes of a path.
    pub const PATH_BYTES: usize = (super::MAPPING_WORDS - PATH) * 8;
}

/// A number that is not known.
pub const UNKNOWN: u64 = u64::MAX;

/// What becomes of a record.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[repr(u64)]
pub enum State {
    /// It has no mapping.
    Free = 0,
    /// Its mapping is governed.
    Governed = 1,
    /// Its mapping was unmapped, or the process ended.
    Ended = 2,
    /// Its mapping was given back to the kernel: the program advised it itself, or may write to it.
    GivenBack = 3,
}

/// What observes faults.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[repr(u64)]
pub enum Observer {
    /// Nothing does.
    None = 0,
    /// A perf event.
    PerfEvent = 1,
    /// A thread that scans page tables.
    Pagemap = 2,
}

/// Why nothing is governed.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[repr(u64)]
pub enum Reason {
    /// Mappings are governed.
    None = 0,
    /// There is no observer: perf events are refused, and page tables cannot be scanned.
    NoObserver = 1,
    /// A debugger or tracer is attached, which would see the signals.
    Traced = 2,
    /// The program was started with the signal ignored or blocked that the library needs.
    SigtrapTaken = 3,
    /// A filter of system calls is in force.
    Seccomp = 4,
    /// The handler of that signal was replaced in a way that the library does not see, or the
    /// program ignores the signal.
    HandlerLost = 5,
}

impl State {
    /// The state that a word names.
    pub const fn of(word: u64) -> Option<State> {
        match word {
            0 => Some(State::Free),
            1 => Some(State::Governed),
            2 => Some(State::Ended),
            3 => Some(State::GivenBack),
            _ => None,
        }
    }
}

impl Observer {
    /// The observer that a word names.
    pub const fn of(word: u64) -> Option<Observer> {
        match word {
            0 => Some(Observer::None),
            1 => Some(Observer::PerfEvent),
            2 => Some(Observer::Pagemap),
            _ => None,
        }
    }
}

impl Reason {
    /// The reason that a word names.
    pub const fn of(word: u64) -> Option<Reason> {
        match word {
            0 => Some(Reason::None),
            1 => Some(Reason::NoObserver),
            2 => Some(Reason::Traced),
            3 => Some(Reason::SigtrapTaken),
            4 => Some(Reason::Seccomp),
            5 => Some(Reason::HandlerLost),
            _ => None,
        }
    }

    /// The reason in words, as the end of a sentence that begins with "Nothing is governed: ";
    /// empty where mappings are governed.
    pub const fn text(self) -> &'static str {
        match self {
            Reason::None => "",
            Reason::NoObserver => {
                "the kernel permits neither perf events (kernel.perf_event_paranoid above 2, or a \
                 filter of system calls) nor PAGEMAP_SCAN (Linux 6.7)"
            }
            Reason::Traced => "a debugger or tracer is attached",
            Reason::SigtrapTaken => {
                "SIGTRAP (SIGSEGV of record --changes) was ignored or blocked when the program \
                 started"
            }
            Reason::Seccomp => "the program has a filter of system calls",
            Reason::HandlerLost => {
                "the program uses SIGTRAP (SIGSEGV of record --changes) in a way that the library \
                 cannot share"
            }
        }
    }

    /// The same of a program that is to be recorded, with what can be done about it.
    pub const fn not_recorded(self) -> &'static str {
        macro_rules! or_without_library {
            ($text:literal) => {
                concat!(
                    $text,
                    "--without-library --apply as root, or perf record -e page-faults -c 1 -d and \
                     --import of what perf script prints (docs/RECORDING.md)"
                )
            };
        }
        match self {
            Reason::None => "",
            Reason::NoObserver => or_without_library!(
                "the kernel does not permit perf events (kernel.perf_event_paranoid above 2, or a \
                 filter of system calls); sysctl kernel.perf_event_paranoid=2 permits them, \
                 --changes needs none, and others are "
            ),
            Reason::Traced => or_without_library!(
                "a debugger or tracer is attached; record the program without it, or give "
            ),
            Reason::SigtrapTaken => or_without_library!(
                "SIGTRAP (SIGSEGV with --changes) was ignored or blocked when the program \
                 started; start it otherwise, or give "
            ),
            Reason::Seccomp => {
                or_without_library!("the program has a filter of system calls; give ")
            }
            Reason::HandlerLost => or_without_library!(
                "the program uses SIGTRAP (SIGSEGV with --changes) in a way that the library \
                 cannot share; give "
            ),
        }
    }
}

//! The governor's library: preloaded into a program that is not changed, it gives the kernel better
//! advice for the program's large read-only file mappings.
//!
//! It only ever advises (madvise(2)), so what the program computes cannot change. A mapping that is
//! governed is advised MADV_RANDOM, so that the kernel reads single pages. A perf event reports
//! each major fault to the thread that made it, as a SIGTRAP before its next instruction. The
//! handler asks the policy which other pages are worth reading, and asks the kernel for these.
//!
//! | Modules | Contents |
//! |---|---|
//! | `hooks` | the functions of the C library that are interposed: what the program does |
//! | `observer`, `disposition` | what reports faults, and the signal by which that is done |
//! | `access` | what was refused, where the kernel says that by a signal |
//! | `start`, `stand_down` | how all of this begins and ends in a process |
//! | `purpose` | is told by all of these, and hands on to what the library is there for |
//! | `govern`, `lending` | a purpose: what is done about mappings |
//! | `record` | another one: the program's doings are told on a tape |
//! | `advise` | the third: it gives the advice that it is told, in place of the program's own |
//! | `table`, `statistics` | what is known of each mapping, and what is told of it |
//! | `standard_error` | what is said where nothing is governed or recorded |
//! | `shared_file` | the file by which a process tells the command |
//! | `advice`, `file`, `page_tables`, `next`, `lock` | what the kernel and libc are asked for |
//!
//! Rules that all code here keeps: nothing that runs in the handler allocates, waits for a lock or
//! changes errno. No file is kept open, since closing a descriptor of a file would drop all record
//! locks that the program has on it. What the library cannot do is left to the kernel.
#![deny(
    clippy::expect_used,
    clippy::indexing_slicing,
    clippy::panic,
    clippy::todo,
    clippy::unimplemented,
    clippy::unwrap_used
)]

mod access;
mod advice;
mod advise;
mod ahead;
mod disposition;
mod file;
mod govern;
mod hooks;
mod lending;
mod lock;
mod next;
mod observer;
mod page_tables;
mod policy;
mod purpose;
mod record;
mod shared_file;
mod stand_down;
mod standard_error;
mod start;
mod statistics;
mod table;

//! Threads that map, read and unmap files of their own, under one memory cgroup.
//!
//! A simulation by discrete events: every thread is a task with a CPU or without one, the steps of
//! its faults are those of `filemap-core`, and what they ask for - locks, pages, charges, reclaim -
//! takes time and may be waited for. Times are whole nanoseconds; events at one time come in the
//! order in which they were put in; one seed staggers the threads. So a job has one result.

pub mod cgroup;
mod charging;
mod check;
pub mod costs;
mod cpus;
mod ending;
mod engine;
mod events;
mod faulting;
mod job;
mod list_lock;
mod machine;
pub mod mechanisms;
mod outcome;
mod reclaiming;
mod repaying;
mod round;
mod scheduling;
mod task;
mod turns;
mod waits;
mod window;
pub mod words;

pub use ending::{Ending, Error, Holder};
pub use engine::trace_thrash;
pub use job::{Thrash, Until};
pub use machine::{run, run_on};
pub use outcome::{Counts, Outcome};
pub use waits::{Cause, Histogram, Waits};

//! Perf events: how they are opened, and what the kernel writes about them.

mod event;
mod record;
mod ring;
mod rings;
mod threads;

pub(crate) use event::{Attributes, Flag, enable, lost_records, open, open_into};
pub(crate) use record::{Kind, Record};
pub(crate) use rings::{NOTHING, OWN_THREAD, Purpose, RingPlan, Rings};
pub(crate) use threads::each_thread;

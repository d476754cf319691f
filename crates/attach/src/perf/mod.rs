//! Perf events: how they are opened, and what the kernel writes about them.

mod event;
mod record;
mod ring;

pub(crate) use event::{Attributes, Flag, online_cpus, open, redirect};
pub(crate) use record::{Kind, Record, record_at};
pub(crate) use ring::Ring;

//! What parent and child say to each other: 64-bit words in this machine's byte order.

mod process;
mod reply;
mod words;

pub(super) use reply::{Reply, bus_message, read_reply, write_reply};
pub(super) use words::{get, get_all, get_path, put, put_all, put_path};

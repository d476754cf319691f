//! What a command and the library that it preloads into a program say to each other.
//!
//! The command says what it wants through the program's environment ([`Settings`]). The library
//! says what it does through a file of numbers that it maps ([`layout`]), so that it can be read at
//! any time, whatever the program does, and costs the program no call. [`Snapshot`] reads it. Where
//! there can be no such file, it says so to whoever collects them ([`Unkept`]). Both know by which
//! requests the kernel tells of faults ([`request`]), and which filesystems have no disk
//! ([`IN_MEMORY`]).
#![forbid(unsafe_code)]

mod filesystem;
pub mod layout;
mod process;
pub mod request;
pub mod rule;
mod settings;
mod snapshot;
pub mod tape;
mod unkept;

pub use filesystem::IN_MEMORY;
pub use process::start_ticks;
pub use settings::{
    BadSetting, OPEN_PAGES, Purpose, SMALLEST_READ_RECORDED, SMALLEST_RECORDED, Settings, variable,
};
pub use snapshot::{Malformed, MappingSnapshot, Snapshot};
pub use unkept::{Unkept, socket_name};

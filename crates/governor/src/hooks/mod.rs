//! The functions of the C library that are interposed. They do what the program asks for, and tell
//! `purpose` of it. They know nothing of what the library is there for.

mod descriptors;
mod exit;
mod fork;
mod input;
pub mod mask;
mod memory;
mod output;
mod programs;
mod receiving;
mod sandbox;
mod signals;
mod texts;
mod vectors;
mod waits;

//! Jobs: what is valid, what their seeds mean, and what they become.

mod any_text;
mod elf;
mod program;
mod replay;
mod seeds;
mod validation;

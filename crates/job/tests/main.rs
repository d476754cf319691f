//! Jobs: validation, seeds and lowering.

mod any_text;
mod elf;
mod program;
mod replay;
mod seeds;
mod validation;

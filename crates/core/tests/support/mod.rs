//! What the tests of the rules share: the map notation, a machine to test on, a small engine.
#![allow(dead_code)] // Each test file uses a part of it.

pub mod around;
pub mod engine;
pub mod lists;
pub mod machine;
pub mod map;
pub mod miss;
pub mod one_file;
pub mod transcript;

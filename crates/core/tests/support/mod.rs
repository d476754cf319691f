//! Support for the tests of the rules: the map notation, a test machine, a small engine.

pub mod around;
pub mod engine;
pub mod lists;
pub mod machine;
pub mod map;
pub mod miss;
pub mod one_file;
pub mod transcript;

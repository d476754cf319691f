//! What the tests of the rules share: the map notation, a machine to test on, a small engine.

pub mod around;
pub mod engine;
pub mod lists;
pub mod machine;
pub mod map;
pub mod miss;
pub mod one_file;
pub mod transcript;
